"""Servers to talk to: one of ours that can misbehave in every byte, and one that this project did not write."""

import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

LLMOCK = Path(__file__).parents[3] / ".tools" / "node_modules" / ".bin" / "llmock"

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


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def llmock(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """A function that starts the third-party server with fixtures and returns its base URL."""
    if not LLMOCK.exists():
        reason = f"{LLMOCK} is missing: in .tools, npm i --ignore-scripts --no-save @copilotkit/aimock@1.43.0"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    running: list[subprocess.Popen[bytes]] = []

    def start(*fixtures: dict[str, object]) -> str:
        folder = tmp_path / "llmock"
        folder.mkdir()
        (folder / "fixtures.json").write_text(json.dumps({"fixtures": list(fixtures)}))
        port = _free_port()
        log = (tmp_path / "llmock.log").open("wb")
        with log:
            command = [str(LLMOCK), "-p", str(port), "-f", str(folder)]
            running.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL))
        _await_port(port, running[-1], tmp_path / "llmock.log")
        return f"http://127.0.0.1:{port}/v1"

    yield start
    for process in running:
        process.terminate()
        process.wait(10)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _await_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return when the server listens; there is no event to wait for but the connection itself."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    pytest.fail(f"llmock did not start: {log.read_text()[-500:]}")
