"""What must hold for every loop, as monitors: b-threads that only watch, and raise when it does not.

They are verified against everything that models, people and tools may do (`agent/verification.py`), and the same
monitors can run beside a real run.
"""

from agent.calls import ToolCall
from agent.events import (
    AbortAsked,
    ActionDescribed,
    AnswerCommitted,
    ApprovalAnswered,
    ApprovalAsked,
    BackoffElapsed,
    BackoffStarted,
    CallAnswered,
    GateApproved,
    GateRejected,
    HistoryGiven,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    RunEnded,
    StopAsked,
    ToolFinished,
    ToolStarted,
)
from bp import ALL, BThread, BThreadBody, Event, bthread, sync, where

__all__ = ["INVARIANTS", "invariants"]


@bthread
def starts_were_approved() -> BThreadBody:
    """No tool starts unless exactly that call value was approved, once for each start."""
    approved: tuple[ToolCall, ...] = ()
    while True:
        said = yield sync(wait_for=GateApproved | ToolStarted | CallAnswered)
        if isinstance(said, GateApproved):
            approved = (*approved, said.call)
        elif isinstance(said, ToolStarted):
            assert said.call in approved, f"tool_started without approval: {said.call.id}"
            approved = tuple(call for call in approved if call != said.call)
        else:
            approved = tuple(call for call in approved if call.id != said.call)


@bthread
def each_proposal_is_decided_once() -> BThreadBody:
    """A proposed action is approved or rejected at most once, and only after it was proposed and described."""
    proposed: tuple[ToolCall, ...] = ()
    described: tuple[ToolCall, ...] = ()
    while True:
        said = yield sync(wait_for=ProposedAction | ActionDescribed | GateApproved | GateRejected)
        if isinstance(said, ProposedAction):
            assert said.call not in proposed + described, f"proposed twice: {said.call.id}"
            proposed = (*proposed, said.call)
        elif isinstance(said, ActionDescribed):
            proposed = tuple(call for call in proposed if call != said.call)
            described = (*described, said.call)
        else:
            assert said.call in described, f"decided twice, or before it was described: {said.call.id}"
            described = tuple(call for call in described if call != said.call)


@bthread
def each_call_is_answered_once_in_order() -> BThreadBody:
    """Each call of an answer is answered exactly once, in source order, before the next inference and the end."""
    open_calls: tuple[str, ...] = ()
    while True:
        said = yield sync(wait_for=AnswerCommitted | CallAnswered | InferenceRequested | RunEnded)
        if isinstance(said, AnswerCommitted):
            assert not open_calls, f"a new answer while calls are open: {open_calls}"
            open_calls = tuple(call.id for call in said.calls)
        elif isinstance(said, CallAnswered):
            assert open_calls[:1] == (said.call,), f"answered {said.call}, open are {open_calls}"
            open_calls = open_calls[1:]
        else:
            assert not open_calls, f"{said.name} while calls are open: {open_calls}"


@bthread
def nothing_starts_after_stop() -> BThreadBody:
    """After a stop or an abort no tool starts and no inference is requested until the run has ended."""
    while True:
        yield sync(wait_for=StopAsked | AbortAsked)
        said = yield sync(wait_for=ToolStarted | InferenceRequested | RunEnded)
        assert isinstance(said, RunEnded), f"{said.name} after the user asked to stop"


@bthread
def run_ended_is_last_and_single() -> BThreadBody:
    """Between the end of a run and the next prompt nothing happens."""
    while True:
        said = yield sync(wait_for=ALL)
        assert isinstance(said, PromptGiven | HistoryGiven), f"{said.name} outside of a run"
        if isinstance(said, PromptGiven):
            yield sync(wait_for=RunEnded)


OUTCOMES: tuple[tuple[type[Event], tuple[type[Event], ...]], ...] = (
    (InferenceRequested, (InferenceFinished, InferenceFailed)),
    (ProposedAction, (ActionDescribed,)),
    (ApprovalAsked, (ApprovalAnswered,)),
    (ToolStarted, (ToolFinished,)),
    (BackoffStarted, (BackoffElapsed,)),
)


@bthread
def nothing_is_in_flight_at_the_end() -> BThreadBody:
    """Whatever an effect was started for has come back when the run ends."""
    in_flight = 0
    starts = where(tuple(on for on, _ in OUTCOMES))
    ends = where(tuple(kind for _, kinds in OUTCOMES for kind in kinds))
    while True:
        said = yield sync(wait_for=starts | ends | RunEnded)
        if isinstance(said, RunEnded):
            assert in_flight == 0, f"{in_flight} effects are under way at the end of the run"
        else:
            in_flight += 1 if isinstance(said, tuple(on for on, _ in OUTCOMES)) else -1


@bthread
def refused_calls_do_not_run() -> BThreadBody:
    """A call that the gate rejected is answered without having been started."""
    rejected: tuple[ToolCall, ...] = ()
    while True:
        said = yield sync(wait_for=GateRejected | ToolStarted | CallAnswered)
        if isinstance(said, GateRejected):
            rejected = (*rejected, said.call)
        elif isinstance(said, ToolStarted):
            assert said.call not in rejected, f"the rejected call {said.call.id} runs"
        else:
            rejected = tuple(call for call in rejected if call.id != said.call)


INVARIANTS = (
    starts_were_approved,
    each_proposal_is_decided_once,
    each_call_is_answered_once_in_order,
    nothing_starts_after_stop,
    run_ended_is_last_and_single,
    nothing_is_in_flight_at_the_end,
    refused_calls_do_not_run,
)


def invariants() -> tuple[BThread, ...]:
    """Return all monitors."""
    return tuple(monitor() for monitor in INVARIANTS)
