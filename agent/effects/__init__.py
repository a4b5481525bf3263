"""The effects that selected events start in the world: one each, as data for the runner and for the verifier."""

from bp.runner import Effect


def loop_effects() -> tuple[Effect, ...]:
    """Return the effects of the loop as declared; nothing of them runs here."""
    from agent.effects.approval import approval_effect
    from agent.effects.changed_facts import lookup_effect
    from agent.effects.execution import description_effect, execution_effect
    from agent.effects.hooks import NO_HOOKS, seeking_effect
    from agent.effects.inference import Measure, inference_effect, summary_effect
    from agent.effects.timers import backoff_effect
    from agent.models.scripted import ScriptedModel
    from agent.projections.context import Context
    from agent.projections.conversation import Conversation
    from agent.projections.state import StateTracker, Totals
    from agent.tools.toolbox import Toolbox
    from agent.tools.workspace import Workspace

    toolbox = Toolbox((), Workspace("/"))
    context = Context(Conversation(), StateTracker())
    asking = inference_effect(ScriptedModel([]), toolbox, "", context, Totals(), None)
    acting = (description_effect(toolbox), lookup_effect(toolbox), execution_effect(toolbox, None))
    summing_up = summary_effect(ScriptedModel([]), context, Measure())
    people = (approval_effect(None), seeking_effect(NO_HOOKS))
    return (asking, *acting, *people, backoff_effect(), summing_up)
