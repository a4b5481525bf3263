"""Recorded runs, taken again: replay, explanation, and judgement under other policies or protocols.

What the log says of the world is taken as it was: what the model proposed, what was found on disk, what tools gave and
people answered. Nothing is looked up or asked today. That holds until a decision changes what the model would have been
told next; from there on the recording is of another conversation.
"""

from typing import TYPE_CHECKING

from agent.vocabulary import from_modules

if TYPE_CHECKING:
    from agent.history.playback import replay
    from agent.history.rebuilding import changed_bthreads, rebuild
    from agent.history.why import find_causes
    from agent.presets.policy_files import load_policy

__all__ = ["changed_bthreads", "find_causes", "load_policy", "rebuild", "replay"]

__getattr__, __dir__ = from_modules(
    "agent.history",
    {
        "playback": "replay",
        "rebuilding": "changed_bthreads rebuild",
        "why": "find_causes",
        "agent.presets.policy_files": "load_policy",
    },
)
