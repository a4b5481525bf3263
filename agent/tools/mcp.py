"""The tools of an MCP server: judged by the same gate, and checked against the server's schemas.

    async with mcp_tools(["python", "server.py"]) as tools:
        run = await Agent(model, [*tools, *workspace_tools(folder)]).run("...")

Needs the extra `mcp`. A server's description of its tools is not trusted: each counts as one that writes, unless
`categories` says otherwise. Parameters named like commands, paths or addresses are judged as such. A tool without these
and without a declared category is opaque: the user is asked.
"""

import base64
import logging
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

import anyio
from attrs import evolve

from agent.tools import mcp_relay
from agent.tools.definition import Tool, ToolContext
from agent.tools.output import keep_head
from agent.tools.process import tool_environment
from agent.tools.schemas import Mark, Path, ShellCommand, Url, foreign_shape
from agent.vocabulary.calls import Category, ToolResult
from agent.vocabulary.errors import CannotStart, ToolError
from agent.vocabulary.messages import Image

if TYPE_CHECKING:
    from mcp import ClientSession, StdioServerParameters
    from mcp.types import Tool as Listed


_LONGEST_BEGINNING = 30.0  # seconds for a server to list its tools
_LONGEST_COMPLAINT = 800  # characters
_OUTPUT_LIMIT = 200 * 1024  # bytes
_MOST_PAGES = 100  # of a list of tools
COMMANDS = frozenset(["command", "cmd", "script", "shell"])
ADDRESSES = frozenset(["url", "urls", "uri", "endpoint", "address"])
PATHS = frozenset(["path", "paths", "file", "files", "filename", "filepath", "directory", "dir", "folder", "cwd"])
"""Words in the names of parameters, with the meaning of these parameters."""

_logger = logging.getLogger(__name__)
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


@asynccontextmanager
async def mcp_tools(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    prefix: str = "",
    categories: Mapping[str, Category] | None = None,
    timeout: float = 60.0,
) -> AsyncIterator[tuple[Tool, ...]]:
    """Start an MCP server and yield its tools; it ends with the block.

    The server sees the allowed variables and `env`. `prefix` is put before the names of its tools; `categories`: by
    their original names, "*" for all others. `timeout`: in seconds, for each call. Raises CannotStart, ToolError,
    TimeoutError for a server that does not list its tools, and ExceptionGroups of these from the client.
    """
    try:
        from mcp import StdioServerParameters
    except ImportError as error:
        raise ToolError("MCP servers need the extra 'mcp': pip install 'bpagent[mcp]'") from error
    if shutil.which(command[0]) is None:
        raise CannotStart(f"cannot start {command[0]!r}: no such program on PATH")
    argv = ["-I", "-S", mcp_relay.__file__, *command]
    server = StdioServerParameters(command=sys.executable, args=argv, env=tool_environment(env), cwd=cwd)

    async with _connected(command[0], server) as (session, listed):
        kinds, here = categories or {}, os.path.abspath(cwd or "")
        told = (_as_tool(each, session, prefix, kinds, timeout, command[0]) for each in listed)
        yield tuple(evolve(each, cwd=lambda: here) for each in told)


@asynccontextmanager
async def _connected(
    program: str, server: "StdioServerParameters"
) -> AsyncIterator[tuple["ClientSession", list["Listed"]]]:
    """Start a server; yield its session and its tools. An error at its start includes its output."""
    from mcp import ClientSession, stdio_client

    async def tell(params: Any) -> None:
        _logger.warning("the MCP server %s: %s", program, params.data)

    begun = False
    with TemporaryFile("w+", errors="replace") as complaints:
        try:
            async with (
                stdio_client(server, errlog=complaints) as streams,
                ClientSession(*streams, logging_callback=tell) as session,
            ):
                with anyio.fail_after(_LONGEST_BEGINNING):
                    await session.initialize()
                    listed = [each async for each in _listed(session)]
                begun = True
                yield session, listed
        except Exception as error:
            if begun:
                raise
            if isinstance(error, FileNotFoundError):
                raise CannotStart(f"cannot start {program!r}: {error}") from error
            complaints.seek(0)
            said = complaints.read().strip()[-_LONGEST_COMPLAINT:]
            if not said:
                raise
            raise CannotStart(f"{program!r} is no MCP server, or ended at once; it said: {said}") from error


async def _listed(session: "ClientSession") -> AsyncIterator["Listed"]:
    from mcp.types import PaginatedRequestParams

    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        for listed in page.tools:
            yield listed
        if not (cursor := page.next_cursor):
            return


def _as_tool(
    listed: "Listed",
    session: "ClientSession",
    prefix: str,
    kinds: Mapping[str, Category],
    timeout: float,
    program: str,
) -> Tool:
    declared = kinds.get(listed.name) or kinds.get("*")
    category = declared or "write"
    marks = tuple(_marks(listed.input_schema, category))

    async def run(context: ToolContext, /, **arguments: Any) -> ToolResult:
        return _result(await session.call_tool(listed.name, arguments))

    return Tool(
        name=_NOT_IN_NAMES.sub("_", f"{prefix}{listed.name}")[:64],
        description=(listed.description or listed.title or listed.name).strip(),
        shape=foreign_shape(listed.input_schema),
        function=run,
        category=category,
        marks=marks,
        opaque=not marks and declared is None,
        timeout=timeout,
        source=f"the MCP server {program}",
    )


def _marks(schema: Mapping[str, Any], category: Category) -> Iterator[tuple[str, Mark, object]]:
    """Yield the marks of parameters by their names: commands, paths, addresses."""
    properties = schema.get("properties")
    for name in properties if isinstance(properties, Mapping) else ():
        words = frozenset(re.split(r"[^a-z0-9]+|(?<=[a-z])(?=[A-Z])", str(name).lower()))
        if words & COMMANDS:
            yield name, ShellCommand(), None
        elif words & ADDRESSES:
            yield name, Url(), None
        elif words & PATHS:
            yield name, Path("read" if category == "read" else "write"), None


def _result(answered: Any) -> ToolResult:
    """Return a server's answer: its texts, pictures as attachments, and the types of all other parts."""
    texts: list[str] = []
    images: list[Image] = []
    for part in getattr(answered, "content", ()):
        if part.type == "text":
            texts.append(part.text)
        elif part.type == "image":
            images.append(Image(part.mime_type, base64.b64decode(part.data)))
            texts.append(f"[picture: {part.mime_type}]")
        else:
            texts.append(f"[{part.type}, which is not shown]")
    written = "\n".join(texts).encode("utf-8", "replace")
    text = keep_head(written, _OUTPUT_LIMIT, len(written)) or "(no output)"
    return ToolResult(text, is_error=bool(getattr(answered, "is_error", False)), images=images)
