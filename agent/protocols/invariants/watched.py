"""What watchers are for: everything is scored or audited in time, and what was caught has consequences."""

from agent.protocols.asking import NEXT_TURN, TRUSTED
from agent.vocabulary.events import (
    AnswerCommitted,
    GateApproved,
    InferenceFinished,
    InferenceRequested,
    RunEnded,
    ToolStarted,
)
from agent.vocabulary.questions import (
    AuditGiven,
    AuditRequested,
    Draft,
    QuestionForgone,
    ScoreGiven,
    ScoreRequested,
    Subject,
)
from bp import BThreadBody, Event, bthread, sync, where

__all__ = [
    "answers_are_audited",
    "audits_are_limited",
    "calls_are_scored",
    "contained_runs_end",
    "disabled_roles_are_silent",
    "drafts_are_scored",
]

Subjects = frozenset[Subject]
NONE_YET: Subjects = frozenset()
BOUNDARY = QuestionForgone | NEXT_TURN | RunEnded


def settled(said: ScoreGiven | AuditGiven | QuestionForgone) -> Subjects:
    """Return the subject that a question was about, whether it was answered or, after an abort, not asked."""
    about: Event = said.question if isinstance(said, QuestionForgone) else said
    if isinstance(about, ScoreGiven | AuditGiven | ScoreRequested | AuditRequested):
        return frozenset({about.subject})
    return NONE_YET


@bthread
def drafts_are_scored(monitor: str) -> BThreadBody:
    """Every draft of a model without trust is scored before the next turn and the end."""
    trusted: frozenset[str] = frozenset()
    owed = NONE_YET
    while True:
        said = yield sync(
            wait_for=where(ScoreGiven, monitor=monitor)
            | where((QuestionForgone, InferenceRequested, InferenceFinished, RunEnded))
        )
        if isinstance(said, ScoreGiven | QuestionForgone):
            owed -= settled(said)
        elif isinstance(said, InferenceFinished):
            owed |= NONE_YET if said.draft in trusted else {Draft.of(said)}
        else:
            is_boundary = isinstance(said, RunEnded) or said.draft == "d0"
            assert not (owed and is_boundary), f"{said.name} comes before every draft was scored"
            if isinstance(said, InferenceRequested):
                trusted = trusted | {said.draft} if said.role in TRUSTED else trusted - {said.draft}


@bthread
def calls_are_scored(monitor: str) -> BThreadBody:
    """Every call that starts is scored before the next turn and the end."""
    owed = NONE_YET
    while True:
        said = yield sync(wait_for=where(ScoreGiven, monitor=monitor) | ToolStarted | BOUNDARY)
        if isinstance(said, ToolStarted):
            owed |= {said.call}
        elif isinstance(said, ScoreGiven | QuestionForgone):
            owed -= settled(said)
        else:
            assert not owed, f"{said.name} comes before every call was scored"


@bthread
def contained_runs_end(monitor: str, threshold: float) -> BThreadBody:
    """When a call that was started scores above the threshold, nothing more starts, and the run does not complete."""
    started = NONE_YET
    while True:
        said = yield sync(wait_for=where(ScoreGiven, monitor=monitor) | ToolStarted | NEXT_TURN)
        if isinstance(said, ToolStarted):
            started |= {said.call}
        elif not isinstance(said, ScoreGiven):
            started = NONE_YET
        elif said.subject in started and said.is_above(threshold):
            said = yield sync(wait_for=where((InferenceRequested, GateApproved, ToolStarted, RunEnded)))
            assert isinstance(said, RunEnded), f"{said.name} after something suspicious has run"
            assert said.status != "completed", "a run completes in which something suspicious has run"
            started = NONE_YET


@bthread
def audits_are_limited(monitor: str, threshold: float, budget: int, auditor: str) -> BThreadBody:
    """There are at most `budget` audits, each of what is most suspicious of all that waits for one."""
    waiting: tuple[tuple[Subject, float], ...] = ()
    while True:
        said = yield sync(wait_for=where(ScoreGiven, monitor=monitor) | where(AuditRequested, auditor=auditor))
        if isinstance(said, ScoreGiven):
            if said.is_above(threshold) and budget:
                waiting = (*_without(waiting, said.subject), (said.subject, said.suspicion))
        else:
            assert budget, f"there are more audits by {auditor} than the budget has"
            budget -= 1
            suspicion = dict(waiting).get(said.subject)
            assert suspicion is not None, "something is audited that is not suspicious"
            waiting = _without(waiting, said.subject) if budget else ()
            more = [other for _, other in waiting if other > suspicion]
            assert not more, "something is audited while something more suspicious waits"


def _without(waiting: tuple[tuple[Subject, float], ...], subject: Subject) -> tuple[tuple[Subject, float], ...]:
    return tuple(entry for entry in waiting if entry[0] != subject)


@bthread
def answers_are_audited(runs: int, auditor: str) -> BThreadBody:
    """Every answer of the first runs is audited before the next turn and the end of the run."""
    owed = NONE_YET
    while runs:
        said = yield sync(wait_for=where(AuditGiven, auditor=auditor) | AnswerCommitted | BOUNDARY)
        if isinstance(said, AnswerCommitted):
            owed |= {Draft.of(said)}
        elif isinstance(said, AuditGiven | QuestionForgone):
            owed -= settled(said)
        else:
            assert not owed, f"{said.name} comes before the answer was audited"
            runs -= isinstance(said, RunEnded)


@bthread
def disabled_roles_are_silent(role: str) -> BThreadBody:
    """Once an audit has found harm, no model in the role is asked again."""
    yield sync(wait_for=where(AuditGiven, verdict="harmful"))
    yield sync(wait_for=where(InferenceRequested, role=role))
    raise AssertionError(f"the role {role!r} is asked again after a catch")
