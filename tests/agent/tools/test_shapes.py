"""One description gives schema and check: what the schema accepts the code accepts, and nothing else."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Union

from attrs import NOTHING, field, make_class
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.tools.definition import find_shape
from agent.tools.schemas import Limits


def accepts(schema: Any, value: Any) -> bool:
    """Judge by the words of JSON Schema 2020-12 alone; an unknown word is an error of this test."""
    if isinstance(schema, bool):
        return schema
    words = dict(schema)
    return all(WORDS[word](words, argument, value) for word, argument in words.items())


def is_type(_: Any, kind: str, value: Any) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if isinstance(value, int | float):
        return kind == "number" or (kind == "integer" and value == int(value))
    return kind == {str: "string", list: "array", dict: "object", type(None): "null"}[type(value)]


def is_same(left: Any, right: Any) -> bool:
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


WORDS: Mapping[str, Any] = {
    "type": is_type,
    "enum": lambda _, allowed, value: any(is_same(value, one) for one in allowed),
    "minimum": lambda _, limit, value: not is_number(value) or value >= limit,
    "maximum": lambda _, limit, value: not is_number(value) or value <= limit,
    "exclusiveMinimum": lambda _, limit, value: not is_number(value) or value > limit,
    "maxLength": lambda _, limit, value: not isinstance(value, str) or len(value) <= limit,
    "pattern": lambda _, pattern, value: (
        not isinstance(value, str) or re.search(pattern.replace("$", r"\Z"), value, re.ASCII) is not None
    ),
    "minItems": lambda _, limit, value: not isinstance(value, list) or len(value) >= limit,
    "maxItems": lambda _, limit, value: not isinstance(value, list) or len(value) <= limit,
    "prefixItems": lambda _, first, value: not isinstance(value, list) or all(map(accepts, first, value)),
    "items": lambda words, schema, value: (
        not isinstance(value, list) or all(accepts(schema, one) for one in value[len(words.get("prefixItems", ())) :])
    ),
    "properties": lambda _, named, value: (
        not isinstance(value, dict) or all(accepts(named[key], value[key]) for key in named if key in value)
    ),
    "required": lambda _, names, value: not isinstance(value, dict) or all(name in value for name in names),
    "additionalProperties": lambda words, schema, value: (
        not isinstance(value, dict)
        or all(accepts(schema, value[key]) for key in value if key not in words.get("properties", {}))
    ),
    "anyOf": lambda _, choices, value: any(accepts(choice, value) for choice in choices),
    "description": lambda *_: True,
    "default": lambda *_: True,
}

NAMES = st.sampled_from(["a", "b", "c"])
PLAIN = st.sampled_from([str, int, float, bool, None])
LITERALS = st.lists(st.sampled_from(["a", "b", "", 0, 1, True, False, None]), min_size=1, max_size=3).map(
    lambda values: Literal[tuple(values)]
)
LIMITED = st.one_of(
    st.builds(lambda low, high: Annotated[int, Limits(minimum=low, maximum=high)], *[st.integers(-3, 3)] * 2),
    st.builds(lambda low: Annotated[float, Limits(above=low)], st.integers(-3, 3)),
    st.builds(lambda longest: Annotated[str, Limits(max_length=longest)], st.integers(0, 3)),
    st.sampled_from([r"a+", r"\d?", r"a|b", r"^ab$", r"[^a]*"]).map(lambda text: Annotated[str, Limits(pattern=text)]),
)


def made_record(kinds: Mapping[str, Any], optional: bool) -> type:
    fields = {
        name: field(type=kind or type(None), default=None if optional and name == "b" else NOTHING, kw_only=True)
        for name, kind in kinds.items()
    }
    return make_class("Made", fields, frozen=True)


def wider(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        inner.map(lambda kind: list[kind]),  # type: ignore[valid-type]
        inner.map(lambda kind: Annotated[list[kind], Limits(max_length=2)]),  # type: ignore[valid-type]
        inner.map(lambda kind: tuple[kind, ...]),  # type: ignore[valid-type]
        st.lists(inner, max_size=3).map(lambda kinds: tuple[tuple(kinds)]),  # type: ignore[misc]
        inner.map(lambda kind: dict[str, kind]),  # type: ignore[valid-type]
        st.lists(inner, min_size=2, max_size=3).map(lambda kinds: Union[tuple(kinds)]),  # noqa: UP007
        st.builds(made_record, st.dictionaries(NAMES, inner, max_size=3), st.booleans()),
    )


ANNOTATIONS = st.recursive(PLAIN | LITERALS | LIMITED, wider, max_leaves=5)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-4, 4)
    | st.sampled_from([0.0, 1.0, -2.0, 0.5, 1e300])
    | st.sampled_from(["", "a", "aa", "b", "ab", "1", "a\n", "é", "٣"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


def fitting(schema: Any) -> st.SearchStrategy[Any]:
    """Values that probably fit `schema`, so that both answers are common."""
    match schema:
        case {"anyOf": choices}:
            return st.one_of([fitting(choice) for choice in choices])
        case {"enum": values}:
            return st.sampled_from(values)
        case {"prefixItems": first}:
            return st.tuples(*map(fitting, first)).map(list)
        case {"type": "array", "items": items}:
            return st.lists(fitting(items), max_size=3) if items is not False else st.just([])
        case {"properties": named}:
            return st.fixed_dictionaries({name: fitting(part) for name, part in named.items()})
        case {"additionalProperties": part}:
            return st.dictionaries(NAMES, fitting(part), max_size=2)
        case _:
            return VALUES


@given(st.data())
@settings(max_examples=600, deadline=None)
def test_what_the_schema_accepts_the_code_accepts_and_the_other_way_round(data: st.DataObject) -> None:
    shape = find_shape(data.draw(ANNOTATIONS, "annotation"))
    schema = shape.schema()
    value = data.draw(fitting(schema) | VALUES, "value")

    problems = list(shape.problems(value, "x"))

    assert (not problems) == accepts(schema, value), problems
    if not problems:
        shape.build(value)


@given(st.floats())
def test_numbers_are_finite(value: float) -> None:
    problems = list(find_shape(float).problems(value, "x"))

    assert bool(problems) == (value != value or value in (float("inf"), float("-inf")))


@given(st.integers())
def test_messages_stay_short_whatever_the_value(size: int) -> None:
    for value in ("x" * 10_000, 10 ** min(abs(size) % 6_000, 6_000), ["x"] * 10_000, {"y" * 5_000: 1}):
        for problem in find_shape(Literal["a"]).problems(value, "x"):
            assert len(problem) < 250
