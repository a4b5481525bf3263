"""The effects of the loop: all that its events start in the world, for a run, and as declared for the verifier."""

from collections.abc import Callable

from agent.effects.approval import Approver, approval_effect, lookup_effect
from agent.effects.execution import description_effect, execution_effect
from agent.effects.hooks import seeking_effect
from agent.effects.inference import Inferences, Voice, inference_effect, summary_effect
from agent.effects.timers import backoff_effect, deadline_effect, seconds_before
from agent.models.scripted import ScriptedModel
from agent.projections.context import Context
from agent.projections.conversation import Conversation
from agent.projections.state import StateTracker, Totals
from agent.tools.toolbox import Toolbox
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import BackoffStarted
from bp.runner import Effect


def loop_effects(
    asking: Inferences,
    approver: Approver | None = None,
    on_output: Callable[[ToolCall, str], None] | None = None,
    wait: Callable[[BackoffStarted], float] = seconds_before,
) -> tuple[Effect, ...]:
    """Return the effects of the loop.

    `approver` decides about calls, `on_output` gets the output of tools, `wait` gives the seconds before an attempt.
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
    """Return the effects of the loop as declared, but for the clock; nothing of them runs."""
    context = Context(Conversation(), StateTracker())
    asking = Inferences(Voice(ScriptedModel([])), Toolbox((), Workspace("/")), "", context, Totals())
    return tuple(effect for effect in loop_effects(asking) if not effect.is_clock)
