"""Defer to trusted: in the place of a draft that is too suspicious, the trusted model's draft.

Source: Greenblatt et al. 2023, "AI Control"; ControlArena ("defer to trusted").
"""

from typing import Any

from agent.protocols.asking import TRUSTED, another_draft, replaced
from agent.vocabulary.events import InferenceRequested
from agent.vocabulary.questions import Draft
from bp import BThreadBody, bthread, start, sync

__all__ = ["defer_to_trusted"]


@bthread
def defer_to_trusted(monitor: str = "monitor", threshold: float = 0.5) -> BThreadBody:
    """Have every draft scored that a model without trust gives, and the trusted model asked above the threshold."""
    while True:
        asked = yield sync(wait_for=InferenceRequested)
        if asked.role not in TRUSTED:
            yield start(defer(asked.draft, monitor, threshold))


@bthread(name="defer_to_trusted")
def defer(name: str, monitor: str, threshold: float) -> BThreadBody:
    """Judge one draft; refuse it above the threshold, and have the trusted model give another one."""
    yield from replaced(name, monitor, threshold, trusted_draft)


def trusted_draft(draft: Draft, **standing: Any) -> BThreadBody:
    """Ask the trusted model what it would do; what it is told does not depend on the draft."""
    return another_draft("trusted", "trusted", **standing)
