"""Hindsight: recorded episodes under protocols that they did not run under.

- `answering`: what a recording answers when a protocol asks
- `rerunning`: one episode under other b-threads
- `foreseeing`: a whole experiment under other thresholds, with bounds
- `sweeping`: the same on all processors
"""

from agent.lab.experiments.hindsight.answering import Unknown, monitors_of
from agent.lab.experiments.hindsight.foreseeing import Group, foresee, grouped, write_foreseen
from agent.lab.experiments.hindsight.rerunning import Reading, Remembering, read_episode
from agent.lab.experiments.hindsight.sweeping import Sweep, sweep

__all__ = [
    "Group",
    "Reading",
    "Remembering",
    "Sweep",
    "Unknown",
    "foresee",
    "grouped",
    "monitors_of",
    "read_episode",
    "sweep",
    "write_foreseen",
]
