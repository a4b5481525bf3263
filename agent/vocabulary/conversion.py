"""Strict conversion of JSON to our types: no coercion, no unknown keys, and errors that name the place.

An integer is accepted as a float, and a list as a tuple. For any other mismatch the error says:
`expected int, found 'x' @ row.seed`.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from types import GenericAlias
from typing import Any, Literal, TypeVar, get_args, get_origin

import attrs
import cattrs
from cattrs.gen import make_dict_structure_fn

T = TypeVar("T")
Structure = Callable[[Any, Any], Any]

PLAIN = (str, bool, int, float)
SHOWN = 60
"""Characters that an error shows of the value found."""


def parsed(text: str, kind: type[T], name: str) -> T:
    """Return an instance of an attrs class from JSON text.

    Raises ValueError for invalid text, with the place (`name` stands for the whole) and the value found.
    """
    try:
        return structured(json.loads(text), kind, name)
    except RecursionError as error:
        raise ValueError(f"values are nested too deeply @ {name}") from error


def structured(told: object, kind: type[T], name: str) -> T:
    """Return an instance of an attrs class from plain data. Raises ValueError like `parsed`."""
    try:
        found: T = _converter().structure(told, kind)
    except Exception as error:
        first, *others = problems_of(error, name)
        raise ValueError(f"{first}{f', and {len(others)} more' if others else ''}") from error
    return found


def strict_converter() -> cattrs.Converter:
    """Return a new strict converter, whose errors name the place."""
    converter = cattrs.Converter(forbid_extra_keys=True)
    for plain in PLAIN:
        converter.register_structure_hook(plain, _exactly(plain))
    converter.register_structure_hook_func(_is_literal, _one_of)
    converter.register_structure_hook_factory(attrs.has, _from_object)
    converter.register_structure_hook_factory(_is_tuple, _from_list)
    return converter


def problems_of(error: BaseException, name: str) -> list[str]:
    """Return the problems and their places from an error of a strict converter; `name` stands for the whole."""
    return cattrs.transform_error(error, path=name, format_exception=_problem_text)


@cache
def _converter() -> cattrs.Converter:
    return strict_converter()


def _problem_text(error: BaseException, _: object) -> str:
    match error:
        case KeyError():
            return "nothing is there"
        case cattrs.ForbiddenExtraKeysError():
            return f"{', '.join(sorted(map(repr, error.extra_fields)))} is not known here"
        case AttributeError():  # of what has no items
            return "expected an object"
        case _:
            return str(error)


def _exactly(kind: type) -> Structure:
    """Accept values of one type and coerce nothing; an integer is accepted as a float."""

    def accept(value: Any, _: Any) -> Any:
        if type(value) is kind or (kind is float and type(value) is int):
            return value
        raise _expected(kind.__name__, value)

    return accept


def _one_of(value: Any, kind: Any) -> Any:
    if isinstance(value, str) and value in get_args(kind):
        return value
    raise _expected(f"one of {', '.join(map(repr, get_args(kind)))}", value)


def _from_object(kind: Any, converter: Any) -> Structure:
    structure: Structure = make_dict_structure_fn(kind, converter)

    def read(value: Any, _: Any) -> Any:
        if isinstance(value, Mapping):
            return structure(value, kind)
        raise _expected("an object", value)

    return read


def _from_list(kind: Any, converter: Any) -> Structure:
    several: Any = GenericAlias(list, get_args(kind)[:1])
    structure: Structure = converter.get_structure_hook(several)

    def read(value: Any, _: Any) -> Any:
        if isinstance(value, list | tuple):
            return tuple(structure(value, several))
        raise _expected("a list", value)

    return read


def _is_literal(kind: Any) -> bool:
    origin: Any = get_origin(kind)
    return origin is Literal


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple and get_args(kind)[-1] is ...


def _expected(what: str, found: object) -> ValueError:
    shown = repr(found)
    return ValueError(f"expected {what}, found {shown if len(shown) <= SHOWN else f'{shown[:SHOWN]}…'}")
