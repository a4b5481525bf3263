"""The collections of S2: all tools, those for coding, and those that only read."""

import os
from collections.abc import Iterable, Mapping

from attrs import evolve, field, frozen

from agent.tools.definition import Tool
from agent.tools.files.editing import make_edit
from agent.tools.files.listing import make_ls
from agent.tools.files.operations import Files
from agent.tools.files.reading import make_read
from agent.tools.files.writing import make_write
from agent.tools.retention import Retention
from agent.tools.search.finding import make_find
from agent.tools.search.grepping import make_grep
from agent.tools.shell.command_tool import make_shell_tool
from agent.tools.shell.execution import Commands
from agent.tools.shell.options import ShellOptions
from agent.tools.todo import TodoStore, make_todo_tools
from agent.tools.web.webfetch import make_webfetch
from agent.tools.web.websearch import BASE_URL, make_websearch
from agent.tools.workspace import Workspace

__all__ = [
    "CODING_TOOLS",
    "READ_ONLY_TOOLS",
    "CodingOptions",
    "create_all_tools",
    "create_coding_tools",
    "create_read_only_tools",
]

CODING_TOOLS = ("read", "bash", "edit", "write", "task", "todoread", "todowrite", "websearch", "webfetch")
READ_ONLY_TOOLS = ("read", "grep", "find", "ls", "todoread", "todowrite", "websearch", "webfetch")


def _shell_of_s2() -> ShellOptions:
    kept = Retention(50 * 1024, lines=2000, keep="tail", spill=True)
    return ShellOptions(
        timeout=None, longest_timeout=None, retention=kept, nonzero_is_error=True, inherit=True, form="details"
    )


@frozen
class CodingOptions:
    """What can be chosen for the tools of S2.

    files, commands: where they work, if not here (S2 "operations"); they are then bounded by those alone. allowed:
    where file tools may work besides the current directory, "/" by default; denied wins. resize_pictures: for `read`.
    shell: for `bash`. todos: a list that tools share. search_base_url, search_api_key: for `websearch`, the key by
    default that of the environment. max_response_size (bytes), fetch_timeout (milliseconds): for `webfetch`.
    task: what `agent.session.subagents.make_task` gives; without it there is no such tool.
    """

    files: Files | None = None
    commands: Commands | None = None
    allowed: tuple[str, ...] = ("/",)
    denied: tuple[str, ...] = ()
    resize_pictures: bool = True
    shell: ShellOptions = field(factory=_shell_of_s2)
    todos: TodoStore | None = None
    search_base_url: str = BASE_URL
    search_api_key: str | None = field(default=None, repr=False)
    task: Tool | None = None
    max_response_size: int = 5 * 1024 * 1024
    fetch_timeout: int = 30_000


def create_all_tools(cwd: str | os.PathLike[str] = ".", options: CodingOptions | None = None) -> Mapping[str, Tool]:
    """Return all tools of S2 by name; relative paths and commands start in `cwd`."""
    chosen = options or CodingOptions()
    workspace = Workspace(os.path.abspath(cwd), chosen.allowed, chosen.denied)
    files = chosen.files or workspace
    start = workspace.root if chosen.files is None else chosen.files.root
    tools = (
        make_read(files, resize_pictures=chosen.resize_pictures),
        make_shell_tool(start, chosen.shell, commands=chosen.commands),
        make_edit(files),
        make_write(files),
        make_grep(files),
        make_find(files),
        make_ls(files),
        *make_todo_tools(chosen.todos),
        make_websearch(base_url=chosen.search_base_url, api_key=chosen.search_api_key),
        *(() if chosen.task is None else (chosen.task,)),
        make_webfetch(max_response_size=chosen.max_response_size, default_timeout=chosen.fetch_timeout),
    )
    own = workspace if chosen.files is None else None
    return {tool.name: evolve(tool, workspace=own) for tool in tools}


def create_coding_tools(cwd: str | os.PathLike[str] = ".", options: CodingOptions | None = None) -> tuple[Tool, ...]:
    """Return the tools with full access: CODING_TOOLS."""
    return _those(CODING_TOOLS, create_all_tools(cwd, options))


def create_read_only_tools(cwd: str | os.PathLike[str] = ".", options: CodingOptions | None = None) -> tuple[Tool, ...]:
    """Return the tools that change nothing: READ_ONLY_TOOLS."""
    return _those(READ_ONLY_TOOLS, create_all_tools(cwd, options))


def _those(names: Iterable[str], tools: Mapping[str, Tool]) -> tuple[Tool, ...]:
    return tuple(tools[name] for name in names if name in tools)
