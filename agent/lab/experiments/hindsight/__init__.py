"""Hindsight: recorded episodes under protocols that they did not run under.

- `answering`: what a recording answers when a protocol asks
- `rerunning`: one episode under other b-threads
- `foreseeing`: a whole experiment under other thresholds, with bounds
"""

from agent.lab.experiments.hindsight.answering import Unknown, monitors_of
from agent.lab.experiments.hindsight.foreseeing import Group, foresee, grouped, write_foreseen
from agent.lab.experiments.hindsight.rerunning import Reading, read_episode

__all__ = ["Group", "Reading", "Unknown", "foresee", "grouped", "monitors_of", "read_episode", "write_foreseen"]
