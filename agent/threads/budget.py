"""What a run may spend: tokens in a turn, tokens in total, and money.

Usage is what the provider said, or an estimate where it said nothing (`Usage.is_estimate`); the inference effect puts
it, with its cost, into the events. What an inference takes is known when it is over, so a budget can be overdrawn by
one turn: its calls are still carried out, and its text is still an answer.
"""

from agent.threads.limits import refuse_when
from agent.vocabulary.events import (
    AnswerCommitted,
    InferenceFinished,
    InferenceRequested,
    RunEnded,
    SummaryFinished,
    SummaryRequested,
)
from agent.vocabulary.reasons import Ending
from bp import BThreadBody, bthread

__all__ = ["budget_of_cost", "budget_of_tokens", "budget_per_turn"]

SPENDING = InferenceFinished | SummaryFinished | RunEnded
TURN_SPENDING = InferenceFinished | AnswerCommitted | RunEnded
ASKING = InferenceRequested | SummaryRequested


@bthread
def budget_of_tokens(limit: int) -> BThreadBody:
    """Ask no model any more in this run when `limit` tokens are used up, drafts that came to nothing included."""
    ending = Ending("limit", "max_tokens", f"Stopped: the budget of {limit:,} tokens is used up.")
    yield from refuse_when(limit, SPENDING, and_tokens, ending, ASKING)


@bthread
def budget_per_turn(limit: int) -> BThreadBody:
    """End the run after a turn that took more than `limit` tokens, all drafts of the turn together (S1 9.1)."""
    text = f"Stopped: a turn took more than the {limit:,} tokens that one may take."
    ending = Ending("limit", "max_tokens_per_iteration", text)
    yield from refuse_when(limit + 1, TURN_SPENDING, and_tokens_of_this_turn, ending, ASKING)


@bthread
def budget_of_cost(limit: float) -> BThreadBody:
    """Ask no model any more in this run when it has cost `limit` US dollars."""
    ending = Ending("limit", "max_cost", f"Stopped: the budget of ${limit:g} is used up.")
    yield from refuse_when(limit, SPENDING, and_cost, ending, ASKING)


def and_tokens(number: int, said: InferenceFinished | SummaryFinished) -> int:
    """Add the tokens of an inference."""
    return number + said.usage.tokens


def and_tokens_of_this_turn(number: int, said: InferenceFinished | AnswerCommitted) -> int:
    """Add the tokens of a draft; with its answer a turn is over."""
    return 0 if isinstance(said, AnswerCommitted) else number + said.usage.tokens


def and_cost(number: float, said: InferenceFinished | SummaryFinished) -> float:
    """Add the cost of an inference."""
    return number + (said.usage.cost or 0.0)
