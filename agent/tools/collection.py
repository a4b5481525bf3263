"""The four tools that ship, over one workspace."""

import os
from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve

from agent.tools.definition import Tool
from agent.tools.file_tools import make_list_directory, make_read_file, make_write_file
from agent.tools.shell_tool import make_shell_tool
from agent.tools.workspace import Workspace
from constitution import DENIED_PATHS

__all__ = ["workspace_tools"]


def workspace_tools(
    root: str | os.PathLike[str],
    *,
    allowed: Iterable[str | os.PathLike[str]] = (),
    denied: Iterable[str | os.PathLike[str]] = DENIED_PATHS,
    timeout: float | None = 120.0,
    max_timeout: float | None = 600.0,
    output_limit: int = 200 * 1024,
    env: Mapping[str, str] | None = None,
    inherits: bool = False,
    shell: Sequence[str] = ("bash", "-c"),
    nonzero_is_error: bool = False,
) -> tuple[Tool, ...]:
    """Return `bash`, `read_file`, `write_file` and `list_directory`, which work in `root` (S0 6.2).

    `timeout` is in seconds, for commands that name none; they may ask for `max_timeout`. `output_limit` is in bytes.
    `env` is added to the allowed variables, or to all with `inherits`. `shell` is the program and options that a
    command follows. `nonzero_is_error`: an exit code other than 0 is an error.

    The file tools keep to `root` and `allowed` without `denied`; `bash` is bounded by the gate only.
    """
    workspace = Workspace(root, allowed, denied)
    tools = (
        make_shell_tool(
            workspace.root,
            timeout=timeout,
            max_timeout=max_timeout,
            output_limit=output_limit,
            env=env,
            inherits=inherits,
            shell=shell,
            nonzero_is_error=nonzero_is_error,
        ),
        make_read_file(workspace, output_limit=output_limit),
        make_write_file(workspace),
        make_list_directory(workspace, output_limit=output_limit),
    )
    return tuple(evolve(tool, workspace=workspace) for tool in tools)
