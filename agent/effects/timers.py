"""Time that passes: the wait before the next attempt of an inference, and the deadline of a run."""

from collections.abc import Callable

import anyio

from agent.vocabulary.events import AbortAsked, BackoffElapsed, BackoffStarted, DeadlineReached, DeadlineSet, StopAsked
from bp.runner import Broken, Effect

FIRST, LONGEST, LONGEST_ASKED = 0.5, 8.0, 120.0  # seconds


def seconds_before(started: BackoffStarted) -> float:
    """Return how long to wait: 0.5 s doubling to 8 s, up to a quarter less; `retry_after` up to 120 s."""
    from random import uniform  # 3 ms, for the first failure of a model

    longest = longest_before(started)
    return longest if started.retry_after is not None else uniform(0.75, 1.0) * longest


def longest_before(started: BackoffStarted) -> float:
    """Return how many seconds the wait takes at most; exactly so many where the server named them."""
    if started.retry_after is not None:
        return min(max(started.retry_after, 0.0), LONGEST_ASKED)
    return min(FIRST * 2.0 ** (started.attempt - 1), LONGEST)


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
        until=AbortAsked | StopAsked | DeadlineReached,
    )


def deadline_effect() -> Effect:
    """Return the effect of `deadline_set`. Nothing cuts it short: the runner drops what is left when a run is over.

    A run that is resumed has its whole time again.
    """

    async def run_down(clock: DeadlineSet) -> DeadlineReached:
        await anyio.sleep(clock.seconds)
        return DeadlineReached(clock.seconds)

    def stopped(clock: DeadlineSet, broken: Broken) -> DeadlineReached:
        return DeadlineReached(clock.seconds)  # a clock that broke has no time left

    return Effect(on=DeadlineSet, run=run_down, outcome=(DeadlineReached,), broken=stopped, is_clock=True)
