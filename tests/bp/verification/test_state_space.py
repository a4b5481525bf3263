"""How many states a program has: what looks alike and is not, and what looks different and is one."""

from itertools import pairwise
from typing import Any

import pytest

from bp import (
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
from tests.bp.programs import COLD, HOT, requests

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
