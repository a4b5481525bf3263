"""How much memory texts take, so that no conversation and no answer fills it."""

from collections.abc import Iterator, Sequence

from agent.messages import AssistantMessage, Message

__all__ = ["LONGEST_CONVERSATION", "conversation_weight", "weight"]

LONGEST_CONVERSATION = 20_000_000
"""Bytes, as `weight` counts them, of a conversation that is sent; no model reads a tenth of it."""

WIDEST = 4  # bytes that Python and UTF-8 take at most for a character


def weight(text: str) -> int:
    """Return the bytes that `text` takes at most, without looking at each character."""
    return len(text) if text.isascii() else WIDEST * len(text)


def conversation_weight(messages: Sequence[Message]) -> int:
    """Return the bytes that the texts of `messages` take at most."""
    return sum(weight(text) for message in messages for text in _texts(message))


def _texts(message: Message) -> Iterator[str]:
    yield message.text
    if isinstance(message, AssistantMessage):
        yield message.reasoning
        yield from (call.arguments for call in message.calls)
