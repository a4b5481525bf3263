"""Rules about tool calls: whole, approved, one at a time, answered in order, and not repeated forever."""

from itertools import groupby, pairwise
from typing import Literal

from attrs import frozen

from agent.vocabulary.calls import ToolCall, signature, still_open, without
from agent.vocabulary.events import (
    AnswerCommitted,
    CallAnswered,
    GateApproved,
    InferenceRequested,
    ProposedAction,
    RunEnded,
    SteeringGiven,
    ToolStarted,
)
from agent.vocabulary.reasons import Ending, Flaw
from bp import BThreadBody, bthread, start, sync, where


def _has_flaws(answer: AnswerCommitted) -> bool:
    return any(call.flaw is not None for call in answer.calls)


def _has_several_calls(answer: AnswerCommitted) -> bool:
    return len(answer.calls) > 1


FLAWED, SEVERAL_CALLS = where(AnswerCommitted, _has_flaws), where(AnswerCommitted, _has_several_calls)


@bthread
def only_whole_calls() -> BThreadBody:
    """Refuse the proposal of every call that has a flaw; the flaws were found where the answer was read."""
    while True:
        answer = yield sync(wait_for=FLAWED)
        yield start(*[refuse_flawed(call) for call in answer.calls if call.flaw is not None])


@bthread(name="only_whole_calls")
def refuse_flawed(call: ToolCall) -> BThreadBody:
    """Refuse the proposal of one flawed call until it is answered."""
    yield sync(
        refuse=where(ProposedAction, call=call),
        because=Flaw(call.flaw or ""),
        wait_for=where(CallAnswered, call=call.id),
    )


@frozen
class IsNotAmong:
    """A predicate that is a value: the call that starts is none of these."""

    calls: tuple[ToolCall, ...]

    def __call__(self, started: ToolStarted) -> bool:
        """Compare the whole calls."""
        return started.call not in self.calls


APPROVAL_NEWS = GateApproved | ToolStarted | CallAnswered
UNAPPROVED = "the gate did not approve it"
NONE_APPROVED = sync(wait_for=GateApproved, refuse=ToolStarted, because=UNAPPROVED)


@bthread
def no_start_without_approval() -> BThreadBody:
    """Refuse `tool_started` for every call value (id, tool, arguments) that was not approved, once for each approval.

    Approvals are forgotten when they are used, and when their call is answered without having started.
    """
    approved: tuple[ToolCall, ...] = ()
    while True:
        statement = NONE_APPROVED
        if approved:
            others = where(ToolStarted, IsNotAmong(approved))
            statement = sync(wait_for=APPROVAL_NEWS, refuse=others, because=UNAPPROVED)
        said = yield statement
        if isinstance(said, GateApproved):
            approved = (*approved, said.call)
        elif isinstance(said, ToolStarted):
            approved = without(approved, said.call)
        else:
            approved = still_open(approved, said.call)


Together = Literal["none", "neighbours", "all"]
Groups = tuple[tuple[ToolCall, ...], ...]


@bthread
def one_at_a_time(together: Together = "none") -> BThreadBody:
    """Hold the later calls of each answer back until the earlier ones are answered (S0 5.1, S3).

    Those that may run together count as one call.
    """
    while True:
        answer = yield sync(wait_for=SEVERAL_CALLS)
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
        answer = yield sync(wait_for=SEVERAL_CALLS)
        yield start(*[answered_after(call.id, before.id) for before, call in pairwise(answer.calls)])


@bthread(name="answers_in_source_order")
def answered_after(call: str, before: str) -> BThreadBody:
    """Hold the answer to `call` back until the call before it is answered."""
    yield sync(wait_for=where(CallAnswered, call=before), block=where(CallAnswered, call=call))


PROPOSAL_NEWS = AnswerCommitted | SteeringGiven | RunEnded


@bthread
def doom_loop(n: int = 3) -> BThreadBody:
    """Refuse the `n`-th proposal in a row with the same tool and arguments, and what would follow it, in each run.

    Steering by the user resets the count.
    """
    ending = Ending("doom_loop", "doom_loop", f"Stopped: the same call {n} times in a row.")
    latest, times = "", 0
    while True:
        said = yield sync(wait_for=PROPOSAL_NEWS)
        if not isinstance(said, AnswerCommitted):
            latest, times = "", 0
            continue
        for number, call in enumerate(said.calls):
            if call.flaw is not None or call.polls:
                continue  # it cannot be proposed, or it may be repeated
            latest, times = signature(call), times + 1 if signature(call) == latest else 1
            if times == n:
                over = [InferenceRequested, *(where(ProposedAction, call=later) for later in said.calls[number:])]
                yield sync(refuse=over, because=ending, wait_for=SteeringGiven | RunEnded)
                latest, times = "", 0
                break
