"""Time passes before the next attempt: longer each time, with jitter, or as long as the server said."""

from collections.abc import Callable
from random import uniform

import anyio

from agent.vocabulary.events import AbortAsked, BackoffElapsed, BackoffStarted, DeadlineReached, StopAsked
from bp.runner import Broken, Effect

__all__ = ["backoff_effect", "seconds_before"]

FIRST, LONGEST, LONGEST_ASKED = 0.5, 8.0, 120.0  # seconds


def seconds_before(started: BackoffStarted) -> float:
    """Return how long to wait: 0.5 s doubling to 8 s, up to a quarter less; `retry_after` up to 120 s."""
    if started.retry_after is not None:
        return min(max(started.retry_after, 0.0), LONGEST_ASKED)
    longest: float = min(FIRST * 2.0 ** (started.attempt - 1), LONGEST)
    return uniform(0.75, 1.0) * longest


def backoff_effect(wait: Callable[[BackoffStarted], float] = seconds_before) -> Effect:
    """Return the effect of `backoff_started`; `wait` gives the seconds."""

    async def sleep(started: BackoffStarted) -> BackoffElapsed:
        seconds = wait(started)
        await anyio.sleep(seconds)
        return BackoffElapsed(started.attempt, round(seconds, 3))

    def cut_short(started: BackoffStarted, broken: Broken) -> BackoffElapsed:
        return BackoffElapsed(started.attempt, 0.0)

    return Effect(
        on=BackoffStarted,
        run=sleep,
        outcome=(BackoffElapsed,),
        broken=cut_short,
        until=lambda _: AbortAsked | StopAsked | DeadlineReached,
    )
