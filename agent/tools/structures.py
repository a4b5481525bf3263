"""Shapes that hold other shapes: arrays, objects, records with named fields, and unions."""

# ruff: noqa: D102 - what the methods promise is said once, in `Shape`

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import frozen

from agent.tools.shapes import Scalar, Schema, Shape, shown

__all__ = ["AnyOf", "ArrayOf", "Field", "MappingOf", "Record", "TupleOf"]

_NULL = Scalar("null")
_SHOWN_CHARACTERS = 60


@frozen
class ArrayOf:
    """Any number of elements of one shape."""

    element: Shape
    into: Callable[[Iterator[Any]], Any] = list
    max_length: int | None = None

    def schema(self) -> Schema:
        limit: Schema = {} if self.max_length is None else {"maxItems": self.max_length}
        return {"type": "array", "items": self.element.schema()} | limit

    def problems(self, value: object, path: str) -> Iterator[str]:
        if not isinstance(value, list | tuple):
            yield f"{path}: expected an array, found {shown(value)}"
            return
        if self.max_length is not None and len(value) > self.max_length:
            yield f"{path}: expected at most {self.max_length} elements, found {len(value)}"
        for index, element in enumerate(value):
            yield from self.element.problems(element, f"{path}[{index}]")

    def build(self, value: Any) -> Any:
        return self.into(self.element.build(element) for element in value)


@frozen
class TupleOf:
    """An array with a fixed number of elements, each with a shape of its own."""

    elements: tuple[Shape, ...]

    def schema(self) -> Schema:
        count = len(self.elements)
        first: Schema = {"prefixItems": [element.schema() for element in self.elements]} if self.elements else {}
        return {"type": "array"} | first | {"items": False, "minItems": count, "maxItems": count}

    def problems(self, value: object, path: str) -> Iterator[str]:
        if not isinstance(value, list | tuple) or len(value) != len(self.elements):
            yield f"{path}: expected an array of {len(self.elements)} elements, found {shown(value)}"
            return
        for index, (shape, element) in enumerate(zip(self.elements, value, strict=True)):
            yield from shape.problems(element, f"{path}[{index}]")

    def build(self, value: Any) -> Any:
        return tuple(shape.build(element) for shape, element in zip(self.elements, value, strict=True))


@frozen
class MappingOf:
    """An object with any keys, whose values have one shape."""

    element: Shape

    def schema(self) -> Schema:
        return {"type": "object", "additionalProperties": self.element.schema()}

    def problems(self, value: object, path: str) -> Iterator[str]:
        if not isinstance(value, Mapping):
            yield f"{path}: expected an object, found {shown(value)}"
            return
        for key, element in value.items():
            if not isinstance(key, str):
                yield f"{path}: expected texts as keys, found {shown(key)}"
            yield from self.element.problems(element, _below(path, str(key)))

    def build(self, value: Any) -> Any:
        return {key: self.element.build(element) for key, element in value.items()}


@frozen
class Field:
    """A named part of a record. `extra` are schema keywords that say more and forbid nothing: description, default."""

    name: str
    shape: Shape
    required: bool = True
    extra: tuple[tuple[str, object], ...] = ()


@frozen
class Record:
    """An object with these fields and no others."""

    fields: tuple[Field, ...]
    into: Callable[..., Any] = dict

    def schema(self) -> Schema:
        return {
            "type": "object",
            "properties": {field.name: field.shape.schema() | dict(field.extra) for field in self.fields},
            "required": [field.name for field in self.fields if field.required],
            "additionalProperties": False,
        }

    def problems(self, value: object, path: str) -> Iterator[str]:
        if not isinstance(value, Mapping):
            yield f"{path or 'arguments'}: expected an object, found {shown(value)}"
            return
        for field in self.fields:
            if field.name in value:
                yield from field.shape.problems(value[field.name], _below(path, field.name))
            elif field.required:
                yield f"{_below(path, field.name)}: missing"
        yield from self._unknown(value, path)

    def build(self, value: Any) -> Any:
        return self.into(
            **{field.name: field.shape.build(value[field.name]) for field in self.fields if field.name in value}
        )

    def _unknown(self, value: Mapping[Any, object], path: str) -> Iterator[str]:
        known = [field.name for field in self.fields]
        cure = f"use {', '.join(known)}" if known else "there are none"
        for key in value:
            if key not in known:
                yield f"{_below(path, str(key))}: unknown; {cure}"


@frozen
class AnyOf:
    """A value that fits at least one of these shapes; the first one that fits builds it."""

    shapes: tuple[Shape, ...]

    def schema(self) -> Schema:
        return {"anyOf": [shape.schema() for shape in self.shapes]}

    def problems(self, value: object, path: str) -> Iterator[str]:
        found = [(shape, list(shape.problems(value, path))) for shape in self.shapes]
        if all(problems for _, problems in found):
            telling = [problems for shape, problems in found if shape != _NULL] or [found[0][1]]
            yield from telling[0] if len(telling) == 1 else [_either(path, telling)]

    def build(self, value: Any) -> Any:
        return next(shape.build(value) for shape in self.shapes if not any(shape.problems(value, "")))


def _below(path: str, name: str) -> str:
    shortened = name if len(name) <= _SHOWN_CHARACTERS else f"{name[:_SHOWN_CHARACTERS]}..."
    return f"{path}.{shortened}" if path else shortened


def _either(path: str, found: list[list[str]]) -> str:
    """Say in one problem what each shape of a union expected; what is wrong deeper inside is kept as it is."""
    choices = dict.fromkeys("; ".join(problems).removeprefix(f"{path}: ") for problems in found)
    return f"{path}: " + ", or ".join(choices)
