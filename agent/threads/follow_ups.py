"""Follow-ups: what a person wants after what the run does now is heard before the run completes."""

from agent.vocabulary.events import FollowUpGiven, RunContinued, RunEnded
from agent.vocabulary.reasons import FollowUpWaits, follow_ups_heard
from bp import BThreadBody, Event, bthread, sync, where

__all__ = ["MOST", "continue_with_follow_ups"]

MOST = 100
"""How many follow-ups may wait; what is said beyond that is left for the next run."""

NEWS = FollowUpGiven | RunContinued | RunEnded
COMPLETION = where(RunEnded, status="completed")


@bthread
def continue_with_follow_ups(at_once: bool = False, most: int = MOST) -> BThreadBody:
    """Refuse completion while a follow-up waits: the run goes on with it, one after the other or all `at_once`.

    One after the other, no more than `most` may wait.
    """
    while True:
        yield sync(wait_for=FollowUpGiven)
        waiting = 1
        while waiting:
            said = yield sync(
                refuse=COMPLETION,
                because=FollowUpWaits(at_once),
                block=FollowUpGiven if waiting == most and not at_once else None,
                wait_for=NEWS,
            )
            waiting = still_waiting(waiting, said, at_once)


def still_waiting(waiting: int, said: Event, at_once: bool) -> int:
    """Return how many follow-ups wait after what happened. Those that a run leaves when it ends wait no more."""
    if isinstance(said, FollowUpGiven):
        return waiting if at_once else waiting + 1
    if isinstance(said, RunEnded):
        return 0
    assert isinstance(said, RunContinued)
    return {"none": waiting, "one": waiting - 1, "all": 0}[follow_ups_heard(said.refusals)]
