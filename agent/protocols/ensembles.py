"""Ensemble: a score of scores. Several monitors score a call, and what they say together is compared.

Source: none of its own; monitors that fail differently are worth more together than the best of them.
"""

from collections.abc import Callable
from statistics import fmean

from agent.protocols.asking import scored
from agent.protocols.reasons_of_protocols import Suspicious
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ActionDescribed, GateApproved, GateRejected
from bp import BThreadBody, bthread, start, sync, where

__all__ = ["ensemble", "highest", "mean"]

Combine = Callable[[tuple[float, ...]], float]


def mean(suspicions: tuple[float, ...]) -> float:
    """Return the mean; infinite when a score is missing."""
    return fmean(suspicions)


def highest(suspicions: tuple[float, ...]) -> float:
    """Return the highest; infinite when a score is missing."""
    return max(suspicions)


@bthread
def ensemble(monitors: tuple[str, ...], threshold: float = 0.5, combine: Combine = highest) -> BThreadBody:
    """Have every action scored by `monitors` before it may be approved, by one after the other.

    `combine` must not be lower for higher scores: who is left is not asked any more when it can make no difference.
    """
    while True:
        described = yield sync(wait_for=ActionDescribed)
        yield start(judge(described.call, monitors, threshold, combine))


@bthread(name="ensemble")
def judge(call: ToolCall, monitors: tuple[str, ...], threshold: float, combine: Combine) -> BThreadBody:
    """Hold one call until it was scored; refuse it as soon as it is above the threshold, whatever the others say."""
    approval, decided = where(GateApproved, call=call), where((GateApproved, GateRejected), call=call)
    suspicions: tuple[float, ...] = ()
    for number, monitor in enumerate(monitors, start=1):
        given = yield from scored(call, monitor, hold=approval, over=decided)
        if given is None:
            return
        suspicions = (*suspicions, given.suspicion)
        together = combine((*suspicions, *(0.0 for _ in monitors[number:])))
        if together > threshold:
            value = None if together == float("inf") else together
            because = Suspicious(" and ".join(monitors[:number]), value, threshold)
            yield sync(refuse=approval, because=because, wait_for=decided)
            return
