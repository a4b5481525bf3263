import pickle
from enum import Enum
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from attrs import define, field, frozen

from bp import Event, FrozenMapping, freeze
from tests.bp.programs import Ping


class Color(Enum):
    RED = 1


@frozen
class Call:
    id: str
    arguments: Any = field(default=(), converter=freeze)


@frozen
class LooseCall:
    arguments: list[int]


@define
class MutableCall:
    id: str


class Point(NamedTuple):
    x: int
    y: int


@frozen
class Carried(Event):
    content: Any


def answer() -> int:
    return 42


@pytest.mark.parametrize(
    "value",
    [None, True, 1, 1.5, "text", b"bytes", Color.RED, Ping, Ping(1), answer, len, Call("a", {"x": [1]}), Point(1, 2)],
)
def test_values_are_carried_as_they_are(value: Any) -> None:
    assert Carried(value).content is value


def test_mappings_sequences_and_sets_are_frozen_through_and_through() -> None:
    carried = Carried({"list": [1, {"deep": {2, 3}}], "tuple": ([1],)}).content

    assert carried == {"list": (1, {"deep": frozenset({2, 3})}), "tuple": ((1,),)}
    assert isinstance(carried, FrozenMapping)
    assert isinstance(hash(carried), int)


def test_what_is_frozen_is_a_copy() -> None:
    mine = {"numbers": [1]}

    carried = Carried(mine)
    mine["numbers"].append(2)
    mine["more"] = []

    assert carried == Carried({"numbers": [1]})


class HashableDict(dict[str, int]):
    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


@pytest.mark.parametrize("seen_through", [MappingProxyType, HashableDict])
def test_a_mapping_that_can_change_is_copied_even_if_it_has_a_hash(seen_through: Any) -> None:
    mine = {"a": 1}
    mapping = seen_through(mine)

    carried = Carried(mapping)
    mine["a"] = 2
    if isinstance(mapping, dict):
        mapping["a"] = 2

    assert carried == Carried({"a": 1})


@pytest.mark.parametrize(
    "value",
    [object(), bytearray(b"x"), iter([1]), MutableCall("a"), LooseCall([1]), int, [object()]],
)
def test_what_can_change_is_refused_with_the_name_of_the_field(value: Any) -> None:
    with pytest.raises(TypeError, match="event Carried: field 'content':"):
        Carried(value)


def test_a_frozen_value_that_holds_what_can_change_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"LooseCall\.arguments holds a list, which can change; .*converter=freeze"):
        Carried(LooseCall([1]))


def test_a_list_in_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)

    with pytest.raises(TypeError, match="field 'content'"):
        Carried(endless)


def test_a_frozen_mapping_equals_any_mapping_with_its_items() -> None:
    mapping = FrozenMapping({"a": 1, "b": [2]})

    assert mapping == {"b": (2,), "a": 1}
    assert mapping == FrozenMapping([("b", [2]), ("a", 1)])
    assert hash(mapping) == hash(FrozenMapping([("b", [2]), ("a", 1)]))
    assert mapping != {"a": 1}
    assert (list(mapping), len(mapping), mapping["a"]) == (["a", "b"], 2, 1)
    assert pickle.loads(pickle.dumps(mapping)) == mapping
