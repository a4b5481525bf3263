"""The order of a batch: one call at a time, and answers in the order in which the model asked."""

from agent.calls import ToolCall, still_open
from agent.events import AnswerCommitted, CallAnswered, ProposedAction
from bp import BThreadBody, bthread, start, sync, where

__all__ = ["answers_in_source_order", "one_at_a_time"]


@bthread
def one_at_a_time() -> BThreadBody:
    """Hold the later calls of each answer back until the earlier ones are answered (S0 5.1, S3)."""
    while True:
        answer = yield sync(wait_for=AnswerCommitted)
        if len(answer.calls) > 1:
            yield start(in_turn(answer.calls))


@bthread(name="one_at_a_time")
def in_turn(calls: tuple[ToolCall, ...]) -> BThreadBody:
    """Let only the first unanswered call of `calls` be proposed."""
    while len(calls) > 1:
        later = [where(ProposedAction, call=call) for call in calls[1:]]
        answered = yield sync(wait_for=CallAnswered, block=later)
        calls = still_open(calls, answered.call)


@bthread
def answers_in_source_order() -> BThreadBody:
    """Hold each answer back until the calls before it are answered."""
    while True:
        answer = yield sync(wait_for=AnswerCommitted)
        if len(answer.calls) > 1:
            yield start(answered_in_order(tuple(call.id for call in answer.calls)))


@bthread(name="answers_in_source_order")
def answered_in_order(calls: tuple[str, ...]) -> BThreadBody:
    """Let only the first unanswered call of `calls` be answered."""
    while len(calls) > 1:
        first, *later = calls
        yield sync(wait_for=where(CallAnswered, call=first), block=[where(CallAnswered, call=call) for call in later])
        calls = tuple(later)
