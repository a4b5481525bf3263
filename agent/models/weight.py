"""How much memory texts take, so that no conversation and no answer fills it."""

from collections.abc import Iterator, Sequence

from agent.vocabulary.messages import AssistantMessage, Image, Message

__all__ = ["LONGEST_CONVERSATION", "conversation_weight", "weight"]

LONGEST_CONVERSATION = 20_000_000
"""Bytes, as `weight` counts them, of a conversation that is sent; no model reads a tenth of it."""

WIDEST = 4  # bytes that Python and UTF-8 take at most for a character


def weight(text: str) -> int:
    """Return the bytes that `text` takes at most, without looking at each character."""
    return len(text) if text.isascii() else WIDEST * len(text)


def conversation_weight(messages: Sequence[Message]) -> int:
    """Return the bytes that `messages` take at most where they are sent: images in base64."""
    texts = sum(weight(text) for message in messages for text in _texts(message))
    return texts + sum(len(image.content) * 4 // 3 for message in messages for image in _images(message))


def _texts(message: Message) -> Iterator[str]:
    yield message.text
    if isinstance(message, AssistantMessage):
        yield message.reasoning
        yield from (call.arguments for call in message.calls)
        yield from (item.content for item in message.reasoning_items)


def _images(message: Message) -> tuple[Image, ...]:
    return () if isinstance(message, AssistantMessage) else message.images
