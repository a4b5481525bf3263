"""The gate: every described action is put up for approval, and whoever objects refuses it."""

from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ActionDescribed, GateApproved, GateRejected
from bp import BThreadBody, bthread, start, sync, where
from constitution import Action

__all__ = ["gate"]


@bthread
def gate() -> BThreadBody:
    """Put each action up as soon as it is described, several at a time if they come so."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        yield start(put_up(described.call, described.facts))


@bthread(name="gate")
def put_up(call: ToolCall, facts: Action) -> BThreadBody:
    """Approve the call unless somebody refuses; then reject it, saying who and why. Holding it only delays.

    It is over as well when somebody else has rejected the call: the question whose answer it needs was refused.
    """
    rejected = where(GateRejected, call=call)
    yield sync(
        request=GateApproved(call, facts), otherwise=lambda refusals: GateRejected(call, refusals), wait_for=rejected
    )
