"""How the events of a responses stream become one whole answer, or none.

An answer is whole when the server said how the response ended: `response.completed`, or `response.incomplete` with the
reason for which it was cut. Of a stream that ended without either nothing is used.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from agent.models.assembly import LONGEST_ANSWER
from agent.models.json_values import elements, mapping, text, usage
from agent.models.model import Answer, Delta, ModelError
from agent.models.reported import broke_off
from agent.models.response_events import (
    WholeItem,
    check_event,
    place_of,
    read_item,
    streamed_part,
)
from agent.models.streamed_items import Item, StreamedItems
from agent.models.surrogates import mend_surrogates
from agent.models.weight import weight
from agent.vocabulary.messages import AssistantMessage, ReasoningItem, RequestedCall, StopReason, Usage

__all__ = ["ResponseAssembly"]

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
        """Take the next event; return what it adds for those who look on, or None.

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
        _check_size(self._streamed)
        self._items.extend(type, place_of(event), delta)
        if type == "function_call" or not delta:
            return None
        shown = mend_surrogates(delta)
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
        _check_size(self._whole)

    def _requested(self, item: Item) -> RequestedCall:
        """Return a call as the model wrote it. Nobody can tell no arguments from arguments that never came."""
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


def _check_size(size: int) -> None:
    if size > LONGEST_ANSWER:
        raise ModelError(f"the model's answer is longer than {LONGEST_ANSWER:,} bytes; ask for less at once")
