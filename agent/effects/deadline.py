"""The clock of a run: it is set when the run begins, and goes with it when it ends before the time is over."""

import anyio

from agent.vocabulary.events import DeadlineReached, DeadlineSet
from bp.runner import Broken, Effect

__all__ = ["deadline_effect"]


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
