"""Locals that can still matter, and no others, on every Python version."""

import inspect
from collections.abc import Callable, Generator
from typing import Any

import pytest

from bp import BThreadBody, any_of, bthread, event, sync, verify
from bp.liveness import assigns_later, live_locals

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
