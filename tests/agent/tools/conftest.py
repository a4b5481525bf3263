"""Fixtures of the tools' tests: a workspace, and no process left behind."""

import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from agent.tools import output
from agent.tools.collections import workspace_tools
from agent.tools.definition import Tool
from agent.tools.descendants import helpers
from agent.tools.files import make_edit, make_ls, make_read, make_write
from agent.tools.search import make_find, make_grep, make_list_files
from agent.tools.workspace import Workspace
from agent.vocabulary.messages import ToolResult

Call = Callable[..., Any]


@pytest.fixture
def anyio_backend() -> str:
    """Most of this differs on no event loop; the modules for which it does say so."""
    return "asyncio"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "ws"
    root.mkdir()
    return root


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder below which long outputs are kept from now on."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(output, "_folders", {})
    return folder


@pytest.fixture
def tools(root: Path) -> Mapping[str, Tool]:
    """The tools of S0, and the file tools of S2 and S3, over one workspace."""
    more = (make(Workspace(root)) for make in (make_edit, make_find, make_grep, make_list_files, make_ls, make_read))
    return {tool.name: tool for tool in (*workspace_tools(root, timeout=100), *more, make_write(Workspace(root)))}


@pytest.fixture
def call(tools: Mapping[str, Tool]) -> Call:
    async def call(name: str, **arguments: Any) -> ToolResult:
        return await tools[name].run(arguments)

    return call


def children() -> set[int]:
    """The children of this process but its watchdog, zombies included. A thread that ends hands its children on."""
    while True:
        found: set[int] = set()
        with suppress(FileNotFoundError, ProcessLookupError):
            for task in os.listdir("/proc/self/task"):
                found.update(map(int, Path(f"/proc/self/task/{task}/children").read_text().split()))
            return found - helpers


@pytest.fixture
def leaves_nothing() -> Iterator[None]:
    """Nothing that a test starts is there after it."""
    before = children()
    yield
    assert children() <= before


def plant(root: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


@define
class Site:
    """What a server answers at each path: status, headers, content; and what it was asked."""

    pages: dict[str, tuple[int, dict[str, str], bytes]] = field(factory=dict)
    asked: list[tuple[str, dict[str, str], bytes]] = field(factory=list)
    url: str = ""

    def put(self, path: str, content: bytes | str, kind: str = "text/html", status: int = 200, **headers: Any) -> str:
        names = {"Content-Type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
        self.pages[path] = status, names, content.encode() if isinstance(content, str) else content
        return self.url + path


class Handler(BaseHTTPRequestHandler):
    site: Site

    def do_GET(self) -> None:
        length = int(self.headers.get("content-length", 0))
        self.site.asked.append((self.path, dict(self.headers), self.rfile.read(length)))
        status, headers, content = self.site.pages.get(self.path, (404, {}, b"none"))
        if self.path == "/slow":
            threading.Event().wait(100)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "X-No-Length" not in headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        with suppress(ConnectionError):
            self.wfile.write(content)

    do_POST = do_GET  # noqa: N815, as the library wants it

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[Site]:
    """A web server on loopback."""
    site = Site()
    handler = type("OfThisSite", (Handler,), {"site": site})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        running.daemon_threads = True
        site.url = f"http://127.0.0.1:{running.server_port}"
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield site
        running.shutdown()
