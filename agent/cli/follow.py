"""`bpagent view --follow`: the page of a run that goes on, served to this machine only, with controls.

Only who has the token in the address gets an answer; what changes the run must come from the page itself (its origin),
so that no other page can have a browser send it.
"""

import hmac
import json
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from secrets import token_urlsafe
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from agent.cli import control
from agent.history.playback import shadow_of
from agent.log.reading import read_log, record_of
from agent.page import lanes_page, run_facts, title_of
from agent.page.document import as_data
from agent.page.model import PageModel
from bp import BThread

LONGEST = 64 * 1024  # bytes of one decision
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Following:
    """The log of a run that may go on, and what its page shows; `look` takes what has been written meanwhile."""

    def __init__(self, log: Path, threads: Sequence[BThread] = ()) -> None:
        """Read what is there. Raises LogError for what is no log."""
        self.log = log
        self._model = PageModel()
        self._lock = Lock()
        self._end = 0  # bytes of the log that were read
        self._shadow = shadow_of(read_log(log), threads)

    def page(self) -> str:
        """Return the page as it is now."""
        run = read_log(self.log)
        with self._lock:
            self._look()
            problems = [self._shadow.problem] if self._shadow.problem else []
            return lanes_page(title_of(run), self._model, [run_facts(run)], problems, live=True)

    def news(self, rows: int, parts: int, evidence: int) -> dict[str, Any]:
        """Return what a page does not have yet that has so many of each."""
        with self._lock:
            self._look()
            return self._model.data(rows, parts, evidence)

    def _look(self) -> None:
        with self.log.open("rb") as file:
            file.seek(self._end)
            written = file.read()
        whole = written[: written.rfind(b"\n") + 1]
        lines = whole.splitlines()
        for line in lines[1:] if self._end == 0 else lines:
            self._model.take(self._shadow.take(record_of(line)))
        self._end += len(whole)


class Server(ThreadingHTTPServer):
    """Serves one page; `address` has the token, without which there is no answer."""

    daemon_threads = True

    def __init__(self, following: Following) -> None:
        self.following = following
        self.token = token_urlsafe(24)
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def origin(self) -> str:
        """The origin of the page, as browsers send it."""
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def address(self) -> str:
        """The address of the page."""
        return f"{self.origin}/{self.token}/"


class Handler(BaseHTTPRequestHandler):
    """One request; every refusal is the same 404, which tells nothing."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        """Give the page, or what is new of it."""
        place = self._place()
        if place == "":
            self._answer(200, "text/html", self.server.following.page())
        elif place == "news":
            asked = parse_qs(urlsplit(self.path).query)
            counts = [asked.get(name, ["0"])[0] for name in ("rows", "parts", "evidence")]
            if all(count.isdecimal() for count in counts):
                news = self.server.following.news(*(int(count[:9]) for count in counts))
                self._answer(200, "application/json", as_data(news))
                return
            self._refuse()
        else:
            self._refuse()

    def do_POST(self) -> None:
        """Carry a decision out."""
        length = self.headers.get("Content-Length", "")
        if self._place() != "act" or not self._is_from_the_page() or not length.isdecimal() or int(length) > LONGEST:
            self._refuse()
            return
        try:
            decision = json.loads(self.rfile.read(int(length)))
            control.send(self.server.following.log, decision)
            said: dict[str, Any] = {"done": True}
        except (ValueError, control.Unheard) as error:
            said = {"done": False, "why": str(error)}
        self._answer(200, "application/json", json.dumps(said))

    def _place(self) -> str | None:
        """Return what is asked for behind the token; None for a request that is not meant for us."""
        if self.headers.get("Host") != urlsplit(self.server.origin).netloc:  # a name that leads here is not enough
            return None
        parts = urlsplit(self.path).path.split("/")
        if len(parts) != 3 or not hmac.compare_digest(parts[1].encode(), self.server.token.encode()):
            return None
        return parts[2]

    def _is_from_the_page(self) -> bool:
        return (
            self.headers.get("Origin") == self.server.origin
            and self.headers.get("Sec-Fetch-Site", "same-origin") == "same-origin"
            and self.headers.get("Content-Type") == "application/json"
        )

    def _refuse(self) -> None:
        self.close_connection = True
        self._answer(404, "text/plain", "")

    def _answer(self, code: int, kind: str, text: str) -> None:
        content = text.encode()
        self.send_response(code)
        for name, value in {
            **HEADERS,
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": len(content),
        }.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(content)

    def version_string(self) -> str:
        """Tell nothing."""
        return "bpagent"

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing: the terminal belongs to the user."""
