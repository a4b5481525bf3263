"""What an option may hold, by the type of its field: nothing is coerced, and the words for it are the same everywhere.

The types are int, float, bool, str, None, `Literal` of texts, `tuple[str, ...]`, and unions of these.
"""

import math
from collections.abc import Callable
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from attrs import Attribute, validators

__all__ = ["alternatives", "expected", "fits", "strictly_typed"]

CHECKS: dict[Any, tuple[Callable[[Any], bool], str]] = {
    int: (lambda value: isinstance(value, int) and not isinstance(value, bool), "a whole number"),
    float: (
        lambda value: isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value),
        "a number",
    ),
    bool: (lambda value: isinstance(value, bool), "true or false"),
    str: (lambda value: isinstance(value, str), "a text"),
    tuple: (
        lambda value: isinstance(value, tuple) and all(isinstance(part, str) for part in value),
        "a list of texts",
    ),
    NoneType: (lambda value: value is None, "none"),
}


def alternatives(hint: Any) -> tuple[Any, ...]:
    """Return the parts of a union; anything else is its only part."""
    return (hint,) if get_origin(hint) in (tuple, Literal) else get_args(hint) or (hint,)


def fits(value: object, hint: Any) -> bool:
    """Return whether a value is of a field's type."""
    return any(
        value in get_args(part) if get_origin(part) is Literal else CHECKS[get_origin(part) or part][0](value)
        for part in alternatives(hint)
    )


def expected(hint: Any) -> str:
    """Return what a field may hold, in words: "a whole number or none"."""
    return " or ".join(
        " or ".join(map(repr, get_args(part))) if get_origin(part) is Literal else CHECKS[get_origin(part) or part][1]
        for part in alternatives(hint)
    )


def strictly_typed(_: type, fields: "list[Attribute[Any]]") -> "list[Attribute[Any]]":
    """Give each field a validator for its type, before its own. A field transformer of attrs."""
    return [
        field.evolve(validator=validators.and_(_of_its_type, field.validator) if field.validator else _of_its_type)
        for field in fields
    ]


def _of_its_type(_: object, field: "Attribute[Any]", value: object) -> None:
    if not fits(value, field.type):
        raise ValueError(f"expected {expected(field.type)}, found {value!r:.60}")
