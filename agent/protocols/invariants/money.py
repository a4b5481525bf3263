"""What the budget of an experiment is for: whoever asks a model has looked at the ledger since anybody was paid."""

from agent.lab.spending import ASKS_MODELS, COSTS
from agent.vocabulary.events import PromptGiven, RunEnded
from agent.vocabulary.questions import LedgerGiven, LedgerRequested
from bp import BThreadBody, bthread, contains, sync

__all__ = ["nobody_is_asked_without_money"]

NEWS = ASKS_MODELS | COSTS | LedgerRequested | LedgerGiven | PromptGiven | RunEnded


@bthread
def nobody_is_asked_without_money(limit: float) -> BThreadBody:
    """Models are asked only when the ledger was below the limit, after the latest answer of this run was paid."""
    is_open, looking = (
        False,
        False,
    )  # whether there is money; whether the look that is under way began after the payment
    while True:
        said = yield sync(wait_for=NEWS)
        if contains(ASKS_MODELS, said):
            assert is_open, f"{said.name}, and nobody knows that there is money left"
        elif isinstance(said, LedgerRequested):
            looking = True
        elif isinstance(said, LedgerGiven):
            is_open, looking = looking and not said.has_reached(limit), False
        else:
            is_open, looking = False, False
