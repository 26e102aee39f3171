"""An HTTP server as it is often run: nothing in it knows of signals, so TERM
ends it at once, in the middle of whatever it answers."""

import random
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    # The default of 5 drops connections under load; the client's kernel would
    # try again after a second.
    request_queue_size = 128

    def handle_error(self, request, client_address):
        # The balancer ends connections that lie idle by a reset. That is normal,
        # and a page for each would bury the init's log.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        if self.path == "/":  # the balancer's check
            self.head(3)
            self.wfile.write(b"up\n")
            return
        body = self.path.removeprefix("/item/").encode() * 512
        half = len(body) // 2
        delay = random.uniform(0.05, 0.2)
        time.sleep(delay / 2)
        self.head(len(body))
        self.wfile.write(body[:half])
        time.sleep(delay / 2)
        self.wfile.write(body[half:])

    def head(self, length):
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, *args):
        pass


Server(("127.0.0.1", int(sys.argv[1])), Answer).serve_forever()
