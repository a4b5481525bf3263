"""Streams of chunks as tests write them: pieces of calls, and what they make."""

from collections.abc import Sequence
from typing import Any

from agent.models.chat_stream import assemble

Piece = dict[str, Any]


def piece(arguments: str | None = None, **said: Any) -> Piece:
    """A piece of a call: index, id and name where given, arguments where not None."""
    function = {
        key: value for key, value in (("name", said.pop("name", None)), ("arguments", arguments)) if value is not None
    }
    return {**said, "function": function} if function else said


def delta(finish: str | None = None, **said: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


def calls_of(pieces: Sequence[Piece], finish: str = "tool_calls") -> list[tuple[str, str, str]]:
    """The calls that pieces make, when each comes in a chunk of its own."""
    answer = assemble([*(delta(tool_calls=[piece]) for piece in pieces), delta(finish)])
    return [(call.id, call.name, call.arguments) for call in answer.message.calls]
