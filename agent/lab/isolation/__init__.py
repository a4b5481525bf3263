"""Isolation: episodes run where they can write their workspace and nothing else, and reach nothing but their own hosts.

Modules in reading order:

- `furnishing`: what there is inside of a cell, as arguments of bubblewrap
- `devices`: what bubblewrap cannot make read only
- `cell`: the namespaces of one episode, and how processes get in
- `visitors`: the shell tool of an agent in a cell
- `probing`: which level this machine achieves, found by trying to get out
"""

from agent.lab.isolation.cell import Cell, IsolationError
from agent.lab.isolation.probing import LEVELS, Level, Wanted, achieve, probe
from agent.lab.isolation.visitors import CellCommands

__all__ = ["LEVELS", "Cell", "CellCommands", "IsolationError", "Level", "Wanted", "achieve", "probe"]
