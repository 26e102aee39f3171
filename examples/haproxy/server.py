"""python3 server.py ADDRESS: a web server on port 8080 that tells its address.

Nothing in it knows of signals, so TERM ends it at once, in the midst of its
answers: whatever reaches it by then is lost.
"""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        # A balancer ends its checks by a reset, which is normal.
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = sys.argv[1].encode() + b"\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


Server((sys.argv[1], 8080), Answer).serve_forever()
