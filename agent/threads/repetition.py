"""The same call again and again: the n-th identical proposal in a row is refused, and ends the run (S4)."""

from attrs import frozen

from agent.vocabulary.calls import ToolCall, signature
from agent.vocabulary.events import AnswerCommitted, InferenceRequested, ProposedAction, RunEnded, SteeringGiven
from agent.vocabulary.reasons import Ending
from bp import BThreadBody, bthread, sync, where

__all__ = ["doom_loop"]

NEWS = AnswerCommitted | SteeringGiven | RunEnded


@frozen
class Repetition:
    """The latest call of a run, and how often it was made in a row."""

    latest: str = ""
    times: int = 0

    def then(self, call: ToolCall) -> "Repetition":
        """Return what the next call makes of it; one that cannot be proposed makes nothing."""
        if call.flaw is not None:
            return self
        return Repetition(signature(call), self.times + 1 if signature(call) == self.latest else 1)


@bthread
def doom_loop(n: int = 3) -> BThreadBody:
    """Refuse the `n`-th proposal in a row with the same tool and arguments, and what would follow it, in each run.

    A person who steers begins the count anew.
    """
    ending = Ending("doom_loop", "doom_loop", f"Stopped: the same call {n} times in a row.")
    repetition = Repetition()
    while True:
        said = yield sync(wait_for=NEWS)
        if not isinstance(said, AnswerCommitted):
            repetition = Repetition()
            continue
        for number, call in enumerate(said.calls):
            repetition = repetition.then(call)
            if repetition.times == n:
                over = [InferenceRequested, *(where(ProposedAction, call=later) for later in said.calls[number:])]
                yield sync(refuse=over, because=ending, wait_for=SteeringGiven | RunEnded)
                repetition = Repetition()
                break
