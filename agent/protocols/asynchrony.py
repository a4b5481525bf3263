"""Asynchronous monitor: the action runs while it is scored; above the threshold, nothing more happens in the run.

Source: 2512.13526. It costs no time per action, and what was done before the score came was done.
"""

from agent.protocols.asking import NEXT_TURN, scored
from agent.protocols.containment import contain
from agent.protocols.reasons_of_protocols import Suspicious
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ToolStarted
from bp import BThreadBody, bthread, start, sync

__all__ = ["asynchronous_monitor"]


@bthread
def asynchronous_monitor(monitor: str = "monitor", threshold: float = 0.5) -> BThreadBody:
    """Have every call scored that starts, beside it; only the next turn waits."""
    while True:
        started = yield sync(wait_for=ToolStarted)
        yield start(watch(started.call, monitor, threshold))


@bthread(name="asynchronous_monitor")
def watch(call: ToolCall, monitor: str, threshold: float) -> BThreadBody:
    """Have one call scored; contain it above the threshold."""
    given = yield from scored(call, monitor, hold=NEXT_TURN)
    if given.is_above(threshold):
        yield from contain(call, Suspicious.by(given, threshold))
