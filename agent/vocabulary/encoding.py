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
    event = step.event
    record = {
        "step": step.number,
        "super_step": step.super_step,
        "name": event.name,
        "data": _event_encoder(type(event))(event),
        "origin": step.bthread or "outside",
    }
    if step.refusals is not None:
        record["refusals"] = plain(step.refusals)
    return record


def plain(value: Any) -> Any:
    """Return a frozen value as what JSON can hold. Raises TypeError for what has no such form."""
    kind: Any = type(value)
    return _encoder(kind)(value)


Encoder = Callable[[Any], Any]


@cache
def _event_encoder(kind: type) -> Encoder:
    """Return what the payloads of events of `kind` are made plain by."""
    return _fields_encoder(kind, calls_by_id=kind is not ProposedAction)


@cache  # every record asks for each of its values
def _encoder(kind: type) -> Encoder:
    """Return what values of `kind` are made plain by."""
    if issubclass(kind, NoneType | str | bool | int):
        return _as_it_is
    if attrs.has(kind):
        return _fields_encoder(kind)
    if is_dataclass(kind):
        names = tuple(field.name for field in dataclass_fields(kind))
        return lambda value: {name: plain(getattr(value, name)) for name in names}
    return next((encoder for kinds, encoder in _FORMS if issubclass(kind, kinds)), _refuse)


def _fields_encoder(kind: Any, *, calls_by_id: bool = False) -> Encoder:
    """Encode values of a class as their fields; messages say their role, too. `calls_by_id`: the field `call`."""
    fields = attrs.fields(kind) if attrs.has(kind) else ()
    names = [field.name for field in fields if field.metadata != IF_ANY] if attrs.has(kind) else ["data"]
    if_any = [field.name for field in fields if field.metadata == IF_ANY]  # left out when they are empty
    role = {"role": ROLES[kind]} if kind in ROLES else {}

    def encode(value: Any) -> dict[str, Any]:
        data: dict[str, Any] = role.copy()
        for name in names:
            item = getattr(value, name)
            kind_of_item: Any = type(item)
            encoder = _encoder(kind_of_item)
            if encoder is _as_it_is:
                data[name] = item
            elif calls_by_id and name == "call" and type(item) is ToolCall:
                data[name] = item.id
            else:
                data[name] = encoder(item)
        for name in if_any:
            if item := getattr(value, name):
                data[name] = plain(item)
        return data

    return encode


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
    (Mapping, lambda mapping: {str(key): plain(mapping[key]) for key in mapping} if mapping else {}),
    (tuple | list, lambda items: list(map(plain, items))),
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
