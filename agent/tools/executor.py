"""`create_tool_executor` (S3): one function that runs calls by name, for loops of your own.

execute = create_tool_executor("workspace")
result = await execute("read_file", {"path": "notes.txt"})
"""

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from time import perf_counter
from typing import Any

from attrs import evolve

from agent.tools.collection import make_collection
from agent.tools.definition import Tool
from agent.tools.shell.options import ShellOptions
from agent.tools.toolbox import Toolbox
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolCall, ToolResult

__all__ = ["BUILT_IN_TOOLS", "built_in_tool_schemas", "create_tool_executor"]

BUILT_IN_TOOLS = ("read_file", "write_file", "list_files", "bash")

ToolExecutor = Callable[[str, Mapping[str, Any]], Awaitable[ToolResult]]


def create_tool_executor(workspace: str | os.PathLike[str], tools: Iterable[Tool] = ()) -> ToolExecutor:
    """Return a function that runs the built-in tools of S3 in a workspace, and `tools`, which win over them.

    It takes a name and arguments, and never raises for what goes wrong: an unknown tool, wrong arguments, a failure.
    The details of its results have `duration`, in milliseconds. Nothing is judged, but paths keep to the workspace.
    """
    place = Workspace(workspace)
    toolbox = Toolbox((*_built_in(place), *tools), place)

    async def execute(name: str, arguments: Mapping[str, Any]) -> ToolResult:
        begin = perf_counter()
        result = await toolbox.run(ToolCall("", name, arguments), lambda _: None)
        duration = round((perf_counter() - begin) * 1000, 3)
        return evolve(result, details={**result.details, "duration": duration})

    return execute


def built_in_tool_schemas() -> tuple[dict[str, Any], ...]:
    """Return the built-in tools as the chat-completions format describes them."""
    from agent.models.chat import render_tools

    return tuple(render_tools(tuple(tool.schema() for tool in _built_in(Workspace(os.curdir)))))


def _built_in(place: Workspace) -> tuple[Tool, ...]:
    tools = {
        tool.name: tool for tool in make_collection("gated", place, ShellOptions(shell=("sh", "-c"), inherit=True))
    }
    return tuple(tools[name] for name in BUILT_IN_TOOLS)
