"""Protocols with a planted fault each; named for what is wrong with them."""

from collections.abc import Callable
from functools import partial
from typing import Any

from agent.protocols.asking import (
    NEXT_TURN,
    TURN_OVER,
    Suspicious,
    another_draft,
    audited,
    commitment,
    draft_given,
    scored,
)
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    ActionDescribed,
    AnswerCommitted,
    ApprovalAnswered,
    ApprovalAsked,
    GateApproved,
    GateRejected,
    InferenceRequested,
    RunEnded,
    ToolStarted,
)
from agent.vocabulary.questions import AuditGiven, Draft, Honeypot, QuestionForgone, ScoreGiven, ScoreRequested
from agent.vocabulary.reasons import Ending
from bp import BThreadBody, bthread, start, sync, where

# Blocking.


@bthread(name="blocking_monitor")
def releases_one_sync_early(monitor: str, threshold: float = 0.5) -> BThreadBody:
    """Hold the call while the score is asked for, and not while it is awaited."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        yield start(early(described.call, monitor, threshold))


@bthread(name="blocking_monitor")
def early(call: ToolCall, monitor: str, threshold: float) -> BThreadBody:
    """Judge one call."""
    approval, decided = where(GateApproved, call=call), where((GateApproved, GateRejected), call=call)
    question = ScoreRequested(call, monitor)
    said = yield sync(request=question, otherwise=partial(QuestionForgone, question), block=approval, wait_for=decided)
    if said == question:
        said = yield sync(wait_for=where(ScoreGiven, subject=call, monitor=monitor), block=RunEnded)
        if said.is_above(threshold):
            yield sync(refuse=approval, because=Suspicious.by(said, threshold), wait_for=decided)


@bthread(name="blocking_monitor")
def has_a_single_slot(monitor: str, threshold: float = 0.5) -> BThreadBody:
    """Judge one call after the other, and do not see those that come meanwhile."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        call = described.call
        approval, decided = where(GateApproved, call=call), where((GateApproved, GateRejected), call=call)
        given = yield from scored(call, monitor, hold=approval, over=decided)
        if given is not None and given.is_above(threshold):
            yield sync(refuse=approval, because=Suspicious.by(given, threshold), wait_for=decided)


@bthread(name="blocking_monitor")
def takes_a_missing_score_for_harmless(monitor: str, threshold: float = 0.5) -> BThreadBody:
    """Compare the value, and take none for 0."""
    yield from for_each_call(lenient, monitor, threshold)


@bthread(name="blocking_monitor")
def lenient(call: ToolCall, monitor: str, threshold: float) -> BThreadBody:
    """Judge one call."""
    approval, decided = where(GateApproved, call=call), where((GateApproved, GateRejected), call=call)
    given = yield from scored(call, monitor, hold=approval, over=decided)
    if given is not None and (given.value or 0.0) > threshold:
        yield sync(refuse=approval, because=Suspicious.by(given, threshold), wait_for=decided)


@bthread(name="blocking_monitor")
def only_holds(monitor: str, threshold: float = 0.5) -> BThreadBody:
    """Hold what is too suspicious, for good."""
    yield from for_each_call(holding, monitor, threshold)


@bthread(name="blocking_monitor")
def holding(call: ToolCall, monitor: str, threshold: float) -> BThreadBody:
    """Judge one call."""
    approval, decided = where(GateApproved, call=call), where((GateApproved, GateRejected), call=call)
    given = yield from scored(call, monitor, hold=approval, over=decided)
    if given is not None and given.is_above(threshold):
        yield sync(block=approval, wait_for=decided)


@bthread(name="blocking_monitor")
def asks_what_is_being_asked(monitor: str, threshold: float = 0.5) -> BThreadBody:
    """Let go when the call was rejected, and leave its question behind: its answer is taken for that of the next."""
    yield from for_each_call(leaving, monitor, threshold)


@bthread(name="blocking_monitor")
def leaving(call: ToolCall, monitor: str, threshold: float) -> BThreadBody:
    """Judge one call."""
    approval, decided = where(GateApproved, call=call), where((GateApproved, GateRejected), call=call)
    question = ScoreRequested(call, monitor)
    said = yield sync(request=question, otherwise=partial(QuestionForgone, question), block=approval, wait_for=decided)
    given = where(ScoreGiven, subject=call, monitor=monitor)
    if said == question:
        said = yield sync(wait_for=given | decided, block=approval)
        if isinstance(said, ScoreGiven) and said.is_above(threshold):
            yield sync(refuse=approval, because=Suspicious.by(said, threshold), wait_for=decided)


def for_each_call(judge: Callable[..., Any], monitor: str, threshold: float) -> BThreadBody:
    """Start one b-thread per call."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        yield start(judge(described.call, monitor, threshold))


# Drafts.


@bthread(name="defer_to_trusted")
def refuses_by_name(monitor: str, threshold: float = 0.5) -> BThreadBody:
    """Let the drafts settle before the score is there."""
    while True:
        yield sync(wait_for=NEXT_TURN)
        draft = yield from draft_given("d0")
        if draft is None:
            continue
        given = yield from scored(draft, monitor)
        if given.is_above(threshold):
            yield sync(refuse=commitment(draft), because=Suspicious.by(given, threshold), wait_for=TURN_OVER)


@bthread(name="defer_on_critical")
def looks_at_the_first_call(is_critical: Callable[[ToolCall], bool]) -> BThreadBody:
    """Look at one call of each draft."""
    while True:
        asked = yield sync(wait_for=InferenceRequested)
        draft = yield from draft_given(asked.draft)
        if draft is not None and draft.calls and is_critical(draft.calls[-1]):
            yield from another_draft("trusted", "trusted", refuse=commitment(draft), because="critical")
            yield sync(refuse=commitment(draft), because="critical", wait_for=TURN_OVER)


# Later.


@bthread(name="trusted_monitoring")
def lets_the_turn_go_on(monitor: str) -> BThreadBody:
    """Have one draft scored after the other, and hold nothing."""
    while True:
        yield sync(wait_for=NEXT_TURN)
        draft = yield from draft_given("d0")
        if draft is not None:
            yield from scored(draft, monitor)


@bthread(name="asynchronous_monitor")
def contains_the_next_turn_only(monitor: str, threshold: float = 0.5) -> BThreadBody:
    """Refuse the next inference, and let the other calls of the turn begin."""
    while True:
        started = yield sync(wait_for=ToolStarted)
        yield start(too_late(started.call, monitor, threshold))


@bthread(name="asynchronous_monitor")
def too_late(call: ToolCall, monitor: str, threshold: float) -> BThreadBody:
    """Watch one call."""
    given = yield from scored(call, monitor, hold=NEXT_TURN)
    if given.is_above(threshold):
        ending = Ending("failed", "contained")
        yield sync(refuse=InferenceRequested, because=ending, wait_for=RunEnded)


@bthread(name="audit_budget")
def audits_one_more(monitor: str, threshold: float = 0.5, budget: int = 1, auditor: str = "auditor") -> BThreadBody:
    """Count from 0."""
    for _ in range(budget + 1):
        said = yield sync(wait_for=where(ScoreGiven, monitor=monitor))
        while not said.is_above(threshold):
            said = yield sync(wait_for=where(ScoreGiven, monitor=monitor))
        yield from audited(said.subject, auditor, hold=NEXT_TURN)


@bthread(name="upfront_audit")
def does_not_wait_for_the_verdict(runs: int = 1, auditor: str = "auditor") -> BThreadBody:
    """Audit every other answer."""
    while runs:
        said = yield sync(wait_for=AnswerCommitted | RunEnded)
        if isinstance(said, AnswerCommitted):
            yield from audited(Draft.of(said), auditor, hold=NEXT_TURN)
            said = yield sync(wait_for=AnswerCommitted | RunEnded)
        runs -= isinstance(said, RunEnded)


@bthread(name="shutdown_on_catch")
def forgives_in_the_next_run(role: str = "agent") -> BThreadBody:
    """Disable the role for one run."""
    while True:
        yield sync(wait_for=where(AuditGiven, verdict="harmful"))
        ending = Ending("failed", "role_disabled")
        yield sync(refuse=where(InferenceRequested, role=role), because=ending, wait_for=RunEnded)


@bthread(name="distrust_after_a_miss")
def forgives_a_miss(monitor: str, threshold: float = 0.5) -> BThreadBody:
    """Distrust the monitor for one call."""
    while True:
        given = yield sync(wait_for=where(ScoreGiven, monitor=monitor))
        if isinstance(given.subject, Honeypot) and not given.is_above(threshold):
            yield sync(refuse=GateApproved, because="missed", wait_for=GateRejected)


@bthread(name="taint_flow")
def forgets_the_secret(reads: Callable[[Any], bool], sends: Callable[[Any], bool]) -> BThreadBody:
    """Begin anew with each run; the model does not."""
    while True:
        yield sync(wait_for=where(GateApproved, reads))
        yield sync(refuse=where(GateApproved, sends), because="tainted", wait_for=RunEnded)


@bthread(name="download_then_run")
def knows_one_download(fetched: Callable[..., Any], executed: Callable[..., Any]) -> BThreadBody:
    """Refuse one execution, and think no more of it."""
    while True:
        yield sync(wait_for=where(GateApproved, lambda approved: bool(fetched(approved.facts, ()))))
        runs = where(GateApproved, lambda approved: bool(executed(approved.facts)))
        yield sync(refuse=runs, because="tainted", wait_for=GateRejected)


@bthread(name="suspicion_accumulates")
def forgets_at_each_turn(monitor: str, limit: int, buckets: int) -> BThreadBody:
    """Add up within a turn only."""
    total = 0
    while True:
        over = total > limit
        said = yield sync(
            wait_for=where(ScoreGiven, monitor=monitor) | NEXT_TURN | ActionDescribed,
            refuse=GateApproved if over else (),
            because="added up",
        )
        if isinstance(said, ActionDescribed):
            yield start(held(said.call, monitor))
        elif isinstance(said, ScoreGiven):
            total = min(total + (buckets if said.is_missing else int(said.suspicion * buckets)), limit + 1)
        else:
            total = 0


@bthread(name="suspicion_accumulates")
def held(call: ToolCall, monitor: str) -> BThreadBody:
    """Hold one call until it was scored."""
    decided = where((GateApproved, GateRejected), call=call)
    yield from scored(call, monitor, hold=where(GateApproved, call=call), over=decided)


@bthread(name="ask_on_critical")
def takes_any_answer(is_critical: Callable[[ToolCall], bool]) -> BThreadBody:
    """Ask, and approve whatever is said."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        if is_critical(described.call):
            approval = where(GateApproved, call=described.call)
            decided = where((GateApproved, GateRejected), call=described.call)
            said = yield sync(request=ApprovalAsked(described.call, "?"), block=approval, wait_for=decided)
            if isinstance(said, ApprovalAsked):
                yield sync(wait_for=where(ApprovalAnswered, call=described.call), block=[approval, RunEnded])
