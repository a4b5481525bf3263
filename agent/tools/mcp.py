"""The tools of an MCP server as tools: judged by the same gate, checked against the schemas that the server gives.

    async with mcp_tools(["python", "server.py"]) as tools:
        run = await Agent(model, [*tools, *workspace_tools(folder)]).run("...")

Needs the extra `mcp`. What a server says about its tools is its own word: each is taken for one that writes, unless
`categories` says otherwise.
"""

import base64
import os
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from agent.tools.definition import Tool, ToolContext
from agent.tools.output import keep_head
from agent.tools.process import tool_environment
from agent.tools.schemas import ForeignShape
from agent.vocabulary.calls import Category, ToolResult
from agent.vocabulary.errors import CannotStart, ToolError
from agent.vocabulary.messages import Image

if TYPE_CHECKING:
    from mcp import ClientSession
    from mcp.types import Tool as Listed


_LONGEST_BEGINNING = 30.0  # seconds until a server has said what tools it has
_OUTPUT_LIMIT = 200 * 1024  # bytes
_MOST_PAGES = 100  # of a list of tools
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
    """Start an MCP server and give its tools while the block lasts; the server ends with it.

    The server sees the allowed variables and `env`. `prefix` stands before the names of its tools, `categories` is by
    their own names. `timeout` is in seconds, for each call. Raises CannotStart, ToolError, TimeoutError for a server
    that does not say what tools it has, and ExceptionGroups of these from within the client.
    """
    try:
        from mcp import ClientSession, StdioServerParameters, stdio_client
    except ImportError as error:
        raise ToolError("MCP servers need the extra 'mcp': pip install 'bpagent[mcp]'") from error
    server = StdioServerParameters(command=command[0], args=list(command[1:]), env=tool_environment(env), cwd=cwd)
    with open(os.devnull, "w") as silence:
        try:
            async with stdio_client(server, errlog=silence) as streams, ClientSession(*streams) as session:
                with anyio.fail_after(_LONGEST_BEGINNING):
                    await session.initialize()
                    listed = [each async for each in _listed(session)]
                kinds = categories or {}
                yield tuple(
                    _as_tool(each, session, prefix, kinds.get(each.name, "write"), timeout, command[0])
                    for each in listed
                )
        except FileNotFoundError as error:
            raise CannotStart(f"cannot start {command[0]!r}: no such program on PATH") from error


async def _listed(session: "ClientSession") -> AsyncIterator["Listed"]:
    from mcp.types import PaginatedRequestParams

    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await session.list_tools(params=PaginatedRequestParams(cursor=cursor) if cursor else None)
        for listed in page.tools:
            yield listed
        cursor = page.next_cursor
        if not cursor:
            return


def _as_tool(
    listed: "Listed", session: "ClientSession", prefix: str, category: Category, timeout: float, program: str
) -> Tool:
    async def run(context: ToolContext, /, **arguments: Any) -> ToolResult:
        return _result(await session.call_tool(listed.name, arguments))

    return Tool(
        name=_NOT_IN_NAMES.sub("_", f"{prefix}{listed.name}")[:64],
        description=(listed.description or listed.title or listed.name).strip(),
        shape=ForeignShape(listed.input_schema),
        function=run,
        category=category,
        timeout=timeout,
        source=f"the MCP server {program}",
    )


def _result(answered: Any) -> ToolResult:
    """Return what a server answered: its texts, pictures as attachments, and of everything else what it is."""
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
