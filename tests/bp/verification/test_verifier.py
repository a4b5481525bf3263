"""What `verify` finds, and what it does not claim."""

from typing import Any

import pytest

from bp import (
    ALL,
    BThreadBody,
    VerificationError,
    any_of,
    bthread,
    event,
    start,
    sync,
    verify,
    where,
)
from tests.bp.programs import HOT, STOP, Ping, Pong, fails_after, keeps_saying, kinds, requests, says

A, B, C = event("a"), event("b"), event("c")


# Where a violation hides.


def test_a_monitor_that_counts_is_heard() -> None:
    """`A; A; B; assert False`: the two places where it waits for A look alike to a naive fingerprint."""

    @bthread
    def monitor() -> BThreadBody:
        yield sync(wait_for=A)
        yield sync(wait_for=A)
        yield sync(wait_for=B)
        raise AssertionError

    found = verify(requests(A, 2), requests(B), monitor())

    assert [(violation.kind, violation.trace) for violation in found.violations] == [("error", (A, A, B))]
    assert not found.holds


def test_a_monitor_whose_place_is_two_generators_below_is_heard() -> None:
    def waits(what: Any) -> BThreadBody:
        yield sync(wait_for=what)
        yield sync(wait_for=what)

    def delegates() -> BThreadBody:
        yield from waits(A)
        yield sync(wait_for=B)

    @bthread
    def monitor() -> BThreadBody:
        yield from delegates()
        raise AssertionError

    found = verify(requests(A, 2), requests(B), monitor())

    assert [violation.trace for violation in found.violations] == [(A, A, B)]


def test_a_monitor_whose_place_is_only_in_a_for_over_equal_elements_is_heard() -> None:
    @bthread
    def monitor() -> BThreadBody:
        for _ in ("x", "x", "x"):
            yield sync(wait_for=A)
        raise AssertionError

    found = verify(requests(A, 3), monitor())

    assert [violation.trace for violation in found.violations] == [(A, A, A)]


def test_a_violation_inside_a_started_bthread_is_found() -> None:
    @bthread
    def starter() -> BThreadBody:
        yield sync(wait_for=A)
        yield start(fails_after(B))

    found = verify(requests(A), requests(B), starter())

    assert [(violation.bthread, violation.trace) for violation in found.violations] == [("fails_after", (A, B))]


def test_a_violation_before_the_first_synchronization_point_has_an_empty_trace() -> None:
    found = verify(fails_after(), fails_after().named("another"), requests(A))

    assert [(violation.bthread, violation.trace) for violation in found.violations] == [
        ("fails_after", ()),
        ("another", ()),
    ]


def test_each_failing_bthread_is_told_once_with_a_shortest_trace() -> None:
    found = verify(requests(A, 3), requests(B, 3), fails_after(A).named("one"), fails_after(A, B).named("other"))

    assert [(violation.bthread, violation.trace) for violation in found.violations] == [("one", (A,))]


def test_bthreads_that_fail_on_the_same_event_are_all_told() -> None:
    found = verify(requests(A), fails_after(A).named("one"), fails_after(A).named("other"))

    assert kinds(found) == [("error", "one"), ("error", "other")]


def test_a_statement_that_is_none_is_an_error_of_the_bthread() -> None:
    found = verify(says(sync(request=A), None))

    assert [(violation.kind, violation.trace) for violation in found.violations] == [("error", (A,))]


def test_a_predicate_that_fails_is_an_error_of_the_bthread_that_asks_it() -> None:
    def no_answer(ping: Ping) -> bool:
        raise ValueError("no answer")

    found = verify(requests(Ping(1)), keeps_saying(sync(block=where(Ping, no_answer))))

    assert kinds(found) == [("error", "keeps_saying")]


def test_a_predicate_that_nobody_needs_to_ask_is_not_asked() -> None:
    """The second choice of a request is not judged while the first can be had."""

    def no_answer(pong: Pong) -> bool:
        raise ValueError("no answer")

    found = verify(requests((Ping(1), Pong(1))), keeps_saying(sync(block=where(Pong, no_answer))))

    assert found.holds


def test_an_otherwise_that_fails_is_an_error_of_its_bthread() -> None:
    def no_answer(refusals: Any) -> Any:
        raise ValueError("no answer")

    found = verify(says(sync(request=A, otherwise=no_answer)).named("asks"), keeps_saying(sync(refuse=A, because="no")))

    assert kinds(found) == [("error", "asks")]


def test_a_finally_that_fails_on_an_interrupt_is_an_error() -> None:
    @bthread
    def cleans_up() -> BThreadBody:
        try:
            yield sync(wait_for=B, interrupt=A)
        finally:
            raise ValueError

    assert kinds(verify(cleans_up(), requests(A))) == [("error", "cleans_up")]
    assert verify(cleans_up(), requests(C)).holds


def test_bthreads_that_start_each_other_without_end_are_an_error() -> None:
    @bthread
    def starts_itself() -> BThreadBody:
        yield start(starts_itself())

    @bthread
    def starts_nobody_for_ever() -> BThreadBody:
        while True:
            yield start(requests(A))

    assert kinds(verify(starts_itself())) == [("error", "starts_itself")]
    assert kinds(verify(starts_nobody_for_ever())) == [("error", "starts_nobody_for_ever")]


def test_what_a_finally_does_when_a_search_is_over_changes_nothing() -> None:
    """The generator of a stored statement is kept: its `finally` would empty what the predicate looks at."""

    @bthread
    def guard() -> BThreadBody:
        closed = [1]
        try:
            yield sync(block=where(Ping, lambda ping: ping.value in closed))
        finally:
            closed.clear()

    assert [violation.kind for violation in verify(guard(), requests(Ping(1))).violations] == ["deadlock"]


# Never.


def test_an_event_that_never_must_happen_is_found_wherever_it_comes_from() -> None:
    for found in (
        verify(requests(A), never=A),
        verify(environment=[requests(A)], never=A),
        verify(possible=[A], never=[A]),
        verify(
            says(sync(request=B, otherwise=lambda refusals: A)), keeps_saying(sync(refuse=B, because="no")), never=A
        ),
    ):
        assert [(violation.kind, violation.trace) for violation in found.violations] == [("never", (A,))]


def test_each_set_of_a_list_that_never_happens_is_a_violation_of_its_own() -> None:
    found = verify(requests(A), requests(Ping(1)), never=[A, where(Ping, value=2), Ping, ALL])

    assert [violation.kind for violation in found.violations] == ["never"] * 3


def test_a_never_set_whose_predicate_fails_says_so() -> None:
    with pytest.raises(VerificationError, match="never="):
        verify(requests(Ping(1)), never=where(Ping, lambda ping: "yes"))  # type: ignore[arg-type, return-value]


# Bounds.


def test_a_bounded_search_never_holds() -> None:
    by_states = verify(requests(A, 10), max_states=5)
    by_depth = verify(requests(A, 10), max_depth=5)

    assert by_states.bounded
    assert by_depth.bounded
    assert (by_states.states, by_depth.states) == (5, 6)
    assert not by_states.violations
    assert not by_states.holds
    assert not by_depth.holds
    assert "bounded" in str(by_depth)


def test_a_bound_that_is_not_reached_is_no_bound() -> None:
    assert verify(requests(A, 3), max_states=4, max_depth=10).holds


def test_a_state_met_at_the_depth_bound_and_on_a_shorter_path_is_expanded() -> None:
    """B leads at once to where A, A, A leads; what comes after is within the bound on that way only."""

    @bthread
    def goes() -> BThreadBody:
        said = yield sync(request=any_of(A, B))
        if said == A:
            said = yield sync(request=A)
            said = yield sync(request=A)
        said = None
        yield sync(request=C)
        yield sync(request=HOT)

    found = verify(goes(), never=HOT, max_depth=3)

    assert [violation.trace for violation in found.violations] == [(B, C, HOT)]


def test_what_was_found_within_the_bounds_is_told() -> None:
    found = verify(requests(A, 10), requests(B, 10), fails_after(A, A), max_states=8)

    assert found.bounded
    assert kinds(found) == [("error", "fails_after")]


def test_ctrl_c_gives_what_was_found_so_far_as_bounded() -> None:
    @bthread
    def patience() -> BThreadBody:
        for count in range(10):
            if count == 5:
                raise KeyboardInterrupt
            yield sync(request=A)

    found = verify(patience(), requests(B, 2), fails_after(B, B))

    assert found.bounded
    assert not found.holds
    assert kinds(found) == [("error", "fails_after")]


def test_a_long_search_shows_its_progress(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    clock = iter(range(1, 1_000_000))
    monkeypatch.setattr("bp.verification.search.time.monotonic", lambda: next(clock))
    told: list[tuple[int, int]] = []

    verify(requests(A, 30), requests(B, 30), progress=lambda states, waiting: told.append((states, waiting)))
    verify(requests(A, 30), requests(B, 30), progress=True)

    assert told
    assert all(0 < waiting <= states for states, waiting in told)
    assert "states" in capsys.readouterr().err


# How it is asked, and what it says.


def test_what_is_found_is_numbers_and_values() -> None:
    found = verify(requests(A, 2), never=A)

    assert type(found.states) is int
    assert type(found.transitions) is int
    assert type(found.bounded) is bool
    assert found == verify(requests(A, 2), never=A)


def test_an_unknown_order_or_what_is_no_bthread_is_an_error() -> None:
    with pytest.raises(TypeError, match="order='both'"):
        verify(order="both")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="called b-threads"):
        verify(requests)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="called b-threads"):
        verify(environment=[A])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="possible"):
        verify(possible=[Ping])  # type: ignore[list-item]


def test_a_program_of_nobody_holds() -> None:
    found = verify()

    assert (found.states, found.transitions, found.holds) == (1, 0, True)
    assert str(found) == "holds: 1 states, 0 transitions"


def test_a_violation_is_told_in_a_line_for_each_event() -> None:
    found = verify(requests(A), fails_after(A, B), requests(Ping(1)).named("pings"), environment=[requests(B)])

    assert [str(violation).splitlines() for violation in found.violations] == [
        [
            "  1  a: requested by requests; waited for by fails_after",
            "  2  Ping(value=1): requested by pings",
            "  3  b: requested by requests; waited for by fails_after",
            "error: b-thread 'fails_after': AssertionError: seen it",
        ]
    ]


def test_a_long_violation_is_told_in_fifteen_lines_at_most() -> None:
    found = verify(requests(A, 50), fails_after(*[A] * 50))

    told = str(found.violations[0]).splitlines()
    assert len(told) == 14
    assert told[0] == "  1  a: requested by requests; waited for by fails_after"
    assert told[-1] == "error: b-thread 'fails_after': AssertionError: seen it"
    assert "38 more" in told[6]


def test_an_event_from_outside_is_told_as_such() -> None:
    found = verify(fails_after(STOP), possible=[STOP])

    assert str(found.violations[0]).splitlines()[0] == "  1  stop: from outside; waited for by fails_after"
