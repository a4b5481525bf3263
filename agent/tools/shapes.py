"""One description of a value gives both its JSON Schema and its check, so that the two cannot differ.

A shape answers three questions: `schema()`, what the model is told; `problems(value, path)`, everything that is wrong
with a value; `build(value)`, the Python value for a value without problems.

Strict: nothing is coerced. True is not a number, "5" is not 5, NaN is no number. As in JSON Schema, 5.0 is the
integer 5, because JSON knows one kind of number. Arrays may be lists or tuples (calls carry frozen arguments).
"""

# ruff: noqa: D102 - what the methods promise is said once, in `Shape`

import math
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Literal, Protocol

from attrs import frozen

from agent.tools.marks import Limits

__all__ = ["Choice", "Scalar", "ScalarKind", "Schema", "Shape", "shown"]

Schema = dict[str, object]
ScalarKind = Literal["string", "integer", "number", "boolean", "null"]

_NO_LIMITS = Limits()
_SHOWN_CHARACTERS = 60


class Shape(Protocol):
    """What a value must look like."""

    def schema(self) -> Schema:
        """Return the JSON Schema (2020-12) that accepts exactly the values without problems."""

    def problems(self, value: object, path: str) -> Iterator[str]:
        """Yield each thing that is wrong with `value`, as "path: expected ..., found ..."."""

    def build(self, value: Any) -> Any:
        """Return the Python value; `value` has no problems."""


@frozen
class Scalar:
    """A text, a number, a truth value, or null."""

    kind: ScalarKind
    limits: Limits = _NO_LIMITS

    def schema(self) -> Schema:
        limits = self.limits
        keywords = {
            "minimum": limits.minimum,
            "maximum": limits.maximum,
            "exclusiveMinimum": limits.above,
            "maxLength": limits.max_length,
            "pattern": limits.pattern and f"^(?:{limits.pattern.pattern})$",
        }
        return {"type": self.kind} | {key: value for key, value in keywords.items() if value is not None}

    def problems(self, value: object, path: str) -> Iterator[str]:
        if not _is_kind(self.kind, value):
            yield f"{path}: expected {_with_article(self.kind)}, found {shown(value)}"
        elif isinstance(value, str):
            yield from (f"{path}: {problem}" for problem in _text_problems(self.limits, value))
        elif isinstance(value, int | float):
            yield from (f"{path}: {problem}" for problem in _number_problems(self.limits, value))

    def build(self, value: Any) -> Any:
        return int(value) if self.kind == "integer" else value


@frozen
class Choice:
    """One of some fixed JSON values; `members` are what the function gets for them."""

    values: tuple[str | int | float | bool | None, ...]
    members: tuple[Any, ...]

    def schema(self) -> Schema:
        kind: Schema = {"type": "string"} if all(isinstance(value, str) for value in self.values) else {}
        return kind | {"enum": list(self.values)}

    def problems(self, value: object, path: str) -> Iterator[str]:
        if not any(_same(value, allowed) for allowed in self.values):
            yield f"{path}: expected one of {', '.join(map(shown, self.values))}; found {shown(value)}"

    def build(self, value: Any) -> Any:
        return next(member for allowed, member in zip(self.values, self.members, strict=True) if _same(value, allowed))


def shown(value: object) -> str:
    """Return how a message names a JSON value: short, on one line."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return f"an object with {len(value)} keys"
    if isinstance(value, list | tuple):
        return f"an array of {len(value)} elements"
    if isinstance(value, str) and len(value) > _SHOWN_CHARACTERS:
        return f"{value[:_SHOWN_CHARACTERS]!r}... ({len(value)} characters)"
    if isinstance(value, int) and value.bit_length() > 200:
        return "a very large integer"
    return repr(value)[: 2 * _SHOWN_CHARACTERS]


def _is_kind(kind: ScalarKind, value: object) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    match kind:
        case "string":
            return isinstance(value, str) and not isinstance(value, Enum)
        case "integer":
            return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        case "number":
            return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
        case _:
            return kind == "null" and value is None


def _same(value: object, allowed: object) -> bool:
    """Equal as JSON: 1 is 1.0, and neither is true."""
    if isinstance(value, bool) or isinstance(allowed, bool):
        return value is allowed
    return value == allowed


def _text_problems(limits: Limits, value: str) -> Iterator[str]:
    if limits.max_length is not None and len(value) > limits.max_length:
        yield f"expected at most {limits.max_length} characters, found {len(value)}"
    matches = limits.pattern is None or limits.pattern.matches(value)
    if limits.pattern is not None and not matches:
        why = "" if matches is False else ", which takes too long to tell; give a shorter one"
        yield f"expected a text that matches {limits.pattern.pattern} as a whole, found {shown(value)}{why}"


def _number_problems(limits: Limits, value: float) -> Iterator[str]:
    if limits.minimum is not None and value < limits.minimum:
        yield f"expected at least {limits.minimum}, found {shown(value)}"
    if limits.above is not None and value <= limits.above:
        yield f"expected more than {limits.above}, found {shown(value)}"
    if limits.maximum is not None and value > limits.maximum:
        yield f"expected at most {limits.maximum}, found {shown(value)}"


def _with_article(kind: ScalarKind) -> str:
    return {"integer": "an integer", "null": "null"}.get(kind, f"a {kind}")
