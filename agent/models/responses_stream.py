"""Assembles the events of a responses stream into one whole answer, or none, whatever their shape."""

import json
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

from attrs import define, field

from agent.models.calls import argument_text, elements, index_number, mapping, mend_surrogates, text, usage
from agent.models.chat_stream import check_size
from agent.models.failures import broke_off
from agent.models.model import Answer, Delta, ModelError, weight
from agent.vocabulary.messages import AssistantMessage, ReasoningItem, RequestedCall, StopReason, Usage

DELTAS = {
    "response.output_text.delta": "message",
    "response.refusal.delta": "message",
    "response.function_call_arguments.delta": "function_call",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning.delta": "reasoning",
    "response.reasoning_summary.delta": "reasoning",
}
"""To which type of item a delta belongs."""

ENDINGS = {
    "response.completed": "completed",
    "response.done": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}
"""The events that end a response, and the status that each stands for where the response itself has none."""

MOST_ITEMS = 1_000
"""Items that an answer may have; more are an error."""


@define(eq=False)
class Item:
    """An item of an answer: its place, as far as events tell it, what was announced or given whole, what streamed."""

    type: str
    index: int | None = None
    id: str = ""
    said: Mapping[str, Any] = field(factory=dict)
    is_whole: bool = False
    streamed: StringIO = field(factory=StringIO)

    @property
    def call_id(self) -> str:
        """The id of a call, under which it is answered."""
        return text(self.said.get("call_id"))

    @property
    def name(self) -> str:
        """The tool of a call."""
        return text(self.said.get("name"))

    @property
    def text(self) -> str:
        """The text of a message or of reasoning, or the arguments of a call, as given whole, else as they streamed."""
        return _whole_text(self.type, self.said) or self.streamed.getvalue()

    def learn(self, other: "Item") -> None:
        """Take what an announcement or the whole item says; what it leaves out stays."""
        self.index = other.index if self.index is None else self.index
        self.id = other.id or self.id
        self.said = {**self.said, **{name: value for name, value in other.said.items() if value not in (None, "")}}

    def fits(self, place: "Item") -> bool:
        """Return whether `place` can be this item's; servers change ids within an item."""
        known = ((self.call_id, place.call_id), (self.name, place.name))
        if self.type != place.type or any(old and new and old != new for old, new in known):
            return False
        if self.index is not None and place.index is not None:
            return self.index == place.index
        return self.call_id == place.call_id != "" or "" in (self.id, place.id) or self.id == place.id


def read_item(raw: object, place: Item | None = None) -> Item | None:
    """Return an announced or whole item, in its place where the event tells it; None for what is no object."""
    said = mapping(raw)
    if said is None:
        return None
    place = place or Item("")
    return Item(text(said.get("type")), place.index, text(said.get("id")) or place.id, said)


def _whole_text(kind: str, item: Mapping[str, Any]) -> str:
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


class StreamedItems:
    """The items of an answer, in the order in which they began."""

    def __init__(self) -> None:
        self._items: list[Item] = []

    def extend(self, place: Item, text: str) -> Item:
        """Take a delta; return the item that it belongs to."""
        item = self._open(place) or self._begin(place)
        item.streamed.write(text)
        return item

    def number_of(self, call: Item) -> int:
        """Return the number of a call among the calls, from 1."""
        return 1 + [item for item in self._items if item.type == call.type].index(call)

    def announce(self, said: Item) -> None:
        """Take an announcement, which may come more than once."""
        item = self._open(said)
        if item is None or (item.said and not _is_named_alike(item, said)):
            item = self._begin(said)
        item.learn(said)

    def finish(self, said: Item) -> None:
        """Take a whole item, which may come more than once."""
        if any(item.is_whole and item.fits(said) and item.text == said.text for item in self._items):
            return
        item = self._open(said) or self._begin(said)
        item.is_whole = True
        item.learn(said)

    def end_with(self, output: list[Item]) -> None:
        """Take the whole output, said once more at the end: it counts where less than that came before."""
        is_less = not all(item.is_whole for item in self._items)
        if len(output) > len(self._items) or (is_less and len(output) == len(self._items)):
            self._items = output

    def in_order(self) -> list[Item]:
        """Return the items by position when each has its own, else as they began."""
        indices = {item.index for item in self._items}
        if None in indices or len(indices) < len(self._items):
            return self._items
        return sorted(self._items, key=lambda item: item.index or 0)

    def _open(self, place: Item) -> Item | None:
        """Return the item, not whole yet, that an event speaks of: of those that may be it, the one with its id."""
        items = [item for item in reversed(self._items) if not item.is_whole and item.fits(place)]
        return max(items, key=lambda item: (item.call_id == place.call_id != "", item.id == place.id), default=None)

    def _begin(self, place: Item) -> Item:
        if len(self._items) == MOST_ITEMS:
            raise ModelError(f"the model's answer has more than {MOST_ITEMS:,} items; ask for less at once")
        self._items.append(Item(place.type, place.index, place.id))
        return self._items[-1]


def _is_named_alike(item: Item, said: Item) -> bool:
    """Return whether an announcement is the same one again."""
    return (item.id, item.call_id) == (said.id, said.call_id) != ("", "")


class ResponseAssembly:
    """An answer while it streams: feed it each raw event, then ask for the whole answer. `model` is who answers."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._items = StreamedItems()
        self._status = ""
        self._cut_by = ""
        self._usage = Usage()
        self._events = 0
        self._size = {"streamed": 0, "whole": 0}  # bytes at most, of deltas and of what is given whole

    def feed(self, raw: object) -> tuple[Delta, ...]:
        """Take the next event; return what it adds for listeners.

        Raises `ModelError` for an event that is no object (retryable), for an error or a response that failed
        (retryable unless its code says that it would come again), and for an answer longer than `LONGEST_ANSWER`.
        """
        event = mapping(raw)
        if event is None:
            raise ModelError(f"the model's stream is broken: an event is {raw!r:.80}, not an object", retryable=True)
        self._events += 1
        kind = event.get("type")
        place = Item(DELTAS.get(text(kind), ""), index_number(event.get("output_index")), text(event.get("item_id")))
        if kind == "error" or (event.get("error") and kind is None and "output" not in event):
            raise broke_off(event.get("error") or event)
        if place.type:
            return self._extend(place, event.get("delta"))
        if kind in ENDINGS:
            self._end(mapping(event.get("response")) or {}, ENDINGS[text(kind)])
        elif kind is None and "output" in event:  # a server that does not stream
            self._end(event, "completed")
        elif (item := read_item(event.get("item"), place)) is not None:
            self._take(text(kind), item)
        return ()

    @property
    def is_finished(self) -> bool:
        """True when the server said how the response ended."""
        return bool(self._status)

    def answer(self) -> Answer:
        """Return the whole answer.

        Raises `ModelError`, retryable, when the stream ended without saying how, or left a call without arguments.
        """
        if not self._status:
            raise ModelError(
                f"the model's stream broke off after {self._events} events, without response.completed; "
                "nothing of it was used",
                retryable=True,
            )
        items = self._items.in_order()
        calls = tuple(self._requested(item) for item in items if item.type == "function_call")
        message = AssistantMessage(
            text=_joined(item for item in items if item.type == "message"),
            calls=calls,
            reasoning=_joined(item for item in items if item.type == "reasoning"),
            reasoning_items=tuple(self._to_send_back(items)),
        )
        return Answer(message, self._stop_reason(calls), self._usage)

    def _extend(self, place: Item, added: object) -> tuple[Delta, ...]:
        delta = argument_text(added) if place.type == "function_call" else text(added)
        self._weigh("streamed", delta)
        item = self._items.extend(place, delta)
        shown = mend_surrogates(delta)
        if not shown:
            return ()
        if item.type == "function_call":
            return (Delta(shown, "arguments", self._items.number_of(item), item.name),)
        return (Delta(shown, "text" if item.type == "message" else "reasoning"),)

    def _take(self, kind: str, item: Item) -> None:
        if kind == "response.output_item.added":
            self._items.announce(item)
        elif kind == "response.output_item.done":
            self._items.finish(item)
        self._weigh("whole", json.dumps(dict(item.said)))

    def _weigh(self, part: str, text: str) -> None:
        self._size[part] += weight(text)
        check_size(self._size[part])

    def _end(self, response: Mapping[str, Any], status: str) -> None:
        """Take the last event. Raises `ModelError` when it says that the response failed."""
        status = text(response.get("status")) or status
        if status in ("failed", "cancelled"):
            raise broke_off(response.get("error") or f"the response was {status}")
        self._status = status
        self._cut_by = text((mapping(response.get("incomplete_details")) or {}).get("reason"))
        self._usage = usage(response.get("usage")) or self._usage
        output = [item for raw in elements(response.get("output")) if (item := read_item(raw)) is not None]
        for item in output:
            item.is_whole = True
        self._items.end_with(output)

    def _requested(self, item: Item) -> RequestedCall:
        """Return a call as the model wrote it. No arguments cannot be told from arguments that never came."""
        if not item.is_whole and not item.text.strip() and self._status == "completed":
            raise ModelError(
                f"the model's server never finished the call {item.name!r}; nothing of the answer was used",
                retryable=True,
            )
        return RequestedCall(*map(mend_surrogates, (item.call_id or item.id, item.name, item.text)))

    def _stop_reason(self, calls: tuple[RequestedCall, ...]) -> StopReason:
        if self._status != "completed":
            return "content_filter" if self._cut_by == "content_filter" else "length"
        return "tool_calls" if calls else "stop"

    def _to_send_back(self, items: list[Item]) -> Iterator[ReasoningItem]:
        """Yield the reasoning that its provider wants back, each with what it led to; what led to nothing stays."""
        led: list[str] = []
        calls = 0
        for item in items:
            if item.type == "reasoning":
                led += _sendable(item.said)
            elif item.type in ("message", "function_call"):
                is_call = item.type == "function_call"
                yield from (ReasoningItem(content, self._model, calls if is_call else None) for content in led)
                led, calls = [], calls + is_call


def _sendable(said: Mapping[str, Any]) -> list[str]:
    """Return a reasoning item as it goes back: without a content, encrypted or not, it would be only an id."""
    if not said.get("encrypted_content") and not said.get("content"):
        return []
    kept = {"summary": [], **{name: value for name, value in said.items() if name != "status" and value is not None}}
    return [json.dumps(kept)]


def _joined(items: Iterator[Item]) -> str:
    return mend_surrogates("\n\n".join(text for item in items if (text := item.text)))
