"""Converts a model's answer to calls of the loop: parses JSON, makes ids unique."""

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from operator import attrgetter
from typing import Any

from attrs import evolve

from agent.models.model import Answer
from agent.vocabulary.calls import Category, ToolCall
from agent.vocabulary.messages import CUT_OFF, AssistantMessage, RequestedCall, unique_ids

_SURROGATE = re.compile("[\ud800-\udfff]")


def mend_surrogates(text: str) -> str:
    """Return `text` with surrogate pairs joined, and lone surrogates replaced by U+FFFD."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class WholeCharacters:
    """Joins the halves of characters that two pieces of a stream hold."""

    def __init__(self) -> None:
        self._halves: dict[object, str] = {}

    def of(self, piece: str, stream: object = "") -> str:
        """Return what can be shown of the next piece of a stream."""
        piece = self._halves.pop(stream, "") + piece
        if "\ud800" <= piece[-1:] <= "\udbff":
            self._halves[stream] = piece[-1]
            piece = piece[:-1]
        return mend_surrogates(piece)


class ArgumentError(ValueError):
    """The text is not one JSON object; the message is for the model. `is_unfinished`: more text could complete it."""

    def __init__(self, message: str, *, is_unfinished: bool = False) -> None:
        super().__init__(message)
        self.is_unfinished = is_unfinished


def parse_arguments(text: str) -> dict[str, Any]:
    """Parse a call's arguments: one JSON object; empty text and `null` mean no arguments.

    Strict: raises `ArgumentError` for anything else, also for forms that JSON readers often accept: duplicate keys, NaN
    and infinities, numbers out of range, lone surrogates, and an object that is quoted again as a text.
    """
    if not text.strip():
        return {}
    try:
        parsed = _STRICT.decode(text)
        if not text.isascii() or "\\u" in text:
            _check_text(parsed)
    except json.JSONDecodeError as error:
        is_open = text.lstrip().startswith("{") and not text.rstrip().endswith("}")  # an object ends with a brace
        is_open = is_open and error.msg != "Extra data"  # a whole object, and more after it
        raise ArgumentError(
            f"arguments are not valid JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos + 1}; "
            "send one JSON object",
            is_unfinished=is_open or error.msg.startswith("Unterminated") or not text[error.pos :].strip(),
        ) from error
    except RecursionError as error:
        raise ArgumentError("arguments are nested too deeply; send a flatter JSON object") from error
    match parsed:
        case dict():
            return parsed
        case None:
            return {}
        case str():
            kind, cure = "text", "the object itself, without quoting it again"
        case _:
            kind, cure = {bool: "boolean", list: "array"}.get(type(parsed), "number"), "one JSON object"
    raise ArgumentError(f"arguments are a JSON {kind}, not an object; send {cure}")


def is_json_object(text: str) -> bool:
    """Return whether any JSON reader accepts `text` as one object."""
    try:
        return isinstance(json.loads(text, parse_constant=_refuse_constant), dict)
    except (ValueError, RecursionError):
        return False


def without_repeats(arguments: str) -> str:
    """Return the last of several JSON objects in a row if those before it are empty or the same; else `arguments`.

    Gateways to other APIs begin with `{}` or `null`, or send the whole once more.
    """
    before: list[Any] = []
    rest = arguments.strip()
    with suppress(ValueError, RecursionError):
        while rest.startswith(("{", "null")):
            value, end = _PLAIN.raw_decode(rest)
            if end == len(rest):
                return rest if before and all(each in (None, {}, value) for each in before) else arguments
            before.append(value)
            rest = rest[end:].lstrip()
    return rest if before and rest.startswith("{") and not any(before) else arguments


_PLAIN = json.JSONDecoder()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        key = next(key for position, key in enumerate(keys) if key in keys[:position])
        raise ArgumentError(f"arguments have the key {key!r} twice; give each key once")
    return found


def _refuse_constant(name: str) -> Any:
    raise ArgumentError(f"arguments contain {name}, which is not valid JSON; use a number or null")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ArgumentError(f"arguments contain the number {digits:.40}, which is out of range; use a smaller number")
    return number


def _integer(digits: str) -> int:
    try:
        return int(digits)
    except ValueError as error:
        raise ArgumentError(f"arguments contain a number of {len(digits)} digits; use a smaller number") from error


_STRICT = json.JSONDecoder(
    object_pairs_hook=_unique, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_integer
)  # shared: `json.loads` would create one for each call


def _check_text(value: Any) -> None:
    """Refuse lone surrogates anywhere in `value`: no file name, command or log can carry them."""
    match value:
        case str() if mend_surrogates(value) != value:
            raise ArgumentError(f"arguments contain half a character in {value!r:.40}; write whole characters")
        case dict() | list():
            for inner in (*value, *(value.values() if isinstance(value, dict) else ())):
                _check_text(inner)


UNNAMED = "unnamed"
"""The name of a call that came without one, in the log and on the wire."""


def read_calls(answer: Answer, categories: Mapping[str, Category], *, turn: int = 0) -> tuple[ToolCall, ...]:
    """Return the calls of `answer` in its order.

    `categories`: the category of each known tool; others count as "write". `turn`: the number of the answer in the
    conversation; our ids consist of it and the position. A call that is cut off, unreadable or nameless has a `flaw`:
    the message for the model; for cut-off ones it begins with "truncated". All calls of an answer that was cut off are.
    """
    requested = answer.message.calls
    cut_off = answer.stop_reason if answer.stop_reason in CUT_OFF else ""
    ids = unique_ids(requested, turn)
    return tuple(_read_call(call, id, categories, cut_off) for call, id in zip(requested, ids, strict=True))


def with_ids(message: AssistantMessage, calls: tuple[ToolCall, ...]) -> AssistantMessage:
    """Return `message` with the ids and names that its calls have in the loop.

    `calls`: from `read_calls` of the same message. The argument texts are unchanged.
    """
    if [*map(attrgetter("id", "name"), message.calls)] == [*map(attrgetter("id", "tool"), calls)]:
        return message
    both = zip(message.calls, calls, strict=True)
    return evolve(message, calls=tuple(RequestedCall(call.id, call.tool, said.arguments) for said, call in both))


def _read_call(requested: RequestedCall, id: str, categories: Mapping[str, Category], cut_off: str) -> ToolCall:
    tool = requested.name.strip() or UNNAMED
    flaw, arguments = "", dict[str, Any]()
    try:
        arguments = parse_arguments(requested.arguments)
        if not requested.name.strip():
            flaw = "the call has no tool name; name one of the tools"
    except ArgumentError as error:
        flaw = str(error)
        if error.is_unfinished:
            flaw = f"truncated: the arguments break off after {len(requested.arguments)} characters; {AGAIN}"
    if cut_off:
        flaw = f"truncated: the answer was cut off ({cut_off}); {AGAIN}"
    return ToolCall(id, tool, {} if flaw else arguments, categories.get(tool, "write"), flaw or None)


AGAIN = "send the whole call again, or a shorter one"
