"""A server of ours to talk to, which can misbehave in every byte."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


class Server:
    """An HTTP server on loopback. Each connection gets the next reply: pieces of bytes, sent one by one, then closed.

    `requests` are the requests as (request line, headers, body). `gone` is set when a client closes a connection that
    the server would keep open (a piece None: wait for that).
    """

    def __init__(self) -> None:
        self.replies: list[list[bytes | None]] = []
        self.requests: list[tuple[str, dict[str, str], dict[str, object]]] = []
        self.gone = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def reply(self, *pieces: bytes | None) -> None:
        self.replies.append(list(pieces))

    def stream(self, *chunks: object, done: bool = True) -> None:
        """Reply with a stream of chunks, all of them well-formed frames."""
        frames = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks]
        self.reply(STREAM, *frames, *([b"data: [DONE]\n\n"] if done else []))

    def answer_status(self, status: str, body: str = "", *headers: str) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Content-Type: application/json", *headers]
        self.reply("\r\n".join([*lines, "", body]).encode())

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(5)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(OSError):
                    connection.settimeout(10)
                    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self._handle(connection)

    def _handle(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as incoming:
            first = incoming.readline().decode().strip()
            headers = {}
            while line := incoming.readline().decode().strip():
                name, _, value = line.partition(":")
                headers[name.lower()] = value.strip()
            body = incoming.read(int(headers.get("content-length", 0)))
            self.requests.append((first, headers, json.loads(body) if body else {}))
        for piece in self.replies.pop(0):
            if piece is None:
                if connection.recv(1) == b"":
                    self.gone.set()
            else:
                connection.sendall(piece)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()
