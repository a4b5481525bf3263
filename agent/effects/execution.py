"""Run the tool of an approved call, timed; whatever happens, there is one result."""

from collections.abc import Callable
from functools import partial
from time import perf_counter

from agent.effects.streaming import coalesced
from agent.tools.toolbox import Toolbox
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import AbortAsked, DeadlineReached, ToolFinished, ToolStarted
from bp.runner import Broken, Effect

__all__ = ["execution_effect"]


def execution_effect(toolbox: Toolbox, watcher: Callable[[ToolCall, str], None] | None) -> Effect:
    """Return the effect of `tool_started`."""

    async def run(started: ToolStarted) -> ToolFinished:
        begin = perf_counter()
        async with coalesced(watcher and partial(watcher, started.call)) as progress:
            result = await toolbox.run(started.call, progress)
        duration = round((perf_counter() - begin) * 1000, 3)
        return ToolFinished(started.call, result.text, duration, result.is_error, result.details, result.images)

    return Effect(
        on=ToolStarted,
        run=run,
        outcome=(ToolFinished,),
        broken=broken_off,
        until=lambda _: AbortAsked | DeadlineReached,
        on_resume="unknown",
    )


def broken_off(started: ToolStarted, broken: Broken) -> ToolFinished:
    """Return the result of a tool that raised, was cut short, did not even end then, or died with our process."""
    cut = "cut off: the time of the run is over" if isinstance(broken.by, DeadlineReached) else "aborted"
    texts = {
        "failed": f"{type(broken.error).__name__}: {broken.error}",
        "cancelled": cut,
        "abandoned": f"{cut}: the tool did not end when it was asked to, and was left behind; its outcome is unknown",
        "interrupted": "interrupted, outcome unknown: it was running when the process that ran it ended",
    }
    return ToolFinished(started.call, texts[broken.how], is_error=True)
