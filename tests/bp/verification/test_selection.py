"""What a program may do in a state: the rules of a step, as `verify` takes them, and what an end is."""

import datetime
import functools
import operator
import types
import weakref
from collections import UserString, deque
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from bp import (
    BProgram,
    BThread,
    BThreadBody,
    VerificationError,
    any_of,
    bthread,
    event,
    start,
    sync,
    verify,
)
from tests.bp.philosophers import philosophers
from tests.bp.programs import COLD, HOT, Ping, keeps_saying, requests, says

A, B, C = event("a"), event("b"), event("c")


# Deadlocks, ends, and the environment.


def test_a_deadlock_names_who_requests_what_and_who_holds_it_and_why() -> None:
    found = verify(
        requests(A), keeps_saying(sync(refuse=A, because="late")), keeps_saying(sync(block=A)).named("holds")
    )

    (deadlock,) = found.violations
    assert deadlock.blockers == (("requests", A, (("keeps_saying", "late"), ("holds", None))),)
    assert "'requests' requests a, held by keeps_saying (because 'late'), holds" in deadlock.message


# Refusals, interrupts, priorities.


def test_an_otherwise_that_depends_on_the_order_of_refusals_is_hidden_state() -> None:
    asks = says(sync(request=A, otherwise=lambda refusals: Ping(refusals[0].because))).named("asks")
    refusing = [keeps_saying(sync(refuse=A, because=number)).named(str(number)) for number in (1, 2)]

    with pytest.raises(VerificationError, match=r"'asks'.*order"):
        verify(asks, *refusing)


# How many states a program has: what looks alike and is not, and what looks different and is one.


A, B, C = event("a"), event("b"), event("c")


def test_n_hot_and_n_cold_have_as_many_states_as_there_are_pairs_of_counts() -> None:
    for n in (1, 2, 5, 12):
        found = verify(requests(HOT, n), requests(COLD, n))

        assert (found.states, found.transitions, found.holds) == ((n + 1) ** 2, 2 * n * (n + 1), True)


@pytest.mark.slow
@pytest.mark.parametrize("forgets", [False, True])
def test_dining_philosophers_deadlock_in_one_state(forgets: bool) -> None:
    """The same when the model forgets to clear the local that holds the last event: it is dead."""
    for n, states in ((3, 35), (4, 118), (5, 392), (6, 1297), (7, 4286)):
        found = verify(*philosophers(n, forgets=forgets))

        assert found.states == states
        assert [violation.kind for violation in found.violations] == ["deadlock"]
        (deadlock,) = found.violations
        assert len(deadlock.trace) == n
        assert {wish[0] for wish in deadlock.blockers} == {f"philosopher {at}" for at in range(n)}


def test_two_closures_of_one_function_do_not_multiply_states() -> None:
    def waits_for(what: Any) -> BThread:
        @bthread
        def waits() -> BThreadBody:
            while True:
                yield sync(request=what)

        return waits()

    one, other, same = (verify(waits_for(A)), verify(waits_for(A), waits_for(B)), verify(waits_for(A), waits_for(A)))

    assert (one.states, other.states, same.states) == (1, 1, 1)


def test_two_that_change_places_are_the_same_state_though_the_second_was_started_later() -> None:
    @bthread
    def child() -> BThreadBody:
        while True:
            yield sync(wait_for=A)
            yield sync(wait_for=A)

    @bthread
    def parent() -> BThreadBody:
        yield start(child())
        yield sync(request=A)
        yield sync(request=B)
        yield start(child())
        while True:
            yield sync(request=A)

    assert verify(parent()).states == 3


def test_a_bthread_that_starts_closures_again_and_again_has_finitely_many_states() -> None:
    @bthread
    def starter() -> BThreadBody:
        while True:
            yield sync(request=A)

            @bthread
            def child() -> BThreadBody:
                yield sync(request=B)

            yield start(child())
            yield sync(wait_for=B)

    assert verify(starter()).states == 2


# A b-thread that remembers one of two things in an odd way: `verify` finds what a run does, or refuses it by name.


A, B, C, BAD = event("a"), event("b"), event("c"), event("bad")


def remembers(make: Callable[[bool], Any], asks: Callable[[Any], Any]) -> BThread:
    @bthread
    def remembering() -> BThreadBody:
        said = yield sync(request=any_of(A, B))
        kept = make(said == B)
        del said
        yield sync(request=C)
        if asks(kept):
            yield sync(request=BAD)

    return remembering()


class Number(int):
    pass


class Other(int):
    pass


class Slotted:
    __slots__ = ("a", "b")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slotted)

    def __hash__(self) -> int:
        return 0


def slotted(name: str) -> Slotted:
    value = Slotted()
    setattr(value, name, 1)
    return value


def advanced(iterator: Any, by: int) -> Any:
    for _ in range(by):
        next(iterator, None)
    return iterator


def counting() -> Any:
    yield 1
    yield 2


def closed(body: Any) -> Any:
    next(body)
    body.close()
    return body


def begun(body: Any) -> Any:
    next(body)
    return body


def with_fields(error: Any, **fields: Any) -> Any:
    for name, value in fields.items():
        setattr(error, name, value)
    return error


def appended(pair: tuple[list[int], Any]) -> Any:
    pair[0].append(1)
    return pair[1]


def over_an_empty_list(iterate: Callable[[Any], Any], by: int) -> Any:
    values: list[int] = []
    return values, advanced(iterate(values), by)


def shared(is_one: bool) -> tuple[list[int], list[int]]:
    values: list[int] = []
    return values, values if is_one else []


def viewed(is_one: bool) -> tuple[dict[str, int], Any]:
    values = {"x": 1}
    return values, types.MappingProxyType(values if is_one else dict(values))


def grown(pair: tuple[dict[str, int], Any]) -> bool:
    pair[0]["y"] = 1
    return "y" in pair[1]


def dead(is_dead: bool) -> Any:
    value = UserString("x")
    return weakref.ref(value), None if is_dead else value


REMEMBERED: dict[str, tuple[Callable[[bool], Any], Callable[[Any], Any]]] = {
    "an alias": (shared, appended),
    "a view": (viewed, grown),
    "a zip that is over": (lambda b: over_an_empty_list(zip, b), lambda pair: next(appended(pair), None) is None),
    "an iterator that is over": (
        lambda b: over_an_empty_list(iter, b),
        lambda pair: next(appended(pair), None) is None,
    ),
    "a generator that is closed": (
        lambda b: (closed if b else begun)(counting()),
        lambda body: next(body, None) is None,
    ),
    "where a generator stands": (lambda b: advanced(counting(), b), lambda body: next(body) == 2),
    "a default": (lambda b: lambda told=b: told, lambda function: function()),
    "a closure": (lambda b: lambda: b, lambda function: function()),
    "a bound method": (lambda b: "xy"[b:].startswith, lambda method: method("y")),
    "a partial": (lambda b: functools.partial(max, 1, 2 + b), lambda function: function() == 3),
    "an item getter": (lambda b: operator.itemgetter(b), lambda getter: getter("xy") == "y"),
    "a key of a sort": (lambda b: functools.cmp_to_key(lambda *_: -1 if b else 1), lambda key: key(1) < key(2)),
    "a subclass": (lambda b: Other(1) if b else Number(1), lambda value: type(value) is Other),
    "a slot": (lambda b: slotted("b" if b else "a"), lambda value: hasattr(value, "b")),
    "the order of a dictionary": (lambda b: {b: 0, not b: 0}, lambda table: next(iter(table))),
    "the type of a key": (lambda b: {1: 0} if b else {True: 0}, lambda table: next(iter(table)) is not True),
    "the size of a deque": (lambda b: deque([1], maxlen=1 if b else None), lambda values: values.maxlen == 1),
    "digits": (lambda b: Decimal("1.00" if b else "1.0"), lambda number: str(number) == "1.00"),
    "a fold": (lambda b: datetime.datetime(2020, 1, 1, fold=b), lambda moment: moment.fold),
    "where a range ends": (lambda b: range(0, 3 + b, 2), lambda numbers: numbers.stop == 4),
    "a step": (lambda b: slice(None, None, -1 if b else 1), lambda part: "ab"[part] == "ba"),
    "a field of an error": (
        lambda b: with_fields(SyntaxError("x"), lineno=int(b)),
        lambda error: error.lineno,
    ),
    "an error in a group": (
        lambda b: ExceptionGroup("x", [ValueError(b)]),
        lambda group: group.exceptions[0].args[0],
    ),
    "a context that is not told": (
        lambda b: with_fields(ValueError(), __suppress_context__=b),
        lambda error: error.__suppress_context__,
    ),
    "a class": (lambda b: type("Made", (), {"told": b}), lambda kind: kind.told),
    "a property": (lambda b: property(lambda _: b), lambda found: found.fget(None)),
    "what may be written": (lambda b: memoryview(b"x" if b else bytearray(b"x")), lambda view: view.readonly),
    "a weak reference": (dead, lambda pair: pair[0]() is None),
    "user strings": (lambda b: UserString("ab"[b]), lambda text: text == "b"),
}


def runs_badly(program: BThread) -> bool:
    run = BProgram(program)
    for happened in (B, C):
        run.select(happened)
    return run.candidates is not None and BAD in [candidate.event for candidate in run.candidates]


@pytest.mark.parametrize("orders", [False, True], ids=["every order", "fewer orders"])
def test_what_is_remembered_is_never_said_to_hold(orders: bool) -> None:
    assert all(runs_badly(remembers(*how)) for how in REMEMBERED.values())
    assert {name for name, how in REMEMBERED.items() if verdict_is_good(how, reduce=orders)} == set()


def verdict_is_good(how: tuple[Callable[[bool], Any], Callable[[Any], Any]], **options: Any) -> bool:
    try:
        return bool(verify(remembers(*how), never=BAD, **options))
    except VerificationError:
        return False
