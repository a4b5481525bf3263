"""What one event of a responses stream says, whatever shape its server gives it.

An item (a message, a call, a piece of reasoning) is announced, streams in deltas, and is then given whole. Servers that
call themselves compatible leave out any of the three, and number and name items as they like.
"""

from collections.abc import Mapping
from typing import Any, Literal

from attrs import frozen

from agent.models.json_values import argument_text, elements, index_number, mapping, text
from agent.models.model import ModelError
from agent.models.reported import broke_off

__all__ = ["ItemType", "Place", "WholeItem", "check_event", "place_of", "read_item", "streamed_part"]

ItemType = Literal["message", "function_call", "reasoning", "other"]

DELTAS: dict[str, ItemType] = {
    "response.output_text.delta": "message",
    "response.refusal.delta": "message",
    "response.function_call_arguments.delta": "function_call",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning.delta": "reasoning",
    "response.reasoning_summary.delta": "reasoning",
}
"""To which type of item a delta belongs."""

TYPES: dict[str, ItemType] = {"message": "message", "function_call": "function_call", "reasoning": "reasoning"}


@frozen
class Place:
    """Which item is meant: its position in the output, and its id; None and "" where the event does not say."""

    index: int | None = None
    id: str = ""


@frozen
class WholeItem:
    """An item as it stands in an announcement, or whole. `text` is what was said, reasoned, or the call's arguments."""

    type: ItemType
    id: str = ""
    call_id: str = ""
    name: str = ""
    text: str = ""
    raw: Mapping[str, Any] | None = None
    """All of it, for reasoning, which goes back as it came."""


def check_event(raw: object) -> Mapping[str, Any]:
    """Return an event as a mapping.

    Raises `ModelError` for what is no object (retryable), and for an error: retryable unless its code says that it
    would come again.
    """
    event = mapping(raw)
    if event is None:
        raise ModelError(f"the model's stream is broken: an event is {raw!r:.80}, not an object", retryable=True)
    kind = event.get("type")
    if kind == "error" or (event.get("error") and kind is None and "output" not in event):
        raise broke_off(event.get("error") or event)
    return event


def streamed_part(event: Mapping[str, Any]) -> tuple[ItemType, str] | None:
    """Return what a delta adds, and to which type of item; None for other events."""
    kind = DELTAS.get(event.get("type", ""))
    if kind is None:
        return None
    delta = event.get("delta")
    return kind, delta if type(delta) is str else argument_text(delta) if kind == "function_call" else ""


def place_of(event: Mapping[str, Any]) -> Place:
    """Return which item an event speaks of."""
    index = event.get("output_index")
    return Place(index if type(index) is int else index_number(index), text(event.get("item_id")))


def read_item(raw: object) -> WholeItem | None:
    """Reduce an item to what it says; None for what is no object."""
    item = mapping(raw)
    if item is None:
        return None
    kind: ItemType = TYPES.get(text(item.get("type")), "other")
    return WholeItem(
        type=kind,
        id=text(item.get("id")),
        call_id=text(item.get("call_id")),
        name=text(item.get("name")),
        text=_whole_text(kind, item),
        raw=item if kind == "reasoning" else None,
    )


def _whole_text(kind: ItemType, item: Mapping[str, Any]) -> str:
    if kind == "function_call":
        return argument_text(item.get("arguments"))
    if kind == "message":
        return "".join(_parts(item.get("content")))
    return "\n\n".join(_parts(item.get("content")) or _parts(item.get("summary")))


def _parts(content: object) -> list[str]:
    """Return the texts of a content: each part has a text, or a refusal."""
    if isinstance(content, str):
        return [content] if content else []
    parts = [mapping(part) or {} for part in elements(content)]
    return [said for part in parts if (said := text(part.get("text")) or text(part.get("refusal")))]
