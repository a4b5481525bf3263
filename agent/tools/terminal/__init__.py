"""The tool `terminal` (S1): single commands, or a session that keeps directory, variables and functions.

Reading order: `snapshot` (what a shell leaves for the next one), `session`, `terminal_tool`.
"""

from agent.tools.terminal.terminal_tool import make_terminal

__all__ = ["make_terminal"]
