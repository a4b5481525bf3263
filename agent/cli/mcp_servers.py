"""MCP servers that the command line or the configuration names: started and ended with the agent.

--mcp 'npx -y some-server'                      its tools, under their own names
--mcp 'notes: python server.py'                 under names that begin with notes_
--mcp 'notes[list=read]: python server.py' with the category of a tool: read, write or admin; *=read for all
--mcp 'TOKEN=$MY_TOKEN python server.py' with a variable; the value of $MY_TOKEN is in no log

A log names the servers of its run, but a resumed run starts only servers that are given again.
"""

import re
import shlex
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import get_args

from attrs import field, frozen

from agent.cli.errors import Mistake
from agent.tools.definition import Tool
from agent.vocabulary.calls import Category
from agent.vocabulary.errors import CannotStart, ToolError

VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)


PREFIX = re.compile(r"([A-Za-z0-9_-]*)(?:\[([^\]]*)\])?:")


@frozen
class McpServer:
    """A server: its row, the prefix of its tools' names, its command and variables."""

    row: str
    command: tuple[str, ...]
    prefix: str = ""
    variables: Mapping[str, str] = field(factory=dict, repr=False)
    categories: Mapping[str, Category] = field(factory=dict)


def read_server(row: str, environ: Mapping[str, str]) -> McpServer:
    """Return the server of a row. Raises Mistake."""
    try:
        words = shlex.split(row)
    except ValueError as error:
        raise Mistake(f"--mcp {row!r} is no command: {str(error).lower()}") from error
    prefix = PREFIX.fullmatch(words[0]) if words else None
    words = words[1:] if prefix else words
    variables = {}
    while words and (given := VARIABLE.fullmatch(words[0])):
        variables[given[1]] = _looked_up(given[2], row, environ)
        words = words[1:]
    if not words:
        raise Mistake(f"--mcp {row!r} names no program; write --mcp 'PROGRAM ARGUMENTS', or --mcp 'NAME: PROGRAM ...'")
    name = f"{prefix[1]}_" if prefix and prefix[1] else ""
    return McpServer(row, tuple(words), name, variables, _categories(prefix[2] or "", row) if prefix else {})


def _categories(text: str, row: str) -> dict[str, Category]:
    """Return the declared categories of tools: "list=read,add=write"."""
    declared: dict[str, Category] = {}
    for part in filter(None, text.split(",")):
        tool, _, named = part.partition("=")
        category = next((known for known in get_args(Category) if known == named), None)
        if not tool or category is None:
            raise Mistake(f"--mcp {row!r}: {part!r} declares no category; write TOOL=read, =write or =admin")
        declared[tool] = category
    return declared


def _looked_up(value: str, row: str, environ: Mapping[str, str]) -> str:
    if not value.startswith("$"):
        return value
    name = value[1:].strip("{}")
    if name not in environ:
        raise Mistake(f"--mcp {row!r}: the variable {name} is not set; set it")
    return environ[name]


@asynccontextmanager
async def serving(servers: Sequence[McpServer]) -> AsyncIterator[tuple[Tool, ...]]:
    """Run servers while the block lasts, and yield their tools. Raises Mistake for one that does not start."""
    if not servers:
        yield ()
        return
    try:
        async with AsyncExitStack() as stack:
            yield tuple([tool for server in servers for tool in await _opened(server, stack)])
    except BaseExceptionGroup as group:  # errors within the block come through the client's task groups
        raise one_of(group) from group


async def _opened(server: McpServer, stack: AsyncExitStack) -> tuple[Tool, ...]:
    from agent.tools.mcp import mcp_tools

    try:
        opened = mcp_tools(server.command, env=server.variables, prefix=server.prefix, categories=server.categories)
        return await stack.enter_async_context(opened)
    except (CannotStart, ToolError, TimeoutError, ExceptionGroup) as error:
        raise Mistake(f"--mcp {server.row!r}: {_reason(one_of(error))}") from error


def joined(own: Iterable[Tool], more: Iterable[Tool]) -> tuple[Tool, ...]:
    """Return both; a server's tool may not replace another one. Raises Mistake."""
    tools = {tool.name: tool for tool in own}
    for tool in more:
        if tool.name in tools:
            cure = "give the server a name: --mcp 'NAME: ...'"
            raise Mistake(f"{tool.source} has a tool {tool.name!r}, and there is one already; {cure}")
        tools[tool.name] = tool
    return tuple(tools.values())


def one_of(error: BaseException) -> BaseException:
    """Return the first error of a group, in however many groups; any other error as it is."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _reason(error: BaseException) -> str:
    if isinstance(error, CannotStart | ToolError):
        return str(error)
    if isinstance(error, TimeoutError):
        return "it does not say what tools it has; is it an MCP server that speaks over standard input and output?"
    return f"it is no MCP server, or ended at once ({error}); run the command by itself to see why"
