"""A websocket server (RFC 6455) that can be asked for its connections and to
close single ones, so that a drain can send its clients away a few at a time.

    server.py PORT SOCKET

It echoes what its clients send. SOCKET is a Unix socket for admin.py: "list"
answers with the connections' numbers, one a line; "close N CODE" closes one and
answers when the client has agreed or three seconds have passed. On TERM it closes
what is left with code 1001 and ends.
"""

import asyncio
import base64
import hashlib
import itertools
import os
import signal
import struct
import sys

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
GOING_AWAY, PROTOCOL_ERROR, TOO_BIG = 1001, 1002, 1009
MAX_MESSAGE = 1 << 20
PATIENCE = 3  # seconds for a client's answer to a close frame
KEEP_ALIVE = 20  # seconds between pings, for the proxies on the way


class Broken(Exception):
    """The client does not keep to the protocol; the code to close with."""

    def __init__(self, code=PROTOCOL_ERROR):
        self.code = code


class Connection:
    def __init__(self, number, reader, writer):
        self.number, self.reader, self.writer = number, reader, writer
        self.told = False  # a close frame has been sent
        self.over = asyncio.Event()

    async def handshake(self):
        request, *lines = (await self.reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
        fields = {}
        for line in lines:
            name, _, value = line.partition(b":")
            fields[name.lower()] = value.strip()
        key = fields.get(b"sec-websocket-key")
        if (
            not request.startswith(b"GET ")
            or fields.get(b"upgrade", b"").lower() != b"websocket"
            or fields.get(b"sec-websocket-version") != b"13"
            or not key
        ):
            self.writer.write(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
            return False
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
        self.writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        return True

    def send(self, opcode, payload=b""):
        length = len(payload)
        if length < 126:
            head = struct.pack("!BB", 0x80 | opcode, length)
        elif length < 1 << 16:
            head = struct.pack("!BBH", 0x80 | opcode, 126, length)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 127, length)
        self.writer.write(head + payload)

    async def frame(self):
        first, second = await self.reader.readexactly(2)
        opcode, length = first & 0x0F, second & 0x7F
        if length == 126:
            (length,) = struct.unpack("!H", await self.reader.readexactly(2))
        elif length == 127:
            (length,) = struct.unpack("!Q", await self.reader.readexactly(8))
        if first & 0x70 or not second & 0x80 or (opcode >= CLOSE and (length > 125 or not first & 0x80)):
            raise Broken
        if length > MAX_MESSAGE:
            raise Broken(TOO_BIG)
        mask = await self.reader.readexactly(4)
        payload = bytearray(await self.reader.readexactly(length))
        for i in range(length):
            payload[i] ^= mask[i & 3]
        return bool(first & 0x80), opcode, bytes(payload)

    async def serve(self):
        """Answer until the connection is closed; a message may come in parts."""
        kind, parts = None, b""
        while True:
            final, opcode, payload = await self.frame()
            if opcode == CLOSE:
                self.close(payload[:2] if len(payload) > 1 else b"")
                return
            if opcode == PING:
                self.send(PONG, payload)
            elif opcode in (TEXT, BINARY, CONTINUATION):
                if (opcode == CONTINUATION) == (kind is None):
                    raise Broken
                kind, parts = kind or opcode, parts + payload
                if len(parts) > MAX_MESSAGE:
                    raise Broken(TOO_BIG)
                if final and not self.told:
                    self.send(kind, parts)
                if final:
                    kind, parts = None, b""
            elif opcode != PONG:
                raise Broken
            await self.writer.drain()

    def close(self, payload):
        """Send a close frame, which is the last one."""
        if not self.told:
            self.told = True
            self.send(CLOSE, payload)

    async def closed(self, code):
        """Close, and wait until the client has agreed, but not for ever."""
        self.close(struct.pack("!H", code))
        try:
            await asyncio.wait_for(self.over.wait(), PATIENCE)
        except asyncio.TimeoutError:
            self.writer.transport.abort()


class Server:
    def __init__(self):
        self.connections = {}
        self.numbers = itertools.count(1)

    async def websocket(self, reader, writer):
        c = Connection(next(self.numbers), reader, writer)
        try:
            if await c.handshake():
                self.connections[c.number] = c
                await self.until_closed(c)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client has gone, or was never one
        finally:
            self.connections.pop(c.number, None)
            c.over.set()
            writer.close()

    async def until_closed(self, c):
        ping = asyncio.ensure_future(self.keep_alive(c))
        try:
            await c.serve()
        except Broken as fault:
            c.close(struct.pack("!H", fault.code))
        finally:
            ping.cancel()

    async def keep_alive(self, c):
        while not c.told:
            await asyncio.sleep(KEEP_ALIVE)
            c.send(PING)

    async def admin(self, reader, writer):
        words = (await reader.readline()).split()
        answer = "error: unknown command\n"
        if words == [b"list"]:
            answer = "".join(f"{n}\n" for n in self.connections)
        elif len(words) == 3 and words[0] == b"close" and words[1].isdigit() and words[2].isdigit():
            answer = await self.close_one(int(words[1]), int(words[2]))
        writer.write(answer.encode())
        writer.close()

    async def close_one(self, number, code):
        c = self.connections.get(number)
        if c is not None:  # it may have gone by itself, which is as well
            await c.closed(code)
            print(f"closed {number} with {code}", flush=True)
        return ""

    async def run(self, port, socket):
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        listener = await asyncio.start_server(self.websocket, "127.0.0.1", port, backlog=1024)
        os.umask(0o077)  # nobody else may close connections
        admin = await asyncio.start_unix_server(self.admin, socket)
        print(f"serving on {listener.sockets[0].getsockname()[1]}", flush=True)
        await stop.wait()
        print(f"told to stop, {len(self.connections)} connections left", flush=True)
        listener.close()
        await asyncio.gather(*(c.closed(GOING_AWAY) for c in list(self.connections.values())))
        admin.close()


asyncio.run(Server().run(int(sys.argv[1]), sys.argv[2]))
