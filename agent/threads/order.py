"""The order of a batch: one call at a time, and answers in the order in which the model asked.

Calls of tools that say so may run together. Which ones do is a choice (`Together`): none; neighbours in the answer,
where a call that may not is a barrier between those before and after it; or all, but only if every call of it may.
"""

from itertools import groupby
from typing import Literal

from agent.vocabulary.calls import ToolCall, still_open
from agent.vocabulary.events import AnswerCommitted, CallAnswered, ProposedAction
from bp import BThreadBody, bthread, start, sync, where

__all__ = ["Together", "answers_in_source_order", "groups_of", "one_at_a_time"]

Together = Literal["none", "neighbours", "all"]
Groups = tuple[tuple[ToolCall, ...], ...]


@bthread
def one_at_a_time(together: Together = "none") -> BThreadBody:
    """Hold the later calls of each answer back until the earlier ones are answered (S0 5.1, S3).

    Those that may run together count as one call.
    """
    while True:
        answer = yield sync(wait_for=AnswerCommitted)
        groups = groups_of(answer.calls, together)
        if len(groups) > 1:
            yield start(in_turn(groups))


@bthread(name="one_at_a_time")
def in_turn(groups: Groups) -> BThreadBody:
    """Let only the calls of the first group with an unanswered call be proposed."""
    while len(groups) > 1:
        later = [where(ProposedAction, call=call) for group in groups[1:] for call in group]
        answered = yield sync(wait_for=CallAnswered, block=later)
        groups = unanswered(groups, answered.call)


def groups_of(calls: tuple[ToolCall, ...], together: Together) -> Groups:
    """Return `calls` in their order, those that run together as one group."""
    if together == "neighbours":
        runs = (tuple(run) for _, run in groupby(enumerate(calls), key=_barrier))
        return tuple(tuple(call for _, call in run) for run in runs)
    if together == "all" and all(call.parallel for call in calls):
        return (calls,)
    return tuple((call,) for call in calls)


def unanswered(groups: Groups, answered: str) -> Groups:
    """Return the groups without the answered call, and without those that have no call left."""
    left = (still_open(group, answered) for group in groups)
    return tuple(group for group in left if group)


def _barrier(numbered: tuple[int, ToolCall]) -> int:
    """Return one number for all calls that may run together, another one for each that may not."""
    number, call = numbered
    return -1 if call.parallel else number


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
