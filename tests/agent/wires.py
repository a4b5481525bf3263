"""A strict reader of both wire formats: each call has one result, at once, in order, and nothing else is in between."""

import json
from collections.abc import Iterator
from typing import Any

__all__ = ["assert_valid_chat", "assert_valid_items"]


def assert_valid_chat(messages: list[dict[str, Any]]) -> None:
    """Fail unless a chat-completions server could take these messages."""
    owed: list[str] = []
    for position, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            assert owed, f"message {position} answers {message['tool_call_id']!r}, which nobody asked for"
            assert message["tool_call_id"] == owed.pop(0), f"message {position} answers out of order"
            assert isinstance(message["content"], str)
            continue
        assert not owed, f"message {position} ({role}) comes before the answers to {owed}"
        assert role == "user" or role == "assistant" or (role == "system" and position == 0)
        if role == "assistant":
            owed = [_checked_call(call) for call in message.get("tool_calls", ())]
            assert len(set(owed)) == len(owed), f"message {position} has two calls with one id"
            assert owed or message["content"].strip(), f"message {position} says nothing"
            assert "tool_calls" not in message or owed, f"message {position} has an empty list of calls"
    assert not owed, f"nothing answers {owed}"


def _checked_call(call: dict[str, Any]) -> str:
    assert call["type"] == "function"
    _check(call["id"], call["function"]["name"], call["function"]["arguments"])
    return str(call["id"])


def _check(id: str, name: str, arguments: str) -> None:
    assert id.strip(), "a call without an id"
    assert len(id) <= 64, f"an id of {len(id)} characters"
    assert name.strip(), "a call without a name"
    assert len(name) <= 64, f"a name of {len(name)} characters"
    assert isinstance(json.loads(arguments), dict), f"arguments are {arguments!r}"


def assert_valid_items(items: list[dict[str, Any]]) -> None:
    """Fail unless a responses server could take these items."""
    owed: list[str] = []
    answering = False  # whether an output came since the last call
    for position, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "function_call":
            assert not answering or not owed, f"item {position} is a call between answers"
            _check(item["call_id"], item["name"], item["arguments"])
            assert item["call_id"] not in owed, f"item {position} has the id of another open call"
            owed, answering = [*owed, item["call_id"]], False
        elif kind == "function_call_output":
            assert owed, f"item {position} answers {item['call_id']!r}, which nobody asked for"
            assert item["call_id"] == owed.pop(0), f"item {position} answers out of order"
            answering = True
        else:
            assert not owed, f"item {position} ({kind}) comes before the answers to {owed}"
            assert list(_texts(item)), f"item {position} says nothing"
    assert not owed, f"nothing answers {owed}"


def _texts(item: dict[str, Any]) -> Iterator[str]:
    content = item.get("content")
    if isinstance(content, str):
        yield content
    else:
        yield from (str(part) for part in content or ())
