"""What a strict provider would say to a conversation that it is sent: nothing, or what is wrong."""

import json
from collections.abc import Iterator
from typing import Any


def mistakes(api: str, body: dict[str, Any]) -> list[str]:
    """Everything that is wrong with the body of a request."""
    turns = _chat_turns(body["messages"]) if api == "chat" else _response_turns(body["input"])
    return [problem for calls, results in turns for problem in _problems(calls, results)]


def _problems(calls: list[tuple[str, str, str]], results: list[str]) -> Iterator[str]:
    ids = [id for id, _, _ in calls]
    if ids != results:
        yield f"calls {ids} are answered by {results}"
    if len(set(ids)) < len(ids):
        yield f"ids are used twice: {ids}"
    for id, name, arguments in calls:
        if not id or len(id) > 64 or not name:
            yield f"a call is {id!r} {name!r}"
        if not isinstance(json.loads(arguments), dict):
            yield f"arguments are {arguments!r}"


def _chat_turns(messages: list[dict[str, Any]]) -> Iterator[tuple[list[tuple[str, str, str]], list[str]]]:
    """The calls of each assistant message with the ids of the tool messages right after it."""
    calls: list[tuple[str, str, str]] = []
    results: list[str] = []
    for message in [*messages, {"role": "end"}]:
        if message["role"] == "tool":
            assert isinstance(message["content"], str)
            results.append(message["tool_call_id"])
            continue
        yield calls, results
        asked = message.get("tool_calls", [])
        calls = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in asked]
        results = []


def _response_turns(items: list[dict[str, Any]]) -> Iterator[tuple[list[tuple[str, str, str]], list[str]]]:
    """Calls that stand together with the outputs right after them."""
    calls: list[tuple[str, str, str]] = []
    results: list[str] = []
    for item in [*items, {"type": "end"}]:
        match item.get("type"):
            case "function_call_output":
                results.append(item["call_id"])
            case "function_call" if not results:
                calls.append((item["call_id"], item["name"], item["arguments"]))
            case "reasoning" if calls and not results:
                pass
            case _:
                yield calls, results
                calls, results = [], []
                if item.get("type") == "function_call":
                    calls = [(item["call_id"], item["name"], item["arguments"])]
