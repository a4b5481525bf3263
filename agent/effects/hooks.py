"""Hooks (S2): functions of the embedding program that change what the model is shown, or supply users' messages."""

from collections.abc import Awaitable, Callable, Sequence
from inspect import isawaitable, iscoroutinefunction
from typing import Any, TypeVar, get_args

from attrs import frozen

from agent.models.model import Answer, Delta, ModelRequest
from agent.threads.steering import seek_follow_ups, seek_steering
from agent.tools.blocking import run_in_background
from agent.vocabulary.errors import RunError
from agent.vocabulary.events import AbortAsked, MessagesFound, MessagesSought, StopAsked
from agent.vocabulary.messages import Message, UserMessage
from bp import BThread
from bp.runner import Broken, Effect

T = TypeVar("T")
ContextHook = Callable[[Sequence[Message]], Sequence[Message] | Awaitable[Sequence[Message]]]
PeopleHook = Callable[[], Sequence[str | UserMessage] | Awaitable[Sequence[str | UserMessage]]]
KeyHook = Callable[[], str | Awaitable[str | None] | None]
StreamFunction = Callable[[ModelRequest, Callable[[Delta], None]], Awaitable[Answer]]


@frozen
class Hooks:
    """The caller's functions around an inference, each called before every inference unless stated otherwise.

    transform_context: gets the conversation and returns the messages for the model (fewer or more). convert_to_llm:
    called after it; converts these messages to those that are sent.
    get_api_key: returns the key of this inference, for tokens that expire soon; None: the model's own.
    get_steering_messages: asked after the prompt, after each answered call, and after an answer that would be the last;
    it returns steering messages. get_follow_up_messages: asked after an answer that would be the last; it returns
    follow-ups.
    stream_fn: replaces the model's `answer`, and may raise the same errors.
    """

    convert_to_llm: ContextHook | None = None
    transform_context: ContextHook | None = None
    get_api_key: KeyHook | None = None
    get_steering_messages: PeopleHook | None = None
    get_follow_up_messages: PeopleHook | None = None
    stream_fn: StreamFunction | None = None

    def bthreads(self) -> tuple[BThread, ...]:
        """Return the b-threads that have the hooks asked."""
        steering = () if self.get_steering_messages is None else (seek_steering(),)
        return (*steering, *(() if self.get_follow_up_messages is None else (seek_follow_ups(),)))


Fail = Callable[[Exception], None]


def failure(who: str, error: Exception, fail: Fail) -> RunError:
    """End the run by `fail` because a hook raised `error`; return the reason."""
    why = RunError(f"{who} failed: {type(error).__name__}: {error}")
    why.__cause__ = error
    fail(why)
    return why


class HookCaller:
    """Calls the hooks of one run; `fail` ends it when a hook raises or returns a wrong value."""

    def __init__(self, hooks: Hooks, fail: Fail) -> None:
        """Keep the hooks; none is called yet."""
        self._hooks = hooks
        self._fail = fail

    @property
    def stream_fn(self) -> StreamFunction | None:
        """The function that replaces the model's `answer`, or None."""
        return self._hooks.stream_fn

    async def context(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return the messages for the model. Raises RunError."""
        for name in ("transform_context", "convert_to_llm"):
            if getattr(self._hooks, name) is not None:
                messages = await self._called(name, _messages, messages)
        return messages

    async def api_key(self) -> str | None:
        """Return the key for the next inference, or None. Raises RunError."""
        return None if self._hooks.get_api_key is None else await self._called("get_api_key", _key)

    async def words(self, what: str) -> tuple[str, ...]:
        """Return the messages of users, as steering or as follow-ups. Raises RunError."""
        return await self._called(f"get_{what}_messages", _texts)

    async def _called(self, name: str, read: Callable[[Any], T], *arguments: object) -> T:
        try:
            return read(await _returned(getattr(self._hooks, name), arguments))
        except Exception as error:
            raise failure(f"the hook {name}", error, self._fail) from error


NO_HOOKS = HookCaller(Hooks(), lambda error: None)
"""For loops without hooks: nothing is called, and nothing can fail."""


async def _returned(hook: Callable[..., Any], arguments: tuple[object, ...]) -> Any:
    if iscoroutinefunction(hook):
        return await hook(*arguments)
    returned = await run_in_background(lambda: hook(*arguments))
    return await returned if isawaitable(returned) else returned


def _messages(returned: Any) -> Sequence[Message]:
    if not isinstance(returned, Sequence) or not all(isinstance(message, get_args(Message)) for message in returned):
        raise TypeError(f"it must return messages, not {returned!r}")
    return returned


def _key(returned: Any) -> str | None:
    if not isinstance(returned, str | None):
        raise TypeError(f"it must return a text or None, not a {type(returned).__name__}")  # which may hold a secret
    return returned


def _texts(returned: Any) -> tuple[str, ...]:
    if isinstance(returned, str) or not isinstance(returned, Sequence):
        raise TypeError(f"it must return a list of texts or user messages, not {returned!r}")
    texts = tuple(one.text if isinstance(one, UserMessage) else one for one in returned)
    if wrong := [one for one in texts if not isinstance(one, str)]:
        raise TypeError(f"it must return texts or user messages, not {wrong[0]!r}")
    return texts


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
        until=AbortAsked | StopAsked,
    )
