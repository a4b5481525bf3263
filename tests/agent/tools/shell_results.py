"""What the tests of commands share: a shell tool with options, called with a command."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.tools.definition import ToolContext
from agent.tools.shell import ShellOptions, make_shell_tool
from agent.vocabulary.calls import ToolResult

Shell = Callable[..., Any]


def shell_in(root: Path, **options: Any) -> Shell:
    tool = make_shell_tool(str(root), ShellOptions(**options))

    async def shell(command: str, **arguments: Any) -> ToolResult:
        return await tool.run({"command": command, **arguments}, ToolContext("call_1"))

    return shell
