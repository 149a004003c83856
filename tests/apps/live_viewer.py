"""A viewer of the live page: the client side of a WebSocket (RFC 6455), as far
as a test needs it, from the standard library alone."""

import base64
import http.client
import json
import os
import socket
import struct
import urllib.parse

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10
TIME = 60  # seconds, for what should come soon


def get(address, method="GET", path=None, fields=None):
    """The status and the body of a page."""
    url = urllib.parse.urlsplit(address)
    connection = http.client.HTTPConnection(url.netloc, timeout=TIME)
    connection.request(method, path or f"{url.path}?{url.query}",
                       headers=fields or {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


class Viewer:
    """Connected when it is made; Refused if the server does not want it."""

    class Refused(Exception):
        pass

    def __init__(self, address, path="/live", query=None, fields=()):
        url = urllib.parse.urlsplit(address)
        self.socket = socket.create_connection((url.hostname, url.port), TIME)
        self.stream = self.socket.makefile("rb")
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path}?{url.query if query is None else query} HTTP/1.1",
                 f"Host: {url.netloc}", "Upgrade: websocket",
                 "Connection: Upgrade", f"Sec-WebSocket-Key: {key}",
                 "Sec-WebSocket-Version: 13", *fields, "", ""]
        self.socket.sendall("\r\n".join(lines).encode())
        status = self.stream.readline().split()
        if len(status) < 2 or status[1] != b"101":
            raise Viewer.Refused(status[1].decode() if len(status) > 1 else "")
        while self.stream.readline().strip():
            pass

    def frame(self, kind, payload, last=True):
        mask = os.urandom(4)
        size = (struct.pack("!B", 128 | len(payload)) if len(payload) < 126
                else struct.pack("!BH", 128 | 126, len(payload)))
        masked = bytes(byte ^ mask[i % 4] for i, byte in enumerate(payload))
        self.socket.sendall(bytes([kind | (128 if last else 0)]) + size + mask +
                            masked)

    def ask(self, **wish):
        self.frame(TEXT, json.dumps(wish).encode())

    def picture(self):
        """The next one; None if the server has closed."""
        while True:
            head = self.stream.read(2)
            if len(head) < 2:
                return None
            size = head[1] & 127
            if size == 126:
                size = struct.unpack("!H", self.stream.read(2))[0]
            elif size == 127:
                size = struct.unpack("!Q", self.stream.read(8))[0]
            payload = self.stream.read(size)
            kind = head[0] & 15
            if kind == TEXT:
                return json.loads(payload)
            if kind == PING:
                self.frame(PONG, payload)
            if kind == CLOSE:
                return None

    def until(self, is_true):
        """The next picture of which that is true; None if none comes."""
        while (picture := self.picture()) is not None:
            if is_true(picture):
                return picture
        return None

    def held(self, number, frame=None):
        """Until that iteration is held: that iteration."""
        found = []

        def is_held(picture):
            found[:] = [(box, one) for part in picture.get("parts", [])
                        if part["view"] for box in part["view"]["frames"]
                        for one in box["iterations"] if one["stopped"]
                        if one["number"] == number
                        if frame is None or box["name"] == frame]
            return bool(found)

        assert self.until(is_held) is not None, f"{number} is never held"
        return found[0][1]

    def kill(self):
        # Without a farewell: the kernel resets the connection.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                               struct.pack("ii", 1, 0))
        self.stream.close()
        self.socket.close()
