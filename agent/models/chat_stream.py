"""Assembles the chunks of a chat-completions stream into one whole answer, or none, whatever their shape."""

from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any

from attrs import frozen

from agent.models.calls import (
    argument_text,
    elements,
    index_number,
    is_json_object,
    mapping,
    mend_surrogates,
    text,
    usage,
)
from agent.models.failures import broke_off
from agent.models.model import Answer, Delta, ModelError, weight
from agent.vocabulary.messages import AssistantMessage, RequestedCall, StopReason, Usage


@frozen
class CallPiece:
    """A piece of a tool call. None and "" mean that the chunk does not say; `arguments` is the next piece of text."""

    index: int | None = None
    id: str = ""
    name: str = ""
    arguments: str = ""


def _first_choice(chunk: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the choice with index 0, or None; other choices were not asked for."""
    for raw in elements(chunk.get("choices")):
        choice = mapping(raw)
        if choice is not None and not choice.get("index"):
            return choice
    return {}


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


def _legacy_pieces(said: Mapping[str, Any]) -> Iterator[CallPiece]:
    legacy = mapping(said.get("function_call"))  # one call, without index and id
    if legacy:
        yield CallPiece(name=text(legacy.get("name")), arguments=argument_text(legacy.get("arguments")))


def _content(value: object) -> str:
    """Return the text of a content, which is a text, or a list of parts of which some are text."""
    if isinstance(value, list):
        return "".join(text((mapping(part) or {}).get("text")) for part in value)
    return text(value)


MOST_CALLS = 1_000
"""Calls that an answer may have; more are an error."""


MOST_TRIES = 100
"""Attempts to parse the arguments of one call while they come, to see whether they are whole."""


class _Call:
    """A call while it streams. `is_empty`: no arguments came."""

    def __init__(self, piece: CallPiece, number: int) -> None:
        self.number = number
        self.index = piece.index
        self.id = piece.id
        self.name = piece.name
        self.is_empty = True
        self._arguments = StringIO()
        self._last = ""  # character that is no white space
        self._tries = 0
        self._extend(piece.arguments)

    @property
    def arguments(self) -> str:
        return self._arguments.getvalue()

    def take(self, piece: CallPiece) -> None:
        """Continue with `piece`: ids and names are said again or late, arguments go on."""
        self.index = piece.index if self.index is None else self.index
        self.id = self.id or piece.id
        if piece.name and piece.name != self.name:
            grown = piece.name.startswith(self.name)
            self.name = piece.name if grown else self.name + piece.name
        self._extend(piece.arguments)

    def _extend(self, text: str) -> None:
        self._arguments.write(text)
        if text.strip():
            self.is_empty, self._last = False, text.rstrip()[-1]

    def is_whole(self) -> bool:
        """Tell whether the arguments are one JSON object."""
        if self._last != "}" or self._tries == MOST_TRIES:
            return False
        is_object = is_json_object(self.arguments)
        self._tries += not is_object
        return is_object

    def is_repeated_by(self, piece: CallPiece) -> bool:
        """Tell whether `piece` says the whole call once more, as some servers do at the end."""
        if not piece.id or (piece.id, piece.name) != (self.id, self.name):
            return False
        is_as_long = len(piece.arguments) == self._arguments.tell()
        return is_as_long and piece.arguments == self.arguments and self.is_whole()

    def may_take(self, piece: CallPiece) -> bool:
        """Tell whether neither index nor id speak against it that `piece` is one of this call."""
        is_placed = self.index == piece.index or None in (self.index, piece.index)
        return is_placed and (self.id == piece.id or "" in (self.id, piece.id))

    def shares(self, piece: CallPiece) -> tuple[bool, bool]:
        """Tell whether it has the index of `piece`, and its id."""
        return self.index == piece.index is not None, self.id == piece.id != ""


class StreamedCalls:
    """The calls of an answer, in the order in which they began."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._latest: dict[int | str | None, _Call] = {}  # by index, and by id
        self._last: _Call | None = None

    def add(self, pieces: tuple[CallPiece, ...]) -> tuple[Delta, ...]:
        """Give each piece of one chunk to the call that it belongs to; return what is new in them."""
        here: list[_Call] = []
        added: list[Delta] = []
        for piece in pieces:
            call, arguments = self._candidate(piece), piece.arguments
            if call is None or _begins_another(call, piece, beside=call in here):
                call = self._begin(piece)
            elif arguments and call.is_repeated_by(piece):
                arguments = ""
            else:
                call.take(piece)
            self._latest.update({key: call for key in (call.index, call.id) if key not in (None, "")})
            self._last = call
            here.append(call)
            added.append(Delta(mend_surrogates(arguments), "arguments", call.number, call.name))
        return tuple(added)

    @property
    def is_empty(self) -> bool:
        """Tell whether there is no call."""
        return not self._calls

    def requested(self) -> tuple[RequestedCall, ...]:
        """Return the calls as the model wrote them: by index when it gave each its own, else as they began."""
        calls = self._calls
        indices = {call.index for call in calls}
        if None not in indices and len(indices) == len(calls):
            calls = sorted(calls, key=lambda call: call.index or 0)
        return tuple(
            RequestedCall(*(mend_surrogates(text) for text in (call.id, call.name, call.arguments))) for call in calls
        )

    def _candidate(self, piece: CallPiece) -> _Call | None:
        """Return the call that a piece continues: by index and id, else by one of them, else the last one."""
        found = (self._latest.get(piece.index), self._latest.get(piece.id), self._last)
        fitting = [call for call in found if call is not None and call.may_take(piece)]
        return max(fitting, key=lambda call: call.shares(piece), default=None)

    def _begin(self, piece: CallPiece) -> _Call:
        if len(self._calls) == MOST_CALLS:
            raise ModelError(f"the model's answer has more than {MOST_CALLS:,} calls; ask for less at once")
        call = _Call(piece, len(self._calls) + 1)
        self._calls.append(call)
        return call


def _begins_another(candidate: _Call, piece: CallPiece, *, beside: bool) -> bool:
    """Decide whether `piece` begins a call of its own instead of continuing `candidate`.

    `beside` says that an earlier piece of the same chunk belongs to the candidate.
    """
    if not piece.name or not candidate.name:
        return False
    if beside and piece.index is None:  # two entries of one list are two calls
        return True
    if piece.name != candidate.name and not _is_same_call(candidate, piece):
        return True
    says_more = bool(piece.arguments.strip()) or (piece.index is None and bool(piece.id) and not candidate.id)
    return says_more and candidate.is_whole() and not candidate.is_repeated_by(piece)


def _is_same_call(candidate: _Call, piece: CallPiece) -> bool:
    """Tell whether a piece with another name belongs to the candidate all the same: then names come in pieces."""
    if not candidate.is_empty:
        return False
    if piece.id:
        return piece.id == candidate.id
    return piece.index is not None and bool(candidate.id)


LONGEST_ANSWER = 4_000_000
"""Bytes of text, reasoning and arguments that an answer may have together; a longer one is an error."""


def check_size(size: int) -> None:
    """Raise ModelError for an answer that is longer than `LONGEST_ANSWER`."""
    if size > LONGEST_ANSWER:
        text = f"the model's answer is longer than {LONGEST_ANSWER:,} bytes; ask for less at once"
        raise ModelError(text, reason="answer_too_long")


STOP_REASONS: dict[str, StopReason] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
}
"""Finish reasons that say the answer was cut off. All others are a stop, or calls when there are calls."""


class Assembly:
    """An answer while it streams: feed it each raw chunk, then ask for the whole answer."""

    def __init__(self) -> None:
        self._text = StringIO()
        self._reasoning = StringIO()
        self._calls, self._legacy = StreamedCalls(), StreamedCalls()
        self._finish_reason = ""
        self._usage = Usage()
        self._chunks = 0
        self._size = 0

    def feed(self, raw: object) -> tuple[Delta, ...]:
        """Take the next chunk; return what it adds for listeners.

        Raises `ModelError`, retryable, for a chunk that is no object or reports an error; not retryable, for an
        answer that is longer than `LONGEST_ANSWER` or has more calls than `StreamedCalls` takes.
        """
        chunk = mapping(raw)
        if chunk is None:
            raise ModelError(f"the model's stream is broken: a chunk is {raw!r:.80}, not an object", retryable=True)
        if chunk.get("error"):
            raise broke_off(chunk["error"])
        self._chunks += 1
        choice = _first_choice(chunk)
        self._finish_reason = _worse(self._finish_reason, text(choice.get("finish_reason")))
        self._usage = usage(chunk.get("usage")) or self._usage
        said = mapping(choice.get("delta")) or {}
        if not said and not self._size:  # of a server that does not stream; else it sums up what streamed before
            said = mapping(choice.get("message")) or {}
        return self._add(said)

    def _add(self, said: Mapping[str, Any]) -> tuple[Delta, ...]:
        content = _content(said.get("content")) + text(said.get("refusal"))
        reasoning = text(said.get("reasoning_content")) or text(said.get("reasoning"))
        pieces, legacy_pieces = tuple(_pieces(said)), tuple(_legacy_pieces(said))
        written = (part for piece in (*pieces, *legacy_pieces) for part in (piece.arguments, piece.name, piece.id))
        self._size += sum(map(weight, (content, reasoning, *written)))
        check_size(self._size)
        self._text.write(content)
        self._reasoning.write(reasoning)
        calls, legacy = self._calls.add(pieces), self._legacy.add(legacy_pieces)
        shown = legacy if self._calls.is_empty else calls
        told = (Delta(mend_surrogates(reasoning), "reasoning"), Delta(mend_surrogates(content)))
        return (*(piece for piece in told if piece.text), *shown)

    @property
    def is_finished(self) -> bool:
        """True when the server gave a finish reason: the answer is whole, only usage may still come."""
        return bool(self._finish_reason)

    def answer(self) -> Answer:
        """Return the whole answer.

        Raises `ModelError`, retryable, when the stream ended without a finish reason: then nothing of it may be used.
        """
        if not self._finish_reason:
            raise ModelError(
                f"the model's stream broke off after {self._chunks} chunks, without a finish reason; "
                "nothing of it was used",
                retryable=True,
            )
        if self._finish_reason == "error":
            raise ModelError("the model's server broke off with finish reason 'error'; ask again", retryable=True)
        calls = self._calls.requested() or self._legacy.requested()
        message = AssistantMessage(
            text=mend_surrogates(self._text.getvalue()),
            calls=calls,
            reasoning=mend_surrogates(self._reasoning.getvalue()),
        )
        stop_reason = STOP_REASONS.get(self._finish_reason, "tool_calls" if calls else "stop")
        return Answer(message, stop_reason, self._usage)


def _worse(old: str, new: str) -> str:
    """Return the finish reason that says that the answer was cut off, else the later one."""
    return old if not new or old in STOP_REASONS or old == "error" else new
