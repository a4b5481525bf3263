"""The format of chat completions: the body of a request, and one complete answer, or none, from the chunks of a stream.

Servers stream in many variants. A piece of a call belongs to the call with its index and id, else to the last one.
"""

import json
import re
from base64 import b64encode
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from io import StringIO
from itertools import groupby
from typing import Any, Literal

from attrs import frozen

from agent.models.calls import UNNAMED, WholeCharacters, is_json_object, mend_surrogates, without_repeats
from agent.models.failures import broke_off, mapping, reported_error
from agent.models.model import Answer, Delta, ModelError, ModelRequest, weight
from agent.tools.schemas import render_tools
from agent.vocabulary.messages import (
    AssistantMessage,
    Image,
    Message,
    ReasoningItem,
    RequestedCall,
    StopReason,
    ToolMessage,
    Usage,
    UserMessage,
    with_notices,
)

# Requests

LONGEST_NAME = 64
"""Characters of a tool's name that providers accept."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def chat_body(model: str, request: ModelRequest, reasoning_field: str = "", source: str = "") -> dict[str, Any]:
    """Return the body of a request to the model with this name, without settings.

    reasoning_field: the message field that returns the reasoning of any model as text; empty: none. source: the model
    and its server, to which the fields that it sent are returned.
    """
    tools = {"tools": render_tools(request.tools)} if request.tools else {}
    messages = render_messages(request, reasoning_field, source)
    return {"model": model, "messages": messages, **tools, "stream": True, "stream_options": {"include_usage": True}}


def render_messages(request: ModelRequest, reasoning_field: str = "", source: str = "") -> list[dict[str, Any]]:
    """Return the `messages` of a request: the system prompt first, unless it is empty, then the conversation.

    Calls are sent with their ids in `request`, where the loop puts its own (`with_ids`). A tool message has text only:
    images of tools come after the last result of a batch, where any message is valid.
    """
    known = frozenset(tool.name for tool in request.tools)
    system = {"role": "system", "content": mend_surrogates(request.system_prompt)}
    sent: list[dict[str, Any]] = [system] if request.system_prompt else []
    for _, batch in groupby(request.messages, key=lambda message: isinstance(message, ToolMessage)):
        shown: list[dict[str, Any]] = []
        for message in batch:
            sent.append(_rendered(message, known, source, reasoning_field))
            if isinstance(message, ToolMessage) and message.images:
                told = {"type": "text", "text": f"Shown by the call {message.call_id}:"}
                shown += [told, *map(_image_part, message.images)]
        if shown:
            sent.append({"role": "user", "content": shown})
    return sent


def _rendered(message: Message, known: frozenset[str], source: str, reasoning_field: str) -> dict[str, Any]:
    text = mend_surrogates(message.text)
    match message:
        case UserMessage():
            return {"role": "user", "content": content_parts(message.text, message.images, "text", _image_part)}
        case ToolMessage():
            told = with_notices(text, message.images, "shown in the next message")
            return {"role": "tool", "tool_call_id": message.call_id, "content": told}
    calls = [{"id": call.id, "type": "function", "function": sendable_call(call, known)} for call in message.calls]
    content = text if text.strip() or not calls else None
    sent = {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
    if reasoning_field and message.reasoning:
        sent[reasoning_field] = mend_surrogates(message.reasoning)
    for item in message.reasoning_items:
        if item.model == source:
            _return(json.loads(item.content), sent if item.before_call is None else calls[item.before_call])
    return sent


def _return(fields: Mapping[str, Any], to: dict[str, Any]) -> None:
    """Put the fields that a server sent beside those of the format back to where they were."""
    for name, value in fields.items():
        if name == "function" and isinstance(to.get(name), dict):
            to[name] = {**value, **to[name]}
        else:
            to.setdefault(name, value)


def _image_part(image: Image) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_url(image)}}


def content_parts(
    text: str, images: Iterable[Image], kind: str, image_part: Callable[[Image], dict[str, Any]]
) -> str | list[dict[str, Any]]:
    """Return a text alone, or a list of parts with the images; kind: the type of a part that is text."""
    text = mend_surrogates(text)
    if not images:
        return text
    return [*([{"type": kind, "text": text}] if text else []), *map(image_part, images)]


def data_url(image: Image) -> str:
    """Return an image as a data URL."""
    return f"data:{image.media_type};base64,{b64encode(image.content).decode()}"


def sendable_call(call: RequestedCall, known: frozenset[str]) -> dict[str, str]:
    """Return name and arguments as the model wrote them, or what a provider accepts instead: one invalid name in the
    conversation would fail every later request.
    """
    name = call.name if call.name in known else _NOT_IN_NAMES.sub("_", call.name.strip())[:LONGEST_NAME] or UNNAMED
    return {"name": name, "arguments": call.arguments if is_json_object(call.arguments) else "{}"}


# JSON of servers, whose fields may have any type


def objects(value: object) -> list[dict[str, Any]]:
    """Return the objects in a list, without empty ones; a single one as a list of one."""
    return [each for each in (value if isinstance(value, list) else [value]) if each and isinstance(each, dict)]


def text(value: object) -> str:
    """Return a text, or ""."""
    return value if isinstance(value, str) else ""


def argument_text(value: object) -> str:
    """Return the text of arguments; some servers send the object itself."""
    return text(value) if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def index_number(value: object) -> int | None:
    """Return a position, also if given as text; None for anything else."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        return int(value)
    return value if type(value) is int else None


def usage(value: object) -> Usage | None:
    """Return the token counts, by the names of either format; None without any."""
    counts = mapping(value)
    if not counts:
        return None

    def count(*names: str) -> int:
        found = next((counts[name] for name in names if name in counts), 0)
        is_number = type(found) in (int, float) and 0 <= found < float("inf")
        return int(found) if is_number else 0

    return Usage(count("prompt_tokens", "input_tokens"), count("completion_tokens", "output_tokens"))


# Answers


OWN_FIELDS = {
    "message": {"role", "content", "refusal", "tool_calls", "function_call", "name", "audio", "annotations"},
    "call": {"index", "id", "type", "function", "name", "arguments"},
    "function": {"name", "arguments", "parameters"},
}
"""Fields that are read here, or that no server takes back; all others are returned as they came."""


def _beside(fields: Mapping[str, Any], of: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in OWN_FIELDS[of] and value not in (None, "", [])}


class OtherFields:
    """Fields of a message that are not of the format, while they stream: texts and lists go on, others are replaced."""

    def __init__(self) -> None:
        self._texts: defaultdict[str, StringIO] = defaultdict(StringIO)
        self._entries: defaultdict[str, list[Any]] = defaultdict(list)
        self._values: dict[str, Any] = {}

    def add(self, fields: Mapping[str, Any]) -> None:
        """Add the fields of one chunk."""
        for name, value in fields.items():
            if isinstance(value, str):
                self._texts[name].write(value)
            elif isinstance(value, list):
                self._entries[name] += value
            else:
                self._values[name] = value

    def joined(self) -> dict[str, Any]:
        """Return the fields as they would be without streaming."""
        texts = {name: text.getvalue() for name, text in self._texts.items()}
        return self._values | {name: _joined(entries) for name, entries in self._entries.items()} | texts


STREAMED_PARTS = ("text", "summary", "data", "thinking", "content")
"""Texts within an entry of a list that go on in later entries with the same `index`."""


def _joined(entries: list[Any]) -> list[Any]:
    """Return entries of a list; those with the same `index` are pieces of one."""
    pieces: dict[object, list[Any]] = {}
    for number, entry in enumerate(entries):
        index = entry.get("index") if isinstance(entry, dict) else None
        pieces.setdefault((number,) if index is None else index, []).append(entry)
    return [_whole_entry(same) if len(same) > 1 else same[0] for same in pieces.values()]


def _whole_entry(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    whole = {name: value for piece in pieces for name, value in piece.items() if value is not None}
    streamed = {part: [text(piece.get(part)) for piece in pieces] for part in STREAMED_PARTS if part in whole}
    return whole | {part: "".join(texts) for part, texts in streamed.items() if isinstance(whole[part], str)}


@frozen
class CallPiece:
    """A piece of a tool call; None and "" where the chunk has no such field. `arguments`: the next piece of text.

    beside: fields that are not of this format.
    """

    index: int | None
    id: str
    name: str
    arguments: str
    beside: Mapping[str, Any]


def _pieces(value: object) -> Iterator[CallPiece]:
    for call in objects(value):
        function = mapping(call.get("function"))
        beside = _beside(call, "call")
        if inner := _beside(function, "function"):
            beside["function"] = inner
        function = function or call
        name, arguments = text(function.get("name")), argument_text(function.get("arguments"))
        yield CallPiece(index_number(call.get("index")), text(call.get("id")), name, arguments, beside)


MOST_CALLS = 1_000
"""The highest number of calls in an answer; more are an error."""

MOST_TRIES = 100
"""Attempts to parse the arguments of one call while they come, to see whether they are whole."""


class _Call:
    """A call while it streams."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.index: int | None = None
        self.id = self.name = ""
        self.beside: dict[str, Any] = {}
        self._arguments = StringIO()
        self._last = ""  # character that is no white space; empty before the first one
        self._tries = 0

    @property
    def arguments(self) -> str:
        return self._arguments.getvalue()

    def take(self, piece: CallPiece) -> None:
        """Continue with `piece`: ids and names may be repeated or late, arguments are appended."""
        self.index = piece.index if self.index is None else self.index
        self.id = self.id or piece.id
        if piece.name and piece.name != self.name:
            grown = piece.name.startswith(self.name)
            self.name = piece.name if grown else self.name + piece.name
        self.beside |= piece.beside
        self._arguments.write(piece.arguments)
        if written := piece.arguments.rstrip():
            self._last = written[-1]

    def is_whole(self) -> bool:
        """Return whether the arguments are one JSON object."""
        if self._last != "}" or self._tries == MOST_TRIES:
            return False
        is_object = is_json_object(self.arguments)
        self._tries += not is_object
        return is_object

    def is_repeated_by(self, piece: CallPiece) -> bool:
        """Return whether `piece` repeats the whole call, as some servers do at the end."""
        if not piece.id or (piece.id, piece.name) != (self.id, self.name):
            return False
        is_as_long = len(piece.arguments) == self._arguments.tell()
        return is_as_long and piece.arguments == self.arguments and self.is_whole()

    def may_take(self, piece: CallPiece) -> bool:
        """Return whether index and id allow that `piece` belongs to this call."""
        is_placed = self.index == piece.index or None in (self.index, piece.index)
        is_same = self.id == piece.id or "" in (self.id, piece.id)
        return is_placed and (is_same or not piece.name)  # some servers make an id for each piece

    def ends_before(self, piece: CallPiece, *, beside: bool) -> bool:
        """Return whether `piece` begins another call. beside: a piece of the same chunk belongs to this one already."""
        if not piece.name or not self.name:
            return False
        if beside and piece.index is None:  # two entries of one list are two calls
            return True
        if piece.name != self.name:  # unless names are streamed in pieces
            is_same = piece.id == self.id if piece.id else piece.index is not None and bool(self.id)
            if self._last or not is_same:
                return True
        is_placed = piece.id == self.id if piece.id else piece.index is not None
        if is_placed and self._arguments.tell() < 9 and self.arguments.strip() == "{}":  # before the real arguments
            return False
        says_more = bool(piece.arguments.strip()) or (piece.index is None and bool(piece.id) and not self.id)
        return says_more and self.is_whole() and not self.is_repeated_by(piece)


class StreamedCalls:
    """The calls of an answer, in the order in which they have `begun`."""

    def __init__(self) -> None:
        self.begun: list[_Call] = []
        self._latest: dict[int | str | None, _Call] = {}  # by index, and by id
        self._last: _Call | None = None
        self._shown = WholeCharacters()

    def add(self, pieces: Iterable[CallPiece]) -> tuple[Delta, ...]:
        """Add each piece of one chunk to its call; return the new parts."""
        here: list[_Call] = []
        added: list[Delta] = []
        for piece in pieces:
            call, arguments = self._candidate(piece), piece.arguments
            if call is None or call.ends_before(piece, beside=call in here):
                call = self._begin(piece)
            elif arguments and call.is_repeated_by(piece):
                arguments = ""
            else:
                call.take(piece)
            self._latest.update({key: call for key in (call.index, call.id) if key not in (None, "")})
            self._last = call
            here.append(call)
            added.append(Delta(self._shown.of(arguments, call.number), "arguments", call.number, call.name))
        return tuple(added)

    @property
    def in_order(self) -> list[_Call]:
        """The calls by index if each has its own, else in order of their start."""
        return in_order(self.begun)

    def requested(self) -> tuple[RequestedCall, ...]:
        """Return the calls as the model wrote them."""
        texts = ((call.id, call.name, without_repeats(call.arguments)) for call in self.in_order)
        return tuple(RequestedCall(*map(mend_surrogates, each)) for each in texts)

    def _candidate(self, piece: CallPiece) -> _Call | None:
        """Return the call that a piece continues: by index and id, else by one of them, else the last one."""

        def shares(call: _Call) -> tuple[bool, bool]:
            return call.index == piece.index is not None, call.id == piece.id != ""

        found = (self._latest.get(piece.index), self._latest.get(piece.id), self._last)
        return max((call for call in found if call is not None and call.may_take(piece)), key=shares, default=None)

    def _begin(self, piece: CallPiece) -> _Call:
        if len(self.begun) == MOST_CALLS:
            raise ModelError(f"the model's answer has more than {MOST_CALLS:,} calls; ask for less at once")
        call = _Call(len(self.begun) + 1)
        call.take(piece)
        self.begun.append(call)
        return call


def in_order(items: list[Any]) -> list[Any]:
    """Return items by their `index` when each has its own, else as they came."""
    indices = [item.index for item in items]
    is_ordered = None not in indices and len({*indices}) == len(items)
    return sorted(items, key=lambda item: item.index or 0) if is_ordered else items


LONGEST_ANSWER = 4_000_000
"""The limit of an answer's text, reasoning and arguments together, in bytes; a longer one is an error."""


def check_size(size: int) -> None:
    """Raise ModelError for an answer that is longer than `LONGEST_ANSWER`."""
    if size > LONGEST_ANSWER:
        text = f"the model's answer is longer than {LONGEST_ANSWER:,} bytes; ask for less at once"
        raise ModelError(text, reason="answer_too_long")


FINISH_REASONS: dict[str, StopReason] = {
    **dict.fromkeys(
        ("stop", "stopped", "stop_sequence", "stop_str", "stop_token", "eos", "eos_token", "end", "end_turn",
         "end_of_turn", "end_of_text", "finish", "finished", "complete", "completed", "done", "normal", "success",
         "tool_calls", "tool_call", "tool_use", "tools", "function_call", "function_calls", "function"), "stop",
    ),
    **dict.fromkeys(
        ("length", "max_length", "length_limit", "model_length", "token_limit", "output_limit", "limit", "truncated",
         "max_token", "max_tokens", "max_output_tokens", "max_new_tokens", "max_completion_tokens",
         "model_context_window_exceeded", "context_length_exceeded"), "length",
    ),
    **dict.fromkeys(
        ("content_filter", "content_filtered", "filtered", "safety", "image_safety", "recitation", "blocklist", "spii",
         "prohibited_content", "moderation", "sensitive", "refusal", "guardrail_intervened", "language"),
        "content_filter",
    ),
}  # fmt: skip
"""Finish reasons of an answer that is whole, or was cut off; in other APIs' words, too. All others: cut off."""


Finish = StopReason | Literal["error", ""]


def finish_of(reason: str) -> Finish:
    """Return what a finish reason means, in capitals or not; "error" for a failure of the server, "" for no reason."""
    said = re.sub(r"[^a-z]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", reason).lower()).strip("_")
    said = said.removeprefix("finish_reason_")
    if said in ("", "null", "none", "unspecified", "in_progress"):
        return ""
    if "error" in said or "malformed" in said:
        return "error"
    return FINISH_REASONS.get(said, "incomplete")


class Assembly:
    """Assembles a streamed answer: feed it each raw chunk, then call `answer`. `source`: the model and its server."""

    def __init__(self, source: str = "") -> None:
        self._source = source
        self._text = StringIO()
        self._reasoning = StringIO()
        self._shown = WholeCharacters()
        self._calls, self._legacy = StreamedCalls(), StreamedCalls()
        self._finish: Finish = ""
        self._others = OtherFields()
        self._usage = Usage()
        self._chunks = 0
        self._size = 0

    def feed(self, raw: object) -> tuple[Delta, ...]:
        """Read the next chunk; return its deltas for listeners.

        Raises `ModelError`, retryable, for a chunk that is not an object or reports an error; not retryable, for an
        answer that is longer than `LONGEST_ANSWER` or has more than `MOST_CALLS` calls.
        """
        if not isinstance(raw, dict):
            raise ModelError(f"the model's stream is broken: a chunk is {raw!r:.80}, not an object", retryable=True)
        # Other choices than the first were not requested.
        choice = next((choice for choice in objects(raw.get("choices")) if not choice.get("index")), {})
        if error := reported_error(raw, "choices") or choice.get("error"):
            raise broke_off(error)
        self._chunks += 1
        if self._finish in ("", "stop", "incomplete"):  # others win over a later one
            self._finish = finish_of(text(choice.get("finish_reason"))) or self._finish
        self._usage = usage(raw.get("usage")) or self._usage
        said = mapping(choice.get("delta"))
        if not said and not self._size:  # without streaming; else it repeats the streamed parts
            said = mapping(choice.get("message"))
        return self._add(said)

    def _add(self, said: Mapping[str, Any]) -> tuple[Delta, ...]:
        parts = (text(part.get("text")) for part in objects(said.get("content")))
        content = text(said.get("content")) + "".join(parts) + text(said.get("refusal"))
        reasoning = text(said.get("reasoning_content")) or text(said.get("reasoning"))
        pieces = [*_pieces(said.get("tool_calls"))]
        legacy = [*_pieces(said.get("function_call"))]  # one call, without index and id
        written = (part for piece in (*pieces, *legacy) for part in (piece.arguments, piece.name, piece.id))
        others = _beside(said, "message")
        beside = [value for value in others.values() if value is not reasoning]
        beside += [piece.beside for piece in pieces if piece.beside]
        self._size += sum(map(weight, (content, reasoning, *written, *map(json.dumps, beside))))
        check_size(self._size)
        self._others.add(others)
        self._text.write(content)
        self._reasoning.write(reasoning)
        shown, shown_if_alone = self._calls.add(pieces), self._legacy.add(legacy)
        told = (Delta(self._shown.of(reasoning, "reasoning"), "reasoning"), Delta(self._shown.of(content)))
        return (*(piece for piece in told if piece.text), *(shown if self._calls.begun else shown_if_alone))

    @property
    def is_finished(self) -> bool:
        """True if there was a finish reason: the answer is complete, only usage may follow."""
        return bool(self._finish)

    def accept_end(self) -> None:
        """Take the end marker for a finish reason, if there was none."""
        self._finish = self._finish or "stop"

    def answer(self) -> Answer:
        """Return the whole answer.

        Raises `ModelError`, retryable, if the stream ended without a finish reason: then nothing of it may be used.
        """
        if not self._finish:
            raise ModelError(
                f"the model's stream broke off after {self._chunks} chunks, without a finish reason; "
                f"nothing of it was used{ACCEPT_DONE}",
                retryable=True,
            )
        if self._finish == "error":
            raise ModelError("the model's server broke off with a finish reason of an error; ask again", retryable=True)
        calls = self._calls.requested() or self._legacy.requested()
        said, reasoning = (mend_surrogates(part.getvalue()) for part in (self._text, self._reasoning))
        message = AssistantMessage(said, calls, reasoning, tuple(self._to_send_back()))
        return Answer(message, "tool_calls" if calls and self._finish == "stop" else self._finish, self._usage)

    def _to_send_back(self) -> Iterator[ReasoningItem]:
        """Yield the fields that are not of the format, for the server that sent them."""
        places = [(None, self._others.joined()), *((n, call.beside) for n, call in enumerate(self._calls.in_order))]
        for place, fields in places:
            if fields:
                yield ReasoningItem(mend_surrogates(json.dumps(fields, ensure_ascii=False)), self._source, place)


ACCEPT_DONE = "; for a server that never tells the end but by [DONE]: the option accept_done of the model"
"""The cure for streams without a finish reason."""
