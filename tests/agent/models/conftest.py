"""A model server on loopback that can misbehave in every byte: standard library, no framework, no third party."""

import json
import socket
import struct
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import Enum
from typing import Any

import pytest

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
DONE = b"data: [DONE]\n\n"


class Then(Enum):
    """What a reply does between its pieces, besides sending."""

    WAIT = "wait until the client has gone"
    RESET = "reset the connection, so that even what is under way is lost"
    REST = "send nothing for a moment"


Piece = bytes | Then | None
"""Bytes to send in one go, or what to do; None is WAIT."""


class Server:
    """An HTTP server. Each connection gets the next reply: pieces, one by one, then the connection is closed.

    `requests` are the requests as (request line, headers, body). `gone` is set when a client closes a connection that
    the server would keep open, or would go on writing to.
    """

    def __init__(self) -> None:
        self.replies: list[Iterable[Piece]] = []
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.gone = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def reply(self, *pieces: Piece) -> None:
        self.replies.append(pieces)

    def reply_with(self, pieces: Iterable[Piece]) -> None:
        """Reply with pieces that may never end."""
        self.replies.append(pieces)

    def stream(self, *chunks: object, done: bool = True) -> None:
        """Reply with a stream of chunks, all of them well-formed frames."""
        self.reply(STREAM, *(frame(chunk) for chunk in chunks), *([DONE] if done else []))

    def answer_status(self, status: str, body: str = "", *headers: str, kind: str = "application/json") -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", f"Content-Type: {kind}", *headers]
        self.reply("\r\n".join([*lines, "", body]).encode())

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(100)

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(OSError):
                    connection.settimeout(1000)
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
        try:
            for piece in self.replies.pop(0):
                self._play(connection, piece)
        except (BrokenPipeError, ConnectionResetError):
            self.gone.set()

    def _play(self, connection: socket.socket, piece: Piece) -> None:
        match piece:
            case bytes():
                connection.sendall(piece)
            case Then.REST:
                time.sleep(0.01)
            case Then.RESET:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            case Then.WAIT | None:
                if connection.recv(1) == b"":
                    self.gone.set()


def frame(chunk: object, line_end: str = "\n") -> bytes:
    """One event with one data line."""
    text = json.dumps(chunk, ensure_ascii=False)
    if text != text.encode(errors="replace").decode():  # halves of a character
        text = json.dumps(chunk)
    return f"data: {text}{line_end * 2}".encode()


def byte_by_byte(content: bytes) -> list[bytes]:
    return [content[at : at + 1] for at in range(len(content))]


@pytest.fixture
def anyio_backend() -> str:
    """Most of this differs on no event loop; the modules for which it does say so."""
    return "asyncio"


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()
