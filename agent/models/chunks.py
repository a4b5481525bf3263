"""What one chunk of a chat-completions stream says, whatever shape its server gives it.

Servers that call themselves compatible differ in every detail. This is the edge: a raw chunk (parsed JSON, or the
`openai` package's object) becomes one small frozen `Chunk`, and nobody further in asks what a dict contains.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from agent.models.json_values import argument_text, elements, index_number, mapping, text, usage
from agent.models.model import ModelError
from agent.models.reported import broke_off
from agent.vocabulary.messages import Usage

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

    Unknown keys and values of a wrong type say nothing. Raises `ModelError` for a chunk that is not an object
    (retryable), or that reports an error.
    """
    chunk = mapping(raw)
    if chunk is None:
        raise ModelError(f"the model's stream is broken: a chunk is {raw!r:.80}, not an object", retryable=True)
    if chunk.get("error"):
        raise broke_off(chunk["error"])
    choice = _first_choice(chunk)
    said, whole = _said(choice)
    return Chunk(
        text=_content(said.get("content")) + text(said.get("refusal")) + text(choice.get("text")),
        reasoning=text(said.get("reasoning_content")) or text(said.get("reasoning")),
        pieces=tuple(_pieces(said)),
        finish_reason=text(choice.get("finish_reason")),
        usage=usage(chunk.get("usage")),
        whole=whole,
    )


def _first_choice(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    """Find the choice with index 0 (or none); others belong to answers that nobody asked for."""
    for raw in elements(chunk.get("choices")):
        choice = mapping(raw)
        if choice is not None and not choice.get("index"):
            return choice
    return {}


def _said(choice: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    delta = mapping(choice.get("delta"))
    if delta:
        return delta, False
    message = mapping(choice.get("message"))
    return (message, True) if message else ({}, False)


def _pieces(said: Mapping[str, Any]) -> Iterator[CallPiece]:
    for raw in elements(said.get("tool_calls")):
        call = mapping(raw)
        if call:
            function = mapping(call.get("function")) or call
            yield CallPiece(
                index=index_number(call.get("index")),
                id=text(call.get("id")),
                name=text(function.get("name")),
                arguments=argument_text(function.get("arguments")),
            )
    legacy = mapping(said.get("function_call"))  # one call, without index and id
    if legacy:
        yield CallPiece(name=text(legacy.get("name")), arguments=argument_text(legacy.get("arguments")))


def _content(value: object) -> str:
    """Return the text of a content, which is a text, or a list of parts of which some are text."""
    if isinstance(value, list):
        return "".join(text((mapping(part) or {}).get("text")) for part in value)
    return text(value)
