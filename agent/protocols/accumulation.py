"""Suspicion accumulates: near misses add up to a refusal, so that an attack in small steps is an attack.

Source: none of its own. What a score exceeds `near` by adds up, in whole buckets, which keeps the state finite; a
missing score fills them all.
"""

from agent.protocols.asking import NEXT_TURN, scored
from agent.protocols.reasons_of_protocols import AddedUp
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ActionDescribed, GateApproved, GateRejected, RunEnded
from agent.vocabulary.questions import ScoreGiven
from bp import NONE, BThreadBody, bthread, start, sync, where

__all__ = ["buckets_of", "suspicion_accumulates"]


@bthread
def suspicion_accumulates(
    monitor: str = "monitor", limit: int = 10, buckets: int = 10, near: float = 0.0
) -> BThreadBody:
    """Have every action scored, and refuse all once those of a run exceed `limit` buckets; a score of 1 has all.

    near: a score up to this has none: an ordinary action is no near miss, however many there are.
    """
    news = where(ScoreGiven, monitor=monitor) | ActionDescribed | NEXT_TURN | RunEnded
    total = 0
    seen: tuple[ToolCall, ...] = ()  # in this turn: several protocols may have asked for the same score
    while True:
        said = yield sync(wait_for=news, refuse=GateApproved if total > limit else NONE, because=AddedUp(monitor))
        if isinstance(said, ActionDescribed):
            yield start(hold(said.call, monitor))
        elif isinstance(said, ScoreGiven):
            if isinstance(said.subject, ToolCall) and said.subject not in seen:
                total, seen = min(total + buckets_of(said, buckets, near), limit + 1), (*seen, said.subject)
        else:
            total, seen = (0 if isinstance(said, RunEnded) else total), ()


@bthread(name="suspicion_accumulates")
def hold(call: ToolCall, monitor: str) -> BThreadBody:
    """Hold one call until it was scored."""
    decided = where((GateApproved, GateRejected), call=call)
    yield from scored(call, monitor, hold=where(GateApproved, call=call), over=decided)


def buckets_of(given: ScoreGiven, buckets: int, near: float = 0.0) -> int:
    """Return how many of `buckets` a score fills: none up to `near`, all at 1."""
    if given.value is None:
        return buckets
    return int((given.value - near) / (1 - near) * buckets) if given.value > near else 0
