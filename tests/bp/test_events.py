import copy
import gc
import pickle
from collections import namedtuple
from dataclasses import InitVar, dataclass, make_dataclass
from dataclasses import field as dataclass_field
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path, PurePosixPath, PureWindowsPath
from types import MappingProxyType
from typing import Any, Generic, TypeVar
from uuid import UUID
from zoneinfo import ZoneInfo

import attrs
import pytest
from attrs import define, field, frozen, make_class

import bp
from bp import ALL, NONE, BProgram, BThreadError, Event, FrozenMapping, contains, event, freeze, sync, where
from bp.events import as_event_set
from tests.bp.programs import COLD, HOT, Ping, Pong, after, check_refused, says, trace
from tests.tables import rows


class Undecorated(Event):
    x: int


@frozen
class LoudPing(Ping):
    volume: int = 11


def test_a_kind_is_named_by_its_class_in_snake_case() -> None:
    @frozen
    class HTTPAnswerGiven(Event):
        pass

    assert (Ping.name, LoudPing.name, HTTPAnswerGiven.name) == ("ping", "loud_ping", "http_answer_given")
    assert Ping(1).name == "ping"


def test_events_are_equal_by_kind_and_data() -> None:
    assert Ping(1) == Ping(1)
    assert hash(Ping(1)) == hash(Ping(1))
    assert Ping(1) != Ping(2)
    others: list[Event] = [Pong(1), LoudPing(1), event("ping", data=1)]
    assert Ping(1) not in others


def test_a_plain_event_is_one_object_for_each_name() -> None:
    assert event("hot") is HOT
    assert copy.deepcopy(HOT) is HOT
    assert pickle.loads(pickle.dumps(HOT)) is HOT


def test_a_plain_event_may_carry_data() -> None:
    warm = event("temperature", data={"celsius": [21, 22]})

    assert warm == event("temperature", data={"celsius": (21, 22)})
    assert warm != event("temperature")
    assert warm.data["celsius"] == (21, 22)
    assert warm.name == "temperature"
    assert hash(warm) == hash(pickle.loads(pickle.dumps(warm)))
    assert repr(event("temperature", data=21)) == "event('temperature', data=21)"


def test_events_survive_pickling() -> None:
    for happened in (HOT, event("temperature", data=(1, 2)), Ping(1), LoudPing(1)):
        assert pickle.loads(pickle.dumps(happened)) == happened
    assert pickle.loads(pickle.dumps(Ping)) is Ping


def test_events_cannot_be_changed() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Ping(1).value = 2  # type: ignore[misc]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        HOT.name = "cold"


def test_a_field_may_not_be_called_name() -> None:
    with pytest.raises(TypeError, match="Named may not have a field called 'name'"):

        class Named(Event):
            name: str  # type: ignore[misc]


def test_plain_events_without_a_reference_are_forgotten() -> None:
    from bp.events import _NAMED

    event("met only once")
    gc.collect()

    assert "met only once" not in _NAMED


def kind(class_name: str, /, **body: Any) -> Any:
    """Return the class of an event kind before attrs gets it."""
    return type(class_name, (Event,), body)


def test_a_kind_must_be_a_frozen_attrs_class_compared_by_all_its_fields() -> None:
    frozen_dataclass: Any = dataclass(frozen=True)
    check_refused(
        (lambda: frozen(kind("Named", name=field())), "called 'name'"),
        (lambda: frozen_dataclass(kind("Measured")), "kind Measured: put attrs' @frozen on the class, not @dataclass"),
        (lambda: kind("Plain")(), "is not frozen; put attrs' @frozen on the class"),
        (lambda: define(kind("Mutable", value=field()))(1), "is not frozen; put attrs' @frozen on the class"),
        (lambda: type("Inherits", (Ping,), {})(1), "is not frozen; put attrs' @frozen on the class"),
        (lambda: frozen(eq=False)(kind("ByIdentity"))(), "not hashable values; leave eq and hash to @frozen"),
        (lambda: frozen(unsafe_hash=False)(kind("Unhashable"))(), "not hashable values; leave eq and hash to @frozen"),
        (lambda: frozen(kind("Annotated", note=field(eq=False)))("x"), "field 'note' must count"),
        (lambda: kind("Hooked", __attrs_post_init__=str), "may not define __attrs_post_init__"),
        (lambda: Event(), r"event\('a'\) for a plain one"),
        (lambda: Event("a"), r"event\('a'\) for a plain one"),
    )


def test_a_kind_and_a_plain_event_of_one_name_are_an_error() -> None:
    clashes = [
        says(sync(request=Ping(1)), sync(request=event("ping"))),
        says(sync(wait_for=Ping, block=event("ping"))),
        says(sync(wait_for=where(Ping, value=1) | where("ping", data=1))),
    ]

    for clash in clashes:
        with pytest.raises(BThreadError, match="'ping' is the name of an event kind and of a plain event"):
            trace(BProgram(clash))


def test_the_base_of_all_kinds_is_no_set() -> None:
    with pytest.raises(BThreadError, match="use ALL"):
        trace(BProgram(says(sync(wait_for=Event))))


def is_odd(happened: Any) -> bool:
    return bool(happened.value % 2)


EVENTS = [HOT, COLD, event("hot", data=1), *map(Ping, range(3)), *map(Pong, range(3)), Pong(1, "x"), LoudPing(1)]


def members(events: Any) -> list[Event]:
    """Return the known events in a set; an index must find the same."""
    found = [happened for happened in EVENTS if contains(as_event_set(events), happened)]
    for happened in EVENTS:
        program = BProgram(says(sync(block=events)))
        trace(program)
        assert bool(program.blockers(happened)) is (happened in found)
    return found


PINGS: list[Event] = [Ping(0), Ping(1), Ping(2), LoudPing(1)]
MEMBERS: list[tuple[Any, list[Event]]] = [
    (HOT, [HOT]), (Ping, PINGS), (LoudPing, [LoudPing(1)]), (where("hot"), [HOT, event("hot", data=1)]),
    (where("hot", data=1), [event("hot", data=1)]), (where(Ping, value=1), [Ping(1), LoudPing(1)]),
    (where((Ping, LoudPing), is_odd), [Ping(1), LoudPing(1)]), (where(Pong, value=1, note="x"), [Pong(1, "x")]),
    (where(Pong, is_odd, note="x"), [Pong(1, "x")]), (Ping & ~Ping(1), [Ping(0), Ping(2), LoudPing(1)]),
    (Ping & where((Ping, Pong), value=1), [Ping(1), LoudPing(1)]), (~(Ping | Pong), [HOT, COLD, event("hot", data=1)]),
    (Ping(1) & where(Ping, is_odd), [Ping(1)]), ([HOT, (COLD, [Ping])], [HOT, COLD, *PINGS]),
    ([COLD] | HOT, [HOT, COLD]), (ALL, EVENTS), (NONE, []), ([], []),
]  # fmt: skip


def test_each_set_contains_its_events_and_no_others() -> None:
    assert [events for events, expected in MEMBERS if members(events) != expected] == []
    assert Ping(1) in Ping
    assert Ping(1) not in ~Ping
    assert contains([HOT, [Ping]], Ping(1))


def test_sets_that_say_the_same_are_one() -> None:
    assert where(Ping) is Ping
    assert where((Ping, Pong)) == Ping | Pong
    assert sync(wait_for=[HOT, Ping]) == sync(wait_for=(Ping, HOT)) == sync(wait_for=HOT | Ping)
    assert Ping | [COLD] == [COLD] | Ping == Ping | COLD == [Ping] | COLD
    assert HOT | HOT is HOT
    assert HOT | NONE is HOT
    assert HOT | ALL == ALL
    assert Ping & ALL is Ping
    assert Ping & NONE == NONE
    assert ~~(HOT | COLD) == HOT | COLD


def test_event_sets_are_values() -> None:
    """Equal by what they say, hashable, so that they can be keys, and picklable."""
    pairs: list[tuple[Any, Any]] = [
        (HOT | COLD | Ping, Ping | (COLD | HOT)),
        (Ping & where(Ping, value=1), where(Ping, value=1) & Ping),
        (where(Pong, value=1, note="x"), where(Pong, note="x", value=1)),
        (where(Ping, is_odd), where(Ping, is_odd)),
        (~HOT, ~event("hot")),
    ]

    for one, other in pairs:
        assert one == other
        assert {one: "found"}[other] == "found"
        assert pickle.loads(pickle.dumps(one)) == one
    assert where(Ping, value=1) != where(Pong, value=1)
    assert ~HOT != HOT


def test_a_value_in_where_is_frozen_like_a_payload() -> None:
    program = BProgram(says(sync(wait_for=where("list", data=[1, {"a": [2]}]))))

    receipt = after(program, event("list", data=(1, {"a": (2,)})))[0]

    assert receipt.state == "taken"
    assert program.status == "finished"


def test_a_value_that_is_no_event_set_is_refused_at_that_line() -> None:
    check_refused(
        (lambda: where(Ping, valu=1), "Ping has no field 'valu'; it has value"),
        (lambda: where(Undecorated, x=1), "Undecorated has no field 'x'; it has none; is it decorated with @frozen?"),
        (lambda: where((Ping, Pong), note="x"), "Ping has no field 'note'"),
        (lambda: where("hot", value=1), "'hot' has no field 'value'; it has data"),
        (lambda: where(Ping(1), value=1), "this is no event kind"),
        (lambda: where([Ping], value=1), "this is no event kind"),
        (
            lambda: where(Ping, 3),  # type: ignore[arg-type]
            "a predicate is a function of the event",
        ),
        (lambda: where(Ping, value=object()), "can change"),
        (lambda: HOT | "cold", "'cold' is no event set"),
        (lambda: Ping & 3, "3 is no event set"),
        (lambda: sync(wait_for="hot"), "'hot' is no event set; use an event, an event kind"),
        (lambda: sync(block={HOT}), "is no event set"),
        (lambda: sync(interrupt=[HOT, None]), "None is no event set"),
        (lambda: contains("hot", HOT), "no event"),
        (lambda: contains(HOT, Ping), "no event"),
        (lambda: event(""), "the name of an event is a text"),
        (lambda: event(HOT), "the name of an event is a text"),  # type: ignore[arg-type]
    )


def fails(happened: Any) -> bool:
    raise LookupError(f"no {happened.value}")


def says_yes(happened: Any) -> bool:
    return "yes"  # type: ignore[return-value]


@rows(("predicate", "found"), [(fails, "raised LookupError: no 1"), (says_yes, r"gave 'yes' for Ping\(value=1\)")])
@rows("word", ["wait_for", "block", "interrupt", "refuse"])
def test_a_predicate_that_fails_stops_the_program_before_anything_happens(
    word: str, predicate: Any, found: str
) -> None:
    notes: list[Any] = []
    words: dict[str, Any] = {word: where(Ping, predicate)} | ({"because": "no"} if word == "refuse" else {})
    program = BProgram(says(sync(request=Ping(1))), says(sync(**words)).named("guard"), listeners=[notes.append])

    with pytest.raises(bp.EventSetError, match=f"b-thread 'guard': the predicate of where.* {found}") as caught:
        trace(program)

    assert caught.value.bthread == "guard"
    assert caught.value.event_set == where(Ping, predicate)
    assert caught.value.event == Ping(1)
    assert (notes, program.status) == ([], "failed")


class Color(Enum):
    RED = 1


@frozen
class Call:
    id: str
    arguments: Any = field(default=(), converter=freeze)


LooseCall = make_class("LooseCall", ["arguments"], frozen=True)
MutableCall = make_class("MutableCall", ["id"])
Point = namedtuple("Point", "x y")
T = TypeVar("T")


@define(unsafe_hash=True)
class HashableCall:
    id: str


@dataclass(frozen=True)
class Amount:
    euros: Decimal
    due: date | None = None


OneAmount: Any = make_dataclass("OneAmount", [], bases=(Amount,), frozen=True)


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


VALUES: list[Any] = [
    *(None, True, 1, 1.5, "text", b"bytes", Color.RED, Ping, Ping(1), answer, len, Call("a", {"x": [1]}), Point(1, 2)),
    *(date(2024, 2, 29), time(12, 30), time(12, tzinfo=UTC), timedelta(days=1), UTC, timezone(timedelta(hours=2))),
    *(datetime(2024, 2, 29, 12), datetime(2024, 2, 29, 12, tzinfo=UTC), datetime(2024, 2, 29, tzinfo=timezone.min)),
    *(Decimal("1.10"), Decimal("Infinity"), Fraction(1, 3), 1 + 2j, UUID(int=7)),
    *(Path("a"), PurePosixPath("a/b"), PureWindowsPath("C:/a")),
    *(Amount(Decimal(1), date(2024, 1, 1)), Box((1, Box("deep"))), Scaled(1.0, 2.0), OneAmount(Decimal(1))),
]


def test_values_are_carried_as_they_are() -> None:
    assert [value for value in VALUES if Carried(value).content is not value] == []


def test_mappings_sequences_and_sets_are_frozen_through_and_through() -> None:
    carried = Carried({"list": [1, {"deep": {2, 3}}], "tuple": ([1],)}).content

    assert carried == {"list": (1, {"deep": frozenset({2, 3})}), "tuple": ((1,),)}
    assert isinstance(carried, FrozenMapping)
    assert isinstance(hash(carried), int)


Noon, Money, MyPath = (type("Own", (kind,), {}) for kind in (datetime, Decimal, PurePosixPath))
Changeable: Any = make_dataclass("Changeable", ["x"])
ById: Any = make_dataclass("ById", ["x"], frozen=True, eq=False)
Loose: Any = make_dataclass("Loose", ["items"], frozen=True, unsafe_hash=True)
MoreCall = type("MoreCall", (Call,), {})
OwnZone: Any = type("OwnZone", (tzinfo,), {"utcoffset": lambda *_: timedelta(0)})
CallById = make_class("CallById", ["id"], frozen=True, eq=False)


class MoreAmount(Amount):
    def __init__(self) -> None:
        super().__init__(Decimal(1))
        self.__dict__["more"] = []


def in_itself() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


NAMED_ZONE = datetime(2024, 7, 1, tzinfo=ZoneInfo("UTC"))
REFUSED: dict[str, list[Any]] = {
    "": [
        *(Noon(2024, 1, 1), datetime(2024, 1, 1, tzinfo=OwnZone()), time(1, tzinfo=OwnZone()), OwnZone()),
        *(Decimal("NaN"), Decimal("sNaN"), complex("nan"), complex(0, float("nan")), Money(1), MyPath("a")),
        *(Changeable(1), ById(1), Box([1]), Box(Changeable(1)), MoreAmount(), MoreCall("a"), CallById("a")),
        *(object(), bytearray(b"x"), iter([1]), MutableCall("a"), HashableCall("a"), int, [object()], in_itself()),
    ],
    r".* holds a list, which can change; .*converter=freeze.*__post_init__": [Loose([1]), LooseCall([1])],
    r".* time zone .*astimezone\(datetime\.UTC\)": [NAMED_ZONE, NAMED_ZONE.timetz()],
}


def test_a_mutable_value_in_an_event_is_refused_with_the_name_of_the_field() -> None:
    for cure, values in REFUSED.items():
        for value in values:
            with pytest.raises(TypeError, match=f"event Carried: field 'content':{cure}"):
                Carried(value)


class HashableDict(dict[str, int]):
    def __hash__(self) -> int:  # type: ignore[override]
        return id(self)


@rows("seen_through", [MappingProxyType, HashableDict])
def test_a_mapping_that_can_change_is_copied_even_if_it_has_a_hash(seen_through: Any) -> None:
    mine = {"a": 1}
    mapping = seen_through(mine)

    carried = Carried(mapping)
    mine["a"] = 2
    if isinstance(mapping, dict):
        mapping["a"] = 2

    assert carried == Carried({"a": 1})


def test_a_frozen_mapping_equals_any_mapping_with_its_items() -> None:
    mapping = FrozenMapping({"a": 1, "b": [2]})

    assert mapping == {"b": (2,), "a": 1}
    assert mapping == FrozenMapping([("b", [2]), ("a", 1)])
    assert hash(mapping) == hash(FrozenMapping([("b", [2]), ("a", 1)]))
    assert mapping not in ({"a": 1}, 3)
    assert (list(mapping), len(mapping), mapping["a"]) == (["a", "b"], 2, 1)
    assert pickle.loads(pickle.dumps(mapping)) == mapping


@frozen
class Login(Event):
    who: str
    secret: str = field(repr=lambda value: "***")
    hidden: int = field(repr=False, default=1)
    count: int = field(init=False, default=3)


def test_an_event_is_shown_as_its_fields_say_so_that_a_secret_can_be_masked() -> None:
    assert repr(Login("ann", "pw")) == "Login(who='ann', secret=***, count=3)"
