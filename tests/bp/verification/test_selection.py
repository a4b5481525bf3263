"""What a program may do in a state: the rules of a step, as `verify` takes them, and what an end is."""

import datetime
import functools
import operator
import types
import weakref
from collections import UserString, deque
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
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
from tests.bp.programs import COLD, HOT, STOP, Ping, fails_after, keeps_saying, kinds, requests, says

A, B, C = event("a"), event("b"), event("c")


# Deadlocks, ends, and the environment.


def test_a_blocked_request_a_cold_wait_and_a_hot_wait_at_the_end_are_three_results() -> None:
    blocked = verify(requests(A), keeps_saying(sync(block=A)))
    cold = verify(requests(A), says(sync(wait_for=B)))
    hot = verify(requests(A), says(sync(wait_for=B, hot=True)).named("waits"))

    assert kinds(blocked) == [("deadlock", None)]
    assert cold.holds
    assert kinds(hot) == [("hot", "waits")]


def test_a_deadlock_names_who_requests_what_and_who_holds_it_and_why() -> None:
    found = verify(
        requests(A), keeps_saying(sync(refuse=A, because="late")), keeps_saying(sync(block=A)).named("holds")
    )

    (deadlock,) = found.violations
    assert deadlock.blockers == (("requests", A, (("keeps_saying", "late"), ("holds", None))),)
    assert "'requests' requests a, held by keeps_saying (because 'late'), holds" in deadlock.message


def test_each_deadlock_state_is_a_violation() -> None:
    found = verify(says(sync(request=any_of(A, B)), sync(request=C)), keeps_saying(sync(block=C)))
    other = verify(
        says(sync(request=any_of(A, B))), says(sync(wait_for=A), sync(request=C)), keeps_saying(sync(block=C))
    )

    assert [violation.trace for violation in found.violations] == [(A,)]
    assert [violation.trace for violation in other.violations] == [(A,)]


def test_two_deadlock_states_are_two_violations() -> None:
    @bthread
    def asks() -> BThreadBody:
        said = yield sync(request=any_of(A, B))
        yield sync(request=C, wait_for=said)

    found = verify(asks(), keeps_saying(sync(block=C)))

    assert [(violation.kind, violation.trace) for violation in found.violations] == [
        ("deadlock", (A,)),
        ("deadlock", (B,)),
    ]


def test_a_request_that_the_environment_frees_is_no_deadlock() -> None:
    guard = says(sync(block=A, wait_for=B))

    assert verify(requests(A), guard, environment=[requests(B)]).holds
    assert kinds(verify(requests(A), guard, possible=[B])) == [("deadlock", None)]


def test_a_blocked_environment_is_no_deadlock() -> None:
    assert verify(keeps_saying(sync(block=A)), environment=[requests(A)]).holds


def test_external_events_come_only_when_no_internal_event_can() -> None:
    found = verify(requests(A), fails_after(B, A), environment=[requests(B)], possible=[B])

    assert found.holds


def test_promised_events_come_in_any_order() -> None:
    found = verify(
        fails_after(A, B).named("one"), fails_after(B, A).named("other"), environment=[requests(A), requests(B)],
        order="run",
    )  # fmt: skip

    assert kinds(found) == [("error", "one"), ("error", "other")]


def test_whom_the_environment_starts_is_environment() -> None:
    @bthread
    def starter() -> BThreadBody:
        yield sync(request=A)
        yield start(requests(B))

    assert verify(keeps_saying(sync(block=B)), environment=[starter()]).holds
    assert not verify(keeps_saying(sync(block=B)), starter()).holds


def test_possible_events_come_as_often_as_they_like_or_never() -> None:
    found = verify(fails_after(STOP, STOP), says(sync(wait_for=STOP, hot=True)).named("waits"), possible=[STOP])

    assert kinds(found) == [("hot", "waits"), ("error", "fails_after")]


def test_possible_events_that_somebody_blocks_do_not_come() -> None:
    assert verify(fails_after(STOP), keeps_saying(sync(block=STOP)), possible=[STOP]).holds


# Refusals, interrupts, priorities.


def test_a_refused_request_is_answered_by_its_otherwise() -> None:
    @bthread
    def asks() -> BThreadBody:
        said = yield sync(request=A, otherwise=lambda refusals: Ping(len(refusals)))
        assert said == A

    held = keeps_saying(sync(block=A)).named("holds")
    refuses = keeps_saying(sync(refuse=A, because="no")).named("refuses")

    assert verify(asks()).holds
    assert [violation.kind for violation in verify(asks(), held).violations] == ["deadlock"]
    refused = verify(asks(), refuses, held, fails_after(Ping(1)))
    assert kinds(refused) == [("error", "asks"), ("error", "fails_after")]
    assert refused.violations[0].trace == (Ping(1),)


def test_otherwise_stands_in_only_while_everything_is_refused() -> None:
    asks = says(sync(request=[A, B], otherwise=lambda refusals: C))
    refuses_a = keeps_saying(sync(refuse=A, because="no"))

    assert verify(asks, refuses_a, keeps_saying(sync(block=B)), never=C).violations[0].kind == "deadlock"
    assert [
        v.kind for v in verify(asks, refuses_a, keeps_saying(sync(refuse=B, because="no")), never=C).violations
    ] == ["never"]


def test_an_otherwise_that_depends_on_the_order_of_refusals_is_hidden_state() -> None:
    asks = says(sync(request=A, otherwise=lambda refusals: Ping(refusals[0].because))).named("asks")
    refusing = [keeps_saying(sync(refuse=A, because=number)).named(str(number)) for number in (1, 2)]

    with pytest.raises(VerificationError, match=r"'asks'.*order"):
        verify(asks, *refusing)


def test_whoever_requests_waits_or_takes_it_as_otherwise_advances_once() -> None:
    asks = says(sync(request=A, otherwise=lambda refusals: B), sync(wait_for=STOP, hot=True)).named("asks")
    found = verify(asks, requests(B), keeps_saying(sync(refuse=A, because="no")), fails_after(B, B))

    assert kinds(found) == [("hot", "asks")]


def test_an_interrupted_bthread_is_over() -> None:
    found = verify(requests(A), says(sync(request=B, block=C, interrupt=A)), requests(C), keeps_saying(sync(block=B)))

    assert found.holds


def test_every_order_of_priorities_is_covered_by_any_and_one_by_run() -> None:
    urgent, patient = requests(A).at_priority(5), requests(B)
    monitor = fails_after(B, A)

    assert kinds(verify(urgent, patient, monitor)) == [("error", "fails_after")]
    assert verify(urgent, patient, monitor, order="run").holds


def test_an_alternative_of_the_strategy_is_tried_in_any_order_and_not_in_run() -> None:
    either = says(sync(request=any_of(A, B)))

    assert len(verify(either, never=[A, B]).violations) == 2
    assert [violation.trace for violation in verify(either, never=[A, B], order="run").violations] == [(A,)]


def test_in_run_order_a_violation_that_depends_on_the_age_of_started_bthreads_is_found() -> None:
    """Which of two children is older is state: only then is the order of their events known."""

    @bthread
    def starter(first: Any, second: Any, waits: Any) -> BThreadBody:
        yield sync(wait_for=waits)
        yield start(requests(first), requests(second))

    either = [starter(A, B, Ping(1)), starter(B, A, Ping(2))]
    world: dict[str, Any] = {"environment": [requests(any_of(Ping(1), Ping(2)))]}

    found = verify(*either, fails_after(B, A), order="run", **world)
    assert [violation.trace for violation in found.violations] == [(Ping(2), B, A)]
    assert verify(starter(A, B, Ping(1)), fails_after(B, A), order="run", **world).holds


def test_an_alternative_that_was_blocked_when_it_was_met_can_be_selected_later() -> None:
    @bthread
    def asks() -> BThreadBody:
        yield sync(request=event("WISH"), otherwise=lambda refusals: event("INSTEAD"))

    @bthread
    def refuses() -> BThreadBody:
        yield sync(refuse=event("WISH"), because="no")

    @bthread
    def blocks_at_first() -> BThreadBody:
        yield sync(wait_for=event("GO"), block=event("INSTEAD"))

    go = requests(event("GO"))

    result = verify(asks(), refuses(), blocks_at_first(), environment=[go], never=event("INSTEAD"))

    assert kinds(result) == [("never", None)]


# How many states a program has: what looks alike and is not, and what looks different and is one.


A, B, C = event("a"), event("b"), event("c")


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_n_hot_and_n_cold_have_as_many_states_as_there_are_pairs_of_counts(n: int) -> None:
    found = verify(requests(HOT, n), requests(COLD, n))

    assert (found.states, found.transitions, found.holds) == ((n + 1) ** 2, 2 * n * (n + 1), True)


@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize(("n", "states"), [(3, 35), (4, 118), (5, 392), (6, 1297), (7, 4286)])
def test_dining_philosophers_deadlock_in_one_state(n: int, states: int, forgets: bool) -> None:
    """The same when the model forgets to clear the local that holds the last event: it is dead."""
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


def test_two_names_of_one_list_are_another_state_than_two_lists() -> None:
    """They look alike, but not after the next `append`."""

    @bthread
    def keeps(value: Any) -> BThreadBody:
        said = yield sync(request=any_of(A, B))
        a = [0]
        b = a if said == A else [0]
        said = None
        yield sync(request=C)
        a.append(1)
        assert len(b) == 1

    found = verify(keeps(None))

    assert [violation.trace for violation in found.violations] == [(A, C)]


@pytest.mark.parametrize("pair", [*pairwise((True, 1, 1.0)), (0.0, -0.0), (1, "1"), ((1,), [1])])
def test_values_of_different_types_are_different_states(pair: tuple[Any, Any]) -> None:
    one, other = pair
    kept = repr(other)

    @bthread
    def keeps() -> BThreadBody:
        said = yield sync(request=any_of(A, B))
        value = one if said == A else other
        said = None
        yield sync(request=C)
        assert repr(value) != kept

    if not isinstance(other, list):
        assert [violation.trace for violation in verify(keeps()).violations] == [(B, C)]
    else:
        with pytest.raises(VerificationError, match=r"'keeps'.*'other'.*list"):
            verify(keeps())


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
