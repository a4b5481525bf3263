"""From a function's signature and docstring to a tool's parameters.

The docstring is the description; its part after a line `Args:` describes parameters, one `name: text` each:

    async def search(pattern: str, limit: int = 100) -> str:
        \"\"\"Search all files for a pattern.

        Args:
            pattern: what to look for,
                as a regular expression
            limit: most lines to return
        \"\"\"

A parameter annotated `ToolContext` is no parameter of the tool: it receives the context of the call.
"""

import inspect
import re
import typing
from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from types import FunctionType
from typing import Any

from attrs import frozen

from agent.tools.annotations import describe, find_marks, find_shape
from agent.tools.marks import Path, ShellCommand, Url
from agent.tools.structures import Field, Record

__all__ = ["Signature", "read_signature"]

_NAMED = re.compile(r"(\w+): *(.*)")


@frozen
class Signature:
    """What a function tells about itself: its description, parameters, their marks, and who gets the context."""

    description: str
    parameters: Record
    marks: tuple[tuple[str, Path | ShellCommand | Url, object], ...]
    context: str | None


def read_signature(function: Callable[..., Any], context_type: type) -> Signature:
    """Read what `function` says about itself. `marks` are (parameter, mark, default or None).

    Raises TypeError, naming function and parameter, for what cannot be described to a model.
    """
    words = _words_of(function, context_type)
    known = None if words is None else _KNOWN.get(words)
    if known is None:
        known = _read(function, context_type)
        if words is not None and len(_KNOWN) < MOST_KNOWN:
            _KNOWN[words] = known
    return known


# A tool that is made for each workspace is the same function with other cells: what it says is read once.
_KNOWN: dict[Hashable, Signature] = {}
MOST_KNOWN = 1000


def _words_of(function: Callable[..., Any], context_type: type) -> Hashable:
    """Return everything that a signature is read from, as one value; None where that cannot be told."""
    if not isinstance(function, FunctionType) or vars(function):  # what wraps another says what that one says
        return None
    defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    annotations = tuple(function.__annotations__.items())
    exact = tuple((type(default), default) for default in defaults)  # True is another default than 1
    words = (function.__code__, function.__module__, function.__name__, function.__doc__, annotations, exact)
    try:
        hash(words)
    except TypeError:
        return None
    return (*words, context_type)


def _read(function: Callable[..., Any], context_type: type) -> Signature:
    name = getattr(function, "__name__", repr(function))
    description, texts = _split_docstring(inspect.getdoc(function) or "")
    if not description:
        raise TypeError(f"tool {name!r} has no docstring; say in one what it does, the model reads it")
    hints = _hints(function, name)
    parameters = _named_parameters(function, name)
    context = next((key for key in parameters if hints.get(key) is context_type), None)
    fields: list[Field] = []
    marks: list[tuple[str, Path | ShellCommand | Url, object]] = []
    for key, parameter in parameters.items():
        if key != context:
            fields.append(_field(name, parameter, hints, texts.pop(key, None)))
            default = None if parameter.default is parameter.empty else parameter.default
            marks.extend((key, mark, default) for mark in find_marks(hints[key]))
    if texts:
        raise TypeError(f"tool {name!r} describes {', '.join(texts)}, but has no such parameter")
    return Signature(description, Record(tuple(fields)), tuple(marks), context)


def _hints(function: Callable[..., Any], name: str) -> Mapping[str, Any]:
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise TypeError(f"tool {name!r}: {error}; annotations must name things of its module") from error


def _named_parameters(function: Callable[..., Any], name: str) -> dict[str, inspect.Parameter]:
    parameters = dict(inspect.signature(function).parameters)
    for key, parameter in parameters.items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"tool {name!r}: parameter {key!r} cannot be given by name; a model gives names only")
    return parameters


def _field(tool: str, parameter: inspect.Parameter, hints: Mapping[str, Any], text: str | None) -> Field:
    key = parameter.name
    if key not in hints:
        raise TypeError(f"tool {tool!r}: parameter {key!r} has no annotation; write {key}: str or what it is")
    try:
        shape = find_shape(hints[key])
    except TypeError as error:
        raise TypeError(f"tool {tool!r}: parameter {key!r}: {error}") from error
    required = parameter.default is parameter.empty
    return Field(key, shape, required, describe(hints[key], text) + _default(parameter))


def _default(parameter: inspect.Parameter) -> tuple[tuple[str, object], ...]:
    value = parameter.default
    if value is parameter.empty or value is None:
        return ()
    value = value.value if isinstance(value, Enum) else value
    return (("default", value),) if type(value) in (str, int, float, bool) else ()


def _split_docstring(docstring: str) -> tuple[str, dict[str, str]]:
    """Split a docstring into the description and the texts of its parameters."""
    description, _, section = f"\n{docstring}\n".partition("\nArgs:\n")
    texts: dict[str, str] = {}
    indent = len(section) - len(section.lstrip(" "))
    name = None
    for line in section.splitlines():
        named = _NAMED.fullmatch(line[indent:])
        if named is not None:
            name = named[1]
            texts[name] = named[2]
        elif name is not None and line.strip():
            texts[name] = f"{texts[name]} {line.strip()}".strip()
    return description.strip(), texts
