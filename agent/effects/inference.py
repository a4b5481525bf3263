"""Ask the model: a draft comes back, or the reason why there is none."""

from collections.abc import Callable

from agent.effects.streaming import Watcher, coalesced
from agent.events import AbortAsked, InferenceFailed, InferenceFinished, InferenceRequested
from agent.models import Answer, Delta, Model, ModelError, ModelRequest, read_calls
from agent.projections import Conversation, Totals
from agent.tools.toolbox import Toolbox
from bp import Event
from bp.runner import Broken, Effect

__all__ = ["inference"]


def inference(
    model: Model,
    toolbox: Toolbox,
    system_prompt: str,
    conversation: Conversation,
    totals: Totals,
    watcher: Watcher | None,
) -> Effect:
    """Return the effect of `inference_requested`. What the model wrote is read here, and nowhere else."""

    async def ask(requested: InferenceRequested) -> Event:
        request = ModelRequest(system_prompt, conversation.messages, toolbox.schemas(), requested.role)
        try:
            async with coalesced(watcher) as show:
                answer = await model.answer(request, _shower(show))
        except ModelError as error:
            return InferenceFailed(requested.draft, str(error), error.retryable, error.retry_after)
        return finished(requested.draft, answer)

    def finished(draft: str, answer: Answer) -> InferenceFinished:
        calls = read_calls(answer, toolbox.categories, turn=totals.turns)
        checked = tuple(toolbox.checked(call) for call in calls)
        return InferenceFinished(draft, answer.message, checked, answer.stop_reason, answer.usage)

    return Effect(
        on=InferenceRequested,
        run=ask,
        outcome=(InferenceFinished, InferenceFailed),
        broken=failed,
        until=lambda _: AbortAsked,
    )


def failed(requested: InferenceRequested, broken: Broken) -> InferenceFailed:
    """Return the outcome of an inference that raised or was cut short; asking again would not help."""
    reason = f"the model raised {type(broken.error).__name__}: {broken.error}" if broken.error else broken.how
    return InferenceFailed(requested.draft, reason)


def _shower(show: Watcher) -> Callable[[Delta], None]:
    return lambda delta: show(delta.text)
