"""Defer to trusted: in the place of a draft that is too suspicious, the trusted model's draft.

Source: Greenblatt et al. 2023, "AI Control"; ControlArena ("defer to trusted").
"""

from agent.events import DraftsSettled, InferenceRequested
from agent.lab.asking import TRUSTED, TURN_OVER, another_draft, commitment, draft_given, ending_or, scored
from agent.lab.reasons import Suspicious
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
    draft = yield from draft_given(name)
    given = None if draft is None else (yield from scored(draft, monitor, hold=DraftsSettled))
    if given is not None and given.is_above(threshold):
        because = Suspicious.by(given, threshold)
        found = yield from another_draft("trusted", "trusted", refuse=commitment(draft), because=because)
        yield sync(refuse=commitment(draft), because=ending_or(because, found), wait_for=TURN_OVER)
