"""Who says how suspicious something looks: a model, the constitution, words, a distribution, a constant.

- `monitor`: what a monitor is given, and what it gives
- `simple`: without a model
- `simulated`: a distribution with a given separation and correlation
- `prompted`: a model with a prompt
"""

from agent.protocols.monitors.monitor import Evidence, Monitor, Score, calls_of, checked, text_of
from agent.protocols.monitors.prompted import PROMPT, PromptedMonitor, parse_score, shown_to
from agent.protocols.monitors.simple import WORDS, ConstantMonitor, ConstitutionMonitor, KeywordMonitor
from agent.protocols.monitors.simulated import SimulatedMonitor

__all__ = [
    "PROMPT",
    "WORDS",
    "ConstantMonitor",
    "ConstitutionMonitor",
    "Evidence",
    "KeywordMonitor",
    "Monitor",
    "PromptedMonitor",
    "Score",
    "SimulatedMonitor",
    "calls_of",
    "checked",
    "parse_score",
    "shown_to",
    "text_of",
]
