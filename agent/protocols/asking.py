"""Requests of protocols: a score, a verdict, a random choice, another draft.

While an answer is pending, a protocol blocks the subject, `run_ended` and duplicate requests, so that an answer is
always about the state in which it was requested.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import frozen

from agent.vocabulary.events import (
    ActionDescribed,
    AnswerCommitted,
    ApprovalAsked,
    DraftsRefused,
    DraftsSettled,
    GateApproved,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    ProposedAction,
    RunEnded,
    ToolStarted,
)
from agent.vocabulary.questions import (
    AuditGiven,
    AuditRequested,
    ChanceDrawn,
    ChanceRequested,
    Contained,
    Draft,
    DraftForgone,
    QuestionForgone,
    ScoreGiven,
    ScoreRequested,
    Subject,
)
from agent.vocabulary.reasons import Ending, worst_of
from bp import NONE, BThread, BThreadBody, Event, bthread, contains, start, sync, where


@frozen
class Reason:
    """The reason of a protocol's refusal, in words, with its kind."""

    text: str
    category: str

    def __str__(self) -> str:
        return self.text


def suspicion(monitor: str, value: float | None, threshold: float) -> Reason:
    """Return the reason that a suspicion score is too high. value None: no score, which counts as most suspicious."""
    if value is None:
        return Reason(f"{monitor} gives no score, which counts as most suspicious", "suspicion")
    return Reason(f"{monitor} gives {value:.2f}, and {threshold:.2f} is allowed", "suspicion")


TRUSTED = ("trusted", "editor")
"""The roles whose drafts protocols accept unchecked: weak, trusted models."""

TURN_OVER = AnswerCommitted | DraftsRefused


def scored(subject: Subject, monitor: str, *, hold: Any = NONE, over: Any = NONE, **standing: Any) -> BThreadBody:
    """Request a monitor's score of a subject and return it; None if an event of `over` came before.

    `hold`: blocked until then; `standing`: further arguments of each synchronization point (refuse=, because=).
    """
    answer = where(ScoreGiven, subject=subject, monitor=monitor)
    missing = ScoreGiven(subject, monitor, None, "not asked")
    return _asked(ScoreRequested(subject, monitor), answer, missing, hold, over, standing)


def audited(subject: Subject, auditor: str, *, hold: Any = NONE, **standing: Any) -> BThreadBody:
    """Request an audit of a subject and return the verdict."""
    answer = where(AuditGiven, subject=subject, auditor=auditor)
    missing = AuditGiven(subject, auditor, "missing", "not asked")
    return _asked(AuditRequested(subject, auditor), answer, missing, hold, NONE, standing)


def drawn(key: str, weights: tuple[float, ...], *, hold: Any = NONE, over: Any = NONE) -> BThreadBody:
    """Request a random draw and return it (on failure the first choice); None if an event of `over` came before."""
    return _asked(ChanceRequested(key, weights), where(ChanceDrawn, key=key), ChanceDrawn(key, 0), hold, over, {})


def _asked(question: Event, answer: Any, missing: Event, hold: Any, over: Any, standing: dict[str, Any]) -> BThreadBody:
    forgone = partial(QuestionForgone, question)
    said = yield sync(request=question, otherwise=forgone, wait_for=over, block=[hold, RunEnded], **standing)
    if said != question:
        return missing if isinstance(said, QuestionForgone) else None
    said = yield sync(wait_for=answer | over, block=[hold, question, RunEnded], **standing)
    if contains(answer, said):
        return said
    yield sync(wait_for=answer, block=[question, RunEnded], **standing)  # else its result would answer a later request
    return None


def of_each_untrusted_draft(child: Callable[..., BThread], *arguments: Any, name: str = "") -> BThreadBody:
    """Start `child`, under a `name` if one is given, with that of each draft requested of an untrusted model."""
    while True:
        asked = yield sync(wait_for=InferenceRequested)
        if asked.role not in TRUSTED:
            made = child(asked.draft, *arguments)
            yield start(made.named(name or made.name))


def of_each_action(child: Callable[..., BThread], *arguments: Any, name: str = "") -> BThreadBody:
    """Start `child`, under a `name` if one is given, with each call that is described."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        made = child(described.call, *arguments)
        yield start(made.named(name or made.name))


def draft_given(draft: str) -> BThreadBody:
    """Wait for a requested draft; return it, or None if it failed."""
    said = yield sync(wait_for=where((InferenceFinished, InferenceFailed), draft=draft))
    return Draft.of(said) if isinstance(said, InferenceFinished) else None


def another_draft(draft: str, role: str, note: str = "", **standing: Any) -> BThreadBody:
    """Request one more draft of this turn from a model of `role`, with retries; return it, or None.

    If rules refuse further inferences, the result is the worst `Ending` among their reasons.
    """
    request = InferenceRequested(draft, role, note)
    outcome = where((InferenceFinished, InferenceFailed), draft=draft)
    while True:
        said = yield sync(request=request, otherwise=partial(DraftForgone, draft), block=DraftsSettled, **standing)
        if isinstance(said, DraftForgone):
            return worst_of(said.refusals)
        said = yield sync(wait_for=outcome, **standing)
        if isinstance(said, InferenceFinished):
            return Draft.of(said)
        if not said.retryable:
            return None


@bthread
def replaced(name: str, monitor: str, threshold: float, replace: Callable[..., BThreadBody]) -> BThreadBody:
    """Request a score of this draft; above the threshold refuse it, with the final reason once `replace` has returned.

    `replace(draft, refuse=, because=)` requests another draft and returns the result of `another_draft`.
    """
    draft = yield from draft_given(name)
    given = None if draft is None else (yield from scored(draft, monitor, hold=DraftsSettled))
    if given is not None and given.is_above(threshold):
        refuse, because = commitment(draft), suspicion(monitor, given.value, threshold)
        found = yield from replace(draft, refuse=refuse, because=because)
        yield sync(refuse=refuse, because=ending_or(because, found), wait_for=TURN_OVER)


def commitment(draft: Any) -> Any:
    """Return the event set of this draft's commitment."""
    return where(AnswerCommitted, draft=draft.draft, message=draft.message, calls=draft.calls)


def ending_or(because: object, found: object) -> object:
    """Return the reason for refusing a draft: the ending that prevented another draft, if any."""
    return found if isinstance(found, Ending) else because


EVERYTHING = InferenceRequested | ProposedAction | ApprovalAsked | GateApproved | ToolStarted
COMPLETED = where(RunEnded, status="completed")


def contain(subject: Subject, because: object) -> BThreadBody:
    """Contain a subject: request that event, and refuse everything after it until the run has ended."""
    reason = str(because)
    ending = Ending("failed", "contained", f"Stopped: {reason}.")
    yield sync(request=Contained(subject, reason), refuse=EVERYTHING, because=ending, block=RunEnded)
    yield sync(refuse=EVERYTHING | COMPLETED, because=ending, wait_for=RunEnded)
