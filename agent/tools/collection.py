"""The four tools that ship, over one workspace."""

import os
from collections.abc import Iterable, Mapping

from attrs import evolve

from agent.tools.definition import Tool
from agent.tools.file_tools import make_list_directory, make_read_file, make_write_file
from agent.tools.retention import Retention
from agent.tools.shell import ShellOptions, make_shell_tool
from agent.tools.workspace import Workspace
from constitution import DENIED_PATHS

__all__ = ["workspace_tools"]


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
    workspace = Workspace(root, allowed, denied)
    commands = shell or ShellOptions(timeout=timeout, retention=Retention(output_limit), env=env or {})
    tools = (
        make_shell_tool(workspace.root, commands),
        make_read_file(workspace, output_limit=output_limit),
        make_write_file(workspace),
        make_list_directory(workspace, output_limit=output_limit),
    )
    return tuple(evolve(tool, workspace=workspace) for tool in tools)
