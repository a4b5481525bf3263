"""Assertions on runs."""

from collections.abc import Iterable

from agent.messages import AssistantMessage, Message, ToolMessage

__all__ = ["assert_calls_answered"]


def assert_calls_answered(messages: Iterable[Message]) -> None:
    """Fail unless each call has one answer: after its message, before any other message, in source order."""
    owed: list[str] = []
    for number, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            assert owed, f"message {number} answers {message.call_id!r}, which no call before it asks for"
            first = owed.pop(0)
            assert message.call_id == first, f"message {number} answers {message.call_id!r}; {first!r} comes first"
            continue
        assert not owed, f"message {number} ({type(message).__name__}) comes before the answers to {owed}"
        if isinstance(message, AssistantMessage):
            owed = [call.id for call in message.calls]
            assert len(set(owed)) == len(owed), f"message {number} has two calls with one id: {owed}"
            assert all(owed), f"message {number} has a call without an id: {owed}"
    assert not owed, f"nothing answers {owed}"
