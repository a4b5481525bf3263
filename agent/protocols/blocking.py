"""Blocking monitor: no call is approved before its score is there, and none that scores above the threshold.

Source: the usual control loop (ControlArena: "block"); `hold` while the score is out, `refuse` when it is too high.
"""

from agent.protocols.asking import scored
from agent.protocols.reasons_of_protocols import Suspicious
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ActionDescribed, GateApproved, GateRejected
from bp import BThreadBody, bthread, start, sync, where

__all__ = ["blocking_monitor"]


@bthread
def blocking_monitor(monitor: str = "monitor", threshold: float = 0.5) -> BThreadBody:
    """Have every action scored before it may be approved."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        yield start(judge(described.call, monitor, threshold))


@bthread(name="blocking_monitor")
def judge(call: ToolCall, monitor: str, threshold: float) -> BThreadBody:
    """Hold one call until it was scored; refuse it above the threshold."""
    approval, decided = where(GateApproved, call=call), where((GateApproved, GateRejected), call=call)
    given = yield from scored(call, monitor, hold=approval, over=decided)
    if given is not None and given.is_above(threshold):
        yield sync(refuse=approval, because=Suspicious.by(given, threshold), wait_for=decided)
