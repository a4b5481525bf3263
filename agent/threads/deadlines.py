"""The time of a run: when it is over, what is under way is cut off, and nothing new starts."""

from agent.threads.stopping import NEXT_CALL, NEXT_TURN
from agent.vocabulary.events import DeadlineReached, DeadlineSet, PromptGiven, RunEnded
from agent.vocabulary.reasons import DEADLINE, Ending
from bp import BThreadBody, bthread, sync

__all__ = ["deadline"]


@bthread
def deadline(seconds: float) -> BThreadBody:
    """Set the clock when a run begins. When it has run down, refuse everything; effects end at once (their `until`)."""
    ending = Ending("limit", DEADLINE, f"Stopped: the time limit of {seconds:g} seconds was reached.")
    while True:
        yield sync(wait_for=PromptGiven)
        said = yield sync(request=DeadlineSet(seconds), wait_for=RunEnded)
        if isinstance(said, DeadlineSet):
            said = yield sync(wait_for=DeadlineReached | RunEnded)
        if isinstance(said, DeadlineReached):
            yield sync(refuse=NEXT_TURN | NEXT_CALL, because=ending, wait_for=RunEnded)
