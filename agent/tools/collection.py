"""Collections of tools over one workspace: the four of S0, those of S2 and S3, the terminal of S1, the shell of S4."""

import os
from collections.abc import Callable, Iterable, Mapping

from attrs import evolve

from agent.tools.definition import Tool
from agent.tools.file_tools import make_list_directory, make_read_file, make_write_file
from agent.tools.retention import Retention
from agent.tools.search.finding import make_list_files
from agent.tools.shell.command_tool import make_shell_tool
from agent.tools.shell.observation import Session
from agent.tools.shell.options import ShellOptions
from agent.tools.terminal.terminal_tool import make_terminal
from agent.tools.workspace import Workspace
from constitution import DENIED_PATHS

__all__ = ["COLLECTIONS", "make_collection", "workspace_tools"]


def workspace_tools(
    root: str | os.PathLike[str],
    *,
    allowed: Iterable[str | os.PathLike[str]] = (),
    denied: Iterable[str | os.PathLike[str]] = DENIED_PATHS,
    timeout: float = 120.0,
    output_limit: int = 200 * 1024,
    env: Mapping[str, str] | None = None,
    shell: ShellOptions | None = None,
) -> tuple[Tool, ...]:
    """Return `bash`, `read_file`, `write_file` and `list_directory`, which work in `root` (S0 6.2).

    `timeout` is in seconds, for commands that name none; `output_limit` in bytes; `env` is added to the allowed
    variables; `shell` stands for all of these where commands are concerned.

    The file tools keep to `root` and `allowed` without `denied`; `bash` is bounded by the gate only.
    """
    shell = shell or ShellOptions(timeout=timeout, retention=Retention(output_limit), env=env or {})
    return make_collection("workspace", Workspace(root, allowed, denied), shell)


def make_collection(name: str, workspace: Workspace, shell: ShellOptions) -> tuple[Tool, ...]:
    """Return a collection by its name, one of COLLECTIONS. What tools show is cut where commands' output is."""
    return tuple(evolve(tool, workspace=workspace) for tool in COLLECTIONS[name](workspace, shell))


def _of_workspace(workspace: Workspace, shell: ShellOptions) -> tuple[Tool, ...]:
    return make_shell_tool(workspace.root, shell), *_files(workspace, shell)


def _with_terminal(workspace: Workspace, shell: ShellOptions) -> tuple[Tool, ...]:
    return make_terminal(workspace.root, shell), *_files(workspace, shell)


def _gated(workspace: Workspace, shell: ShellOptions) -> tuple[Tool, ...]:
    read_file, write_file, _ = _files(workspace, shell)
    return read_file, write_file, make_list_files(workspace), make_shell_tool(workspace.root, shell)


def _command(workspace: Workspace, shell: ShellOptions) -> tuple[Tool, ...]:
    """One tool under two names (S4), which count together."""
    session = Session()
    return tuple(make_shell_tool(workspace.root, shell, name=name, session=session) for name in ("bash", "run_command"))


def _files(workspace: Workspace, shell: ShellOptions) -> tuple[Tool, Tool, Tool]:
    limit = shell.retention.limit
    return (
        make_read_file(workspace, output_limit=limit),
        make_write_file(workspace),
        make_list_directory(workspace, output_limit=limit),
    )


COLLECTIONS: Mapping[str, Callable[[Workspace, ShellOptions], tuple[Tool, ...]]] = {
    "workspace": _of_workspace,
    "terminal": _with_terminal,
    "gated": _gated,
    "command": _command,
}
"""How each collection is made. That of S2 has options of its own: see `create_coding_tools`."""
