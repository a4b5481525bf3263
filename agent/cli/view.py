"""`bpagent view`: a log as one HTML page for a browser; all runs, with an index; or a live run.

The page of a live run is served to this machine only, with controls. Only clients with the token in the address get an
answer; decisions must come from the page itself (its origin), so that no other page can make a browser send them.
"""

import hmac
import json
import os
import webbrowser
from argparse import Namespace
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from secrets import token_urlsafe
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from agent.cli import control
from agent.cli.build import load_protocols
from agent.cli.errors import OK, Mistake, leave_the_line_of_the_key, say
from agent.cli.runs import find_log, find_logs, runs_folder, summaries
from agent.cli.undo import undo_before
from agent.history.changes import history_of
from agent.history.playback import shadow_of
from agent.log.reading import read_log, record_of
from agent.log.writing import is_in_use
from agent.page import index_page, lanes_page, render_page, run_facts, title_of
from agent.page.document import as_data
from agent.page.model import PageModel
from agent.vocabulary.errors import AgentError
from bp import BThread

BEGINNING = b"<!doctype html>"
ONE_LOG = "--output, --open and --follow are for one log; name one"


def execute(arguments: Namespace) -> int:
    """Write the page beside the log, or to --output, and show its path. Raises LogError for no log."""
    if arguments.follow:
        return _follow(arguments)
    pages = [_index(arguments)] if arguments.all else _pages(arguments)
    for page in pages:
        print(page)
    if arguments.open:
        _open(pages[0].absolute().as_uri())
    return OK


def _open(address: str) -> None:
    if not webbrowser.open(address):
        say("no browser could be opened here")


def _pages(arguments: Namespace) -> list[Path]:
    """Write the pages of logs; each of several gets those of the b-threads that its run had."""
    logs = find_logs(arguments.log) or [find_log()]
    if len(logs) > 1 and (arguments.output or arguments.open):
        raise Mistake(ONE_LOG)
    threads, pages = load_protocols(arguments.protocol), []
    for log in logs:
        path, run = Path(arguments.output) if arguments.output else log.with_suffix(".html"), read_log(log)
        if path.exists() and path.samefile(log):
            raise Mistake(f"{path} is the log itself; name another file with --output")
        there = {entry.get("name") for entry in run.header.get("bthreads") or ()}
        own = [each for each in threads if len(logs) == 1 or each.name in there]
        shadow = shadow_of(run, own)
        shadow.close()
        for problem in filter(None, (run.integrity, shadow.problem)):
            say(problem)
        write_page(path, render_page(run, own))
        pages.append(path)
    return pages


def _follow(arguments: Namespace) -> int:
    """Serve the page of a run until Ctrl-C."""
    if arguments.all or arguments.output:
        raise Mistake("--follow serves the page of one run; leave --all and --output out")
    [log, *others] = find_logs(arguments.log) or [find_log()]
    if others:
        raise Mistake(ONE_LOG)
    with Server(Following(log, load_protocols(arguments.protocol))) as server:
        try:
            print(server.address, flush=True)
            say("this address is for you alone: who has it can approve, steer and stop; Ctrl-C ends it")
            if arguments.open:
                _open(server.address)
            server.serve_forever()
        except KeyboardInterrupt:
            leave_the_line_of_the_key()
    return OK


def _index(arguments: Namespace) -> Path:
    """Write the page of every run whose log is newer than its page, and an index of them."""
    if arguments.log or arguments.output:
        raise Mistake("--all writes the pages of all runs beside their logs; leave LOG and --output out")
    found, broken = summaries()
    for sentence in broken:
        say(sentence)
    if not found:
        raise Mistake(f"there is no run yet in {runs_folder()}; make one: bpagent run PROMPT")
    threads = load_protocols(arguments.protocol)
    for summary in found:
        page = summary.path.with_suffix(".html")
        if not page.exists() or page.stat().st_mtime_ns <= summary.path.stat().st_mtime_ns:
            write_page(page, render_page(read_log(summary.path), threads))
    index = runs_folder() / "index.html"
    write_page(index, index_page([summary.plain() for summary in found], str(runs_folder())))
    return index


def write_page(path: Path, page: str) -> None:
    """Write a page that only its owner can read, like the log; it replaces only an older page. Raises Mistake."""
    if path.is_file():
        with path.open("rb") as older:
            if older.read(len(BEGINNING)).lower() not in (BEGINNING, b""):
                raise Mistake(f"{path} is there and is no page; name another file")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(page)
    except OSError as error:
        raise Mistake(f"cannot write the page {path}: {error.strerror}; name another file") from error


# Live runs.

HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Following:
    """The log of a run, and the content of its page; `look` reads new records."""

    def __init__(self, log: Path, threads: Sequence[BThread] = ()) -> None:
        """Read the log so far. Raises LogError for an invalid log."""
        self.log = log
        self._model = PageModel(files=history_of(read_log(log)))
        self._lock = Lock()
        self._end = 0  # bytes of the log that were read
        self._shadow = shadow_of(read_log(log), threads)

    def page(self) -> str:
        """Return the present page."""
        run = read_log(self.log)
        with self._lock:
            self._look()
            problems = [self._shadow.problem] if self._shadow.problem else []
            return lanes_page(title_of(run), self._model, [run_facts(run)], problems, live=True)

    def news(self, rows: int, parts: int, evidence: int) -> dict[str, Any]:
        """Return the new data for a page that has this many of each."""
        with self._lock:
            self._look()
            return {**self._model.data(rows, parts, evidence), "idle": not is_in_use(self.log)}

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
    """One request; every refusal is the same 404, which reveals nothing."""

    server: Server
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self) -> None:
        """Send the page, or its new data."""
        place, asked = self._place(), parse_qs(urlsplit(self.path).query)
        counts = [asked.get(name, ["0"])[0] for name in ("rows", "parts", "evidence")]
        if place == "":
            self._answer(200, "text/html", self.server.following.page())
        elif place == "news" and all(count.isdecimal() for count in counts):
            news = self.server.following.news(*(int(count[:9]) for count in counts))
            self._answer(200, "application/json", as_data(news))
        else:
            self._refuse()

    def do_POST(self) -> None:
        """Carry out a decision."""
        length = self.headers.get("Content-Length", "")
        fits = length.isdecimal() and int(length) <= control.LONGEST
        if self._place() != "act" or not (fits and self._is_from_the_page()):
            self._refuse()
            return
        try:
            self._carry_out(json.loads(self.rfile.read(int(length))))
            said: dict[str, Any] = {"done": True}
        except (ValueError, AgentError, control.NotDelivered) as error:
            said = {"done": False, "why": str(error)}
        self._answer(200, "application/json", json.dumps(said))

    def _carry_out(self, decision: Any) -> None:
        """Have the run carry out a decision; an undo after its end is done here. Raises NotDelivered, SnapshotError."""
        log = self.server.following.log
        match decision:
            case {"do": "undo", "step": int(step)} if not is_in_use(log):
                if left := undo_before(log, step).left:
                    raise control.NotDelivered("; ".join(f"left: {path} ({why})" for path, why in left.items()))
            case dict():
                control.send(log, decision)
            case _:
                raise control.NotDelivered("this is not a decision")

    def _place(self) -> str | None:
        """Return the path after the token; None for a request without it, or to another host."""
        if self.headers.get("Host") != urlsplit(self.server.origin).netloc:  # other names of this address are refused
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
        own = {"Content-Type": f"{kind}; charset=utf-8", "Content-Length": str(len(content))}
        for name, value in {**HEADERS, **own}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def version_string(self) -> str:
        """Reveal no version."""
        return "bpagent"

    def log_message(self, format: str, *args: Any) -> None:
        """Write nothing: the terminal belongs to the user."""
