"""Assembles the events of a responses stream into one whole answer, or none, whatever their shape."""

import json
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Any, Literal

from attrs import evolve, frozen

from agent.models.calls import argument_text, elements, index_number, mapping, mend_surrogates, text, usage
from agent.models.chat_stream import check_size
from agent.models.failures import broke_off
from agent.models.model import Answer, CallDelta, Delta, ModelError, weight
from agent.vocabulary.messages import AssistantMessage, ReasoningItem, RequestedCall, StopReason, Usage

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
    """The place of an item: its position in the output, and its id; None and "" where the event does not give them."""

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


MOST_ITEMS = 2_000
"""Items that an answer may have; more are an error."""


class Item:
    """An item of an answer while it streams."""

    def __init__(self, type: ItemType, place: Place) -> None:
        self.type = type
        self.index = place.index
        self.said = WholeItem(type, place.id)
        self.is_announced = False
        self.is_whole = False
        self._streamed = StringIO()

    @property
    def text(self) -> str:
        """The text of the whole item, else the streamed text."""
        return self.said.text or self._streamed.getvalue()

    def extend(self, text: str) -> None:
        """Take the next delta."""
        self._streamed.write(text)

    def learn(self, place: Place, said: WholeItem) -> None:
        """Take what an announcement or the whole item says; what it leaves out stays."""
        self.index = place.index if self.index is None else self.index
        before = self.said
        self.said = evolve(
            said,
            id=said.id or before.id,
            call_id=said.call_id or before.call_id,
            name=said.name or before.name,
            text=said.text or before.text,
        )

    def may_be(self, place: Place) -> bool:
        """Tell whether the positions allow that `place` is this item's."""
        return self.index is None or place.index is None or self.index == place.index


class StreamedItems:
    """The items of an answer, in the order in which they began."""

    def __init__(self) -> None:
        self._items: list[Item] = []
        self._by_id: dict[tuple[ItemType, str], Item] = {}
        self._by_index: dict[tuple[ItemType, int], Item] = {}
        self._touched: dict[ItemType, Item] = {}

    def extend(self, type: ItemType, place: Place, text: str) -> Item:
        """Take a delta; return the item that it belongs to."""
        item = self._candidate(type, place)
        if item is None or item.is_whole:
            item = self._begin(type, place)
        item.extend(text)
        self._touched[type] = item
        return item

    def number_of(self, call: Item) -> int:
        """Return the number of a call among the calls, from 1."""
        return 1 + [item for item in self._items if item.type == call.type].index(call)

    def announce(self, place: Place, said: WholeItem) -> None:
        """Take an announcement."""
        place = evolve(place, id=place.id or said.id)
        item = self._candidate(said.type, place)
        if item is None or ((item.is_announced or item.is_whole) and not _is_named_alike(item, said)):
            item = self._begin(said.type, place)
        item.is_announced = True
        self._learn(item, place, said)

    def finish(self, place: Place, said: WholeItem) -> None:
        """Take a whole item."""
        place = evolve(place, id=said.id or place.id)
        item = self._candidate(said.type, place) or self._with_call_id(said)
        if item is None or _is_another(item, said):
            item = self._begin(said.type, place)
        item.is_whole = True
        self._learn(item, place, said)

    def merge(self, final: Sequence[WholeItem]) -> None:
        """Take the whole output, said once more at the end: it fills in what did not come before.

        The n-th of a type here is the n-th of that type there; positions and ids may differ.
        """
        streamed = {type: [item for item in self.in_order() if item.type == type] for type in {i.type for i in final}}
        for said in final:
            item = streamed[said.type].pop(0) if streamed[said.type] else self._begin(said.type, Place(None, said.id))
            if not item.is_whole:
                item.is_whole = True
                item.learn(Place(), said)

    def in_order(self) -> list[Item]:
        """Return the items by position when each has its own, else as they began."""
        indices = {item.index for item in self._items}
        if None in indices or len(indices) < len(self._items):
            return list(self._items)
        return sorted(self._items, key=lambda item: item.index or 0)

    def _candidate(self, type: ItemType, place: Place) -> Item | None:
        known = self._by_id.get((type, place.id)) if place.id else None
        if known is not None and known.may_be(place):
            return known
        if place.index is not None:
            return self._by_index.get((type, place.index))
        last = self._touched.get(type)
        if last is None or last.is_whole:
            return None
        return None if place.id and last.said.id and type != "reasoning" else last

    def _with_call_id(self, said: WholeItem) -> Item | None:
        """Find the call with the same call id that is not whole yet."""
        if not said.call_id:
            return None
        calls = (item for item in self._items if item.said.call_id == said.call_id and not item.is_whole)
        return next(calls, None)

    def _begin(self, type: ItemType, place: Place) -> Item:
        if len(self._items) == MOST_ITEMS:
            raise ModelError(f"the model's answer has more than {MOST_ITEMS:,} items; ask for less at once")
        item = Item(type, place)
        self._items.append(item)
        self._remember(item, place)
        return item

    def _learn(self, item: Item, place: Place, said: WholeItem) -> None:
        item.learn(place, said)
        self._remember(item, place)

    def _remember(self, item: Item, place: Place) -> None:
        self._touched[item.type] = item
        if place.id:
            self._by_id[item.type, place.id] = item
        if item.index is not None:
            self._by_index[item.type, item.index] = item


def _is_named_alike(item: Item, said: WholeItem) -> bool:
    """Tell whether an announcement is the same one again."""
    before = item.said
    has_name = bool(said.id or said.call_id)
    return has_name and (before.id, before.call_id, before.name) == (said.id, said.call_id, said.name)


def _is_another(item: Item, said: WholeItem) -> bool:
    """Tell whether a whole item is another than the one that stands in its place."""
    before = item.said
    if item.is_whole:
        return (before.call_id, before.name, item.text) != (said.call_id, said.name, said.text)
    return any(old and new and old != new for old, new in ((before.call_id, said.call_id), (before.name, said.name)))


ENDINGS = {
    "response.completed": "completed",
    "response.done": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}
"""The events that end a response, and the status that each stands for where the response itself has none."""


class ResponseAssembly:
    """An answer while it streams: feed it each raw event, then ask for the whole answer. `model` is who answers."""

    def __init__(self, model: str) -> None:
        self._model = model
        self._items = StreamedItems()
        self._status = ""
        self._cut_by = ""
        self._usage = Usage()
        self._events = 0
        self._streamed, self._whole = 0, 0  # bytes at most, of deltas and of what is given whole

    def feed(self, raw: object) -> Delta | None:
        """Take the next event; return what it adds for listeners, or None.

        Raises `ModelError` for an event that is no object, for an error, for a response that failed, and for an answer
        that is longer than `LONGEST_ANSWER`.
        """
        event = check_event(raw)
        self._events += 1
        if (part := streamed_part(event)) is not None:
            return self._extend(event, *part)
        kind = event.get("type")
        if kind == "response.output_item.added":
            self._take(event, self._items.announce)
        elif kind == "response.output_item.done":
            self._take(event, self._items.finish)
        elif kind in ENDINGS:
            self._end(mapping(event.get("response")) or {}, ENDINGS[kind])
        elif kind is None and "output" in event:  # a server that does not stream
            self._end(event, "completed")
        return None

    @property
    def is_finished(self) -> bool:
        """True when the server said how the response ended."""
        return bool(self._status)

    @property
    def is_over(self) -> bool:
        """True when nothing more can come: the last event holds the usage, too."""
        return self.is_finished

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

    def _extend(self, event: Mapping[str, Any], type: Any, delta: str) -> Delta | None:
        self._streamed += weight(delta)
        check_size(self._streamed)
        item = self._items.extend(type, place_of(event), delta)
        if not delta:
            return None
        shown = mend_surrogates(delta)
        if type == "function_call":
            return Delta(calls=(CallDelta(self._items.number_of(item), item.said.name, shown),))
        return Delta(text=shown) if type == "message" else Delta(reasoning=shown)

    def _take(self, event: Mapping[str, Any], take: Any) -> None:
        item = read_item(event.get("item"))
        if item is not None:
            self._weigh(item)
            take(place_of(event), item)

    def _end(self, response: Mapping[str, Any], status: str) -> None:
        """Take the last event. Raises `ModelError` when it says that the response failed."""
        status = text(response.get("status")) or status
        if status in ("failed", "cancelled"):
            raise broke_off(response.get("error") or f"the response was {status}")
        self._status = status
        self._cut_by = text((mapping(response.get("incomplete_details")) or {}).get("reason"))
        self._usage = usage(response.get("usage")) or self._usage
        final = [item for raw in elements(response.get("output")) if (item := read_item(raw)) is not None]
        self._items.merge(final)

    def _weigh(self, item: WholeItem) -> None:
        self._whole += weight(item.text) + weight(item.name) + weight(item.call_id)
        if item.raw is not None:
            self._whole += len(json.dumps(dict(item.raw)))
        check_size(self._whole)

    def _requested(self, item: Item) -> RequestedCall:
        """Return a call as the model wrote it. No arguments cannot be told from arguments that never came."""
        said = item.said
        if not item.is_whole and not item.text.strip() and self._status == "completed":
            raise ModelError(
                f"the model's server never finished the call {said.name!r}; nothing of the answer was used",
                retryable=True,
            )
        return RequestedCall(*(mend_surrogates(part) for part in (said.call_id or said.id, said.name, item.text)))

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
            elif item.type == "message":
                yield from (ReasoningItem(content, self._model) for content in led)
                led = []
            elif item.type == "function_call":
                yield from (ReasoningItem(content, self._model, calls) for content in led)
                led, calls = [], calls + 1


def _sendable(said: WholeItem) -> list[str]:
    """Return a reasoning item as it goes back: without a content, encrypted or not, it would be only an id."""
    raw = said.raw or {}
    if not raw.get("encrypted_content") and not raw.get("content"):
        return []
    kept = {"summary": [], **{name: value for name, value in raw.items() if name != "status" and value is not None}}
    return [json.dumps(kept)]


def _joined(items: Iterator[Item]) -> str:
    return mend_surrogates("\n\n".join(text for item in items if (text := item.text)))
