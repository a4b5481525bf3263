"""Two local states are the same when nothing that comes can tell them apart."""

import itertools
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Generator, Iterator
from datetime import date
from decimal import Decimal
from enum import Enum
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import pytest
from attrs import define, frozen

from bp import BThreadBody, VerificationError, bthread, event, sync, verify
from bp.verification.fingerprint import Description, check_interpreter, fingerprint_of_value
from tests.bp.programs import Ping

A, B = event("a"), event("b")


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


def delegating() -> Generator[Any, Any, Any]:
    yield from over_equal_elements()
    yield from straight()


def twice_delegating() -> Generator[Any, Any, Any]:
    for _ in (0, 0):
        yield from delegating()


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


@pytest.mark.parametrize(
    ("function", "yields"),
    [
        (straight, 3),
        (over_equal_elements, 3),
        (nested_loops, 4),
        (delegating, 6),
        (twice_delegating, 12),
        (in_an_expression, 3),
        (with_a_value_on_the_stack, 2),
        (in_a_handler, 4),
        (in_a_finally, 4),
        (after_a_comprehension, 3),
        (with_cells_and_arguments, 4),
        (unset_locals, 4),
        (with_many_variables, 3),
    ],
)
def test_every_place_of_a_generator_looks_different_and_the_same_again(function: Any, yields: int) -> None:
    found = looks(function)

    assert len(found) == len(set(found)) == yields
    assert found == looks(function)


@pytest.mark.parametrize(
    "iterate",
    [
        lambda: iter(["x", "x"]),
        lambda: iter(("x", "x")),
        lambda: iter("xx"),
        lambda: iter(b"xx"),
        lambda: iter(range(2)),
        lambda: iter(range(1 << 70, (1 << 70) + 2)),
        lambda: iter({"x": 1, "y": 1}),
        lambda: iter({"x": 1, "y": 1}.values()),
        lambda: iter({"x": 1, "y": 1}.items()),
        lambda: reversed(["x", "x"]),
        lambda: reversed(("x", "x")),
        lambda: enumerate(("x", "x")),
        lambda: zip(("x", "x"), ("y", "y"), strict=True),
        lambda: map(str, ("x", "x")),
        lambda: filter(None, ("x", "x")),
        lambda: (item for item in ("x", "x")),
        lambda: iter(deque(["x", "x"])),
    ],
)
def test_an_iterator_is_known_by_what_is_still_to_come(iterate: Any) -> None:
    def loops() -> Generator[Any, Any, Any]:
        for _ in iterate():
            yield

    found = looks(loops)

    assert len(found) == len(set(found)) == 2
    assert found == looks(loops)


@pytest.mark.parametrize(
    "values",
    [
        (True, 1, 1.0, 1 + 0j),
        (0.0, -0.0, 0, False, None),
        ((1,), [1], (True,), (1, 1), [1, 1]),
        ({1}, frozenset({1}), [1]),
        ({1: 2}, OrderedDict({1: 2}), defaultdict(int, {1: 2}), Counter({1: 2}), {1: 2.0}),
        ({1: 1, 2: 2}, {2: 2, 1: 1}),
        ("a", b"a", bytearray(b"a")),
        (Color.RED, Color.BLUE, 1),
        (Point(1), Point(True), Point(1, 1), Counting(1), Counting(2)),
        (ValueError(1), ValueError(2), TypeError(1), ValueError(1, 2)),
        (float("inf"), float("nan"), 1e308),
        (partial(max, 1), partial(max, 2), partial(min, 1)),
        (date(2020, 1, 1), date(2020, 1, 2), Decimal("1.0"), Decimal("1.00"), PurePosixPath("a")),
        (Ping(1), Ping(2), event("ping"), event("ping", data=1)),
        (int, bool, Point, Ping),
        (deque([1]), deque([1], 5), deque([1, 2])),
    ],
)
def test_values_that_differ_in_type_or_content_look_different(values: tuple[Any, ...]) -> None:
    found = [fingerprint_of_value(value) for value in values]

    assert len(set(found)) == len(values)
    assert found == [fingerprint_of_value(value) for value in values]


def test_nan_looks_like_nan() -> None:
    assert fingerprint_of_value(float("nan")) == fingerprint_of_value(float("nan"))


def test_which_mutable_objects_are_one_object_is_part_of_the_look() -> None:
    one: list[int] = [0]
    loop: list[Any] = []
    loop.append(loop)

    assert fingerprint_of_value((one, one)) != fingerprint_of_value(([0], [0]))
    assert fingerprint_of_value((one, one)) == fingerprint_of_value(([0],) * 2)
    assert fingerprint_of_value(loop) != fingerprint_of_value([[]])
    immutable = (1, 2)
    assert fingerprint_of_value((immutable, immutable)) == fingerprint_of_value(((1, 2), (1, 2)))


def test_an_error_with_attributes_is_another_than_one_without() -> None:
    plain, told = ValueError("x"), ValueError("x")
    told.code = 7  # type: ignore[attr-defined]

    assert fingerprint_of_value(plain) != fingerprint_of_value(told)


def test_functions_are_the_same_with_the_same_code_defaults_and_cells() -> None:
    def adds(number: int) -> Any:
        return lambda other, more=number: number + other + more

    assert fingerprint_of_value(adds(1)) == fingerprint_of_value(adds(1))
    assert fingerprint_of_value(adds(1)) != fingerprint_of_value(adds(2))


@pytest.mark.parametrize(
    "make",
    [Plain, object, itertools.count, lambda: itertools.cycle("x"), lambda: [Plain()]],
)
def test_what_has_no_value_is_refused_with_bthread_and_variable(make: Any) -> None:
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


def test_an_object_that_nobody_will_look_at_again_is_not_looked_at() -> None:
    @bthread
    def forgets() -> BThreadBody:
        kept: Any = Plain()
        yield sync(request=A, hot=kept is None)
        yield sync(request=B)

    assert verify(forgets()).holds


class Own:
    """A class of somebody else, with a value."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Own) and other.value == self.value

    def __hash__(self) -> int:
        return hash(self.value)


def test_an_object_with_an_equality_of_its_own_is_known_by_its_content() -> None:
    assert fingerprint_of_value(Own(1)) == fingerprint_of_value(Own(1))
    assert fingerprint_of_value(Own(1)) != fingerprint_of_value(Own(2))


def test_this_interpreter_shows_where_a_generator_stands() -> None:
    check_interpreter()


def test_an_interpreter_that_hides_where_a_generator_stands_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The canary: known generators are looked at before any verification."""

    def nothing(*_: Any) -> Iterator[Any]:
        return iter(())

    check_interpreter.cache_clear()  # it is asked once in a process
    monkeypatch.setattr("bp.verification.fingerprint._stack", lambda *_: [])

    with pytest.raises(VerificationError, match="hides where a generator stands"):
        verify()
