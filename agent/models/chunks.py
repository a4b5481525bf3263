"""What one chunk of a chat-completions stream says, whatever shape its server gives it.

Servers that call themselves compatible differ in every detail. This is the edge: a raw chunk (parsed JSON, or the
`openai` package's object) becomes one small frozen `Chunk`, and nobody further in asks what a dict contains.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from agent.messages import Usage
from agent.models.model import ModelError

__all__ = ["CallPiece", "Chunk", "read_chunk"]


@frozen
class CallPiece:
    """A piece of a tool call. None and "" mean that the chunk does not say; `arguments` is the next piece of text."""

    index: int | None = None
    id: str = ""
    name: str = ""
    arguments: str = ""


@frozen
class Chunk:
    """A chunk's contribution to the first choice of the answer."""

    text: str = ""
    reasoning: str = ""
    pieces: tuple[CallPiece, ...] = ()
    finish_reason: str = ""
    usage: Usage | None = None
    whole: bool = False
    """True when the chunk carries a whole message instead of a delta, as servers do that do not really stream."""


def read_chunk(raw: object) -> Chunk:
    """Reduce a raw chunk to what it says.

    Unknown keys and values of a wrong type say nothing. Raises `ModelError` (retryable) for a chunk that is not an
    object, or that reports an error.
    """
    chunk = _mapping(raw)
    if chunk is None:
        raise ModelError(f"the model's stream is broken: a chunk is {raw!r:.80}, not an object", retryable=True)
    if chunk.get("error"):
        raise ModelError(f"the model's server broke off: {_error_text(chunk['error'])}", retryable=True)
    choice = _first_choice(chunk)
    said, whole = _said(choice)
    return Chunk(
        text=_content(said.get("content")) + _text(said.get("refusal")) + _text(choice.get("text")),
        reasoning=_text(said.get("reasoning_content")) or _text(said.get("reasoning")),
        pieces=tuple(_pieces(said)),
        finish_reason=_text(choice.get("finish_reason")),
        usage=_usage(chunk),
        whole=whole,
    )


def _first_choice(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    """Find the choice with index 0 (or none); others belong to answers that nobody asked for."""
    for raw in _items(chunk.get("choices")):
        choice = _mapping(raw)
        if choice is not None and not choice.get("index"):
            return choice
    return {}


def _said(choice: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    delta = _mapping(choice.get("delta"))
    if delta:
        return delta, False
    message = _mapping(choice.get("message"))
    return (message, True) if message else ({}, False)


def _pieces(said: Mapping[str, Any]) -> Iterator[CallPiece]:
    for raw in _items(said.get("tool_calls")):
        call = _mapping(raw)
        if call:
            function = _mapping(call.get("function")) or call
            yield CallPiece(
                index=_index(call.get("index")),
                id=_text(call.get("id")),
                name=_text(function.get("name")),
                arguments=_arguments(function.get("arguments")),
            )
    legacy = _mapping(said.get("function_call"))  # one call, without index and id
    if legacy:
        yield CallPiece(name=_text(legacy.get("name")), arguments=_arguments(legacy.get("arguments")))


def _index(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _arguments(value: object) -> str:
    """Return argument text; some servers send the object itself."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _content(value: object) -> str:
    """Return the text of a content, which is a text, or a list of parts of which some are text."""
    if isinstance(value, list):
        return "".join(_text((_mapping(part) or {}).get("text")) for part in value)
    return _text(value)


def _usage(chunk: Mapping[str, Any]) -> Usage | None:
    usage = _mapping(chunk.get("usage"))
    if not usage:
        return None
    return Usage(
        input_tokens=_count(usage.get("prompt_tokens", usage.get("input_tokens"))),
        output_tokens=_count(usage.get("completion_tokens", usage.get("output_tokens"))),
    )


def _count(value: object) -> int:
    return max(0, value) if isinstance(value, int) and not isinstance(value, bool) else 0


def _error_text(error: object) -> str:
    message = (_mapping(error) or {}).get("message") or error
    return f"{message}"[:300]


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _items(value: object) -> list[Any]:
    if isinstance(value, list):
        return value
    return [value] if value else []


def _mapping(value: object) -> Mapping[str, Any] | None:
    if isinstance(value, Mapping):
        return value
    to_dict = getattr(value, "to_dict", None)  # the openai package's objects
    return to_dict() if callable(to_dict) else None
