"""Values as JSON and back: records of a log are written in one pass, and data is read strictly.

A call is written in full where it first appears (`inference_finished`, `answer_committed`, `proposed_action`), and as
its id in every later record. Reading coerces nothing, takes no unknown key, and its errors name the place: `expected
int, found 'x' @ row.seed`. Only an integer is accepted as a float, and a list as a tuple.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Set
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache
from json.encoder import encode_basestring as quoted  # in C; escapes what JSON must
from math import isfinite
from pathlib import PurePath
from types import FunctionType, GenericAlias, NoneType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, get_args
from uuid import UUID

import attrs

from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ProposedAction
from agent.vocabulary.messages import IF_ANY, AssistantMessage, ToolMessage, UserMessage
from bp import Event, Refusal, Step

if TYPE_CHECKING:
    from cattrs import Converter

FORMAT = 2
"""The version of the format; a reader refuses newer ones."""

ROLES: dict[type, str] = {UserMessage: "user", AssistantMessage: "assistant", ToolMessage: "tool"}

Writer = Callable[[Any], str]


def record_line(step: Step) -> str:
    """Return the record of a step as one line: step, super_step, name, data, origin, and the refusals it answers.

    Raises TypeError for values without a form in the log.
    """
    event = step.event
    refusals = "" if step.refusals is None else f',"refusals":{_text(step.refusals)}'
    line = (
        f'{{"step":{step.number},"super_step":{step.super_step},"name":{quoted(event.name)},'
        f'"data":{_PAYLOADS[type(event)](event)},"origin":{quoted(step.bthread or "outside")}{refusals}}}'
    )
    return line if line.isascii() else _one_line(line)


def to_record(step: Step) -> dict[str, Any]:
    """Return the record of a step as plain data."""
    return json.loads(record_line(step))  # type: ignore[no-any-return]


def plain(value: Any) -> Any:
    """Return a frozen value as plain JSON data. Raises TypeError for values without such a form."""
    return json.loads(_text(value))


def has_form(kind: type) -> bool:
    """Return whether `plain` accepts values of this class."""
    return _WRITERS[kind] is not _refuse


def dump(data: Any) -> str:
    """Return plain data as one line of JSON, without a line end; every reader takes it for one line."""
    line = _LEGIBLE.encode(data)
    return line if line.isascii() else _one_line(line)


_LEGIBLE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))  # `json.dumps` would make one for every line


def _one_line(text: str) -> str:
    """Escape lone surrogates, which are invalid UTF-8, and characters that some readers take for line ends."""
    return _UNFIT.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


_UNFIT = re.compile("[\x85\u2028\u2029\ud800-\udfff]")


def _text(value: Any) -> str:
    return _WRITERS[type(value)](value)


class _Writers(dict[type, Writer]):
    """A cache of writers by type: each value of each record needs one."""

    def __init__(self, make: Callable[[Any], Writer]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, kind: type) -> Writer:
        return self.setdefault(kind, self._make(kind))


def _writer(kind: Any) -> Writer:
    if attrs.has(kind):
        return _of_fields(kind)
    return next((writer for kinds, writer in _FORMS if issubclass(kind, kinds)), _refuse)


def _payload_writer(kind: Any) -> Writer:
    if attrs.has(kind):
        return _of_fields(kind, whole_call=kind is ProposedAction)
    return lambda event: f'{{"data":{_text(event.data)}}}'


def _of_fields(kind: Any, *, whole_call: bool = True) -> Writer:
    """Return the writer of a class: fields that may be left out come last, and messages have their role. The text of a
    default is made once; the latest value is cached, since several records of a turn may hold it. whole_call: write the
    field `call` in full, not as its id.
    """
    fields = attrs.fields(kind)
    is_id = not whole_call and any(field.name == "call" and field.type is ToolCall for field in fields)
    rare = [(field.name, f'"{field.name}":') for field in fields if field.metadata == IF_ANY]
    always = [
        (field.name, f'"{field.name}":', field.default, _default_of(field))
        for field in fields
        if field.metadata != IF_ANY and not (is_id and field.name == "call")
    ]
    role = [f'"role":"{ROLES[kind]}"'] if kind in ROLES else []

    latest: tuple[Any, str] = (None, "")

    def write(value: Any) -> str:
        nonlocal latest
        known, text = latest
        if known is value:
            return text
        parts = [f'"call":{quoted(value.call.id)}'] if is_id else [*role]
        for name, key, default, written in always:
            item = getattr(value, name)
            parts.append(written if item is default else key + _WRITERS[type(item)](item))
        for name, key in rare:
            item = getattr(value, name)
            if item:
                parts.append(key + _WRITERS[type(item)](item))
        latest = value, f"{{{','.join(parts)}}}"
        return latest[1]

    return write


def _default_of(field: Any) -> str:
    """Return the text of a field that has its default; empty without a default, or where a factory makes it."""
    has_one = field.default is not attrs.NOTHING and not isinstance(field.default, attrs.Factory)  # type: ignore[arg-type]
    return f'"{field.name}":{_text(field.default)}' if has_one else ""


def _of_mapping(mapping: Mapping[Any, Any]) -> str:
    if not mapping:
        return "{}"
    pairs = [f"{quoted(str(key))}:{_WRITERS[type(item := mapping[key])](item)}" for key in mapping]
    return f"{{{','.join(pairs)}}}"


def _of_items(items: Any) -> str:
    parts = []
    for item in items:  # a comprehension would be a call more for each list
        parts.append(_WRITERS[type(item)](item))  # noqa: PERF401
    return f"[{','.join(parts)}]"


def _refuse(value: Any) -> NoReturn:
    raise TypeError(f"{type(value).__name__} {value!r} has no form in the log")


_FORMS: tuple[tuple[Any, Writer], ...] = (  # the first that fits
    (str, quoted),
    (bool, {True: "true", False: "false"}.__getitem__),
    (NoneType, {None: "null"}.__getitem__),
    (int, int.__repr__),
    (Enum, lambda value: quoted(value.name)),
    (bytes, lambda value: quoted(b64encode(value).decode())),
    (float, lambda number: float.__repr__(number) if isfinite(number) else quoted(str(number))),  # JSON has no infinity
    (date | time, lambda value: quoted(value.isoformat())),
    (timedelta | Decimal | Fraction | complex | UUID | PurePath, lambda value: quoted(str(value))),
    (Refusal, lambda refusal: f'{{"bthread":{quoted(refusal.bthread)},"because":{_text(refusal.because)}}}'),
    (Mapping, _of_mapping),
    (tuple | list, _of_items),
    (Set, lambda items: f"[{','.join(sorted(map(_text, items)))}]"),
    (FunctionType | type, lambda named: quoted(f"{named.__module__}.{named.__qualname__}")),
    (Event, lambda event: f'{{"event":{quoted(event.name)},"data":{_text(event.data)}}}'),
)
_WRITERS, _PAYLOADS = _Writers(_writer), _Writers(_payload_writer)


# Strict reading of plain data

T = TypeVar("T")
Structure = Callable[[Any, Any], Any]

PLAIN = (str, bool, int, float)
SHOWN = 60
"""Characters that an error shows of the value found."""


def parsed(text: str, kind: type[T], name: str, upgrade: Callable[[Any], Any] = lambda data: data) -> T:
    """Return an instance of an attrs class from JSON text; `upgrade` brings data of older versions into form.

    Raises ValueError for invalid text, with the place (`name` stands for the whole) and the value found.
    """
    try:
        return structured(upgrade(json.loads(text)), kind, name)
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


def strict_converter() -> "Converter":
    """Return a new strict converter, whose errors name the place."""
    from cattrs import Converter  # slow, and needed where something is read

    converter = Converter(forbid_extra_keys=True)
    for kind in PLAIN:
        converter.register_structure_hook(kind, _exactly(kind))
    converter.register_structure_hook_factory(lambda kind: getattr(kind, "__origin__", None) is Literal, _one_of)
    converter.register_structure_hook_factory(attrs.has, _from_object)
    converter.register_structure_hook_factory(
        lambda kind: getattr(kind, "__origin__", None) is tuple and get_args(kind)[-1] is ..., _from_list
    )
    return converter


def problems_of(error: BaseException, name: str) -> list[str]:
    """Return the problems and their places from an error of a strict converter; `name` stands for the whole."""
    from cattrs import transform_error

    return transform_error(error, path=name, format_exception=_problem_text)


@cache
def _converter() -> "Converter":
    return strict_converter()


def _problem_text(error: BaseException, _: object) -> str:
    from cattrs import ForbiddenExtraKeysError

    match error:
        case KeyError():
            return "nothing is there"
        case ForbiddenExtraKeysError():
            return f"{', '.join(sorted(map(repr, error.extra_fields)))} is not known here"
        case AttributeError():  # of what has no items
            return "expected an object"
        case _:
            return str(error)


def _reading(
    what: str, accepts: Callable[[Any], bool], convert: Callable[[Any], Any] = lambda value: value
) -> Structure:
    """Return the hook that converts what it accepts, and expects `what` otherwise."""

    def read(value: Any, _: Any) -> Any:
        if accepts(value):
            return convert(value)
        shown = repr(value)
        shown = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"
        raise ValueError(f"expected {what}, found {shown}")

    return read


def _exactly(kind: type) -> Structure:
    """Accept values of one type and coerce nothing; an integer is accepted as a float."""
    return _reading(kind.__name__, lambda value: type(value) is kind or (kind is float and type(value) is int))


def _one_of(kind: Any) -> Structure:
    choices = get_args(kind)
    told = f"one of {', '.join(map(repr, choices))}"
    return _reading(told, lambda value: isinstance(value, str) and value in choices)


def _from_object(kind: Any, converter: Any) -> Structure:
    from cattrs.gen import make_dict_structure_fn

    structure: Structure = make_dict_structure_fn(kind, converter)
    return _reading("an object", lambda value: isinstance(value, Mapping), lambda value: structure(value, kind))


def _from_list(kind: Any, converter: Any) -> Structure:
    several: Any = GenericAlias(list, get_args(kind)[:1])
    structure: Structure = converter.get_structure_hook(several)
    return _reading(
        "a list", lambda value: isinstance(value, list | tuple), lambda value: tuple(structure(value, several))
    )
