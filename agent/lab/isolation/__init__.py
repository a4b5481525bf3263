"""Isolation: episodes run where they can write their workspace and nothing else, and reach nothing but their own hosts.

Modules in reading order:

- `guarding`: who counts what a cell takes, from outside (limits and mounts: `agent.tools.sandbox`)
- `numbering`: how the kernel counts processes of root
- `devices`: what bubblewrap cannot make read only
- `cell`: the namespaces of one episode, and how processes get in
- `visitors`: the shell tool of an agent in a cell
- `probing`: which level this machine achieves, found by trying to get out
"""

from agent.lab.isolation.cell import Cell, IsolationError
from agent.lab.isolation.guarding import Excess
from agent.lab.isolation.probing import LEVELS, Level, Wanted, achieve, limits_at, probe
from agent.lab.isolation.visitors import CellCommands
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
