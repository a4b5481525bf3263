"""Ask the hooks that speak for people. A stop or an abort is enough of an answer."""

from agent.effects.hooks import HookCaller
from agent.vocabulary.events import AbortAsked, MessagesFound, MessagesSought, StopAsked
from bp.runner import Broken, Effect

__all__ = ["seeking_effect"]


def seeking_effect(hooks: HookCaller) -> Effect:
    """Return the effect of `messages_sought`."""

    async def ask(sought: MessagesSought) -> MessagesFound:
        return MessagesFound(sought.what, await hooks.words(sought.what))

    def nothing(sought: MessagesSought, broken: Broken) -> MessagesFound:
        return MessagesFound(sought.what)

    return Effect(
        on=MessagesSought,
        run=ask,
        outcome=(MessagesFound,),
        broken=nothing,
        until=lambda _: AbortAsked | StopAsked,
    )
