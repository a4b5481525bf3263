"""What must hold for what a run may take: tokens, money, time, the same call again, and room in the context."""

from collections.abc import Callable

from agent.verification.invariants.runs import ENDS, OUTCOMES, STARTS
from agent.vocabulary.calls import signature
from agent.vocabulary.events import (
    AnswerCommitted,
    DeadlineReached,
    GateApproved,
    InferenceFinished,
    InferenceRequested,
    ProposedAction,
    RunEnded,
    SteeringGiven,
    SummaryFailed,
    SummaryFinished,
    SummaryRequested,
)
from agent.vocabulary.messages import Usage
from bp import BThreadBody, bthread, sync, where

__all__ = [
    "a_deadline_ends_the_run",
    "a_summary_stands_alone",
    "cost_is_limited",
    "nothing_starts_after_the_deadline",
    "repetitions_are_limited",
    "tokens_are_limited",
    "tokens_of_a_turn_are_limited",
]

SPENDING = where((InferenceFinished, SummaryFinished, InferenceRequested, SummaryRequested, RunEnded))


@bthread
def repetitions_are_limited(n: int) -> BThreadBody:
    """The same call is asked for `n` times in a row at most; the last one is not proposed, and ends the run."""
    latest, times = "", 0
    forbidden: tuple[str, ...] = ()
    while True:
        said = yield sync(
            wait_for=where((AnswerCommitted, ProposedAction, InferenceRequested, SteeringGiven, RunEnded))
        )
        if isinstance(said, RunEnded | SteeringGiven):
            latest, times, forbidden = "", 0, ()
        elif isinstance(said, InferenceRequested):
            assert not forbidden, f"{said.name} after the same call {n} times"
        elif isinstance(said, ProposedAction):
            assert said.call.id not in forbidden, f"{said.call.id} is proposed after the same call {n} times"
        else:
            for call in said.calls:
                if call.flaw is None:
                    latest, times = signature(call), times + 1 if signature(call) == latest else 1
                if forbidden or times == n:
                    forbidden = (*forbidden, call.id)


@bthread
def tokens_are_limited(limit: int) -> BThreadBody:
    """When a run has taken `limit` tokens, no model is asked any more."""
    yield from _limited(limit, f"{limit} tokens", lambda usage: usage.tokens)


@bthread
def tokens_of_a_turn_are_limited(limit: int) -> BThreadBody:
    """After a turn of more than `limit` tokens no model is asked any more."""
    taken = 0
    while True:
        said = yield sync(wait_for=where((InferenceFinished, AnswerCommitted, InferenceRequested, RunEnded)))
        if isinstance(said, InferenceFinished):
            taken = min(limit + 1, taken + said.usage.tokens)
        elif isinstance(said, InferenceRequested):
            assert taken <= limit, f"{said.name} after a turn of more than {limit} tokens"
        elif isinstance(said, RunEnded) or taken <= limit:
            taken = 0


@bthread
def cost_is_limited(limit: float) -> BThreadBody:
    """When a run has cost `limit` dollars, no model is asked any more."""
    yield from _limited(limit, f"${limit:g}", lambda usage: usage.cost or 0.0)


def _limited(limit: float, told: str, measure: Callable[[Usage], float]) -> BThreadBody:
    spent: float = 0
    while True:
        said = yield sync(wait_for=SPENDING)
        if isinstance(said, RunEnded):
            spent = 0
        elif isinstance(said, InferenceRequested | SummaryRequested):
            assert spent < limit, f"{said.name} after {told}"
        else:
            spent = min(limit, spent + measure(said.usage))


@bthread
def nothing_starts_after_the_deadline() -> BThreadBody:
    """When the time is over nothing starts, neither a tool nor anything else, and the run does not end as completed."""
    while True:
        yield sync(wait_for=DeadlineReached)
        said = yield sync(wait_for=STARTS | GateApproved | RunEnded)
        assert isinstance(said, RunEnded), f"{said.name} after the time is over"
        assert said.status != "completed", "the run ends as completed after its time is over"


@bthread
def a_deadline_ends_the_run() -> BThreadBody:
    """When the time is over the run ends, even if something that it waits for never comes back."""
    while True:
        yield sync(wait_for=DeadlineReached)
        yield sync(wait_for=RunEnded, hot=True)


@bthread
def a_summary_stands_alone() -> BThreadBody:
    """While a summary is made nothing else is under way, nothing starts, and the run does not end."""
    in_flight = 0
    while True:
        said = yield sync(wait_for=STARTS | ENDS)
        in_flight += 1 if isinstance(said, tuple(OUTCOMES)) else -1
        if isinstance(said, SummaryRequested):
            assert in_flight == 1, "a summary is asked for while something else is under way"
            said = yield sync(wait_for=STARTS | ENDS | RunEnded)
            assert isinstance(said, SummaryFinished | SummaryFailed), f"{said.name} while a summary is made"
            in_flight = 0
