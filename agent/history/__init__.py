"""Recorded runs: replay, explanation, and judgement under other policies or protocols.

External events are taken from the log: the drafts of the model, the facts on disk, the results of tools, the answers of
users. Nothing is looked up or asked again. A recording is valid until a decision changes what the model would have been
told next.
"""

from typing import TYPE_CHECKING

from agent.vocabulary import from_modules

if TYPE_CHECKING:
    from agent.history.branching import branch
    from agent.history.playback import replay
    from agent.history.rebuilding import changed_bthreads, rebuild
    from agent.history.what_if import find_causes
    from agent.presets.configuration import load_policy

__all__ = ["branch", "changed_bthreads", "find_causes", "load_policy", "rebuild", "replay"]

__getattr__, __dir__ = from_modules(
    "agent.history",
    {
        "branching": "branch",
        "playback": "replay",
        "rebuilding": "changed_bthreads rebuild",
        "what_if": "find_causes",
        "agent.presets.configuration": "load_policy",
    },
)
