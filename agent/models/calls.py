"""Converts a model's answer to calls of the loop: parses JSON, makes ids unique."""

import json
import math
import re
from collections.abc import Iterator, Mapping
from itertools import count
from operator import attrgetter
from typing import Any

from attrs import evolve

from agent.models.model import Answer
from agent.vocabulary.calls import Category, ToolCall
from agent.vocabulary.messages import AssistantMessage, RequestedCall, Usage


def mapping(value: object) -> Mapping[str, Any] | None:
    """Return a JSON object; None for anything else."""
    return value if isinstance(value, dict) else None


def elements(value: object) -> list[Any]:
    """Return a list; a single value as a list of one."""
    if isinstance(value, list):
        return value
    return [value] if value else []


def text(value: object) -> str:
    """Return a text, or ""."""
    return value if isinstance(value, str) else ""


def argument_text(value: object) -> str:
    """Return the text of arguments; some servers send the object itself."""
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def index_number(value: object) -> int | None:
    """Return a position, also if given as text; None for anything else."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def usage(value: object) -> Usage | None:
    """Return the token counts, by the names of either format; None without any."""
    counts = mapping(value)
    if not counts:
        return None
    return Usage(
        input_tokens=_count(counts.get("prompt_tokens", counts.get("input_tokens"))),
        output_tokens=_count(counts.get("completion_tokens", counts.get("output_tokens"))),
    )


def error_text(error: object) -> str:
    """Return the text of an error: its message, else all of it; at most 300 characters."""
    message = (mapping(error) or {}).get("message") or error
    return f"{message}"[:300]


def _count(value: object) -> int:
    return max(0, value) if isinstance(value, int) and not isinstance(value, bool) else 0


_SURROGATE = re.compile("[\ud800-\udfff]")


def mend_surrogates(text: str) -> str:
    """Return `text` with surrogate pairs joined, and lone surrogates replaced by U+FFFD."""
    if text.isascii() or not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


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
    arguments = _parse(text)
    if arguments is None:
        return {}
    if isinstance(arguments, str):
        raise ArgumentError(
            "arguments are a JSON text, not an object; send the object itself, without quoting it again"
        )
    if not isinstance(arguments, dict):
        raise ArgumentError(f"arguments are a JSON {_kind(arguments)}, not an object; send one JSON object")
    return arguments


def is_json_object(text: str) -> bool:
    """Return whether any JSON reader accepts `text` as one object."""
    try:
        return isinstance(json.loads(text, parse_constant=_refuse_constant), dict)
    except (ValueError, RecursionError):
        return False


def _parse(text: str) -> Any:
    try:
        parsed = _STRICT.decode(text)
        return parsed if text.isascii() and "\\u" not in text else _check_text(parsed)
    except json.JSONDecodeError as error:
        raise ArgumentError(
            f"arguments are not valid JSON: {error.msg[:1].lower()}{error.msg[1:]} at character {error.pos + 1}; "
            "send one JSON object",
            is_unfinished=_is_unfinished(text, error),
        ) from error
    except RecursionError as error:
        raise ArgumentError("arguments are nested too deeply; send a flatter JSON object") from error


def _is_unfinished(text: str, error: json.JSONDecodeError) -> bool:
    """Return whether the text stops in the middle, rather than being wrong: an object ends with a brace."""
    is_open = text.lstrip().startswith("{") and not text.rstrip().endswith("}")
    return is_open or error.msg.startswith("Unterminated") or not text[error.pos :].strip()


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ArgumentError(f"arguments have the key {key!r} twice; give each key once")
        found[key] = value
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


def _check_text(value: Any) -> Any:
    """Refuse lone surrogates anywhere in `value`: no file name, command or log can carry them."""
    match value:
        case str() if mend_surrogates(value) != value:
            raise ArgumentError(f"arguments contain half a character in {value!r:.40}; write whole characters")
        case dict():
            for key, inner in value.items():
                _check_text(key), _check_text(inner)
        case list():
            for inner in value:
                _check_text(inner)
    return value


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "array" if isinstance(value, list) else "number"


LONGEST_ID = 64
"""Characters of a call id that providers take."""

UNNAMED = "unnamed"
"""The name of a call that came without one, in the log and on the wire."""

_CUT_OFF = ("length", "content_filter")


def read_calls(answer: Answer, categories: Mapping[str, Category], *, turn: int = 0) -> tuple[ToolCall, ...]:
    """Return the calls of `answer` in its order.

    `categories`: the category of each known tool; others count as "write". `turn`: the number of the answer in the
    conversation; our ids consist of it and the position. A call that is cut off, unreadable or nameless has a `flaw`:
    the message for the model; for cut-off ones it begins with "truncated".
    """
    requested = answer.message.calls
    cut_off = answer.stop_reason in _CUT_OFF
    last = len(requested) - 1
    return tuple(
        _read_call(call, id, categories, cut_off=cut_off, is_last=position == last)
        for position, (call, id) in enumerate(zip(requested, _unique_ids(requested, turn), strict=True))
    )


def with_ids(message: AssistantMessage, calls: tuple[ToolCall, ...]) -> AssistantMessage:
    """Return `message` with the ids and names that its calls have in the loop.

    `calls`: from `read_calls` of the same message. The argument texts are unchanged.
    """
    if [*map(attrgetter("id", "name"), message.calls)] == [*map(attrgetter("id", "tool"), calls)]:
        return message
    both = zip(message.calls, calls, strict=True)
    renamed = [RequestedCall(call.id, call.tool, requested.arguments) for requested, call in both]
    return evolve(message, calls=tuple(renamed))


def _unique_ids(requested: tuple[RequestedCall, ...], turn: int) -> Iterator[str]:
    """Return unique ids: the model's, unless missing, too long, or used before in this turn."""
    taken = set(map(attrgetter("id"), requested))
    seen: set[str] = set()
    for position, call in enumerate(requested):
        usable = call.id.strip() and len(call.id) <= LONGEST_ID and call.id not in seen
        id = call.id if usable else _our_id(turn, position, taken)
        taken.add(id)
        seen.add(id)
        yield id


def _our_id(turn: int, position: int, taken: set[str]) -> str:
    """Return an id of nine letters and digits, the strictest form that a provider requires: `c0002p001`."""
    return next(id for number in count(position) if (id := f"c{turn:04}p{number:03}") not in taken)


def _read_call(
    requested: RequestedCall, id: str, categories: Mapping[str, Category], *, cut_off: bool, is_last: bool
) -> ToolCall:
    tool = requested.name.strip() or UNNAMED
    category = categories.get(tool, "write")
    text = requested.arguments
    try:
        arguments = parse_arguments(text)
    except ArgumentError as error:
        is_truncated = error.is_unfinished or (cut_off and is_last)
        return ToolCall(id, tool, category=category, flaw=_truncated(text) if is_truncated else str(error))
    if cut_off and not text.strip():  # empty arguments may be missing ones
        return ToolCall(id, tool, category=category, flaw=_truncated(text))
    if not requested.name.strip():
        return ToolCall(id, tool, category=category, flaw="the call has no tool name; name one of the tools")
    return ToolCall(id, tool, arguments, category)


def _truncated(text: str) -> str:
    return (
        f"truncated: the arguments break off after {len(text)} characters; send the whole call again, or a shorter one"
    )
