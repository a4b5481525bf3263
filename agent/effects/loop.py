"""The effects of the loop, for a run and as declared for the verifier; and the timers."""

from collections.abc import Callable

import anyio

from agent.effects.approval import Approver, approval_effect, lookup_effect
from agent.effects.execution import description_effect, execution_effect
from agent.effects.hooks import seeking_effect
from agent.effects.inference import Inferences, RoleModel, inference_effect, summary_effect
from agent.models.scripted import ScriptedModel
from agent.projections.conversation import Context, Conversation
from agent.projections.state import StateTracker, Totals
from agent.tools.toolbox import Toolbox
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import AbortAsked, BackoffElapsed, BackoffStarted, DeadlineReached, DeadlineSet, StopAsked
from bp.runner import Broken, Effect

FIRST, LONGEST, LONGEST_ASKED = 0.5, 8.0, 120.0  # seconds


def seconds_before(started: BackoffStarted) -> float:
    """Return the seconds to wait: 0.5 s doubling to 8 s, up to a quarter less; `retry_after` up to 120 s."""
    from random import uniform  # 3 ms, for the first failure of a model

    longest = longest_before(started)
    return longest if started.retry_after is not None else uniform(0.75, 1.0) * longest


def longest_before(started: BackoffStarted) -> float:
    """Return the longest wait in seconds; the exact one where the server named it."""
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
    """Return the effect of `deadline_set`. Nothing cuts it short: the runner drops it when the run is over. A resumed
    run has its whole time again.
    """

    async def run_down(clock: DeadlineSet) -> DeadlineReached:
        await anyio.sleep(clock.seconds)
        return DeadlineReached(clock.seconds)

    def stopped(clock: DeadlineSet, broken: Broken) -> DeadlineReached:
        return DeadlineReached(clock.seconds)  # a failed timer has no time left

    return Effect(on=DeadlineSet, run=run_down, outcome=(DeadlineReached,), broken=stopped, is_clock=True)


def loop_effects(
    asking: Inferences,
    approver: Approver | None = None,
    on_output: Callable[[ToolCall, str], None] | None = None,
    wait: Callable[[BackoffStarted], float] = seconds_before,
) -> tuple[Effect, ...]:
    """Return the effects of the loop.

    `approver` answers about calls, `on_output` gets the output of tools, `wait` returns the seconds before an attempt.
    """
    toolbox = asking.toolbox
    return (
        inference_effect(asking),
        summary_effect(asking),
        deadline_effect(),
        description_effect(toolbox),
        lookup_effect(toolbox),
        execution_effect(toolbox, on_output),
        approval_effect(approver),
        seeking_effect(asking.hooks),
        backoff_effect(wait),
    )


def declared_effects() -> tuple[Effect, ...]:
    """Return the declarations of the effects of the loop, without the timer; none can run."""
    context = Context(Conversation(), StateTracker())
    asking = Inferences(RoleModel(ScriptedModel([])), Toolbox((), Workspace("/")), "", context, Totals())
    return tuple(effect for effect in loop_effects(asking) if not effect.is_clock)
