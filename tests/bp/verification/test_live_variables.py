"""Locals that can still matter, and no others, on every Python version."""

import inspect
from collections.abc import Callable, Generator
from typing import Any

import pytest

from bp import BThreadBody, any_of, bthread, event, sync, verify, where
from bp.verification.fingerprint import assigns_later, live_locals
from tests.bp.programs import Ping, requests

A, B, C = event("a"), event("b"), event("c")


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


def delegates() -> Generator[Any, Any, Any]:
    kept, lost = 1, 2
    yield from overwritten()
    lost = 3
    yield kept, lost


@pytest.mark.parametrize(
    ("function", "yields", "expected"),
    [
        (overwritten, 1, set()),
        (read_in_a_branch, 1, {"flag", "value"}),
        (read_in_a_handler, 1, {"value"}),
        (read_in_a_handler, 2, {"value"}),
        (read_in_a_finally, 1, {"value"}),
        (read_next_time, 1, {"said", "before"}),
        (read_next_time, 2, {"before"}),
        (deleted, 1, {"value"}),
        (looks_around, 1, {"value"}),
        (swaps, 1, {"one", "other"}),
        (delegates, 1, {"kept"}),
    ],
)
def test_a_local_is_live_when_it_may_be_read_before_it_is_written(
    function: Any, yields: int, expected: set[str]
) -> None:
    assert live(function, yields) == expected


def test_states_that_differ_in_dead_locals_are_one_state() -> None:
    @bthread
    def forgets() -> BThreadBody:
        while True:
            said = yield sync(request=any_of(A, B))
            assert said in (A, B)
            yield sync(request=C)

    assert verify(forgets()).states == 2


def test_states_that_differ_in_live_locals_are_two() -> None:
    @bthread
    def remembers() -> BThreadBody:
        while True:
            said = yield sync(request=any_of(A, B))
            yield sync(request=C)
            assert said in (A, B)

    assert verify(remembers()).states == 3


def test_a_cell_that_may_be_assigned_after_a_place_is_found() -> None:
    def starter() -> Generator[Any, Any, Any]:
        before = after = again = inside = 0

        def reads() -> Any:
            return before, after, again, inside

        def assigns() -> None:
            nonlocal inside
            inside = 1

        for _ in (0, 0):
            again = 1
            yield reads
        after = 1
        yield assigns

    body: Any = starter()
    next(body)
    assigned = {
        name: assigns_later(body.gi_code, body.gi_frame.f_lasti, name)
        for name in ("before", "after", "again", "inside")
    }

    assert assigned == {"before": False, "after": True, "again": True, "inside": True}


# Cells: locals that an inner function uses.


def test_states_that_differ_in_dead_cells_are_one_state() -> None:
    @bthread
    def forgets() -> BThreadBody:
        while True:
            said = yield sync(request=any_of(A, B))
            assert any(said == one for one in (A, B))
            yield sync(request=C)

    assert verify(forgets()).states == 2


def test_states_that_differ_in_live_cells_are_two() -> None:
    @bthread
    def remembers() -> BThreadBody:
        while True:
            said = yield sync(request=any_of(A, B))
            yield sync(request=C)
            assert any(said == one for one in (A, B))

    assert verify(remembers()).states == 3


def test_a_cell_that_is_a_parameter_dies_too() -> None:
    @bthread
    def forgets(said: Any) -> BThreadBody:
        while True:
            said = yield sync(request=any_of(A, B))
            assert [one for one in (A, B) if (lambda: said)() == one]
            yield sync(request=C)

    assert verify(forgets(None)).states == 2


def test_a_cell_that_a_function_still_holds_is_alive_though_it_is_written_first() -> None:
    @bthread
    def keeps_a_function() -> BThreadBody:
        while True:
            said = yield sync(request=any_of(A, B))
            tells: Any = lambda: said  # noqa: B023, E731
            yield sync(request=C)
            assert tells() in (A, B)
            said = None
            tells = None

    assert verify(keeps_a_function()).states == 3


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


def test_a_cell_that_a_generator_under_way_still_holds_is_alive() -> None:
    @bthread
    def draws() -> BThreadBody:
        said = yield sync(request=any_of(A, B))
        again = (said for _ in (1, 2))
        yield sync(request=C)
        yield sync(request=next(again))
        said = None

    assert verify(draws()).states == 6


def test_cells_of_comprehensions_and_outer_variables_are_told_apart() -> None:
    """Since Python 3.12 what a comprehension captures is a cell of the function around it."""

    @bthread
    def comprehends() -> BThreadBody:
        kept = yield sync(request=any_of(A, B))
        for _ in ("x", "x"):
            said = yield sync(request=any_of(A, B))
            found = [lambda: one for one in (said, kept)]  # noqa: B023
            assert found[0]() == kept
            found = []
            yield sync(request=C)
        yield sync(request=kept)

    assert verify(comprehends()).states == 1 + 2 * (2 + 2 + 1) + 1
