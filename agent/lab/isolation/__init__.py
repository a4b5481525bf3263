"""Isolation: episodes run where they can write their workspace and nothing else, and reach nothing but their own hosts.

Modules in reading order:

- `guard`: counts from outside what a cell takes (limits and mounts: `agent.tools.sandbox`)
- `cell`: the namespaces of one episode, how processes get in, and the shell tool of an agent there
- `levels`: which level this machine achieves, found by trying to get out
"""

from agent.lab.isolation.cell import Cell, CellCommands, IsolationError
from agent.lab.isolation.guard import Excess
from agent.lab.isolation.levels import LEVELS, Level, Wanted, achieve, limits_at, probe
from agent.tools.sandbox.limits import Limits

__all__ = [
    "LEVELS",
    "Cell",
    "CellCommands",
    "Excess",
    "IsolationError",
    "Level",
    "Limits",
    "Wanted",
    "achieve",
    "limits_at",
    "probe",
]
