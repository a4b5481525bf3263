"""Questions that protocols ask: a score, a verdict, a random choice, another draft.

While an answer is pending, a protocol blocks the subject, `run_ended` and equal questions of others, so that an answer
is always about the moment in which it was asked for.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import frozen

from agent.threads.core import OWN
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
from bp import NONE, BThread, BThreadBody, Event, contains, start, sync, where


@frozen
class Reason:
    """The reason why a protocol refuses, in words, and the kind of it."""

    text: str
    category: str

    def __str__(self) -> str:
        return self.text


def suspicion(monitor: str, value: float | None, threshold: float) -> Reason:
    """Return that a monitor finds a subject too suspicious. value None: no score, which counts as most suspicious."""
    if value is None:
        return Reason(f"{monitor} gives no score, which counts as most suspicious", "suspicion")
    return Reason(f"{monitor} gives {value:.2f}, and {threshold:.2f} is allowed", "suspicion")


TRUSTED = ("trusted", "editor")
"""The roles whose drafts protocols take as they are: models that are weak, and meant well."""

NEXT_TURN = where(InferenceRequested, draft=OWN)
TURN_OVER = AnswerCommitted | DraftsRefused


def scored(subject: Subject, monitor: str, *, hold: Any = NONE, over: Any = NONE, **standing: Any) -> BThreadBody:
    """Ask a monitor about a subject and return what it gives; None when an event of `over` came before that.

    `hold` is held until then; `standing` is said at each of the synchronization points (refuse=, because=).
    """
    answer = where(ScoreGiven, subject=subject, monitor=monitor)
    given = yield from _asked(ScoreRequested(subject, monitor), answer, hold, over, standing)
    return ScoreGiven(subject, monitor, None, "not asked") if isinstance(given, QuestionForgone) else given


def audited(subject: Subject, auditor: str, *, hold: Any = NONE, **standing: Any) -> BThreadBody:
    """Ask an auditor about a subject and return the verdict."""
    answer = where(AuditGiven, subject=subject, auditor=auditor)
    given = yield from _asked(AuditRequested(subject, auditor), answer, hold, NONE, standing)
    return AuditGiven(subject, auditor, "missing", "not asked") if isinstance(given, QuestionForgone) else given


def drawn(key: str, weights: tuple[float, ...], *, hold: Any = NONE, over: Any = NONE) -> BThreadBody:
    """Draw at random and return the result; None when an event of `over` came before. The first one on failure."""
    given = yield from _asked(ChanceRequested(key, weights), where(ChanceDrawn, key=key), hold, over, {})
    return ChanceDrawn(key, 0) if isinstance(given, QuestionForgone) else given


def _asked(question: Event, answer: Any, hold: Any, over: Any, standing: dict[str, Any]) -> BThreadBody:
    said = yield sync(
        request=question,
        otherwise=partial(QuestionForgone, question),
        wait_for=over,
        block=[hold, RunEnded],
        **standing,
    )
    if said != question:
        return said if isinstance(said, QuestionForgone) else None
    said = yield sync(wait_for=answer | over, block=[hold, question, RunEnded], **standing)
    if contains(answer, said):
        return said
    yield sync(wait_for=answer, block=[question, RunEnded], **standing)  # or it would answer a later question
    return None


def of_each_untrusted_draft(child: Callable[..., BThread], *arguments: Any) -> BThreadBody:
    """Start `child` with the name of each draft that a model without trust is asked for."""
    while True:
        asked = yield sync(wait_for=InferenceRequested)
        if asked.role not in TRUSTED:
            yield start(child(asked.draft, *arguments))


def of_each_action(child: Callable[..., BThread], *arguments: Any) -> BThreadBody:
    """Start `child` with each call that is described."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        yield start(child(described.call, *arguments))


def draft_given(draft: str) -> BThreadBody:
    """Wait for a draft that was asked for; return it, or None when it failed."""
    said = yield sync(wait_for=where((InferenceFinished, InferenceFailed), draft=draft))
    return Draft.of(said) if isinstance(said, InferenceFinished) else None


def another_draft(draft: str, role: str, note: str = "", **standing: Any) -> BThreadBody:
    """Have a model of `role` asked for one more draft of this turn, again if that may help; return it, or None.

    Where rules let no model be asked any more, the result is the worst `Ending` that they give as their reason.
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


def replaced(name: str, monitor: str, threshold: float, replace: Callable[..., BThreadBody]) -> BThreadBody:
    """Have the draft of this name scored; above the threshold refuse it, finally once `replace` has returned.

    `replace(draft, refuse=, because=)` asks for another draft and returns what `another_draft` does.
    """
    draft = yield from draft_given(name)
    given = None if draft is None else (yield from scored(draft, monitor, hold=DraftsSettled))
    if given is not None and given.is_above(threshold):
        refuse, because = commitment(draft), suspicion(monitor, given.value, threshold)
        found = yield from replace(draft, refuse=refuse, because=because)
        yield sync(refuse=refuse, because=ending_or(because, found), wait_for=TURN_OVER)


def commitment(draft: Any) -> Any:
    """Return the commitment to exactly this draft."""
    return where(AnswerCommitted, draft=draft.draft, message=draft.message, calls=draft.calls)


def ending_or(because: object, found: object) -> object:
    """Return the reason why a draft is refused: the ending that prevented another draft, if any."""
    return found if isinstance(found, Ending) else because


EVERYTHING = InferenceRequested | ProposedAction | ApprovalAsked | GateApproved | ToolStarted
COMPLETED = where(RunEnded, status="completed")


def contain(subject: Subject, because: object) -> BThreadBody:
    """Say that a subject is contained, and refuse everything after it until the run has ended."""
    reason = str(because)
    ending = Ending("failed", "contained", f"Stopped: {reason}.")
    yield sync(request=Contained(subject, reason), refuse=EVERYTHING, because=ending, block=RunEnded)
    yield sync(refuse=EVERYTHING | COMPLETED, because=ending, wait_for=RunEnded)
