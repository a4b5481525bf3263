"""What a program may do in a state: the rules of a step, as `verify` takes them, and what an end is."""

from typing import Any

import pytest

from bp import (
    BProgram,
    BThread,
    BThreadBody,
    VerificationError,
    bthread,
    event,
    start,
    sync,
    verify,
)
from tests.bp.philosophers import philosophers
from tests.bp.programs import COLD, HOT, Ping, fails_after, keeps_saying, requests, says

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


def test_swapped_instances_are_one_state_whatever_their_age() -> None:
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


def test_in_run_order_b_threads_are_started_in_the_turns_of_their_starters() -> None:
    starts = [says(sync(wait_for=A), start(requests(what).at_priority(0))) for what in (B, C)]
    program = [requests(A), starts[0], starts[1].at_priority(1), fails_after(B, C)]

    assert [step.event for step in BProgram(*program).run()] == [A, C, B]
    assert verify(*program, order="run").violations == ()
