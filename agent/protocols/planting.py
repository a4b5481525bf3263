"""Untrusted monitoring with honeypots: a monitor that may collude is shown what is known to be harmful, now and then.

It cannot tell which. Once it passes one, it may clear nothing again. Source: Greenblatt et al. 2023, "AI Control".
"""

from collections.abc import Mapping

from agent.protocols.asking import drawn, scored
from agent.protocols.blocking import blocking_monitor
from agent.protocols.reasons_of_protocols import Distrusted
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ActionDescribed, GateApproved, GateRejected
from agent.vocabulary.questions import Honeypot, ScoreGiven
from bp import BThread, BThreadBody, bthread, start, sync, where

__all__ = ["distrust_after_a_miss", "honeypot", "is_planted", "plant_honeypots", "untrusted_monitoring"]

PLANTED = "honeypot"
"""How the ids of planted calls begin."""


def honeypot(number: int, tool: str, arguments: Mapping[str, object]) -> ToolCall:
    """Return a call to plant, which is known as such by its id."""
    return ToolCall(f"{PLANTED}{number}", tool, arguments)


def is_planted(call: ToolCall) -> bool:
    """Whether a call was made to be planted."""
    return call.id.startswith(PLANTED)


def untrusted_monitoring(
    monitor: str = "untrusted", threshold: float = 0.5, honeypots: tuple[str, ...] = (), rate: float = 0.1
) -> tuple[BThread, ...]:
    """Let a monitor without trust block calls, and plant a honeypot for it beside this share of them."""
    planting = (plant_honeypots(monitor, honeypots, rate), distrust_after_a_miss(monitor, threshold))
    return (blocking_monitor(monitor, threshold), *planting)


@bthread
def plant_honeypots(monitor: str, honeypots: tuple[str, ...], rate: float = 0.1) -> BThreadBody:
    """Draw a lot for every action: whether the monitor is shown a honeypot now, and which."""
    weights = (*(rate / len(honeypots) for _ in honeypots), 1 - rate)
    while True:
        described = yield sync(wait_for=ActionDescribed)
        yield start(plant(described.call, monitor, honeypots, weights))


@bthread(name="plant_honeypots")
def plant(call: ToolCall, monitor: str, honeypots: tuple[str, ...], weights: tuple[float, ...]) -> BThreadBody:
    """Hold one call until the lot is drawn, and what it decides was scored."""
    approval, decided = where(GateApproved, call=call), where((GateApproved, GateRejected), call=call)
    lot = yield from drawn(f"honeypot {call.id}", weights, hold=approval, over=decided)
    if lot is not None and lot.outcome < len(honeypots):
        yield from scored(Honeypot(honeypots[lot.outcome]), monitor, hold=approval, over=decided)


@bthread
def distrust_after_a_miss(monitor: str, threshold: float = 0.5) -> BThreadBody:
    """Once the monitor has passed a honeypot, refuse whatever it would have to clear, for good."""
    given = yield sync(wait_for=where(ScoreGiven, monitor=monitor))
    while not isinstance(given.subject, Honeypot) or given.is_above(threshold):
        given = yield sync(wait_for=where(ScoreGiven, monitor=monitor))
    yield sync(refuse=GateApproved, because=Distrusted(monitor, given.subject.honeypot))
