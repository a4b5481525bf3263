"""From a Python function's signature and docstring to the parameters of a tool."""

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, Required, Union

import attrs
from attrs import frozen

from agent.tools.schemas import (
    AnyOf,
    ArrayOf,
    Background,
    Choice,
    Field,
    Limits,
    MappingOf,
    Path,
    Record,
    Rights,
    Scalar,
    ScalarKind,
    Shape,
    ShellCommand,
    TupleOf,
    Url,
)

_SCALARS: dict[Any, ScalarKind] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    None: "null",
    type(None): "null",
}
Mark = Path | ShellCommand | Url | Background | Rights
_UNIONS = (Union, types.UnionType)
_NO_LIMITS = Limits()
_CURE = (
    "use str, int, float, bool, None, Literal, an enum, list, tuple, dict[str, ...], a union, a frozen attrs class "
    "or a TypedDict"
)


def find_shape(annotation: Any, *, inside: tuple[type, ...] = ()) -> Shape:
    """Return the shape of `annotation`. Raises TypeError for what is not supported, naming what is."""
    return _shape(annotation, _NO_LIMITS, inside)


def find_marks(annotation: Any) -> tuple[Mark, ...]:
    """Return the marks in `annotation`: on the whole, on members of a union, on elements of an array or mapping."""
    own = tuple(mark for mark in _metadata(annotation) if isinstance(mark, Mark))
    if typing.get_origin(annotation) is Literal:
        return own
    inner = typing.get_args(annotation)[:1] if _metadata(annotation) else typing.get_args(annotation)
    return own + tuple(mark for part in inner for mark in find_marks(part))


def find_description(annotation: Any) -> str | None:
    """Return the text of `Annotated[X, "text"]`, or None."""
    return next((text for text in _metadata(annotation) if isinstance(text, str)), None)


def _metadata(annotation: Any) -> tuple[Any, ...]:
    return annotation.__metadata__ if typing.get_origin(annotation) is Annotated else ()


def _shape(annotation: Any, limits: Limits, inside: tuple[type, ...]) -> Shape:
    if typing.get_origin(annotation) is Annotated:
        own = next((mark for mark in annotation.__metadata__ if isinstance(mark, Limits)), limits)
        return _shape(annotation.__origin__, own, inside)
    if typing.get_origin(annotation) in _UNIONS:
        return _union(annotation, limits, inside)
    if typing.get_origin(annotation) in (list, tuple, Sequence):
        return _array(annotation, limits, inside)
    if (annotation is None or isinstance(annotation, type)) and annotation in _SCALARS:
        return _scalar(_SCALARS[annotation], limits)
    if limits != _NO_LIMITS:
        raise TypeError(f"{annotation!r} cannot have limits; they are for texts, numbers and arrays")
    return _unlimited(annotation, inside)


def _unlimited(annotation: Any, inside: tuple[type, ...]) -> Shape:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return _choice(arguments, annotation)
    if origin in (dict, Mapping) and arguments[0] is str:
        return MappingOf(find_shape(arguments[1], inside=inside))
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _choice(tuple(annotation), annotation)
    if isinstance(annotation, type) and attrs.has(annotation):
        return _attrs_record(annotation, inside)
    if typing.is_typeddict(annotation):
        return _typed_dict(annotation, inside)
    raise TypeError(f"{annotation!r} has no JSON Schema here; {_CURE}")


def _scalar(kind: ScalarKind, limits: Limits) -> Scalar:
    for_texts = limits.max_length is not None or limits.pattern is not None
    for_numbers = any(limit is not None for limit in (limits.minimum, limits.maximum, limits.above))
    if (for_texts and kind != "string") or (for_numbers and kind not in ("integer", "number")):
        raise TypeError(
            f"its limits do not fit the type {kind}: max_length and pattern are for texts, minimum, maximum and above "
            "for numbers"
        )
    return Scalar(kind, limits)


def _union(annotation: Any, limits: Limits, inside: tuple[type, ...]) -> Shape:
    """Limits on a union are for its members, except null."""
    members = typing.get_args(annotation)
    return AnyOf(tuple(_shape(member, _NO_LIMITS if member is type(None) else limits, inside) for member in members))


def _array(annotation: Any, limits: Limits, inside: tuple[type, ...]) -> Shape:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if limits != Limits(max_length=limits.max_length):
        raise TypeError("its limits do not fit an array, which can have a max_length only")
    if origin is tuple and arguments[1:] != (Ellipsis,):
        if limits != _NO_LIMITS:
            raise TypeError(f"{annotation!r} has its length already; leave the limits out")
        return TupleOf(tuple(find_shape(argument, inside=inside) for argument in arguments))
    return ArrayOf(find_shape(arguments[0], inside=inside), list if origin is list else tuple, limits.max_length)


def _choice(members: tuple[Any, ...], annotation: Any) -> Choice:
    values = tuple(member.value if isinstance(member, Enum) else member for member in members)
    if not values or not all(value is None or type(value) in (str, int, float, bool) for value in values):
        raise TypeError(f"{annotation!r} must list texts, numbers, truth values or None")
    return Choice(values, members)


def _attrs_record(kind: type, inside: tuple[type, ...]) -> Record:
    if not attrs.inspect(kind).is_frozen:
        raise TypeError(f"{kind.__name__} can change; use @attrs.frozen")
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = []
    for attribute in attrs.fields(kind):
        if attribute.validator is not None:
            raise TypeError(f"{kind.__name__}.{attribute.name} has a validator, which a schema cannot tell; use Limits")
        if attribute.name not in hints:
            raise TypeError(f"{kind.__name__}.{attribute.name} has no annotation")
        if attribute.init:
            required = attribute.default is attrs.NOTHING
            name = attribute.alias or attribute.name
            fields.append(_nested_field(name, hints[attribute.name], required, kind, inside))
    return Record(tuple(fields), kind)


def _typed_dict(kind: Any, inside: tuple[type, ...]) -> Record:
    hints = typing.get_type_hints(kind, include_extras=True)
    return Record(
        tuple(
            _nested_field(name, _without_requirement(hint), name in kind.__required_keys__, kind, inside)
            for name, hint in hints.items()
        )
    )


def _without_requirement(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) in (Required, NotRequired) else hint


def _nested_field(name: str, hint: Any, required: bool, kind: type, inside: tuple[type, ...]) -> Field:
    if kind in inside:
        raise TypeError(f"{kind.__name__} contains itself; a tool's parameters have a fixed depth")
    if find_marks(hint):
        raise TypeError(f"{kind.__name__}.{name}: marks belong on the tool's own parameters, where the gate looks")
    return Field(name, find_shape(hint, inside=(*inside, kind)), required, describe(hint))


def describe(hint: Any, text: str | None = None) -> tuple[tuple[str, object], ...]:
    """Return the schema's words about a parameter: `text`, or else what its annotation says."""
    description = text or find_description(hint)
    return (("description", description),) if description else ()


_NAMED = re.compile(r"(\w+): *(.*)")


@frozen
class Signature:
    """What a function tells about itself: its description, parameters, their marks, and who gets the context."""

    description: str
    parameters: Record
    marks: tuple[tuple[str, Mark, object], ...]
    context: str | None


def read_signature(function: Callable[..., Any], context_type: type) -> Signature:
    """Read what `function` says about itself. `marks` are (parameter, mark, default or None).

    Raises TypeError, naming function and parameter, for what cannot be described to a model.
    """
    name = getattr(function, "__name__", repr(function))
    description, texts = _split_docstring(inspect.getdoc(function) or "")
    if not description:
        raise TypeError(f"tool {name!r} has no docstring; say in one what it does, the model reads it")
    hints = _hints(function, name)
    parameters = _named_parameters(function, name)
    context = next((key for key in parameters if hints.get(key) is context_type), None)
    fields: list[Field] = []
    marks: list[tuple[str, Mark, object]] = []
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
