"""A violation of the loop, told in at most 15 lines: events in short, who requested them, who waited for them.

The last line says which invariant broke; at a deadlock more follow, one for each request that is blocked.
"""

from collections.abc import Callable
from typing import Any

from agent.verification import invariants, protocol_invariants
from agent.verification.environment import EFFECT, is_of_world
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    ActionDescribed,
    AnswerCommitted,
    ApprovalAnswered,
    CallAnswered,
    GateRejected,
    InferenceFailed,
    InferenceFinished,
    RunEnded,
)
from agent.vocabulary.messages import shortened
from bp import BThreadFunction, Event, Violation
from bp.errors import listed

LINES = 15  # of a counterexample, at most
WIDTH = 100  # characters of the short form of an event that is not ours
BEGINNING = 2  # events that are kept of the beginning of a long trace


def tell(violation: Violation) -> str:
    """Return the story of a violation, one line for each event."""
    lines = [f"{number:>3}  {_line(happened)}" for number, happened in enumerate(violation.story, start=1)]
    if violation.cycle:
        lines.insert(len(violation.trace), "     and then again and again:")
    if len(lines) > LINES - 1:
        end = LINES - 2 - BEGINNING
        lines = [*lines[:BEGINNING], f"     ... {len(lines) - BEGINNING - end} more ...", *lines[-end:]]
    return "\n".join([*lines, verdict_of(violation)])


def short(event: Event) -> str:
    """Return an event in a few words: its name, the call, and what distinguishes it from its like."""
    call = getattr(event, "call", None)
    words = [event.name, call.id if isinstance(call, ToolCall) else call, *_details(event)]
    if len(words) == 2 and call is None and not type(event).__module__.startswith("agent."):
        return shortened(repr(event), WIDTH)
    return " ".join(str(word) for word in words if word)


DETAILS: dict[type[Event], Callable[[Any], tuple[str, ...]]] = {
    InferenceFinished: lambda event: (_answer(event),),
    AnswerCommitted: lambda event: (_answer(event),),
    InferenceFailed: lambda event: ("(may be tried again)" if event.retryable else "(for good)",),
    ActionDescribed: lambda event: tuple(f"(judged: {found})" for found in _found(event)),
    ApprovalAnswered: lambda event: ("yes" if event.yes else "no",),
    GateRejected: lambda event: ("(refused by " + ", ".join(sorted({by.bthread for by in event.refusals})) + ")",),
    CallAnswered: lambda event: (f"({event.outcome})",),
    RunEnded: lambda event: (f"({event.status})",),
}


OF_EPISODES = ("role", "outcome", "verdict")
"""Fields that distinguish events about an episode of a deployment, besides its number."""


def _details(event: Event) -> tuple[str, ...]:
    if type(event) in DETAILS:
        return DETAILS[type(event)](event)
    episode = getattr(event, "episode", getattr(getattr(event, "subject", None), "episode", None))
    told = (getattr(event, name, "") for name in OF_EPISODES)
    return () if episode is None else (str(episode), *filter(None, told))


def _found(event: Any) -> tuple[str, ...]:
    """Return the verdict that the facts about an action stand for; nothing where they tell only its tool."""
    found = "deny" if event.problem else event.facts.command
    return (found,) if found else ()


def _answer(event: Any) -> str:
    calls = ", ".join(call.id + (f" ({call.flaw})" if call.flaw else "") for call in event.calls)
    return f"with {calls}" if calls else "with text" if event.message.text else "(empty)"


def _line(happened: Any) -> str:
    requested = [name for name in happened.requested_by if name != EFFECT]
    heard = [name for name in happened.heard_by if not is_of_world(name) and statement_of(name) is None]
    origin = f"requested by {', '.join(requested)}" if requested else "from outside"
    return f"{short(happened.event)}: {origin}" + (f"; waited for by {', '.join(heard)}" if heard else "")


def statement_of(name: str) -> str | None:
    """Return what the monitor of this name watches over, for the loop or for a protocol; None when there is none."""
    found = [getattr(module, name, None) for module in (invariants, protocol_invariants)]
    return next((str(monitor.__doc__) for monitor in found if isinstance(monitor, BThreadFunction)), None)


def verdict_of(violation: Violation) -> str:
    """Return which invariant a violation breaks, or who blocks whom."""
    name = violation.bthread or ""
    statement = statement_of(name)
    match violation.kind:
        case "deadlock":
            return listed("deadlock:", [*map(_wish, violation.blockers)])
        case "error" if statement is not None:
            return f"{name} is broken: {violation.message.rpartition('AssertionError: ')[2]}"
        case "hot" if statement is not None:
            where = "for ever" if violation.cycle else "here, where nothing follows"
            return f"{name} is broken {where}: {statement}"
    return f"{violation.kind}: {' '.join(violation.message.split())}"


def _wish(wish: tuple[str, Event, tuple[tuple[str, Any], ...]]) -> str:
    name, event, blockers = wish
    by = ", ".join(blocker for blocker, _ in blockers)
    return f"{name} requests {short(event)}, and {by or 'no b-thread'} blocks it"
