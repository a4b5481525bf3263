"""Tools: what the model may call, how a call is checked, and how it is kept within bounds.

Reading order:

- `errors`: what can go wrong
- from a function to a schema and a check: `expressions`, `automata` (patterns in linear time), `marks`, `shapes`,
  `structures`, `annotations`, `signature`
- opening files within bounds: `boundary`, `descent`, `opening`, `workspace`
- a tool as a value: `background`, `definition`. `names`: what is said of one that is not there
- long texts: `output`, `cutting`, `spilling`, `retention`
- commands and their processes: `descendants`, `adoption`, `child`, `process`, `environment`
- the tools that ship: `shell/`, `terminal/`, `files/`, `search/`, `file_tools`, `todo`, `web/`, `objective`
- tools that work or come from elsewhere: `remote`, `declared/` (from YAML), `foreign_schemas`, `mcp_servers`
- sets of tools: `collection`, `coding`, `toolbox` (those of one agent), `executor` (without the loop)
"""

from agent.tools.collection import workspace_tools
from agent.tools.definition import Tool, ToolContext, tool
from agent.tools.environment import tool_environment
from agent.tools.errors import CannotStart, PathRefused, ToolError
from agent.tools.marks import Limits, Path, ShellCommand, Touch, Url
from agent.tools.names import explain_unknown
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
    "objective_tools",
    "pursue_objective",
    "run_process",
    "tool",
    "tool_environment",
    "workspace_tools",
]
