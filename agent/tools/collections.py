"""Collections of tools for one workspace: those of S0, S1, S2, S3 and S4, and an executor for custom loops."""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from time import perf_counter
from typing import Annotated, Any

from attrs import evolve, field, frozen

from agent.tools.background import Processes, make_process_tools
from agent.tools.definition import PerAgent, Tool, Toolbox, ignore, tool
from agent.tools.files import KnownContents, in_utf8, make_edit, make_ls, make_read, make_write
from agent.tools.output import Retention, keep_head
from agent.tools.schemas import Path, render_tools
from agent.tools.search import make_find, make_grep, make_list_files
from agent.tools.shell import Commands, Session, ShellOptions, make_shell_tool
from agent.tools.terminal import make_terminal
from agent.tools.web import BASE_URL, make_webfetch, make_websearch
from agent.tools.work import TodoStore, make_todo_tools
from agent.tools.workspace import Files, Workspace
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.messages import ToolResult
from constitution import is_dangerous_command
from constitution.rules import DENIED_PATHS


def make_read_file(workspace: Workspace, *, output_limit: int, known: KnownContents) -> Tool:
    """Return the tool `read_file`; `output_limit` is in bytes."""

    @tool(category="read", parallel=True)
    def read_file(path: Annotated[str, Path("read")]) -> ToolResult:
        """Read a text file.

        Args:
            path: the file, absolute or relative to the workspace
        """
        with workspace.open_read(path) as file:
            content = in_utf8(file).read(output_limit + 1)
            total = max(os.fstat(file.fileno()).st_size, len(content))
            known.note(workspace, path, file)
        details = {"bytes": total, "truncated": len(content) > output_limit}
        return ToolResult(keep_head(content, output_limit, total) or "(empty file)", details=details)

    return read_file


def make_list_directory(workspace: Workspace, *, output_limit: int) -> Tool:
    """Return the tool `list_directory`; `output_limit` is in bytes."""

    @tool(category="read", parallel=True)
    def list_directory(path: Annotated[str, Path("list")] = ".") -> ToolResult:
        """List a directory: one name per line, sorted, directories with a / at the end.

        Args:
            path: the directory, absolute or relative to the workspace
        """
        entries = workspace.list(path)
        names = "\n".join(f"{entry.name}/" if entry.is_directory else entry.name for entry in entries)
        listing = names.encode("utf-8", "replace")
        details = {"entries": len(entries), "truncated": len(listing) > output_limit}
        return ToolResult(keep_head(listing, output_limit, len(listing)) or "(empty directory)", details=details)

    return list_directory


PROCESS_TOOLS = ("process_output", "process_stop")
CODING_TOOLS = ("read", "bash", "edit", "write", "task", "todoread", "todowrite", "websearch", "webfetch")
READ_ONLY_TOOLS = ("read", "grep", "find", "ls", "todoread", "todowrite", "websearch", "webfetch")


_SHELL_OF_S2 = ShellOptions(
    timeout=None, longest_timeout=None, nonzero_is_error=True, inherit=True, form="details",
    retention=Retention(50 * 1024, lines=2000, keep="tail", spill=True),
)  # fmt: skip


@frozen
class CodingOptions:
    """Options of the tools of S2.

    files, commands: other implementations of file access and commands (S2 "operations"), which set their own bounds.
    allowed: roots of file tools beside the current directory, "/" by default; denied wins. resize_pictures: for `read`.
    shell: for `bash`. todos: a list that tools share. search_base_url, search_api_key: for `websearch`, the key by
    default that of the environment. max_response_size (bytes), fetch_timeout (milliseconds), allowed_addresses (besides
    public ones): for `webfetch`. task: a tool from `agent.session.subagents.make_task`; None: no such tool. processes:
    allows background commands on this machine.
    """

    files: Files | None = None
    commands: Commands | None = None
    allowed: tuple[str, ...] = ("/",)
    denied: tuple[str, ...] = ()
    resize_pictures: bool = True
    shell: ShellOptions = _SHELL_OF_S2
    todos: TodoStore | None = None
    search_base_url: str = BASE_URL
    search_api_key: str | None = field(default=None, repr=False)
    task: Tool | None = None
    processes: Processes | None = None
    max_response_size: int = 5 * 1024 * 1024
    fetch_timeout: int = 30_000
    allowed_addresses: tuple[str, ...] = ()


def create_all_tools(cwd: str | os.PathLike[str] = ".", options: CodingOptions | None = None) -> Mapping[str, Tool]:
    """Return all tools of S2 by name; relative paths and commands start in `cwd`."""
    chosen = options or CodingOptions()
    workspace = Workspace(os.path.abspath(cwd), chosen.allowed, chosen.denied)
    files = chosen.files or workspace
    start = workspace.root if chosen.files is None else chosen.files.root
    processes = chosen.processes if chosen.commands is None else None  # remote processes could not be ended
    known = KnownContents()
    tools = (
        make_read(files, resize_pictures=chosen.resize_pictures, known=known),
        make_shell_tool(start, chosen.shell, commands=chosen.commands, processes=processes),
        make_edit(files, known=known),
        make_write(files, known=known),
        make_grep(files),
        make_find(files),
        make_ls(files),
        *make_todo_tools(chosen.todos),
        make_websearch(base_url=chosen.search_base_url, api_key=chosen.search_api_key),
        *(() if chosen.task is None else (chosen.task,)),
        make_webfetch(
            max_response_size=chosen.max_response_size,
            default_timeout=chosen.fetch_timeout,
            allowed_addresses=chosen.allowed_addresses,
        ),
        *(() if processes is None else make_process_tools(processes)),
    )
    if chosen.files is not None:  # remote files: their paths are not paths of this machine
        return {tool.name: evolve(tool, body=None) for tool in tools}
    return {tool.name: evolve(tool, workspace=workspace) for tool in tools}


def create_coding_tools(cwd: str | os.PathLike[str] = ".", options: CodingOptions | None = None) -> tuple[Tool, ...]:
    """Return the tools with full access: CODING_TOOLS."""
    return _those((*CODING_TOOLS, *PROCESS_TOOLS), create_all_tools(cwd, options))


def create_read_only_tools(cwd: str | os.PathLike[str] = ".", options: CodingOptions | None = None) -> tuple[Tool, ...]:
    """Return the read-only tools: READ_ONLY_TOOLS."""
    return _those(READ_ONLY_TOOLS, create_all_tools(cwd, options))


def _those(names: Iterable[str], tools: Mapping[str, Tool]) -> tuple[Tool, ...]:
    return tuple(tools[name] for name in names if name in tools)


def workspace_tools(
    root: str | os.PathLike[str],
    *,
    allowed: Iterable[str | os.PathLike[str]] = (),
    denied: Iterable[str | os.PathLike[str]] = DENIED_PATHS,
    timeout: float = 120.0,
    output_limit: int = 200 * 1024,
    env: Mapping[str, str] | None = None,
    shell: ShellOptions | None = None,
    processes: Processes | None = None,
) -> tuple[Tool, ...]:
    """Return `bash`, `read_file`, `write_file` and `list_directory`, which work in `root` (S0 6.2).

    `timeout` is in seconds, for commands that name none; `output_limit` in bytes; `env` is added to the allowed
    variables; `shell` replaces all of these for commands. With `processes` commands may stay in the background, and
    there are `process_output` and `process_stop`.

    The file tools keep to `root` and `allowed` without `denied`; `bash` is bounded by the gate only.
    """
    shell = shell or ShellOptions(timeout=timeout, retention=Retention(output_limit), env=env or {})
    return make_collection("workspace", Workspace(root, allowed, denied), shell, processes)


def make_collection(
    name: str, workspace: Workspace, shell: ShellOptions, processes: Processes | None = None
) -> tuple[Tool, ...]:
    """Return a collection by its name, one of COLLECTIONS. Output of all tools is cut like that of commands.

    With `processes` commands may stay in the background, and the tools for these come last.
    """
    root, sessions, limit, known = workspace.root, PerAgent(Session), shell.retention.limit, KnownContents()
    make = {
        "bash": lambda: make_shell_tool(root, shell, sessions=sessions, processes=processes),
        "run_command": lambda: make_shell_tool(root, shell, name="run_command", sessions=sessions, processes=processes),
        "terminal": lambda: make_terminal(root, shell, processes),
        "read_file": lambda: make_read_file(workspace, output_limit=limit, known=known),
        "write_file": lambda: make_write(workspace, name="write_file", known=known),
        "list_directory": lambda: make_list_directory(workspace, output_limit=limit),
        "list_files": lambda: make_list_files(workspace),
    }
    more = () if processes is None else make_process_tools(processes)
    return tuple(evolve(tool, workspace=workspace) for tool in (*(make[each]() for each in COLLECTIONS[name]), *more))


BUILT_IN_TOOLS = ("read_file", "write_file", "list_files", "bash")
COLLECTIONS: Mapping[str, tuple[str, ...]] = {
    "workspace": ("bash", "read_file", "write_file", "list_directory"),
    "terminal": ("terminal", "read_file", "write_file", "list_directory"),
    "gated": BUILT_IN_TOOLS,
    "command": ("bash", "run_command"),
}
"""The tools of the collections; `bash` and `run_command` (S4) count together. S2's: see `create_coding_tools`."""

ToolExecutor = Callable[[str, Mapping[str, Any]], Awaitable[ToolResult]]


def create_tool_executor(workspace: str | os.PathLike[str], tools: Iterable[Tool] = ()) -> ToolExecutor:
    """Return a function that runs the built-in tools of S3 in a workspace, and `tools`, which replace built-in ones.

    It takes a name and arguments, and returns errors as results: an unknown tool, invalid arguments, a failure. Paths
    must be in the workspace, and a shell command is rejected if `is_dangerous_command`; nothing else is judged.
    """
    place = Workspace(workspace)
    toolbox = Toolbox((*_built_in(place), *tools), place)

    async def execute(name: str, arguments: Mapping[str, Any]) -> ToolResult:
        begin = perf_counter()
        tool = toolbox.get(name)
        command = None if tool is None or tool.check(arguments) else tool.command(arguments)
        if command is not None and is_dangerous_command(command):
            result = ToolResult(f"rejected: dangerous command: {command}", is_error=True)
        else:
            result = await toolbox.run(ToolCall("", name, arguments), ignore)
        return evolve(result, duration=round((perf_counter() - begin) * 1000, 3))

    return execute


def built_in_tool_schemas() -> tuple[dict[str, Any], ...]:
    """Return the built-in tools as the chat-completions format describes them."""
    return tuple(render_tools(tuple(tool.schema() for tool in _built_in(Workspace(os.curdir)))))


def _built_in(place: Workspace) -> tuple[Tool, ...]:
    return make_collection("gated", place, ShellOptions(shell=("sh", "-c"), inherit=True))
