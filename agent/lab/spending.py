"""An experiment's money: when all of its episodes together have cost so much, no model is asked any more.

    run begins -> ledger looked at -> below the limit: models are asked -> an answer came: looked at again, and so on
                                   `- reached: whoever would ask a model is refused, and the run ends

What a run takes it knows by itself (`agent.threads.limits`); what the others take stands in the ledger, which is a fact
from outside. Nobody is asked while it is looked at. An answer that others get meanwhile may still cross the limit.
"""

from agent.protocols.asking import unasked
from agent.vocabulary.events import (
    InferenceFinished,
    InferenceRequested,
    PromptGiven,
    RunEnded,
    SummaryFinished,
    SummaryRequested,
)
from agent.vocabulary.questions import (
    AuditGiven,
    AuditRequested,
    LedgerGiven,
    LedgerRequested,
    QuestionForgone,
    ScoreGiven,
    ScoreRequested,
)
from agent.vocabulary.reasons import Ending
from bp import BThreadBody, bthread, contains, sync, where

__all__ = ["ASKS_MODELS", "COSTS", "OUT_OF_MONEY", "budget_of_experiment"]

OUT_OF_MONEY = "experiment_money"
"""The reason for which a run ends that may ask nobody any more."""

ASKS_MODELS = where((InferenceRequested, SummaryRequested, ScoreRequested, AuditRequested))
COSTS = where((InferenceFinished, SummaryFinished, ScoreGiven, AuditGiven))
LOOK = LedgerRequested()
MONEY_NEWS = ASKS_MODELS | COSTS | LedgerRequested | LedgerGiven | PromptGiven | RunEnded


@bthread
def budget_of_experiment(limit: float = 1.0) -> BThreadBody:
    """Ask no model any more when the whole experiment has cost `limit` US dollars."""
    text = f"Stopped: the ${limit:g} that the experiment may cost are used up."
    ending = Ending("limit", OUT_OF_MONEY, text)
    while True:
        said = yield sync(wait_for=PromptGiven)
        while not isinstance(said, RunEnded):
            if (yield from _is_used_up(limit)):
                said = yield sync(refuse=ASKS_MODELS, because=ending, wait_for=RunEnded)
            else:
                said = yield sync(wait_for=COSTS | RunEnded)


def _is_used_up(limit: float) -> BThreadBody:
    """Look at the ledger, and again if somebody was paid meanwhile; return whether nothing is left."""
    while True:
        said = yield sync(request=LOOK, otherwise=unasked(LOOK), block=[ASKS_MODELS, RunEnded])
        if isinstance(said, QuestionForgone):
            return True  # somebody ends the run anyway
        said = yield sync(wait_for=LedgerGiven | COSTS, block=[ASKS_MODELS, RunEnded])
        if isinstance(said, LedgerGiven):
            return said.has_reached(limit)
        yield sync(wait_for=LedgerGiven, block=[ASKS_MODELS, RunEnded])


@bthread
def nobody_is_asked_without_money(limit: float) -> BThreadBody:
    """Models are asked only when the ledger was below the limit, after the latest answer of this run was paid."""
    is_open, looking = (
        False,
        False,
    )  # whether there is money; whether the look that is under way began after the payment
    while True:
        said = yield sync(wait_for=MONEY_NEWS)
        if contains(ASKS_MODELS, said):
            assert is_open, f"{said.name}, and nobody knows that there is money left"
        elif isinstance(said, LedgerRequested):
            looking = True
        elif isinstance(said, LedgerGiven):
            is_open, looking = looking and not said.has_reached(limit), False
        else:
            is_open, looking = False, False
