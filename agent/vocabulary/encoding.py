"""Events as plain data: what a record of the log holds.

A call stands in full where it is first told of (`inference_finished`, `answer_committed`, `proposed_action`), and as
its id in every later record.
"""

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Set
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import cache
from math import isfinite
from operator import attrgetter
from pathlib import PurePath
from types import FunctionType, NoneType
from typing import Any, NoReturn
from uuid import UUID

import attrs

from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ProposedAction
from agent.vocabulary.messages import IF_ANY, AssistantMessage, ToolMessage, UserMessage
from bp import Event, Refusal, Step

FORMAT = 1
"""The version of the format; a reader refuses newer ones."""

ROLES: dict[type, str] = {UserMessage: "user", AssistantMessage: "assistant", ToolMessage: "tool"}


def to_record(step: Step) -> dict[str, Any]:
    """Return the record of a step: step, super_step, name, data, origin, and the refusals that it answers."""
    record = {
        "step": step.number,
        "super_step": step.super_step,
        "name": step.event.name,
        "data": event_data(step.event),
        "origin": step.bthread or "outside",
    }
    if step.refusals is not None:
        record["refusals"] = plain(step.refusals)
    return record


def event_data(event: Event) -> Any:
    """Return the payload of an event as plain data."""
    kind = type(event)
    data = (_READERS.get(kind) or _learn_fields(kind))(event)
    if isinstance(call := data.get("call"), ToolCall) and kind is not ProposedAction:
        data["call"] = call.id
    return _made_plain(data)


def plain(value: Any) -> Any:
    """Return a frozen value as what JSON can hold. Raises TypeError for what has no such form."""
    kind: Any = type(value)
    return _encoder(kind)(value)


def _made_plain(fields: dict[str, Any]) -> dict[str, Any]:
    for name, value in fields.items():
        if type(value) not in _ATOMS:  # most are atoms
            fields[name] = plain(value)
    return fields


_ATOMS = frozenset({NoneType, str, bool, int})


@cache  # every record asks for each of its values
def _encoder(kind: type) -> Callable[[Any], Any]:
    """Return what values of `kind` are made plain by."""
    if issubclass(kind, NoneType | str | bool | int):
        return _as_it_is
    if attrs.has(kind):
        return _fields_encoder(kind)
    if is_dataclass(kind):
        names = tuple(field.name for field in dataclass_fields(kind))
        return lambda value: {name: plain(getattr(value, name)) for name in names}
    return next((encoder for kinds, encoder in _FORMS if issubclass(kind, kinds)), _refuse)


def _fields_encoder(kind: Any) -> Callable[[Any], dict[str, Any]]:
    """Encode values of an attrs class as their fields; messages say their role, too."""
    read = _reader(kind)
    if kind not in ROLES:
        return lambda value: _made_plain(read(value))
    role = ROLES[kind]
    return lambda value: {"role": role, **_made_plain(read(value))}


def _as_it_is(value: Any) -> Any:
    return value


def _plain_atom(value: float | bytes | Enum) -> Any:
    """Return an atom for which JSON has no word as text: an infinity, bytes in base64, an enum by its name."""
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return value if isfinite(value) else str(value)


def _refuse(value: Any) -> NoReturn:
    raise TypeError(f"{type(value).__name__} {value!r} has no form in the log")


_FORMS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (  # the first that fits
    (float | bytes | Enum, _plain_atom),
    (date | time, lambda value: value.isoformat()),
    (timedelta | Decimal | Fraction | complex | UUID | PurePath, str),
    (Refusal, lambda refusal: {"bthread": refusal.bthread, "because": plain(refusal.because)}),
    (Mapping, lambda mapping: {str(key): plain(item) for key, item in mapping.items()}),
    (tuple | list, lambda items: [plain(item) for item in items]),
    (Set, lambda items: sorted(map(plain, items), key=dump)),
    (FunctionType | type, lambda named: f"{named.__module__}.{named.__qualname__}"),
    (Event, lambda event: {"event": event.name, "data": plain(event.data)}),
)


def dump(data: Any) -> str:
    """Return one line of JSON, without the line end, which is one line for every reader.

    Lone surrogates are escaped, so that it is valid UTF-8, and so are the characters that some readers of text take
    for the end of a line.
    """
    line = _LEGIBLE.encode(data)
    if line.isascii():
        return line
    line = _LINE_ENDS.sub(lambda found: f"\\u{ord(found[0]):04x}", line)
    try:
        line.encode()
    except UnicodeEncodeError:
        return _ESCAPED.encode(data)
    return line


# Made once: `json.dumps` with these options would make one for every line.
_LEGIBLE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_LINE_ENDS = re.compile("[\x85\u2028\u2029]")
_ESCAPED = json.JSONEncoder(separators=(",", ":"))


Reader = Callable[[Any], dict[str, Any]]
_READERS: dict[type, Reader] = {}  # by kind of event


def _learn_fields(kind: type) -> Reader:
    reader = _READERS[kind] = _reader(kind)
    return reader


def _reader(kind: Any) -> Reader:
    """Return what reads the fields of values of `kind`: those that every record has, and those that are not empty."""
    names, if_any = _names_of(kind), _names_if_any(kind)
    values_of = attrgetter(*names) if len(names) > 1 else lambda value: [getattr(value, name) for name in names]

    def read(value: Any) -> dict[str, Any]:
        fields = dict(zip(names, values_of(value), strict=True))
        for name in if_any:
            if found := getattr(value, name):
                fields[name] = found
        return fields

    return read


def _names_of(kind: Any) -> tuple[str, ...]:
    """Return the fields that every record of a kind has."""
    if not attrs.has(kind):
        return ("data",)
    return tuple(field.name for field in attrs.fields(kind) if field.metadata != IF_ANY)


def _names_if_any(kind: Any) -> tuple[str, ...]:
    """Return the fields that a record has unless they are empty."""
    return tuple(field.name for field in attrs.fields(kind) if field.metadata == IF_ANY) if attrs.has(kind) else ()
