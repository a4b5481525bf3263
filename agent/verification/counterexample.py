"""A violation of the loop in at most 15 lines: the events, with the b-threads that requested and waited for them.

The last line names the broken invariant; for a deadlock there is one more for each blocked request.
"""

from collections.abc import Callable
from typing import Any

from agent.threads.core import OWN
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
    InferenceRequested,
    RunEnded,
    ToolFinished,
)
from agent.vocabulary.questions import AuditGiven, AuditRequested, ChanceDrawn, ScoreGiven, ScoreRequested
from bp import Event, Violation
from bp.errors import listed, shown
from bp.statements import BThreadFunction

LINES = 15  # of a counterexample, at most
WHERE = "all: --json, --page, or `story` of the violation"
BEGINNING = 2  # events shown of the beginning of a long trace


def tell(violation: Violation) -> str:
    """Return the story of a violation, one line for each event."""
    lines = [f"{number:>3}  {_line(happened)}" for number, happened in enumerate(violation.story, start=1)]
    if violation.cycle:
        lines.insert(len(violation.trace), "     and then again and again:")
    verdict = finding(violation)
    room = max(LINES - len(verdict.splitlines()), BEGINNING + 2)
    if len(lines) > room:
        end = room - 1 - BEGINNING
        lines = [*lines[:BEGINNING], f"     ... {len(lines) - BEGINNING - end} more; {WHERE} ...", *lines[-end:]]
    return "\n".join([*lines, verdict])


def short(event: Event) -> str:
    """Return an event in a few words: its name, the call, and its distinguishing fields."""
    call = getattr(event, "call", None)
    details = DETAILS[type(event)](event) if type(event) in DETAILS else ()
    words = [event.name, call.id if isinstance(call, ToolCall) else call, *details]
    if len(words) == 2 and call is None and not type(event).__module__.startswith("agent."):
        return shown(event)
    return " ".join(str(word) for word in words if word)


SCORES = {0.0: "low", 1.0: "high", None: "missing"}
"""The classes of scores in an environment."""

DETAILS: dict[type[Event], Callable[[Any], tuple[str, ...]]] = {
    InferenceRequested: lambda event: () if event.draft == OWN else (event.draft, f"({event.role})"),
    InferenceFinished: lambda event: (_answer(event),),
    AnswerCommitted: lambda event: (_answer(event),),
    InferenceFailed: lambda event: ("(may be tried again)" if event.retryable else "(permanently)",),
    ActionDescribed: lambda event: (
        (f"(judged: {'deny' if event.problem else event.facts.command})",)
        if event.problem or event.facts.command
        else ()
    ),
    ApprovalAnswered: lambda event: ("yes" if event.yes else "no",),
    GateRejected: lambda event: ("(refused by " + ", ".join(sorted({by.bthread for by in event.refusals})) + ")",),
    CallAnswered: lambda event: (f"({event.outcome})",),
    RunEnded: lambda event: (f"({event.status})",),
    ToolFinished: lambda event: ("(error)",) if event.result.is_error else (),
    ScoreRequested: lambda event: (_subject(event), event.monitor),
    ScoreGiven: lambda event: (_subject(event), event.monitor, f"({SCORES.get(event.value, event.value)})"),
    AuditRequested: lambda event: (_subject(event), event.auditor),
    AuditGiven: lambda event: (_subject(event), event.auditor, f"({event.verdict})"),
    ChanceDrawn: lambda event: (event.key, f"({event.outcome})"),
}


def _subject(event: Any) -> str:
    """Return the id of a call, the name of a draft, or the number of an episode; nothing for others."""
    names = (getattr(event.subject, name, None) for name in ("id", "draft", "episode"))
    return next((str(name) for name in names if name is not None), "")


def _answer(event: Any) -> str:
    draft = "" if event.draft == OWN else f"{event.draft} "
    calls = ", ".join(call.id + (f" ({call.flaw})" if call.flaw else "") for call in event.calls)
    return draft + (f"with {calls}" if calls else "with text" if event.message.text else "(empty)")


def _line(happened: Any) -> str:
    requested = ", ".join(name for name in happened.requested_by if name != EFFECT)
    heard = ", ".join(name for name in happened.heard_by if not is_of_world(name) and statement_of(name) is None)
    origin = f"requested by {requested}" if requested else "from outside"
    return f"{short(happened.event)}: {origin}" + (f"; waited for by {heard}" if heard else "")


def statement_of(name: str) -> str | None:
    """Return the invariant that the monitor of this name checks; None if there is none."""
    found = [getattr(module, name, None) for module in (invariants, protocol_invariants)]
    return next((str(monitor.__doc__) for monitor in found if isinstance(monitor, BThreadFunction)), None)


def finding(violation: Violation) -> str:
    """Return the violation in words: the broken invariant, or for a deadlock a line for each blocked request."""
    name = violation.bthread or ""
    statement = statement_of(name)
    match violation.kind:
        case "deadlock":
            return listed("deadlock:", [*map(_blocked, violation.blockers)])
        case "error" if statement is not None:
            return f"{name} is broken: {violation.message.rpartition('AssertionError: ')[2]}"
        case "hot" if statement is not None:
            where = "for ever" if violation.cycle else "here, where nothing follows"
            return f"{name} is broken {where}: {statement}"
    return f"{violation.kind}: {' '.join(violation.message.split())}"


def _blocked(request: tuple[str, Event, tuple[tuple[str, Any], ...]]) -> str:
    name, event, blockers = request
    by = ", ".join(blocker for blocker, _ in blockers)
    return f"{name} requests {short(event)}, and {by or 'no b-thread'} blocks it"
