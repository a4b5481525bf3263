"""Which argument texts are one JSON object, and what to tell a model about the others."""

import json
import math
import re
from typing import Any

from agent.models.surrogates import mend_surrogates

__all__ = ["ArgumentError", "is_json_object", "parse_arguments"]

_LITERALS = ("true", "false", "null", "-")
_NUMBER_TAIL = re.compile(r"(\.|\.?\d*[eE][+-]?)\Z")
_ESCAPE_TAIL = re.compile(r"\\(u[0-9a-fA-F]{0,4})?\Z")  # json wants one character more than the four


class ArgumentError(ValueError):
    """The text is not one JSON object; the message is for the model. `is_unfinished`: more text could mend it."""

    def __init__(self, message: str, *, is_unfinished: bool = False) -> None:
        super().__init__(message)
        self.is_unfinished = is_unfinished


def parse_arguments(text: str) -> dict[str, Any]:
    """Parse a call's arguments: one JSON object; empty text and `null` mean no arguments.

    Strict: raises `ArgumentError` for anything else, also for what JSON readers often let pass: duplicate keys, NaN
    and infinities, numbers out of range, lone surrogates, and an object that is quoted once more as a text.
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
    """Tell whether any JSON reader takes `text` as one object."""
    try:
        return isinstance(json.loads(text, parse_constant=_refuse_constant), dict)
    except (ValueError, RecursionError):
        return False


def _parse(text: str) -> Any:
    try:
        return _check_text(json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant,
                                      parse_float=_finite, parse_int=_integer))  # fmt: skip
    except json.JSONDecodeError as error:
        raise ArgumentError(
            f"arguments are not valid JSON: {_decapitalized(error.msg)} at character {error.pos + 1}; "
            "send one JSON object",
            is_unfinished=_is_unfinished(text, error),
        ) from error
    except RecursionError as error:
        raise ArgumentError("arguments are nested too deeply; send a flatter JSON object") from error


def _is_unfinished(text: str, error: json.JSONDecodeError) -> bool:
    """Tell whether the text stops in the middle, rather than being wrong."""
    tail = text[error.pos :].rstrip()
    if error.msg.startswith("Unterminated") or not tail or any(literal.startswith(tail) for literal in _LITERALS):
        return True
    return bool(_NUMBER_TAIL.match(tail) or ("escape" in error.msg and _ESCAPE_TAIL.search(text)))


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


def _decapitalized(message: str) -> str:
    return message[:1].lower() + message[1:]
