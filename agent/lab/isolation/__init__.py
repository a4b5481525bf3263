"""Isolation: episodes run where they can write their workspace and nothing else, and reach nothing but their own hosts.

Modules in reading order:

- `limits`: how much there is of everything. `guarding`: who counts it, from outside
- `numbering`: how the kernel counts processes of root. `furnishing`: what there is inside, as arguments of bubblewrap
- `devices`: what bubblewrap cannot make read only
- `cell`: the namespaces of one episode, and how processes get in
- `visitors`: the shell tool of an agent in a cell
- `probing`: which level this machine achieves, found by trying to get out
"""

from agent.lab.isolation.cell import Cell, IsolationError
from agent.lab.isolation.guarding import Excess
from agent.lab.isolation.limits import Limits
from agent.lab.isolation.probing import LEVELS, Level, Wanted, achieve, limits_at, probe
from agent.lab.isolation.visitors import CellCommands

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
