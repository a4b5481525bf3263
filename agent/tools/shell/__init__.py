"""The tools that run a shell command: `bash`, and `run_command` (S0, S2, S3, S4).

Reading order: `options` (how commands run, and what is told of them), `interactive` (does it wait for a person?),
`telling` (the end of a command, in words), `observation` (the same as a JSON envelope, S4), `answering`
(one or the other), `execution` (the local shell, or another place), `command_tool`.
"""

from agent.tools.shell.command_tool import make_shell_tool
from agent.tools.shell.execution import Commands, LocalCommands
from agent.tools.shell.options import ShellOptions

__all__ = ["Commands", "LocalCommands", "ShellOptions", "make_shell_tool"]
