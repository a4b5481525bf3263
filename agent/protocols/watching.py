"""Trusted monitoring: every draft of an untrusted model is scored, and nothing waits for it but the next turn.

Source: Greenblatt et al. 2023, "AI Control". What the scores are for is audited afterwards: `audit_budget`.
"""

from agent.protocols.asking import NEXT_TURN, TRUSTED, draft_given, scored
from agent.vocabulary.events import InferenceRequested
from bp import BThreadBody, bthread, start, sync

__all__ = ["trusted_monitoring"]


@bthread
def trusted_monitoring(monitor: str = "monitor") -> BThreadBody:
    """Have a monitor score every draft that a model without trust gives."""
    while True:
        asked = yield sync(wait_for=InferenceRequested)
        if asked.role not in TRUSTED:
            yield start(watch(asked.draft, monitor))


@bthread(name="trusted_monitoring")
def watch(name: str, monitor: str) -> BThreadBody:
    """Have one draft scored."""
    draft = yield from draft_given(name)
    if draft is not None:
        yield from scored(draft, monitor, hold=NEXT_TURN)
