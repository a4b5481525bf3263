"""Calls that came cut off, unreadable, unknown or with wrong arguments are answered as errors, and never run."""

from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import AnswerCommitted, CallAnswered, ProposedAction
from agent.vocabulary.reasons import Flaw
from bp import BThreadBody, bthread, start, sync, where

__all__ = ["only_whole_calls"]


@bthread
def only_whole_calls() -> BThreadBody:
    """Refuse the proposal of every call that has a flaw; the flaws were found where the answer was read."""
    while True:
        answer = yield sync(wait_for=AnswerCommitted)
        yield start(*[refuse_flawed(call) for call in answer.calls if call.flaw is not None])


@bthread(name="only_whole_calls")
def refuse_flawed(call: ToolCall) -> BThreadBody:
    """Refuse the proposal of one flawed call until it is answered."""
    yield sync(
        refuse=where(ProposedAction, call=call),
        because=Flaw(call.flaw or ""),
        wait_for=where(CallAnswered, call=call.id),
    )
