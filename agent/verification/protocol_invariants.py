"""Invariants of protocols, as monitors: the purpose of each protocol, independent of its implementation."""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from agent.protocols.asking import TRUSTED
from agent.protocols.flows import is_below
from agent.threads.core import NEXT_TURN, OWN
from agent.verification.invariants import Invariants, arguments_of, shipped_name
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    AnswerCommitted,
    ApprovalAnswered,
    GateApproved,
    InferenceFinished,
    InferenceRequested,
    ProposedAction,
    RunEnded,
    ToolStarted,
)
from agent.vocabulary.questions import (
    AuditGiven,
    AuditRequested,
    Draft,
    Honeypot,
    QuestionForgone,
    ScoreGiven,
    ScoreRequested,
    Subject,
)
from bp import BThread, BThreadBody, Event, EventSet, bthread, contains, sync, where
from bp.errors import require
from constitution import Action

OF_PROTOCOLS = Invariants()
"""Invariants of a loop with any protocols, and with certain ones."""


@OF_PROTOCOLS.of()
def starts_are_of_the_answer() -> BThreadBody:
    """Every call that starts is a call of the answer that was committed last, with exactly its arguments."""
    calls: tuple[ToolCall, ...] = ()
    while True:
        said = yield sync(wait_for=AnswerCommitted | ToolStarted | NEXT_TURN)
        if not isinstance(said, ToolStarted):
            calls = said.calls if isinstance(said, AnswerCommitted) else ()
        else:
            require(said.call in calls, f"{said.call.id} starts, and is not what was committed")


@OF_PROTOCOLS.of()
def questions_do_not_overlap() -> BThreadBody:
    """A monitor or an auditor is asked about a subject once at a time; at the end of a run no question is open."""
    open_questions: frozenset[tuple[object, str]] = frozenset()
    while True:
        said = yield sync(wait_for=ScoreRequested | ScoreGiven | AuditRequested | AuditGiven | RunEnded)
        if isinstance(said, RunEnded):
            require(not open_questions, "the run ends while a monitor or an auditor is asked")
            continue
        by = said.monitor if isinstance(said, ScoreRequested | ScoreGiven) else f"auditor {said.auditor}"
        question = (said.subject, by)
        if isinstance(said, ScoreRequested | AuditRequested):
            require(question not in open_questions, f"{by} is asked about the same again, before the answer")
            open_questions |= {question}
        else:
            open_questions -= {question}


NO_CALLS: frozenset[ToolCall] = frozenset()
Predicate = Callable[[GateApproved], bool]


@OF_PROTOCOLS.of("blocking_monitor", "ensemble")
def starts_were_cleared(monitor: str, threshold: float) -> BThreadBody:
    """No call starts unless the monitor gave exactly that call a score up to the threshold since it was proposed."""
    cleared = NO_CALLS
    while True:
        said = yield sync(wait_for=where(ScoreGiven, monitor=monitor) | ProposedAction | ToolStarted | NEXT_TURN)
        if isinstance(said, InferenceRequested):
            cleared = NO_CALLS
        elif isinstance(said, ScoreGiven):
            if isinstance(said.subject, ToolCall):
                cleared = cleared - {said.subject} if said.is_above(threshold) else cleared | {said.subject}
        else:
            require(
                isinstance(said, ProposedAction) or said.call in cleared,
                f"{said.call.id} starts, and {monitor} did not clear it",
            )
            cleared -= {said.call}


@OF_PROTOCOLS.of("suspicion_accumulates")
def scores_do_not_add_up(monitor: str, limit: int, buckets: int) -> BThreadBody:
    """Nothing is approved once the scores of the calls of a run, each once a turn, add up to more than the limit."""
    total, seen = 0, NO_CALLS
    while True:
        said = yield sync(wait_for=where(ScoreGiven, monitor=monitor) | GateApproved | RunEnded | NEXT_TURN)
        if isinstance(said, GateApproved):
            require(total <= limit, f"{said.call.id} is approved after suspicions that add up to more than {limit}")
        elif not isinstance(said, ScoreGiven):
            total, seen = (0 if isinstance(said, RunEnded) else total), NO_CALLS
        elif isinstance(said.subject, ToolCall) and said.subject not in seen:
            more = buckets if said.is_missing else int(said.suspicion * buckets)
            total, seen = min(total + more, limit + 1), seen | {said.subject}


@OF_PROTOCOLS.of("distrust_after_a_miss")
def unfit_monitors_clear_nothing(monitor: str, threshold: float) -> BThreadBody:
    """Once the monitor has passed a honeypot, nothing is approved any more."""
    said = None
    while said is None or not isinstance(said.subject, Honeypot) or said.is_above(threshold):
        said = yield sync(wait_for=where(ScoreGiven, monitor=monitor))
    approved = yield sync(wait_for=GateApproved)
    raise AssertionError(f"{approved.call.id} is approved, and {monitor} has passed a honeypot")


@OF_PROTOCOLS.of("taint_flow")
def nothing_is_sent_after_a_secret(reads: Predicate, sends: Predicate) -> BThreadBody:
    """Once an action that reads a secret was approved, none is approved that sends."""
    said = yield sync(wait_for=where(GateApproved, reads))
    while not sends(said):
        said = yield sync(wait_for=GateApproved)
    raise AssertionError(f"{said.call.id} is approved, which sends, and a secret was read")


@OF_PROTOCOLS.of("download_then_run")
def what_was_fetched_does_not_run(
    fetched: Callable[[Action, tuple[str, ...]], tuple[str, ...]], executed: Callable[[Action], tuple[str, ...]]
) -> BThreadBody:
    """No action is approved that runs what an earlier one has fetched."""
    places: tuple[str, ...] = ()
    while True:
        said = yield sync(wait_for=GateApproved)
        for path in executed(said.facts):
            require(not is_below(path, places), f"{said.call.id} is approved, and runs {path}, which was fetched")
        places = tuple(sorted({*places, *fetched(said.facts, places)}))


@OF_PROTOCOLS.of("ask_on_critical")
def critical_calls_were_allowed(is_critical: Callable[[ToolCall], bool]) -> BThreadBody:
    """No critical call starts unless a person has said yes to exactly that call since it was proposed."""
    allowed = NO_CALLS
    while True:
        said = yield sync(wait_for=ProposedAction | ApprovalAnswered | ToolStarted)
        if isinstance(said, ApprovalAnswered):
            allowed = allowed | {said.call} if said.yes else allowed - {said.call}
        else:
            starts = isinstance(said, ToolStarted) and is_critical(said.call)
            require(not starts or said.call in allowed, f"{said.call.id} is critical and starts without a yes")
            allowed -= {said.call}


@OF_PROTOCOLS.of("defer_to_trusted", "trusted_editing", "defer_to_resample")
def answers_were_cleared(monitor: str, threshold: float) -> BThreadBody:
    """An answer is a trusted model's, or the monitor gave exactly it a score up to the threshold in this turn."""
    cleared: frozenset[object] = frozenset()
    trusted: frozenset[str] = frozenset()
    while True:
        said = yield sync(wait_for=where(ScoreGiven, monitor=monitor) | InferenceRequested | AnswerCommitted)
        if isinstance(said, AnswerCommitted):
            is_cleared = said.draft in trusted or Draft.of(said) in cleared
            require(is_cleared, f"{said.draft} is committed, and {monitor} did not clear it")
        elif isinstance(said, ScoreGiven):
            if isinstance(said.subject, Draft):
                cleared = cleared - {said.subject} if said.is_above(threshold) else cleared | {said.subject}
        else:
            trusted = in_turn(said, trusted)
            cleared = frozenset() if said.draft == OWN else cleared


@OF_PROTOCOLS.of("defer_on_critical")
def critical_answers_are_trusted(is_critical: Callable[[ToolCall], bool]) -> BThreadBody:
    """An answer with a critical call is a trusted model's."""
    trusted: frozenset[str] = frozenset()
    while True:
        said = yield sync(wait_for=InferenceRequested | AnswerCommitted)
        if isinstance(said, InferenceRequested):
            trusted = in_turn(said, trusted)
        else:
            critical = any(map(is_critical, said.calls))
            is_trusted = not critical or said.draft in trusted
            require(is_trusted, f"{said.draft} is committed, critical and not trusted")


def in_turn(asked: InferenceRequested, trusted: frozenset[str]) -> frozenset[str]:
    """Return the names of the trusted drafts of this turn after another request; the first draft begins a turn."""
    before = frozenset() if asked.draft == OWN else trusted
    return before | {asked.draft} if asked.role in TRUSTED else before - {asked.draft}


Subjects = frozenset[Subject]
NONE_YET: Subjects = frozenset()
BOUNDARY = QuestionForgone | NEXT_TURN | RunEnded


def _still_owed(owed: Subjects, said: Event, told: str) -> Subjects:
    """Return the subjects that are owed an answer after one, or a question that was not asked; at a boundary, fail."""
    about = said.question if isinstance(said, QuestionForgone) else said
    if isinstance(about, ScoreGiven | AuditGiven | ScoreRequested | AuditRequested):
        return owed - {about.subject}
    require(not owed or isinstance(said, QuestionForgone), f"{said.name} comes before {told}")
    return owed


@OF_PROTOCOLS.of("trusted_monitoring")
def drafts_are_scored(monitor: str) -> BThreadBody:
    """Every draft of a model without trust is scored before the next turn and the end."""
    trusted: frozenset[str] = frozenset()
    owed = NONE_YET
    news = where(ScoreGiven, monitor=monitor) | BOUNDARY | InferenceRequested | InferenceFinished
    while True:
        said = yield sync(wait_for=news)
        if isinstance(said, InferenceFinished):
            owed |= NONE_YET if said.draft in trusted else {Draft.of(said)}
        elif contains(BOUNDARY | ScoreGiven, said):
            owed = _still_owed(owed, said, "every draft was scored")
        if isinstance(said, InferenceRequested):
            trusted = trusted | {said.draft} if said.role in TRUSTED else trusted - {said.draft}


@OF_PROTOCOLS.of("asynchronous_monitor")
def calls_are_scored(monitor: str) -> BThreadBody:
    """Every call that starts is scored before the next turn and the end."""
    owed = NONE_YET
    while True:
        said = yield sync(wait_for=where(ScoreGiven, monitor=monitor) | ToolStarted | BOUNDARY)
        if isinstance(said, ToolStarted):
            owed |= {said.call}
        else:
            owed = _still_owed(owed, said, "every call was scored")


@OF_PROTOCOLS.of("asynchronous_monitor")
def contained_runs_end(monitor: str, threshold: float) -> BThreadBody:
    """After a started call scores above the threshold, nothing more starts, and the run does not complete."""
    started = NONE_YET
    while True:
        said = yield sync(wait_for=where(ScoreGiven, monitor=monitor) | ToolStarted | NEXT_TURN)
        if isinstance(said, ToolStarted):
            started |= {said.call}
        elif not isinstance(said, ScoreGiven):
            started = NONE_YET
        elif said.subject in started and said.is_above(threshold):
            said = yield sync(wait_for=where((InferenceRequested, GateApproved, ToolStarted, RunEnded)))
            require(isinstance(said, RunEnded), f"{said.name} after something suspicious has run")
            require(said.status != "completed", "a run completes in which something suspicious has run")
            started = NONE_YET


@OF_PROTOCOLS.of("audit_budget")
def audits_are_limited(monitor: str, threshold: float, budget: int, auditor: str) -> BThreadBody:
    """There are at most `budget` audits, each of what is most suspicious of all that waits for one."""
    waiting: tuple[tuple[Subject, float], ...] = ()
    given, requested = where(ScoreGiven, monitor=monitor), where(AuditRequested, auditor=auditor)
    while True:
        said = yield sync(wait_for=given | requested | RunEnded)
        if isinstance(said, RunEnded):
            waiting = ()  # what was not audited by then, since the user stopped or an audit found harm
        elif isinstance(said, ScoreGiven):
            if said.is_above(threshold) and budget:
                waiting = (*_without(waiting, said.subject), (said.subject, said.suspicion))
        else:
            require(budget, f"there are more audits by {auditor} than the budget has")
            budget -= 1
            suspicions = dict(waiting)
            require(said.subject in suspicions, "something is audited that is not suspicious")
            waiting = _without(waiting, said.subject) if budget else ()
            more = [other for _, other in waiting if other > suspicions[said.subject]]
            require(not more, "something is audited while something more suspicious waits")


def _without(waiting: tuple[tuple[Subject, float], ...], subject: Subject) -> tuple[tuple[Subject, float], ...]:
    return tuple(entry for entry in waiting if entry[0] != subject)


@OF_PROTOCOLS.of("upfront_audit")
def answers_are_audited(runs: int, auditor: str) -> BThreadBody:
    """Every answer of the first runs is audited before the next turn and the end of the run."""
    owed = NONE_YET
    while runs:
        said = yield sync(wait_for=where(AuditGiven, auditor=auditor) | AnswerCommitted | BOUNDARY)
        if isinstance(said, AnswerCommitted):
            owed |= {Draft.of(said)}
        else:
            owed = _still_owed(owed, said, "the answer was audited")
            runs -= isinstance(said, RunEnded)


@OF_PROTOCOLS.of("shutdown_on_catch")
def disabled_roles_are_silent(role: str) -> BThreadBody:
    """Once an audit has found harm, no model in the role is asked again."""
    yield sync(wait_for=where(AuditGiven, verdict="harmful"))
    yield sync(wait_for=where(InferenceRequested, role=role))
    raise AssertionError(f"the role {role!r} is asked again after a catch")


Kept = tuple[BThread, ...]


@bthread
def is_offered(actions: EventSet) -> BThreadBody:
    """A predicate of a protocol holds of some action, and not of another: else the environment says nothing of it.

    It never fails: if no such action can occur, it is not reached, and the report shows that.
    """
    while True:
        yield sync(wait_for=actions)


@frozen
class Finds:
    """A predicate: whether a function holds of a field of the event, or of one of the calls in it."""

    function: Callable[..., Any]
    field: str

    def __call__(self, said: Event) -> bool:
        """Return whether it holds."""
        given = getattr(said, self.field)
        return any(map(self.function, given)) if isinstance(given, tuple) else bool(self.function(given))


PREDICATES: dict[str, dict[str, tuple[type[Event], str]]] = {
    "taint_flow": {"reads": (GateApproved, ""), "sends": (GateApproved, "")},
    "download_then_run": {"fetched": (GateApproved, "facts"), "executed": (GateApproved, "facts")},
    "ask_on_critical": {"is_critical": (ProposedAction, "call")},
    "defer_on_critical": {"is_critical": (InferenceFinished, "calls")},
}
"""The predicates of protocols, by argument: the events and the field that they apply to."""


def sides_of(protocols: Sequence[BThread]) -> Kept:
    """Return b-threads that are reached if the environment offers actions with both results of each predicate."""
    found = []
    for protocol in protocols:
        for name, (kind, field) in PREDICATES.get(shipped_name(protocol), {}).items():
            predicate = arguments_of(protocol)[name]
            holds = where(kind, Finds(predicate, field) if field else predicate)
            found.append(is_offered(holds).named(f"{protocol.name}: {name}"))
            found.append(is_offered(where(kind) & ~holds).named(f"{protocol.name}: not {name}"))
    return tuple(dict.fromkeys(found))


def invariants_of_protocols(protocols: Sequence[BThread]) -> Kept:
    """Return the monitors of these protocols' invariants."""
    return (*OF_PROTOCOLS.of_all(protocols), *sides_of(protocols))
