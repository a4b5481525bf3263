"""Two local states are the same when nothing that comes can tell them apart."""

import enum
import functools
import inspect
import itertools
import operator
import types
import weakref
from collections import Counter, OrderedDict, UserDict, UserList, UserString, defaultdict, deque, namedtuple
from collections.abc import Callable, Generator
from dataclasses import InitVar, make_dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import define, frozen

from bp import BThread, BThreadBody, VerificationError, any_of, bthread, event, start, sync, verify, where
from bp.verification.fingerprint import Description, check_interpreter, fingerprint_of_value, live_locals
from tests.bp.programs import Ping, kinds, requests
from tests.tables import rows

A, B, C = event("a"), event("b"), event("c")


class Color(Enum):
    RED = 1
    BLUE = 2


@frozen
class Point:
    x: int
    y: Any = 0


@define
class Counting:
    n: int = 0


class Plain:
    """Compared by identity: it has no value."""


def looks(function: Any, *arguments: Any) -> list[Any]:
    """Return how a generator looks at each of its yields, each time from a fresh start."""
    found: list[Any] = []
    while True:
        body = function(*arguments)
        try:
            for _ in range(len(found) + 1):
                body.send(None)
        except StopIteration:
            return found
        found.append(Description().value(body, ""))


def straight() -> Generator[Any, Any, Any]:
    yield "x"
    yield "x"
    yield "x"


def over_equal_elements() -> Generator[Any, Any, Any]:
    for _ in ("x", "x", "x"):
        yield


def nested_loops() -> Generator[Any, Any, Any]:
    for _ in (0, 0):
        for _ in (1, 1):
            yield


def twice_delegating() -> Generator[Any, Any, Any]:
    for _ in (0, 0):
        yield from over_equal_elements()
        yield from straight()


def in_an_expression() -> Generator[Any, Any, Any]:
    _ = (1, (yield), (yield), [(yield)])


def with_a_value_on_the_stack() -> Generator[Any, Any, Any]:
    for number in (1, 2):
        _ = number + ((yield) or 0)


def in_a_handler() -> Generator[Any, Any, Any]:
    for _ in (0, 0):
        try:
            raise ValueError
        except ValueError:
            for _ in ("x", "x"):
                yield


def in_a_finally() -> Generator[Any, Any, Any]:
    for _ in (0, 0):
        try:
            _ = 1
        finally:
            for _ in ("x", "x"):
                yield


def after_a_comprehension() -> Generator[Any, Any, Any]:
    """On 3.12 a comprehension is part of the function, with variables and cells of its own."""
    functions = [lambda: item for item in (1, 2)]  # noqa: B023
    for _ in ("x", "x"):
        yield
    for _ in [[lambda: (item, other) for item in (1,)] for other in (2,)]:  # noqa: B023
        yield
    assert functions


def with_cells_and_arguments(shared: Any = 1, *rest: Any, **named: Any) -> Generator[Any, Any, Any]:
    def reads() -> Any:
        return shared, rest, later

    for _ in ("x", "x"):
        yield reads
    later = 5
    for _ in ("x", "x"):
        yield


def unset_locals() -> Generator[Any, Any, Any]:
    one = 1
    del one
    for _ in ("x", "x"):
        yield
    other = 2
    for _ in ("x", other):
        yield


def many_variables() -> Any:
    """More than one byte can number: the byte code needs longer arguments."""
    space: dict[str, Any] = {}
    lines = [f"    v{number} = {number + 1000}" for number in range(300)]
    total = " + ".join(f"v{number}" for number in range(300))
    exec("\n".join(["def many():", *lines, "    for _ in ('x', 'x'):", "        yield", f"    yield {total}"]), space)
    return space["many"]


with_many_variables = many_variables()


@rows(
    "make",
    [Plain, object, lambda: iter({1, 2}), itertools.count, lambda: itertools.cycle("x"), lambda: [Plain()]],
)
def test_a_local_that_has_no_value_is_refused_with_bthread_and_variable(make: Any) -> None:
    @bthread
    def keeps() -> BThreadBody:
        kept = make()
        yield sync(request=A)
        yield sync(request=B, hot=kept is None)

    with pytest.raises(VerificationError, match=r"b-thread 'keeps': kept.* holds a .*, which has no value"):
        verify(keeps())


def test_a_set_iterator_in_a_for_is_refused() -> None:
    @bthread
    def loops() -> BThreadBody:
        for _ in {1, 2}:
            yield sync(request=A)

    with pytest.raises(VerificationError, match=r"'loops'.*set_iterator"):
        verify(loops())


def test_a_dead_object_is_not_part_of_the_state() -> None:
    @bthread
    def forgets() -> BThreadBody:
        kept: Any = Plain()
        yield sync(request=A, hot=kept is None)
        yield sync(request=B)

    assert verify(forgets()).holds


PLACES = {
    nested_loops: 4, twice_delegating: 12, in_an_expression: 3,
    with_a_value_on_the_stack: 2, in_a_handler: 4, in_a_finally: 4, after_a_comprehension: 3,
    with_cells_and_arguments: 4, unset_locals: 4, with_many_variables: 3,
}  # fmt: skip
ITERATORS: list[Callable[[], Any]] = [
    lambda: iter(["x", "x"]), lambda: iter(("x", "x")), lambda: iter("xx"), lambda: iter(b"xx"), lambda: iter(range(2)),
    lambda: iter(range(1 << 70, (1 << 70) + 2)), lambda: iter({"x": 1, "y": 1}),
    lambda: iter({"x": 1, "y": 1}.values()),
    lambda: iter({"x": 1, "y": 1}.items()), lambda: reversed(["x", "x"]), lambda: reversed(("x", "x")),
    lambda: enumerate(("x", "x")), lambda: zip(("x", "x"), ("y", "y"), strict=True), lambda: map(str, ("x", "x")),
    lambda: filter(None, ("x", "x")), lambda: (item for item in ("x", "x")), lambda: iter(deque(["x", "x"])),
]  # fmt: skip


def loops(iterate: Callable[[], Any]) -> Generator[Any, Any, Any]:
    for _ in iterate():
        yield


def test_every_place_of_a_generator_looks_different_and_the_same_again() -> None:
    for look, again, places in [
        *[(looks(function), looks(function), places) for function, places in PLACES.items()],
        *[(looks(loops, iterate), looks(loops, iterate), 2) for iterate in ITERATORS],
    ]:
        assert len(look) == len(set(look)) == places
        assert look == again


class Own:
    """A class of another library, with a value."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)


def test_an_interpreter_that_hides_where_a_generator_stands_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The canary: known generators are looked at before any verification."""

    check_interpreter.cache_clear()  # it is asked once in a process
    monkeypatch.setattr("bp.verification.fingerprint._stack", lambda *_: [])

    with pytest.raises(VerificationError, match="hides where a generator stands"):
        verify()


# Local states that a b-thread can tell apart are two states, or refused by name: never one.


@functools.cache
def own(kind: type[Any]) -> Any:
    """A plain subclass of a built-in kind, which takes attributes."""
    return type(f"Own{kind.__name__}", (kind,), {})


class Slotted:
    __slots__ = ("__dict__", "seen")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slotted)

    def __hash__(self) -> int:
        return 0


class Lossy(Slotted):
    """What it would be pickled to is not all that it holds."""

    def __getstate__(self) -> tuple[()]:
        return ()

    def __reduce__(self) -> Any:
        return (Lossy, ())


Inherits: Any = type("Inherits", (Slotted,), {"__slots__": ("more",)})
Box: Any = make_dataclass("Box", [("n", int, 0)])
FrozenBox: Any = make_dataclass("FrozenBox", [("n", int, 0)], frozen=True)
Hashed: Any = make_dataclass("Hashed", [("n", int, 0)], unsafe_hash=True)
WithInitVar: Any = make_dataclass("WithInitVar", [("given", InitVar[int], 3), ("kept", int, 0)])


class Permission(enum.IntFlag):
    READ = 1
    WRITE = 2


Row = namedtuple("Row", "x")
SlottedFailure: Any = type("SlottedFailure", (Exception,), {"__slots__": ("code",)})


def changed(make: Callable[[], Any], name: str = "more") -> Any:
    made = make()
    (setattr if isinstance(made, OrderedDict) else object.__setattr__)(made, name, 1)
    return made


def error_with(name: str, value: Any, error: Exception | None = None) -> Exception:
    error = error or ValueError()
    setattr(error, f"__{name}__", value)
    return error


def halfway(values: Any, view: str = "keys") -> Any:
    iterator = iter(getattr(values, view)())
    next(iterator)
    return iterator


def over_itself_and_over_a_copy(make: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Two states with equal contents: an iterator over the container beside it, or over an equal one."""
    one, other = {"x": 1, "y": 2}, {"x": 1, "y": 2}
    return (one, make(one)), (one, make(other))


def shared_and_not(make: Callable[[], Any]) -> tuple[Any, Any]:
    one, other = make(), make()
    return (one, one), (one, other)


def function_with(n: int) -> Any:
    def function() -> None: ...

    function.n = n  # type: ignore[attr-defined]
    return function


def code_with(held: Any) -> Any:
    return (lambda: 1).__code__.replace(co_consts=(held,))


def made_by(n: int) -> Any:
    return lambda: n


def begun(iterator: Any) -> Any:
    next(iterator)
    return iterator


def over(iterator: Any) -> Any:
    assert list(iterator) == []
    return iterator


def named(function: Any, **names: str) -> Any:
    for name, value in names.items():
        setattr(function, f"__{name}__", value)
    return function


def plain() -> Any:
    def function() -> None: ...

    return function


def numbers() -> Generator[int, None, None]:
    yield 1


class OwnToldApart(UserDict[str, int]):
    """A mapping that says by its hash that it does not change."""

    def __hash__(self) -> int:
        return 1


def in_itself() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


def pairs(*makes: Callable[[], Any], name: str = "more") -> list[tuple[Any, Any]]:
    """Return for each class an object, and another one with an attribute more."""
    return [(make(), changed(make, name)) for make in makes]


CLASSES = type("Made", (), {"told": 1}), type("Made", (), {"told": 2})
CODES = code_with([1]), code_with([2])


def different() -> list[tuple[Any, ...]]:
    """Return values that can be told apart within each group; a new one each time."""
    held, ordered, viewed, nan = [1, 2], OrderedDict(a=1), {1: 2}, float("nan")
    return [
        # Types and content.
        (True, 1, 1.0, 1j, complex(0.0, -0.0), complex(0.0, 0.0), 0.0, -0.0, 0, False, None, float("inf"), nan, 1e308),
        ((1,), [1], (True,), (1, 1), [1, 1], {1}, {True}, frozenset({1}), slice(None), slice(None, None, -1)),
        ({1: 2}, OrderedDict({1: 2}), defaultdict(int, {1: 2}), defaultdict(list, {1: 2}), Counter({1: 2}), {1: 2.0}),
        ({1: 0}, {True: 0}, SimpleNamespace(a=1), SimpleNamespace(a=2)),
        ("a", b"a", bytearray(b"a"), UserString("a"), UserString("b"), [1].append, [2].append),
        (own(int)(1), own(str)("1")),
        (Color.RED, Color.BLUE, Permission(4), Permission(8), Permission(5), Permission(9), int, bool, Point, Ping),
        (Point(1), Point(True), Point(1, 1), Counting(1), Counting(2), Own(1), Own(2), Box(1), Box(2)),
        (WithInitVar(1, 1), WithInitVar(1, 2), OwnToldApart(a=1), OwnToldApart(a=2)),
        (date(2020, 1, 1), date(2020, 1, 2), Decimal("1.0"), Decimal("1.00"), PurePosixPath("a")),
        (datetime(2020, 1, 1, fold=0), datetime(2020, 1, 1, fold=1), range(0, 3, 2), range(0, 4, 2)),
        (Ping(1), Ping(2), event("ping"), event("ping", data=1)),
        (deque([1]), deque([1], 5), deque([1, 2])),
        (own(list)([1]), own(list)([2]), own(tuple)((1,)), own(tuple)((2,)), own(dict)(a=1), own(dict)(a=2)),
        (own(str)("x"), own(str)("y"), *CLASSES),
        (types.MappingProxyType({1: 2}), types.MappingProxyType({1: 3})),
        (ExceptionGroup("x", [ValueError(1)]), ExceptionGroup("x", [ValueError(2)])),
        (ValueError(1), ValueError(2), TypeError(1), ValueError(1, 2)),
        (AttributeError(name="a"), AttributeError(name="b")),
        (error_with("cause", KeyError("a")), error_with("cause", KeyError("b")), error_with("context", KeyError("a"))),
        (error_with("context", KeyError(1)), error_with("suppress_context", True, error_with("context", KeyError(1)))),
        # Functions.
        (partial(max, 1), partial(max, 2), partial(min, 1), made_by(1), made_by(2), *CODES),
        (plain(), *(named(plain(), **{name: "other"}) for name in ("name", "qualname", "module", "doc"))),
        (function_with(1), function_with(2), lambda told=1: told, lambda told=2: told),
        (operator.itemgetter(0), operator.itemgetter(1)),
        (numbers(), named(numbers(), name="other"), begun(numbers()), over(begun(numbers()))),
        # Order.
        ({1: 1, 2: 2}, {2: 2, 1: 1}, {0, 8}, {8, 0}, frozenset((0, 8)), frozenset((8, 0))),
        # Attributes, also those that do not count in a comparison.
        *pairs(*map(own, (list, deque, dict, Exception, Counting)), Lossy, Slotted, OrderedDict, Box, FrozenBox),
        *pairs(lambda: own(str)("x"), lambda: own(int)(1), lambda: own(tuple)((1,)), lambda: own(frozenset)({1})),
        *pairs(lambda: own(Counter)("a"), lambda: own(Row)(1), lambda: UserDict(a=1), lambda: UserList([1]), Inherits),
        *pairs(Lossy, Slotted, name="seen"),
        *pairs(SlottedFailure, name="code"),
        *(*pairs(lambda: SyntaxError("x"), name="lineno"), *pairs(lambda: partial(max))),
        # Aliases.
        (([0],) * 2, ([0], [0]), ((1, 2),) * 2, in_itself(), [[]], (nan, nan), (nan, float("nan"))),
        *(shared_and_not(kind) for kind in (Hashed, Lossy, bytearray)),
        *(shared_and_not(lambda: (FrozenBox(), [1])), shared_and_not(lambda: function_with(1))),
        *(shared_and_not(lambda: made_by(1)), shared_and_not(lambda: partial(max))),
        ((viewed, types.MappingProxyType(viewed)), (viewed, types.MappingProxyType({1: 2}))),
        # Iterators, over an object or over its copy.
        *(over_itself_and_over_a_copy(partial(halfway, view=view)) for view in ("keys", "values", "items")),
        over_itself_and_over_a_copy(reversed),
        ((held, iter(held)), ([1, 2], iter([1, 2]))),
        ((held, map(str, held)), (held, map(str, [1, 2]))),
        ((ordered, iter(ordered)), (ordered, iter(OrderedDict(a=1)))),
        (iter([]), over(iter([])), zip([], strict=True), over(zip([], strict=True))),
    ]  # fmt: skip


def test_values_that_can_be_told_apart_look_different_and_the_same_again() -> None:
    for values, again in zip(different(), different(), strict=True):
        found = [fingerprint_of_value(value) for value in values]

        assert len(set(found)) == len(found), values
        assert found == [fingerprint_of_value(value) for value in again]


@rows(
    "value",
    [iter([1].pop, 9), functools.cmp_to_key(lambda *_: 1), property(lambda _: 1), memoryview(b"x"), weakref.ref(Color)],
)
def test_a_value_that_cannot_be_taken_apart_is_refused(value: Any) -> None:
    with pytest.raises(VerificationError, match="holds a"):
        fingerprint_of_value(value)


# What was a traceback of ours.


def deep(levels: int) -> Generator[Any, Any, Any]:
    if levels:
        yield from deep(levels - 1)
    else:
        yield sync(request=A)
        yield sync(request=B)


def nested(levels: int, make: Callable[[Any], Any]) -> Any:
    value: Any = ()
    for _ in range(levels):
        value = make(value)
    return value


@bthread
def delegates(levels: int) -> BThreadBody:
    yield from deep(levels)


@bthread
def holds(make: Callable[[Any], Any], levels: int) -> BThreadBody:
    kept = nested(levels, make)
    yield sync(request=A)
    yield sync(request=B, hot=kept is None)


NESTING: tuple[Callable[[Any], Any], ...] = (lambda held: (held,), lambda held: [held], lambda held: {"in": held})


@rows(
    "program",
    [delegates(200), *(holds(make, levels) for make in NESTING for levels in (400, 3_000))],
)
def test_deeply_nested_b_threads_are_verified(program: BThread) -> None:
    result = verify(program)

    assert (result.holds, result.states) == (True, 3)


def test_a_set_in_sets_too_deep_is_refused_by_name() -> None:
    with pytest.raises(VerificationError, match=r"'holds': kept .*recursion"):
        verify(holds(lambda value: frozenset({value}), 400))


def test_a_dictionary_that_grows_while_it_is_looked_through_is_refused_by_name() -> None:
    @bthread
    def grows() -> BThreadBody:
        held = {"x": 1}
        for key in held:
            held[key + "x"] = 1
            yield sync(request=A)

    with pytest.raises(VerificationError, match=r"'grows': .*dict_keyiterator.*changed size"):
        verify(grows())


# Variables that cross to other b-threads.


@bthread
def guard(allows: Callable[[Any], bool]) -> BThreadBody:
    yield sync(wait_for=where(Ping, allows))
    raise AssertionError("another one")


@bthread
def starts_guards() -> BThreadBody:
    for allowed in (1, 2):
        yield start(guard(lambda ping: ping.value != allowed))  # noqa: B023 - that is the fault
        yield sync(request=A)


@bthread
def delegates_to_a_starter() -> BThreadBody:
    yield from starts_guards().begin()


@bthread
def starts_a_guard_when_it_is_done_with_it() -> BThreadBody:
    allowed = 1
    allowed += 1
    yield start(guard(lambda ping: ping.value != allowed))
    yield sync(request=A)


@bthread
def starts_a_guard_with_a_value() -> BThreadBody:
    for allowed in (1, 2):
        yield start(guard(partial(differs, allowed)))
        yield sync(request=A)


def differs(allowed: int, ping: Any) -> bool:
    return bool(ping.value != allowed)


@bthread
def shares_by_a_helper() -> BThreadBody:
    grow, read = pair()
    yield start(guard(lambda ping: read() > 1))
    yield sync(request=A)
    grow()
    yield sync(request=B)


def pair() -> tuple[Callable[[], None], Callable[[], int]]:
    n = 0

    def grow() -> None:
        nonlocal n
        n += 1

    return grow, lambda: n


@bthread
def puts_it_into_an_event() -> BThreadBody:
    for allowed in (1, 2):
        yield sync(request=event("rule", data=lambda: allowed))  # noqa: B023 - that is the fault
        yield sync(request=A)


@bthread
def gives_it_as_a_reason() -> BThreadBody:
    for allowed in (1, 2):
        yield sync(refuse=B, because=lambda: allowed, wait_for=A)  # noqa: B023 - that is the fault


@rows(
    ("program", "named"),
    [
        (starts_guards(), "'starts_guards'.*'allowed'.*'guard'"),
        (delegates_to_a_starter(), "'delegates_to_a_starter'.*'allowed'.*'guard'"),
        (shares_by_a_helper(), "'shares_by_a_helper'.*variable"),
        (puts_it_into_an_event(), "rule.*variables of another"),
        (gives_it_as_a_reason(), "'gives_it_as_a_reason'.*'allowed'"),
    ],
)
def test_a_variable_that_crosses_to_another_bthread_may_not_be_assigned(program: BThread, named: str) -> None:
    with pytest.raises(VerificationError, match=named):
        verify(program, requests(Ping(1)), requests(A, 2))


def test_a_value_that_crosses_to_another_bthread_is_its_own() -> None:
    for starter in (starts_a_guard_with_a_value(), starts_a_guard_when_it_is_done_with_it()):
        assert kinds(verify(starter, requests(Ping(1)))) == [("error", "guard")]


def test_two_computations_of_a_step_start_the_same_bthreads() -> None:
    """The text of a generator has its address in it."""

    @bthread
    def child(name: str) -> BThreadBody:
        yield sync(wait_for=A)

    @bthread
    def starts() -> BThreadBody:
        yield sync(request=A)
        made = (one for one in (1,))
        yield start(child(str(made)))
        yield sync(request=B)
        assert tuple(made)

    with pytest.raises(VerificationError, match="'starts' has hidden state"):
        verify(starts())


def test_each_argument_is_looked_at_and_not_only_the_first_of_its_function() -> None:
    class Keeps:
        n = 0

    @bthread
    def counts(kind: Any) -> BThreadBody:
        while True:
            yield sync(request=A)
            kind.n = kind.n + 1 if kind.n < 5 else 5

    class Other:
        n = 5

    with pytest.raises(VerificationError, match=r"argument.*changed"):
        verify(counts(Other), counts(Keeps))


def test_a_variable_that_only_a_dead_function_uses_is_no_hidden_state() -> None:
    @bthread
    def forgets() -> BThreadBody:
        b = None
        if (yield sync(wait_for=any_of_both)) == A:
            _ = lambda: b  # noqa: E731
        yield sync(wait_for=any_of_both)
        yield sync(wait_for=any_of_both)

    any_of_both = A | B
    assert verify(forgets(), requests(any_of(A, B), 3)).states == 4


# NaN, True and 1 as values of events.


def test_an_event_that_is_not_equal_to_itself_is_refused() -> None:
    @bthread
    def asks() -> BThreadBody:
        yield sync(request=event("reading", data=float("nan")))
        raise AssertionError

    with pytest.raises(VerificationError, match=r"reading.*nan.*not equal to itself"):
        verify(asks())


def test_events_with_equal_values_of_other_types_are_equal_as_in_a_run() -> None:
    @bthread
    def hears(other: Any) -> BThreadBody:
        yield sync(wait_for=Ping(other))
        raise AssertionError

    @bthread
    def hears_the_kind(value: Any, other: Any) -> BThreadBody:
        said = yield sync(wait_for=where(Ping, value=other))
        assert type(said.value) is not type(value)

    numbers: list[Any] = [True, 1, 1.0]
    for value in numbers:
        for other in (*numbers, 2):
            expected = [("error", "hears"), ("error", "hears_the_kind")] if value == other else []
            assert kinds(verify(requests(Ping(value)), hears(other), hears_the_kind(value, other))) == expected


# Locals that can still matter, and no others, on every Python version.


def live(function: Callable[..., Generator[Any, Any, Any]], yields: int = 1) -> set[str]:
    """Return the live locals at the n-th yield."""
    body: Any = function(*range(len(inspect.signature(function).parameters)))
    for _ in range(yields):
        next(body)
    return set(live_locals(body.gi_code, body.gi_frame.f_lasti))


def overwritten() -> Generator[Any, Any, Any]:
    said = 1
    yield
    said = 2
    yield said


def read_in_a_branch(flag: Any) -> Generator[Any, Any, Any]:
    value = 1
    yield
    if flag:
        yield value


def read_in_a_handler() -> Generator[Any, Any, Any]:
    value = 1
    try:
        yield
        value = 2
        yield
    except ValueError:
        yield value


def read_in_a_finally() -> Generator[Any, Any, Any]:
    value = 1
    try:
        yield
    finally:
        print(value)


def read_next_time() -> Generator[Any, Any, Any]:
    said, before = 1, 0
    while True:
        yield
        if before == said:
            return
        before = said
        said = yield


def deleted() -> Generator[Any, Any, Any]:
    value = 1
    yield
    del value
    yield


def looks_around() -> Generator[Any, Any, Any]:
    value = 1
    yield
    yield locals(), value


def swaps() -> Generator[Any, Any, Any]:
    one, other = 1, 2
    yield
    one, other = other, one
    yield one, other


def delegates_live_variables() -> Generator[Any, Any, Any]:
    kept, lost = 1, 2
    yield from overwritten()
    lost = 3
    yield kept, lost


LIVE: list[tuple[Callable[..., Any], int, set[str]]] = [
    (overwritten, 1, set()), (read_in_a_branch, 1, {"flag", "value"}), (read_in_a_handler, 1, {"value"}),
    (read_in_a_handler, 2, {"value"}), (read_in_a_finally, 1, {"value"}), (read_next_time, 1, {"said", "before"}),
    (read_next_time, 2, {"before"}), (deleted, 1, {"value"}), (looks_around, 1, {"value"}),
    (swaps, 1, {"one", "other"}), (delegates_live_variables, 1, {"kept"}),
]  # fmt: skip


def test_a_local_is_live_when_it_may_be_read_before_it_is_written() -> None:
    assert [function for function, yields, expected in LIVE if live(function, yields) != expected] == []


# Cells: locals that an inner function uses.


@bthread
def forgets_its_cell() -> BThreadBody:
    while True:
        said = yield sync(request=any_of(A, B))
        assert any(said == one for one in (A, B))
        yield sync(request=C)


@bthread
def remembers_its_cell() -> BThreadBody:
    while True:
        said = yield sync(request=any_of(A, B))
        yield sync(request=C)
        assert any(said == one for one in (A, B))


@bthread
def keeps_a_function_on_its_cell() -> BThreadBody:
    while True:
        said = yield sync(request=any_of(A, B))
        tells: Any = lambda: said  # noqa: B023, E731
        yield sync(request=C)
        assert tells() in (A, B)
        said = None
        tells = None


@bthread
def keeps_a_generator_on_its_cell() -> BThreadBody:
    said = yield sync(request=any_of(A, B))
    again = (said for _ in (1, 2))
    yield sync(request=C)
    yield sync(request=next(again))
    said = None


@bthread
def comprehends() -> BThreadBody:
    """Since Python 3.12 what a comprehension captures is a cell of the function around it."""
    kept = yield sync(request=any_of(A, B))
    for _ in ("x", "x"):
        said = yield sync(request=any_of(A, B))
        found = [lambda: one for one in (said, kept)]  # noqa: B023
        assert found[0]() == kept
        found = []
        yield sync(request=C)
    yield sync(request=kept)


STATES = {
    forgets_its_cell: 2, remembers_its_cell: 3, keeps_a_function_on_its_cell: 3, keeps_a_generator_on_its_cell: 6,
    comprehends: 1 + 2 * (2 + 2 + 1) + 1,
}  # fmt: skip


def test_a_cell_belongs_to_the_state_while_it_or_what_holds_it_is_alive() -> None:
    assert {function: verify(function()).states for function in STATES} == STATES


def test_a_cell_that_a_predicate_still_holds_is_alive() -> None:
    """Two states with statements that look alike, but for what the predicate sees."""

    @bthread
    def guard() -> BThreadBody:
        said = yield sync(request=any_of(Ping(1), Ping(2)))
        yield sync(wait_for=where(Ping, lambda ping: ping != said))
        said = None
        raise AssertionError("another one")

    found = verify(guard(), requests(Ping(1), 2))

    assert [violation.trace for violation in found.violations] == [(Ping(2), Ping(1))]


@bthread
def keeps_a_set() -> BThreadBody:
    said = yield sync(wait_for=[event(name) for name in ORDERS])
    found = set()
    for number in ORDERS[said.name]:
        found.add(number)
    del said
    yield sync(request=event("full"))
    if next(iter(found)) == 16:
        yield sync(request=event("odd"))


ORDERS = {"one": (0, 8, 16), "two": (0, 16, 8), "the same": (0, 8, 16), "last": (16, 8, 0)}


def test_the_order_in_which_a_set_was_filled_is_told_apart_since_iteration_shows_it() -> None:
    """Eight, sixteen and nought are equal modulo eight, which is how large the table of a small set is."""
    orders = requests(any_of(*map(event, ORDERS)))

    assert [found.kind for found in verify(orders, keeps_a_set(), never=event("odd")).violations] == ["never"]
