"""Look at the ledger of an experiment: what all models were asked for so far, in all of its processes."""

from collections.abc import Callable

from agent.effects.evidence import MakeEffect
from agent.session.agent import Agent
from agent.vocabulary.events import AbortAsked, DeadlineReached
from agent.vocabulary.questions import LedgerGiven, LedgerRequested
from bp.runner import Broken, Effect

__all__ = ["ledger"]


def ledger(spent: Callable[[], float] | None = None) -> MakeEffect:
    """Return what makes the effect of `ledger_requested`. `spent` gives US dollars; without it nobody knows."""

    def make(agent: Agent) -> Effect:
        async def look(requested: LedgerRequested) -> LedgerGiven:
            return LedgerGiven(None if spent is None else spent())

        return Effect(
            on=LedgerRequested,
            run=look,
            outcome=(LedgerGiven,),
            broken=unknown,
            until=lambda _: AbortAsked | DeadlineReached,
        )

    return make


def unknown(requested: LedgerRequested, broken: Broken) -> LedgerGiven:
    """Return the outcome of a look at a ledger that cannot be read: nobody knows what was spent."""
    return LedgerGiven(None)
