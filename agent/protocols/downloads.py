"""Download then run: what came from outside is not executed, in whichever call that would be.

Source: none of its own; it is what a single call cannot show. Download and execution in one command are the
constitution's business.
"""

from collections.abc import Callable

from attrs import frozen

from agent.protocols.actions import executed_by, fetched_by, is_below
from agent.protocols.reasons_of_protocols import Tainted
from agent.vocabulary.events import GateApproved
from bp import BThreadBody, bthread, sync, where
from constitution import Action

__all__ = ["download_then_run"]

Fetched = Callable[[Action, tuple[str, ...]], tuple[str, ...]]
Executed = Callable[[Action], tuple[str, ...]]


@frozen
class RunsFrom:
    """Whether an approved action would run something at, or below, one of these places."""

    places: tuple[str, ...]
    executed: Executed

    def __call__(self, approved: GateApproved) -> bool:
        """Tell so."""
        return bool(self.places) and any(is_below(path, self.places) for path in self.executed(approved.facts))


@bthread
def download_then_run(fetched: Fetched = fetched_by, executed: Executed = executed_by) -> BThreadBody:
    """Remember what every approved action fetches, and copies of that; refuse what would run any of it."""
    places: tuple[str, ...] = ()
    because = Tainted("it would run what came from outside")
    while True:
        runs = where(GateApproved, RunsFrom(places, executed))
        said = yield sync(wait_for=GateApproved, refuse=runs, because=because)
        places = tuple(sorted({*places, *fetched(said.facts, places)}))
