"""Tools: their definitions, the checks of calls, and the bounds in which they run."""

from typing import TYPE_CHECKING

from agent.vocabulary import from_modules

if TYPE_CHECKING:
    from agent.tools.collections import workspace_tools
    from agent.tools.definition import Tool, ToolContext, tool
    from agent.tools.schemas import Limits, Path, ShellCommand, Touch, Url
    from agent.tools.work import objective_tools
    from agent.tools.workspace import Workspace
    from agent.vocabulary.errors import ToolError
    from agent.vocabulary.messages import ToolResult

__all__ = [
    "Limits",
    "Path",
    "ShellCommand",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "Touch",
    "Url",
    "Workspace",
    "objective_tools",
    "tool",
    "workspace_tools",
]

__getattr__, __dir__ = from_modules(
    "agent.tools",
    {
        "definition": "Tool ToolContext tool",
        "schemas": "Limits Path ShellCommand Touch Url",
        "collections": "workspace_tools",
        "work": "objective_tools",
        "workspace": "Workspace",
        "agent.vocabulary.messages": "ToolResult",
        "agent.vocabulary.errors": "ToolError",
    },
)
