import pickle
from dataclasses import InitVar, dataclass
from dataclasses import field as dataclass_field
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from attrs import define, field, frozen

from bp import Event, FrozenMapping, contains, freeze, where
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


T = TypeVar("T")


@dataclass(frozen=True)
class Amount:
    euros: Decimal
    due: date | None = None


@dataclass(frozen=True)
class OneAmount(Amount):
    pass


@dataclass(frozen=True, slots=True)
class Box(Generic[T]):
    content: T


@dataclass(frozen=True)
class Scaled:
    length: float
    factor: InitVar[float] = 1.0
    unit: str = dataclass_field(default="m", compare=False)


@frozen
class Carried(Event):
    content: Any


def answer() -> int:
    return 42


@pytest.mark.parametrize(
    "value",
    [
        *(
            None,
            True,
            1,
            1.5,
            "text",
            b"bytes",
            Color.RED,
            Ping,
            Ping(1),
            answer,
            len,
            Call("a", {"x": [1]}),
            Point(1, 2),
        ),
        *(date(2024, 2, 29), time(12, 30), time(12, tzinfo=UTC), timedelta(days=1), UTC, timezone(timedelta(hours=2))),
        *(datetime(2024, 2, 29, 12), datetime(2024, 2, 29, 12, tzinfo=UTC), datetime(2024, 2, 29, tzinfo=timezone.min)),
        *(Decimal("1.10"), Decimal("Infinity"), Fraction(1, 3), 1 + 2j, UUID(int=7)),
        *(Path("a"), PurePosixPath("a/b"), PureWindowsPath("C:/a")),
        *(Amount(Decimal(1), date(2024, 1, 1)), Box((1, Box("deep"))), Scaled(1.0, 2.0), OneAmount(Decimal(1))),
    ],
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


class Noon(datetime):
    hidden: list[int]


class OwnZone(tzinfo):
    def utcoffset(self, _: datetime | None) -> timedelta:
        return timedelta(0)

    def dst(self, _: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, _: datetime | None) -> str:
        return "own"


class Money(Decimal):
    pass


class MyPath(PurePosixPath):
    pass


@dataclass
class Changeable:
    x: int


@dataclass(frozen=True, eq=False)
class ById:
    x: int


@dataclass(frozen=True, unsafe_hash=True)
class Loose:
    items: list[int]


class MoreAmount(Amount):
    def __init__(self) -> None:
        super().__init__(Decimal(1))
        self.__dict__["more"] = []


class MoreCall(Call):
    pass


@frozen(eq=False)
class CallById:
    id: str


@pytest.mark.parametrize(
    "value",
    [
        *(Noon(2024, 1, 1), datetime(2024, 1, 1, tzinfo=OwnZone()), time(1, tzinfo=OwnZone()), OwnZone()),
        *(Decimal("NaN"), Decimal("sNaN"), complex("nan"), complex(0, float("nan")), Money(1), MyPath("a")),
        *(Changeable(1), ById(1), Loose([1]), Box([1]), Box(Changeable(1)), MoreAmount(), MoreCall("a"), CallById("a")),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_only_looks_like_a_value_is_refused(value: Any) -> None:
    """Subclasses may keep more than they show, own time zones may change, and NaN equals nothing."""
    with pytest.raises(TypeError, match="event Carried: field 'content':"):
        Carried(value)


@pytest.mark.parametrize("kind", [datetime, time])
def test_a_named_time_zone_is_refused_with_the_cure(kind: Any) -> None:
    value = datetime(2024, 7, 1, tzinfo=ZoneInfo("UTC"))

    with pytest.raises(TypeError, match=r"time zone .*astimezone\(datetime\.UTC\)"):
        Carried(value if kind is datetime else value.timetz())


def test_a_dataclass_that_holds_what_can_change_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match=r"Loose\.items holds a list, which can change; .*__post_init__"):
        Carried(Loose([1]))


def test_values_in_events_are_found_by_event_sets_and_pickled() -> None:
    due = Carried(Amount(Decimal("1.50"), date(2024, 1, 1)))

    assert contains(where(Carried, content=Amount(Decimal("1.5"), date(2024, 1, 1))), due)
    assert pickle.loads(pickle.dumps(due)) == due


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
