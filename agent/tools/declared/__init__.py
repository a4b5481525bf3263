"""Tools that are declared in a file instead of written in Python: `tools.yaml` (S0 6.3).

Reading order: `templates` (one argument with its `{{variables}}`), `declaration` (a tool as it stands in the file),
`running` (a declaration as a tool), `loading` (from the file, with line and column of what is wrong).
"""

from agent.tools.declared.declaration import Declaration
from agent.tools.declared.loading import DeclarationError, load_tools, read_declarations
from agent.tools.declared.running import make_declared_tool

__all__ = ["Declaration", "DeclarationError", "load_tools", "make_declared_tool", "read_declarations"]
