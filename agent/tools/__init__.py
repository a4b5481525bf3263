"""Tools: what the model may call, how a call is checked, and how it is kept within bounds.

Reading order: `errors`; `expressions`, `automata` (patterns in linear time); `marks`, `shapes`, `structures`,
`annotations`, `signature` (from a function to a schema and a check); `boundary`, `descent`, `opening`, `workspace`
(opening files); `background`, `definition` (a tool), `names`; `output`, `cutting`, `spilling`, `retention` (long
texts), `descendants`, `adoption`, `child`, `process`, `environment` (commands); `shell/`, `terminal/`, `files/`,
`search/`, `file_tools`, `todo`, `web/`, `objective` (the tools that ship), `remote` (elsewhere), `declared/` (from
YAML), `foreign_schemas`, `mcp_servers`, `collection`, `coding` (sets), `toolbox` (of one agent), `executor`.
"""

from agent.tools.collection import workspace_tools
from agent.tools.definition import Tool, ToolContext, tool
from agent.tools.environment import tool_environment
from agent.tools.errors import CannotStart, PathRefused, ToolError
from agent.tools.marks import Limits, Path, ShellCommand, Touch, Url
from agent.tools.names import explain_unknown, nearest
from agent.tools.objective import complete, objective_tools, pursue_objective
from agent.tools.opening import Entry
from agent.tools.process import Finished, run_process
from agent.tools.workspace import Workspace

__all__ = [
    "CannotStart",
    "Entry",
    "Finished",
    "Limits",
    "Path",
    "PathRefused",
    "ShellCommand",
    "Tool",
    "ToolContext",
    "ToolError",
    "Touch",
    "Url",
    "Workspace",
    "complete",
    "explain_unknown",
    "nearest",
    "objective_tools",
    "pursue_objective",
    "run_process",
    "tool",
    "tool_environment",
    "workspace_tools",
]
