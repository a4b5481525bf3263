"""The tool `terminal` (S1): single commands, or a session that keeps the directory and plain variables.

Reading order: `snapshot` (what one command leaves for the next), `script` (the shell of a command), `session`,
`terminal_tool`.
"""

from agent.tools.terminal.terminal_tool import make_terminal

__all__ = ["make_terminal"]
