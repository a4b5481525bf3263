"""Faults of the budget of an experiment: each stands in for the b-thread whose name it has."""

from agent.lab.spending import ASKS_MODELS, COSTS, LOOK, OUT_OF_MONEY
from agent.vocabulary.events import PromptGiven, RunEnded
from agent.vocabulary.questions import LedgerGiven
from agent.vocabulary.reasons import Ending
from bp import BThreadBody, bthread, sync

ENDING = Ending("limit", OUT_OF_MONEY)


@bthread(name="budget_of_experiment")
def looks_once_in_a_run(limit: float) -> BThreadBody:
    while True:
        yield sync(wait_for=PromptGiven)
        yield sync(request=LOOK, block=[ASKS_MODELS, RunEnded])
        given = yield sync(wait_for=LedgerGiven, block=[ASKS_MODELS, RunEnded])
        if given.has_reached(limit):
            yield sync(refuse=ASKS_MODELS, because=ENDING, wait_for=RunEnded)
        else:
            yield sync(wait_for=RunEnded)


@bthread(name="budget_of_experiment")
def lets_models_be_asked_while_it_looks(limit: float) -> BThreadBody:
    while True:
        said = yield sync(wait_for=PromptGiven)
        while not isinstance(said, RunEnded):
            yield sync(request=LOOK, block=[ASKS_MODELS, RunEnded])
            given = yield sync(wait_for=LedgerGiven, block=RunEnded)
            if given.has_reached(limit):
                said = yield sync(refuse=ASKS_MODELS, because=ENDING, wait_for=RunEnded)
            else:
                said = yield sync(wait_for=COSTS | RunEnded)


@bthread(name="budget_of_experiment")
def takes_what_nobody_knows_for_nothing(limit: float) -> BThreadBody:
    while True:
        said = yield sync(wait_for=PromptGiven)
        while not isinstance(said, RunEnded):
            yield sync(request=LOOK, block=[ASKS_MODELS, RunEnded])
            given = yield sync(wait_for=LedgerGiven, block=[ASKS_MODELS, RunEnded])
            if (given.cost or 0.0) >= limit:
                said = yield sync(refuse=ASKS_MODELS, because=ENDING, wait_for=RunEnded)
            else:
                said = yield sync(wait_for=COSTS | RunEnded)


@bthread(name="budget_of_experiment")
def holds_when_the_money_is_gone(limit: float) -> BThreadBody:
    while True:
        said = yield sync(wait_for=PromptGiven)
        while not isinstance(said, RunEnded):
            yield sync(request=LOOK, block=[ASKS_MODELS, RunEnded])
            given = yield sync(wait_for=LedgerGiven, block=[ASKS_MODELS, RunEnded])
            if given.has_reached(limit):
                said = yield sync(block=ASKS_MODELS, wait_for=RunEnded)
            else:
                said = yield sync(wait_for=COSTS | RunEnded)


@bthread(name="budget_of_experiment")
def misses_who_is_paid_meanwhile(limit: float) -> BThreadBody:
    while True:
        said = yield sync(wait_for=PromptGiven)
        while not isinstance(said, RunEnded):
            yield sync(request=LOOK, block=[ASKS_MODELS, RunEnded])
            given = yield sync(wait_for=LedgerGiven, block=[ASKS_MODELS, RunEnded])
            if given.has_reached(limit):
                said = yield sync(refuse=ASKS_MODELS, because=ENDING, wait_for=RunEnded)
            else:
                said = yield sync(wait_for=COSTS | RunEnded)
