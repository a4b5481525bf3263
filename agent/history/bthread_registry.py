"""B-threads of this package by what a log says of them: the function, and its arguments as text.

A log is data and must not run code. So the function has to ship with this package, arguments are values that can be
read from text (numbers, words, tuples of them), or functions of the laboratory that say what a call is; and what is
made has to be named in a log exactly as it was.
"""

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import FunctionType
from typing import Any

from agent.log.header import named
from bp import BThread, BThreadFunction

__all__ = ["shipped"]

PREDICATES = ("agent.protocols.actions", "agent.protocols", "agent.lab.settings")


class Illegible(Exception):
    """An argument that cannot be read."""


def shipped(entry: Mapping[str, Any]) -> BThread | None:
    """Return the b-thread of this package that a log names, or None."""
    function = _found(str(entry.get("function")), ("agent",))
    said = entry.get("arguments") or []
    if not isinstance(function, BThreadFunction) or not isinstance(said, list):
        return None
    try:
        made = _made(function, [str(text) for text in said])
    except (Illegible, TypeError, ValueError, SyntaxError):
        return None
    bthread = made.named(str(entry.get("name")))
    return bthread if named(bthread) == entry else None


def _made(function: "BThreadFunction[...]", said: Sequence[str]) -> BThread:
    parameters = inspect.signature(function.__wrapped__).parameters
    positional, by_name = list(parameters.values()), dict[str, Any]()
    values: list[Any] = []
    for number, text in enumerate(said):
        name, equals, value = text.partition("=")
        if equals and name in parameters:
            by_name[name] = _read(value, parameters[name].annotation)
        elif by_name or number >= len(positional):
            raise Illegible(text)
        else:
            values.append(_read(text, positional[number].annotation))
    return function(*values, **by_name)


def _read(text: str, kind: Any) -> Any:
    """Return the value that a text stands for, where a parameter is of this kind."""
    if kind is str:
        return text
    if kind in (int, float):
        return kind(text)
    if getattr(kind, "__origin__", kind) in (tuple, bool):
        return ast.literal_eval(text)
    predicate = _found(text, PREDICATES)
    if not isinstance(predicate, FunctionType) or isinstance(kind, type):
        raise Illegible(text)
    return predicate


def _found(text: str, places: Sequence[str]) -> Callable[..., Any] | None:
    """Return what `module:name` names in one of these packages, or None."""
    module, _, name = text.partition(":")
    if not any(module == place or module.startswith(f"{place}.") for place in places):
        return None
    try:
        return getattr(import_module(module), name, None)
    except ImportError:
        return None
