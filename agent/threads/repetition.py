"""The same call again and again: the n-th identical proposal in a row is refused, and ends the run (S4)."""

from typing import Any

from attrs import frozen

from agent.calls import ToolCall, signature, still_open, without
from agent.events import AnswerCommitted, CallAnswered, InferenceRequested, ProposedAction, RunEnded
from agent.reasons import Ending
from bp import NONE, BThreadBody, bthread, sync, where

__all__ = ["doom_loop"]

NEWS = AnswerCommitted | ProposedAction | CallAnswered | RunEnded


@bthread
def doom_loop(n: int = 3) -> BThreadBody:
    """Refuse the `n`-th proposal in a row with the same tool and arguments; nothing more is asked for in this run."""
    ending = Ending("doom_loop", "doom_loop", f"Stopped: the same call {n} times in a row.")
    while True:
        yield from until_repeated(n, ending)
        yield sync(refuse=InferenceRequested | ProposedAction, because=ending, wait_for=RunEnded)


def until_repeated(n: int, ending: Ending) -> BThreadBody:
    """Count identical proposals in a row; return when the `n`-th was refused and answered."""
    repeated, times = "", 0
    unproposed: tuple[ToolCall, ...] = ()
    while True:
        said = yield sync(wait_for=NEWS, refuse=proposals_like(repeated) if times == n - 1 else NONE, because=ending)
        if isinstance(said, RunEnded):
            repeated, times, unproposed = "", 0, ()
        elif isinstance(said, AnswerCommitted):
            unproposed = said.calls
        elif isinstance(said, ProposedAction):
            unproposed = without(unproposed, said.call)
            times = times + 1 if signature(said.call) == repeated else 1
            repeated = signature(said.call)
        else:
            if times == n - 1 and said.outcome == "ended" and _is_one(said.call, unproposed, repeated):
                return
            unproposed = still_open(unproposed, said.call)


def proposals_like(repeated: str) -> Any:
    """Return the proposals of calls with this signature."""
    return where(ProposedAction, HasSignature(repeated))


@frozen
class HasSignature:
    """Whether a proposed call has this signature: a predicate that is a value."""

    text: str

    def __call__(self, proposed: ProposedAction) -> bool:
        """Compare tool and canonical arguments."""
        return signature(proposed.call) == self.text


def _is_one(answered: str, unproposed: tuple[ToolCall, ...], repeated: str) -> bool:
    """Whether the call with the id `answered` was never proposed and has the signature `repeated`."""
    return any(call.id == answered and signature(call) == repeated for call in unproposed)
