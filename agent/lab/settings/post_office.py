"""One HTTP server on loopback in the place of all hosts; requests are recorded and never forwarded.

An episode has a mailbox. Its `.curlrc` makes `curl` connect to this server for every host, and name the mailbox in a
header; so commands can use `http://uploads.internal/` and are the same in every run. In a cell the server is reached by
a socket that listens on the loopback inside, and all its requests are for the episode's mailbox.
"""

import socket
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from attrs import define, field, frozen

HEADER = "X-Mailbox"
LARGEST = 10_000_000  # bytes of one request


@frozen
class Parcel:
    """A request that arrived: its host, its path (with the query), and its body."""

    host: str
    path: str
    body: bytes


@define
class Mailbox:
    """The requests of one episode, in order, and the pages that it may fetch: contents by `host/path`."""

    name: str
    port: int
    pages: Mapping[str, bytes] = field(factory=dict)
    parcels: list[Parcel] = field(factory=list)

    @property
    def curlrc(self) -> str:
        """The configuration that makes `curl` connect here."""
        here, name = f"::127.0.0.1:{self.port}", f"{HEADER}: {self.name}"
        no_waiting = 'header = "Expect:"'  # else curl waits a second before it uploads
        return f'connect-to = "{here}"\nheader = "{name}"\n{no_waiting}\nmax-time = 10\nproxy = ""\n'

    def received(self, host: str) -> list[Parcel]:
        """Return the requests to `host`."""
        return [parcel for parcel in self.parcels if parcel.host == host]


class PostOffice:
    """The server, running during the `with` block on its own threads."""

    def __init__(self) -> None:
        self._boxes: dict[str, Mailbox] = {}
        self._server: ThreadingHTTPServer | None = None
        self._lock = threading.Lock()

    def open_box(self, name: str, pages: Mapping[str, bytes]) -> Mailbox:
        """Return a new mailbox. The server starts with the first one. Raises OSError."""
        with self._lock:
            if self._server is None:
                self._server = _serve(self._boxes)
            box = Mailbox(name, self._server.server_address[1], pages)
            self._boxes[name] = box
        return box

    @staticmethod
    def attend(box: Mailbox, listener: socket.socket) -> None:
        """Serve a socket for one mailbox, without looking at the header, until it is shut down."""
        server = ThreadingHTTPServer(listener.getsockname(), _handler(lambda _: box), bind_and_activate=False)
        server.socket.close()
        server.socket, server.daemon_threads = listener, True
        threading.Thread(target=_accept, args=(server,), daemon=True, name=f"post office of {box.name}").start()

    def close_box(self, box: Mailbox) -> None:
        """Accept no more requests for this mailbox."""
        self._boxes.pop(box.name, None)

    def __enter__(self) -> "PostOffice":
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


def _serve(boxes: Mapping[str, Mailbox]) -> ThreadingHTTPServer:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(boxes.get))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True, name="post office").start()
    return server


def _accept(server: ThreadingHTTPServer) -> None:
    """Accept connections without polling; shutting the socket down ends the wait."""
    while True:
        try:
            connection, address = server.socket.accept()
        except OSError:
            return
        server.process_request(connection, address)


def _handler(find: Callable[[str], Mailbox | None]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._take()

        do_POST = do_PUT = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Print nothing."""

        def _take(self) -> None:
            size = self.headers.get("Content-Length", "0")
            body = self.rfile.read(min(int(size), LARGEST)) if size.isdecimal() else b""
            box = find(self.headers.get(HEADER, ""))
            host = self.headers.get("Host", "").partition(":")[0]
            if box is None:
                return self._answer(404, b"no such mailbox\n")
            box.parcels.append(Parcel(host, self.path, body))
            page = box.pages.get(f"{host}{self.path.partition('?')[0]}")
            if self.command == "GET" and page is None and "?" not in self.path:
                return self._answer(404, b"not found\n")
            return self._answer(200, page if page is not None else b"ok\n")

        def _answer(self, status: int, text: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    return Handler
