"""The format of the responses API: the body of a request, and one complete answer, or none, from the events of one.

The items that are given whole make the answer; a call that was begun and never finished is cut off, or an error.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from io import StringIO
from typing import Any

from attrs import asdict, evolve, field, frozen

from agent.models.calls import WholeCharacters, mend_surrogates, without_repeats
from agent.models.chat import (
    ACCEPT_DONE,
    argument_text,
    check_size,
    content_parts,
    data_url,
    finish_of,
    in_order,
    index_number,
    objects,
    sendable_call,
    text,
    usage,
)
from agent.models.failures import broke_off, mapping, reported_error
from agent.models.model import Answer, Delta, ModelError, ModelRequest, weight
from agent.vocabulary.messages import (
    CUT_OFF,
    AssistantMessage,
    Image,
    Message,
    ReasoningItem,
    RequestedCall,
    StopReason,
    ToolMessage,
    Usage,
    UserMessage,
)

# Requests

WITHOUT_REASONING = ("gpt-3", "gpt-4", "chatgpt-")
"""Prefixes of models whose provider answers 400 to a request for encrypted reasoning."""


def responses_body(model: str, request: ModelRequest, source: str = "") -> dict[str, Any]:
    """Return the body of a request to the model with this name, without settings.

    source: the model and its server, to which the records of reasoning that it sent are returned.
    """
    name = model.rpartition("/")[2]
    has_reasoning = not (name.startswith(WITHOUT_REASONING) or "-chat" in name)
    # Unless `strict` is false, optional parameters are an error.
    tools = [{"type": "function", **asdict(tool, recurse=False), "strict": False} for tool in request.tools]
    return {
        "model": model,
        **({"instructions": mend_surrogates(request.system_prompt)} if request.system_prompt else {}),
        "input": render_input(source, request),
        **({"tools": tools} if tools else {}),
        **({"include": ["reasoning.encrypted_content"]} if has_reasoning else {}),
        "store": False,
        "stream": True,
    }


def render_input(source: str, request: ModelRequest) -> list[dict[str, Any]]:
    """Return the `input` of a request: the conversation as items; `source`: the model and its server."""
    known = frozenset(tool.name for tool in request.tools)
    return [item for message in request.messages for item in _items_of(message, source, known)]


def _items_of(message: Message, source: str, known: frozenset[str]) -> Iterator[dict[str, Any]]:
    match message:
        case UserMessage():
            yield {"role": "user", "content": _content(message)}
        case ToolMessage():
            yield {"type": "function_call_output", "call_id": message.call_id, "output": _content(message)}
        case AssistantMessage():  # with reasoning right before the item that it led to, as the provider requires
            led = defaultdict[int | None, list[dict[str, Any]]](list)
            for item in message.reasoning_items:
                if item.model == source:
                    led[item.before_call].append(json.loads(item.content))
            if message.text.strip() or not message.calls:
                yield from _led_by(led[None], {"role": "assistant", "content": mend_surrogates(message.text)})
            for number, call in enumerate(message.calls):
                sent = {"type": "function_call", "call_id": call.id, **sendable_call(call, known)}
                yield from _led_by(led[number], sent)


def _led_by(kept: list[dict[str, Any]], item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the reasoning that led to an item, and the item with the fields that its server sent beside the format."""
    yield from (each for each in kept if "type" in each)
    beside = {name: value for each in kept if "type" not in each for name, value in each.items()}
    yield beside | item


def _content(message: UserMessage | ToolMessage) -> str | list[dict[str, Any]]:
    return content_parts(message.text, message.images, "input_text", _image_part)


def _image_part(image: Image) -> dict[str, Any]:
    return {"type": "input_image", "image_url": data_url(image), "detail": "auto"}


# Answers

DELTAS = {
    "response.output_text.delta": "message",
    "response.refusal.delta": "message",
    "response.function_call_arguments.delta": "function_call",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning.delta": "reasoning",
    "response.reasoning_summary.delta": "reasoning",
}
"""The type of item of each type of delta."""

ENDINGS = {
    "response.completed": "completed",
    "response.done": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
}
"""The events that end a response, with their status if the response itself has none."""

MOST_ITEMS = 1_000
"""The highest number of items in an answer; more are an error."""


@frozen
class Item:
    """An item of an answer as an event says it, with its place and id as far as that tells them.

    type: message, reasoning, function_call, or another. text: that of a message or of reasoning, or the arguments of a
    call. number: that of a call which was begun, among them, from 1. streamed: the arguments that came for it.
    ended: the arguments that the event of their end gave.
    """

    type: str
    text: str = ""
    index: int | None = None
    id: str = ""
    call_id: str = ""
    name: str = ""
    said: Mapping[str, Any] = field(factory=dict)
    number: int = 0
    streamed: StringIO = field(factory=StringIO, eq=False)
    ended: list[str] = field(factory=list, eq=False)

    @classmethod
    def of(cls, said: Mapping[str, Any], event: Mapping[str, Any]) -> "Item":
        """Return the item that `said` describes, in the place that `event` tells."""
        kind, content = text(said.get("type")), _parts(said.get("content"))
        if kind == "function_call":
            told = argument_text(said.get("arguments"))
        else:
            told = "".join(content) if kind == "message" else "\n\n".join(content or _parts(said.get("summary")))
        id = text(said.get("id")) or text(event.get("item_id"))
        call_id, name = text(said.get("call_id")), text(said.get("name"))
        return cls(kind, told, index_number(event.get("output_index")), id, call_id, name, said)

    def fits(self, other: "Item") -> bool:
        """Return whether both may be the same item; servers change ids within an item."""
        if self.call_id and other.call_id:
            return self.call_id == other.call_id
        if self.index is not None and other.index is not None:
            return self.index == other.index
        return "" in (self.id, other.id) or self.id == other.id

    def filled(self, *others: str) -> "Item":
        """Return a call with the first of these arguments if it has none itself: some servers only stream them."""
        told = (text for text in (self.text, *others) if text.strip() not in NO_ARGUMENTS)
        return evolve(self, text=next(told, self.text))


NO_ARGUMENTS = ("", "{}", "null")


def _parts(content: object) -> list[str]:
    """Return the texts of a content: a text, or parts that have a text or a refusal each."""
    parts = (text(part.get("text")) or text(part.get("refusal")) for part in objects(content))
    return [said for said in (text(content), *parts) if said]


class ResponseAssembly:
    """Assembles a streamed answer: feed it each raw event, then call `answer`. `source`: the model and its server."""

    def __init__(self, source: str = "") -> None:
        self._source = source
        self._given: list[Item] = []  # whole items as their events said them
        self._whole: list[Item] = []  # the same, with the arguments that only streamed
        self._open: list[Item] = []  # calls that were begun and not given whole yet
        self._begun = 0
        self._rest: defaultdict[str, StringIO] = defaultdict(StringIO)  # what streamed since the last whole item
        self._shown = WholeCharacters()
        self._status = ""
        self._cut_by = ""
        self._usage = Usage()
        self._events = 0
        self._size = {"streamed": 0, "ended": 0, "whole": 0}  # upper bounds in bytes

    def feed(self, raw: object) -> tuple[Delta, ...]:
        """Read the next event; return its deltas for listeners.

        Raises `ModelError` for an event that is not an object (retryable), for an error or a failed response (retryable
        unless its code is permanent), and for an answer longer than `LONGEST_ANSWER`.
        """
        if not isinstance(raw, dict):
            raise ModelError(f"the model's stream is broken: an event is {raw!r:.80}, not an object", retryable=True)
        event: dict[str, Any] = raw
        self._events += 1
        kind = event.get("type")
        if kind in (None, "error") and "output" not in event and (error := reported_error(event)):
            raise broke_off(error)
        if kind in DELTAS:
            return self._extend(Item.of({"type": DELTAS[text(kind)]}, event), event.get("delta"))
        if kind == "response.function_call_arguments.done":
            self._end_arguments(Item.of(event | {"type": "function_call"}, event))
        elif kind in ENDINGS:
            self._end(mapping(event.get("response")), ENDINGS[text(kind)])
        elif kind is None and "output" in event:  # a server that does not stream
            self._end(event, "completed")
        elif said := mapping(event.get("item")):
            self._take(text(kind), Item.of(said, event))
        return ()

    @property
    def is_finished(self) -> bool:
        """True if the server sent the end of the response."""
        return bool(self._status)

    def answer(self) -> Answer:
        """Return the whole answer.

        Raises `ModelError`, retryable, when the stream ended without saying how, or left a call unfinished.
        """
        if not self._status:
            raise ModelError(
                f"the model's stream broke off after {self._events} events, without response.completed; "
                f"nothing of it was used{ACCEPT_DONE}",
                retryable=True,
            )
        if self._open and self._status == "completed":
            raise ModelError(
                f"the model's server never finished the call {self._open[0].name!r}; nothing of the answer was used",
                retryable=True,
            )
        items = [*in_order(self._whole), *self._cut_off()]
        calls = tuple(
            RequestedCall(*map(mend_surrogates, (item.call_id or item.id, item.name, without_repeats(item.text))))
            for item in items
            if item.type == "function_call"
        )
        message = AssistantMessage(
            text=_joined(item for item in items if item.type == "message"),
            calls=calls,
            reasoning=_joined(item for item in items if item.type == "reasoning"),
            reasoning_items=tuple(self._to_send_back(items)),
        )
        stop_reason: StopReason = "tool_calls" if calls else "stop"
        if self._status == "completed" and any(item.said.get("status") == "incomplete" for item in items):
            stop_reason = "incomplete"
        elif self._status != "completed":
            finish = finish_of(self._cut_by or "length")
            stop_reason = finish if finish in CUT_OFF else "incomplete"
        return Answer(message, stop_reason, self._usage)

    def _extend(self, place: Item, added: object) -> tuple[Delta, ...]:
        delta = argument_text(added) if place.type == "function_call" else text(added)
        self._weigh("streamed", delta)
        if place.type == "function_call":
            call = self._find(place) or self._begin(place)
            call.streamed.write(delta)
            shown = self._shown.of(delta, call.number)
            return (Delta(shown, "arguments", call.number, call.name),) if shown else ()
        self._rest[place.type].write(delta)
        shown = self._shown.of(delta, place.type)
        return (Delta(shown, "text" if place.type == "message" else "reasoning"),) if shown else ()

    def _take(self, kind: str, item: Item) -> None:
        """Take an item that is announced or given whole; either may come more than once."""
        self._weigh("whole", json.dumps(dict(item.said)))
        begun = self._find(item) if item.type == "function_call" else None
        if kind == "response.output_item.added" and item.type == "function_call" and begun is None:
            self._begin(item)
        elif kind == "response.output_item.done" and item not in self._given:
            self._given.append(item)
            self._open = [call for call in self._open if call is not begun]
            self._whole.append(
                item if begun is None else item.filled(*begun.ended, begun.streamed.getvalue(), begun.text)
            )
            if item.text:
                self._rest.pop(item.type, None)

    def _end_arguments(self, place: Item) -> None:
        """Keep the arguments that are given whole at the end of their stream, for an item that will have none."""
        self._weigh("ended", place.text)
        if isinstance(place.said.get("arguments"), str | dict) and place.text:
            (self._find(place) or self._begin(place)).ended.append(place.text)

    def _find(self, place: Item) -> Item | None:
        """Return the call, not whole yet, that an event speaks of: of those that may be it, the one with its id."""
        calls = [call for call in reversed(self._open) if call.fits(place)]
        return max(calls, key=lambda call: call.id == place.id, default=None)

    def _begin(self, place: Item) -> Item:
        self._begun += 1
        call = evolve(place, number=self._begun, streamed=StringIO())
        self._open.append(call)
        return call

    def _weigh(self, part: str, text: str) -> None:
        """Raise `ModelError` once the answer is too long, or has too many items."""
        self._size[part] += weight(text)
        check_size(self._size[part])
        if max(self._begun, len(self._whole)) > MOST_ITEMS:
            raise ModelError(f"the model's answer has more than {MOST_ITEMS:,} items; ask for less at once")

    def _end(self, response: Mapping[str, Any], status: str) -> None:
        """Read the last event. Raises `ModelError` if the response failed.

        The output, said once more, counts where less than that was given whole before.
        """
        status = text(response.get("status")) or status
        if status in ("failed", "cancelled"):
            raise broke_off(response.get("error") or f"the response was {status}")
        self._status = status
        self._cut_by = text(mapping(response.get("incomplete_details")).get("reason"))
        self._usage = usage(response.get("usage")) or self._usage
        output = [Item.of(said, {}) for said in objects(response.get("output"))]
        if len(output) > len(self._whole):
            self._whole = [item.filled(*self._told_of(item)) for item in output]
            self._open = [*self._left_over()]
            self._rest.clear()
        else:
            self._whole = [item.filled(*_arguments_in(output, item)) for item in self._whole]

    def _told_of(self, call: Item) -> Iterator[str]:
        """Yield the arguments that came for a call of the last event's output, whole or streamed."""
        yield from _arguments_in(self._whole, call)
        begun = self._find(call) if call.type == "function_call" else None
        if begun is not None:
            yield from (*begun.ended, begun.streamed.getvalue(), begun.text)

    def _left_over(self) -> Iterator[Item]:
        """Yield the calls whose arguments streamed and are nowhere in the output, which has a call without any."""
        calls = [item for item in self._whole if item.type == "function_call"]
        if any(call.text.strip() in NO_ARGUMENTS for call in calls):
            for begun in self._open:
                told = begun.ended or begun.streamed.getvalue().strip() not in NO_ARGUMENTS
                if told and not any(begun.fits(call) for call in calls):
                    yield begun

    def accept_end(self) -> None:
        """Take the end marker for the end of the response, if there was none."""
        self._status = self._status or "completed"

    def _cut_off(self) -> Iterator[Item]:
        """Yield what streamed and was not given whole."""
        for kind, streamed in self._rest.items():
            if rest := streamed.getvalue():
                yield Item(kind, rest)
        for call in self._open:
            yield evolve(call, text=call.streamed.getvalue())

    def _to_send_back(self, items: list[Item]) -> Iterator[ReasoningItem]:
        """Yield reasoning and other fields to return to the provider, each with the item that it led to or stood in."""
        led: list[str] = []
        calls = 0
        for item in items:
            if item.type == "reasoning":
                led += _sendable(item.said)
            elif item.type in ("message", "function_call"):
                is_call = item.type == "function_call"
                if beside := {name: value for name, value in item.said.items() if value and name not in OWN_FIELDS}:
                    led.append(mend_surrogates(json.dumps(beside, ensure_ascii=False)))
                yield from (ReasoningItem(content, self._source, calls if is_call else None) for content in led)
                led, calls = [], calls + is_call


OWN_FIELDS = frozenset(["type", "id", "role", "status", "content", "call_id", "name", "arguments", "text"])
"""Fields of messages and calls that are read here; all others are returned as they came."""


def _arguments_in(output: list[Item], call: Item) -> Iterator[str]:
    """Yield the arguments that the last event's output has for `call`, which it names by its id."""
    return (
        item.text for item in output if call.type == item.type == "function_call" and call.call_id == item.call_id != ""
    )


def _sendable(said: Mapping[str, Any]) -> list[str]:
    """Return a reasoning item to send back; nothing if it has no content, encrypted or not."""
    if not said.get("encrypted_content") and not said.get("content"):
        return []
    kept = {"summary": [], **{name: value for name, value in said.items() if name != "status" and value is not None}}
    return [json.dumps(kept)]


def _joined(items: Iterable[Item]) -> str:
    return mend_surrogates("\n\n".join(text for item in items if (text := item.text)))
