"""What `verify` finds, and what it does not claim."""

import re
import signal
from itertools import permutations
from typing import Any, NamedTuple

import pytest

import bp
from bp import BThread, BThreadBody, Event, any_of, bthread, event, replay, start, sync, verify, where
from bp.testing import drive, trace_of
from tests.bp.programs import (
    COLD,
    HOT,
    STOP,
    Ping,
    Pong,
    check_refused,
    fails_after,
    keeps_saying,
    kinds,
    philosophers,
    requests,
    says,
)

A, B, C = event("a"), event("b"), event("c")


def test_a_never_set_whose_predicate_fails_says_so() -> None:
    with pytest.raises(bp.VerificationError, match="never="):
        verify(requests(Ping(1)), never=where(Ping, lambda ping: "yes"))  # type: ignore[arg-type, return-value]


# Bounds.


def test_a_bounded_search_never_holds() -> None:
    by_states = verify(requests(A, 10), max_states=5)
    by_depth = verify(requests(A, 10), max_depth=5)

    assert by_states.bounded
    assert by_depth.bounded
    assert not by_depth.interrupted
    assert (by_states.states, by_depth.states) == (5, 6)
    assert not by_states.violations
    assert not by_states.holds
    assert not by_depth.holds
    assert "bounded" in str(by_depth)


def test_a_bound_that_is_not_reached_is_no_bound_and_an_empty_program_holds() -> None:
    assert verify(requests(A, 3), max_states=4, max_depth=10).holds
    assert str(verify()).startswith("holds: 1 state, 0 transitions\nagreed: ")


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


def test_ctrl_c_gives_what_was_found_so_far_as_bounded_and_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    pressed: list[int] = []

    @bthread
    def patience() -> BThreadBody:
        for count in range(10):
            if count == 5 and not pressed:
                pressed.append(count)
                signal.raise_signal(signal.SIGINT)
            yield sync(request=A)

    found = verify(patience(), requests(B, 2), fails_after(B, B), runs=0)

    assert found.bounded
    assert found.interrupted
    assert "(interrupted: not all states were looked at)" in str(found)
    assert not found.holds
    assert kinds(found) == [("error", "fails_after")]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration, BaseException])
def test_whatever_a_b_thread_raises_is_a_violation(error: type[BaseException]) -> None:
    @bthread
    def raises() -> BThreadBody:
        yield sync(request=A)
        raise error

    def fails(said: Any) -> Any:
        raise error

    found = verify(raises(), requests(B))
    asked = verify(requests(Ping(1)), says(sync(block=where(Ping, fails))))
    instead = verify(says(sync(request=A, otherwise=fails)), keeps_saying(sync(refuse=A, because="no")))

    assert [set(kinds(each)) for each in (found, asked, instead)] == [{("error", "raises")}, *[{("error", "says")}] * 2]


def test_the_environment_has_no_otherwise() -> None:
    asks = says(sync(request=A, otherwise=lambda refusals: B)).named("outside")

    with pytest.raises(bp.VerificationError, match="'outside' of the environment has an otherwise="):
        verify(environment=[asks])


def test_a_name_of_a_plain_event_and_of_a_kind_is_refused() -> None:
    with pytest.raises(bp.VerificationError, match="'ping' is the name of an event kind and of a plain event"):
        verify(requests(event("ping")), says(sync(block=Ping)))


def test_one_cause_is_one_violation_with_a_count() -> None:
    counts = [says(*[sync(wait_for=B)] * 3).named(f"counts {n}") for n in range(2)]

    found = verify(requests(A), keeps_saying(sync(wait_for=STOP, block=A)), *counts, possible=[B])

    assert [(violation.kind, violation.trace, violation.count) for violation in found.violations] == [
        ("deadlock", (), 1), ("deadlock", (B,), 3)
    ]  # fmt: skip
    assert str(found.violations[1]).endswith("\n  in 3 ways")


def test_a_long_search_shows_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1, 1_000_000))
    monkeypatch.setattr("bp.verification.search.time.monotonic", lambda: next(clock))
    told: list[tuple[int, ...]] = []

    verify(requests(A, 30), requests(B, 30), never=A, progress=lambda *counts: told.append(counts))

    assert told
    assert all(0 < waiting <= states for states, waiting, _ in told)
    assert [violations for *_, violations in told][-1] == 1


# How it is asked, and what it says.


def test_a_wrong_argument_is_refused_with_its_name_and_the_cure() -> None:
    check_refused(
        (lambda: verify(requests), "called b-threads"),  # type: ignore[arg-type]
        (lambda: verify(environment=[A]), "called b-threads"),  # type: ignore[list-item]
        (lambda: verify(possible=[Ping]), "possible"),  # type: ignore[list-item]
        (lambda: verify(requests(A), runs=-1), "runs=-1"),
        (lambda: verify(requests(A), free="a"), "free='a': give a list"),
        (lambda: verify(environment=requests(A)), r"environment=BThread.*: give a list, environment=\[...\]"),  # type: ignore[arg-type]
        (lambda: verify(possible=A), r"possible=event\('a'\): give a list, possible=\[...\]"),  # type: ignore[arg-type]
        (lambda: verify(possible=Ping), "possible=.*Ping.*: give a list"),  # type: ignore[arg-type]
        (lambda: replay(requests(A), [A]), "bthreads="),  # type: ignore[arg-type]
        (lambda: replay([requests(A)], A), "trace="),  # type: ignore[arg-type]
        (lambda: replay([requests(A)], [A], requests(A)), "environment="),  # type: ignore[arg-type]
        (lambda: trace_of(requests(A), posts=A), "posts="),  # type: ignore[arg-type]
        (lambda: drive(requests(A), A), "events="),  # type: ignore[arg-type]
    )


def test_a_violation_is_told_in_a_line_for_each_event() -> None:
    found = verify(requests(A), fails_after(A, B), requests(Ping(1)).named("pings"), environment=[requests(B)])

    *story, last = str(found.violations[0]).splitlines()
    assert story == [
        "  1  a: requested by requests(a); waited for by fails_after",
        "  2  Ping(value=1): requested by pings",
        "  3  b: requested by requests(b); waited for by fails_after",
    ]
    assert re.fullmatch(
        r"error: b-thread 'fails_after': AssertionError: seen it "
        r'\(at .*programs\.py:\d+: raise AssertionError\("seen it"\)\)',
        last,
    )


def test_a_violation_is_told_in_fifteen_lines_at_most() -> None:
    waits = [says(*[sync(wait_for=A)] * 20, sync(request=B)).named(f"waits {number}") for number in range(9)]

    long = str(verify(requests(A, 50), fails_after(*[A] * 50)).violations[0]).splitlines()
    wide = str(verify(requests(A, 20), *waits, says(sync(block=B))).violations[0]).splitlines()

    assert (len(long), len(wide)) == (14, 14)
    assert long[0] == "  1  a: requested by requests; waited for by fails_after"
    assert long[-1].startswith("error: b-thread 'fails_after': AssertionError: seen it (at ")
    assert "38 more" in long[6]
    assert wide[-9:-6] == ["deadlock:", "  'waits 0' requests b, held by says", "  'waits 1' requests b, held by says"]
    assert wide[-1] == "  and 2 more"


def test_of_each_kind_of_violation_the_first_is_told_and_the_others_are_counted() -> None:
    guards = [says(sync(wait_for=where(Ping, value=n)), sync(block=Ping)) for n in range(3)]
    asks = says(sync(request=any_of(*map(Ping, range(3)))), sync(request=Ping(3)))

    found = verify(asks, *guards)

    assert len(found.violations) == 3
    assert str(found).count("deadlock:") == 1
    assert str(found).endswith("and 2 more: see .violations, or give first=True")


def test_a_deadlock_that_a_possible_event_may_lift_says_so() -> None:
    holds = says(sync(wait_for=[A, B], block=Ping)).named("holds")

    lifted = verify(requests(Ping(1)), holds, possible=[A, B]).violations[0]
    for_ever = verify(requests(Ping(1)), holds).violations[0]

    assert for_ever.message == "'requests' requests Ping(value=1), held by holds"
    assert lifted.message == f"{for_ever.message}\nonly what is possible and not promised can come: a, b"


def test_interrupted_b_threads_are_told_apart_and_long_lists_are_cut() -> None:
    waits = [says(sync(wait_for=A)).named(f"waits {n}") for n in range(7)]
    ends = [says(sync(wait_for=B, interrupt=A)).named(f"ends {n}") for n in range(2)]

    (happened,) = verify(requests(A), *waits, *ends, never=A).violations[0].story

    assert happened.text == (
        "requested by requests; waited for by waits 0, waits 1, waits 2, waits 3, and 3 more; ended: ends 0, ends 1"
    )
    assert happened.heard_by == tuple(f"waits {n}" for n in range(7))
    assert happened.ended == ("ends 0", "ends 1")


def test_a_function_that_does_not_yield_is_told_with_file_and_line() -> None:
    @bthread
    def forgot() -> Any:
        sync(request=A)

    (violation,) = verify(forgot()).violations

    assert re.search(r"returned None; it must yield sync\(...\) \(at .*test_verifier\.py:\d+\)$", violation.message)


def test_a_failed_assert_is_told_with_file_line_and_text() -> None:
    @bthread
    def counts() -> BThreadBody:
        total = 0
        while True:
            yield sync(wait_for=A)
            total += 1
            assert total < 2

    (violation,) = verify(counts(), requests(A, 2)).violations

    assert re.fullmatch(r".*test_verifier\.py:\d+: assert total < 2", violation.where)
    assert str(violation).endswith(f"({violation.where})".replace("(", "(at ", 1))


def test_long_events_are_shortened_in_stories() -> None:
    found = verify(requests(Pong(1, "x" * 1000)), fails_after(Pong))

    assert max(map(len, str(found.violations[0]).splitlines())) < 200


def test_instances_of_one_function_are_told_apart_by_their_arguments() -> None:
    @bthread
    def holds_back(what: Any) -> BThreadBody:
        yield sync(block=what, wait_for=C)

    found = verify(requests(A).named("one"), requests(B).named("other"), holds_back(A), holds_back(B))

    assert found.violations[0].message == (
        "'one' requests a, held by holds_back(a)\n'other' requests b, held by holds_back(b)"
    )


@bthread
def goes(number: int) -> BThreadBody:
    yield sync(request=event(f"begin {number}"))
    yield sync(request=A, block=B)


def test_an_instance_keeps_its_arguments_where_they_do_not_matter_any_more() -> None:
    begins = event("begin 2"), event("begin 1")
    one_begins = says(sync(wait_for=begins[0], block=begins[1]), sync(request=B, block=[A, begins[1]]))

    (deadlock,) = verify(goes(1), goes(2), one_begins.named("one_begins")).violations
    (both,) = verify(goes(1), goes(2), says(sync(block=A))).violations

    assert "'goes(2)' requests a, held by one_begins" in deadlock.message
    assert "'one_begins' requests b, held by goes(2)" in deadlock.message
    assert both.message == "'goes(1)' requests a, held by says\n'goes(2)' requests a, held by says"


# How it is bounded, and sampled.


@bthread
def counts_for_ever() -> BThreadBody:
    number = 0
    while True:
        yield sync(request=event(f"number {number}"))
        number += 1


def test_an_endless_counter_does_not_hide_a_violation_when_the_first_is_enough() -> None:
    found = verify(counts_for_ever(), requests(B), never=B, first=True)

    assert [(violation.kind, violation.trace) for violation in found.violations] == [("never", (B,))]
    assert found.bounded


def test_the_first_violation_of_a_start_or_of_a_cycle_is_enough_too() -> None:
    at_the_start = verify(fails_after(), fails_after().named("another"), first=True)
    around = verify(*[says(sync(wait_for=B, hot=True)).named(name) for name in "xy"], requests(A), first=True)

    assert kinds(at_the_start) == [("error", "fails_after")]
    assert kinds(around) == [("hot", "x")]


def test_a_bounded_result_says_which_bthread_has_how_many_local_states() -> None:
    found = verify(counts_for_ever(), requests(A), max_states=100)

    assert found.local_states[0][0] == "counts_for_ever"
    assert found.local_states[0][1] > 40
    assert "local states: counts_for_ever " in str(found)


def test_a_verification_is_true_when_it_holds_and_everything_was_reached() -> None:
    assert verify(requests(A))
    assert not verify(requests(A), never=A)
    assert not verify(requests(A, 5), max_states=2)
    assert not verify(requests(A), fails_after(B))


def test_a_deadlock_names_who_requests_what_and_who_holds_it_and_why() -> None:
    found = verify(
        requests(A), keeps_saying(sync(refuse=A, because="late")), keeps_saying(sync(block=A)).named("holds")
    )

    (deadlock,) = found.violations
    assert deadlock.blockers == (("requests", A, (("keeps_saying", "late"), ("holds", None))),)
    assert "'requests' requests a, held by keeps_saying (because 'late'), holds" in deadlock.message


def test_an_otherwise_that_depends_on_the_order_of_refusals_is_hidden_state() -> None:
    asks = says(sync(request=A, otherwise=lambda refusals: Ping(refusals[0].because))).named("asks")
    refusing = [keeps_saying(sync(refuse=A, because=number)).named(str(number)) for number in (1, 2)]

    with pytest.raises(bp.VerificationError, match=r"'asks'.*order"):
        verify(asks, *refusing)


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


# What is found in small programs: each kind of violation where it is, and none where it is not.

Found = tuple[Any, ...]  # kind, name of the b-thread, trace, and the cycle if there is one


class Case(NamedTuple):
    """A program with its environment, and what is wrong with it."""

    program: tuple[BThread, ...]
    found: list[Found] = []  # noqa: RUF012 - never changed
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed


def blocks(*events: Any) -> BThread:
    return keeps_saying(sync(block=list(events))).named("blocks")


def refuses(*events: Any) -> BThread:
    return keeps_saying(sync(refuse=list(events), because="no")).named("refuses")


def no_answer(asked: Any) -> Any:
    raise ValueError("no answer")


def waits(what: Any) -> BThreadBody:
    yield sync(wait_for=what)
    yield sync(wait_for=what)


def below() -> BThreadBody:
    yield from waits(A)
    yield sync(wait_for=B)


@bthread
def two_generators_below() -> BThreadBody:
    yield from below()
    raise AssertionError


@bthread
def for_over_equal_elements() -> BThreadBody:
    for _ in ("x", "x", "x"):
        yield sync(wait_for=A)
    raise AssertionError


@bthread
def cleans_up() -> BThreadBody:
    try:
        yield sync(wait_for=B, interrupt=A)
    finally:
        raise ValueError


@bthread
def starts_itself() -> BThreadBody:
    yield start(starts_itself())


@bthread
def starts_for_ever() -> BThreadBody:
    while True:
        yield start(requests(A))


@bthread
def remembers_its_choice() -> BThreadBody:
    said = yield sync(request=any_of(A, B))
    yield sync(request=C, wait_for=said)


@bthread
def hears_otherwise() -> BThreadBody:
    said = yield sync(request=A, otherwise=lambda refusals: Ping(len(refusals)))
    assert said == A


@bthread
def starter(first: Any, second: Any, waits_for: Any) -> BThreadBody:
    yield sync(wait_for=waits_for)
    yield start(requests(first), requests(second))


@bthread
def closes_over() -> BThreadBody:
    """What its predicate looks at would be empty if its generator were closed."""
    closed = [1]
    try:
        yield sync(block=where(Ping, lambda ping: ping.value in closed))
    finally:
        closed.clear()


ERRORS = {
    "two places where a monitor waits for one event look alike, and are not": Case(
        (requests(A, 2), requests(B), fails_after(A, A, B)), [("error", "fails_after", (A, A, B))]
    ),
    "the place of a monitor may be two generators below": Case(
        (requests(A, 2), requests(B), two_generators_below()), [("error", "two_generators_below", (A, A, B))]
    ),
    "the place of a monitor may be only in a for": Case(
        (requests(A, 3), for_over_equal_elements()), [("error", "for_over_equal_elements", (A, A, A))]
    ),
    "a started b-thread fails": Case(
        (requests(A), requests(B), says(sync(wait_for=A), start(fails_after(B)))), [("error", "fails_after", (A, B))]
    ),
    "b-threads fail at their start": Case(
        (fails_after(), fails_after().named("other"), requests(A)),
        [("error", "fails_after", ()), ("error", "other", ())],
    ),
    "each failing b-thread is told once, with a shortest trace": Case(
        (requests(A, 3), requests(B, 3), fails_after(A).named("one"), fails_after(A, B)), [("error", "one", (A,))]
    ),
    "b-threads that fail on one event are all told": Case(
        (requests(A), fails_after(A).named("one"), fails_after(A).named("other")),
        [("error", "one", (A,)), ("error", "other", (A,))],
    ),
    "a statement that is none": Case((says(sync(request=A), None),), [("error", "says", (A,))]),
    "a predicate that fails": Case(
        (requests(Ping(1)), keeps_saying(sync(block=where(Ping, no_answer)))), [("error", "keeps_saying", ())]
    ),
    "a predicate that need not be asked, while the first choice can be had": Case(
        (requests((Ping(1), Pong(1))), keeps_saying(sync(block=where(Pong, no_answer))))
    ),
    "an otherwise that fails": Case((says(sync(request=A, otherwise=no_answer)), refuses(A)), [("error", "says", ())]),
    "a finally that fails on an interrupt": Case((cleans_up(), requests(A)), [("error", "cleans_up", (A,))]),
    "a finally that fails when the search is over": Case((cleans_up(), requests(C))),
    "starts without end": Case((starts_itself(),), [("error", "starts_itself", ())]),
    "starts of others without end": Case((starts_for_ever(),), [("error", "starts_for_ever", ())]),
    "an event that must never happen, requested": Case((requests(A),), [("never", None, (A,))], {"never": A}),
    "promised": Case((), [("never", None, (A,))], {"never": A, "environment": [requests(A)]}),
    "possible": Case((), [("never", None, (A,))], {"never": [A], "possible": [A]}),
    "an otherwise": Case(
        (says(sync(request=B, otherwise=lambda refusals: A)), refuses(B)), [("never", None, (A,))], {"never": A}
    ),
    "an otherwise that was blocked when it was met": Case(
        (says(sync(request=A, otherwise=lambda refusals: B)), refuses(A), says(sync(wait_for=C, block=B))),
        [("never", None, (C, B))],
        {"never": B, "environment": [requests(C)]},
    ),
    "each set of a list is a violation of its own": Case(
        (requests(A), requests(Ping(1))),
        [("never", None, (A,)), ("never", None, (A,)), ("never", None, (Ping(1),))],
        {"never": [A, where(Ping, value=2), Ping, bp.ALL]},
    ),
}

ENDS = {
    "a blocked request": Case((requests(A), blocks(A)), [("deadlock", None, ())]),
    "a cold wait": Case((requests(A), says(sync(wait_for=B)))),
    "a hot wait": Case((requests(A), says(sync(wait_for=B, hot=True))), [("hot", "says", (A,))]),
    "one deadlock state, from two": Case(
        (says(sync(request=any_of(A, B)), sync(request=C)), blocks(C)), [("deadlock", None, (A,))]
    ),
    "two deadlock states": Case(
        (remembers_its_choice(), blocks(C)), [("deadlock", None, (A,)), ("deadlock", None, (B,))]
    ),
    "a request that the environment frees": Case(
        (requests(A), says(sync(block=A, wait_for=B))), [], {"environment": [requests(B)]}
    ),
    "a request that only a possible event frees": Case(
        (requests(A), says(sync(block=A, wait_for=B))), [("deadlock", None, ())], {"possible": [B]}
    ),
    "a blocked environment": Case((blocks(A),), [], {"environment": [requests(A)]}),
    "b-threads that the environment starts are environment": Case(
        (blocks(B),), [], {"environment": [says(sync(request=A), start(requests(B)))]}
    ),
    "external events come only when no internal event can": Case(
        (requests(A), fails_after(B, A)), [], {"environment": [requests(B)], "possible": [B]}
    ),
    "promised events come in any order": Case(
        (fails_after(A, B).named("one"), fails_after(B, A).named("other")),
        [("error", "one", (A, B)), ("error", "other", (B, A))],
        {"environment": [requests(A), requests(B)]},
    ),
    "possible events come as often as they like, or never": Case(
        (fails_after(STOP, STOP), says(sync(wait_for=STOP, hot=True))),
        [("hot", "says", ()), ("error", "fails_after", (STOP, STOP))],
        {"possible": [STOP]},
    ),
    "possible events that are blocked do not come": Case((fails_after(STOP), blocks(STOP)), [], {"possible": [STOP]}),
    "a request is answered by its otherwise when it is refused": Case(
        (hears_otherwise(), refuses(A), blocks(A)), [("error", "hears_otherwise", (Ping(1),))]
    ),
    "one that is held is not answered": Case((hears_otherwise(), blocks(A)), [("deadlock", None, ())]),
    "one that is free is not answered": Case((hears_otherwise(),)),
    "otherwise does not stand in while one event is only held": Case(
        (says(sync(request=[A, B], otherwise=lambda refusals: C)), refuses(A), blocks(B)), [("deadlock", None, ())]
    ),
    "otherwise stands in when all is refused": Case(
        (says(sync(request=[A, B], otherwise=lambda refusals: C)), refuses(A, B)), [("never", None, (C,))], {"never": C}
    ),
    "who takes an event as otherwise advances once": Case(
        (
            says(sync(request=A, otherwise=lambda refusals: B), sync(wait_for=STOP, hot=True)),
            *(requests(B), refuses(A), fails_after(B, B)),
        ),
        [("hot", "says", (B,))],
    ),
    "an interrupted b-thread is over": Case(
        (requests(A), says(sync(request=B, block=C, interrupt=A)), requests(C), blocks(B))
    ),
    "every order of priorities is tried": Case(
        (requests(A).at_priority(5), requests(B), fails_after(B, A)), [("error", "fails_after", (B, A))]
    ),
    "with players only that of the priority strategy": Case(
        (requests(A).at_priority(5), requests(B), fails_after(B, A)), [], {"free": []}
    ),
    "and what the players choose": Case(
        (requests(A).at_priority(5), requests(B), requests(any_of(COLD, HOT)).named("x"), fails_after(HOT, A, B)),
        [("error", "fails_after", (HOT, A, B))],
        {"free": ["x"], "never": COLD & HOT},
    ),
    "alternatives are tried": Case(
        (requests(any_of(A, B)),), [("never", None, (A,)), ("never", None, (B,))], {"never": [A, B]}
    ),
    "of those who are no players the first": Case(
        (requests(any_of(A, B)),), [("never", None, (A,))], {"never": [A, B], "free": []}
    ),
    "the generator of a statement is kept": Case((closes_over(), requests(Ping(1))), [("deadlock", None, ())]),
}


@bthread
def lasso(to_p: Event, to_q: Event, back: Event) -> BThreadBody:
    """Hot in w and q, cold in p: around by p it is cold now and then, around by w and q never."""
    while True:
        said = yield sync(request=any_of(to_p, to_q), hot=True)  # w
        if said == to_p:
            yield sync(request=to_q)  # p
        yield sync(request=back, hot=True)  # q


@bthread
def goes_around(*statements: Any) -> BThreadBody:
    while True:
        for statement in statements:  # noqa: UP028 (what is sent must be taken; a tuple cannot)
            yield statement


@bthread
def goes_around_by_one(*events: Event) -> BThreadBody:
    said = yield sync(request=any_of(*events))
    while True:
        yield sync(request=said)


@bthread
def hot_around_a_possible_event() -> BThreadBody:
    """Hot for ever only if STOP comes again and again."""
    while True:
        yield sync(wait_for=A, hot=True)
        if (yield sync(wait_for=[A, STOP], hot=True)) == A:
            yield sync(wait_for=A)


def hot_wait(what: Any) -> BThread:
    return says(sync(wait_for=what, hot=True))


CYCLES = {
    **{
        f"a hot cycle within a cold one, {names}": Case(
            (lasso(*map(event, names)),), [("hot", "lasso", (), tuple(map(event, names[1:])))]
        )
        for names in permutations("abc")
    },
    "cold now and then": Case((goes_around(sync(request=A, hot=True), sync(request=B)),)),
    "around without cooling": Case((keeps_saying(sync(request=A, hot=True)),), [("hot", "keeps_saying", (), (A,))]),
    "not fair to one who could always go on": Case((says(sync(request=B, hot=True)), keeps_saying(sync(request=A)))),
    "fair to one who can go on only now and then": Case(
        (says(sync(request=B, hot=True)), goes_around(sync(request=A, block=B), sync(request=C))),
        [("hot", "says", (), (A, C))],
    ),
    "one waits while others go around": Case((hot_wait(B), keeps_saying(sync(request=A))), [("hot", "says", (), (A,))]),
    "possible events promise nothing": Case(
        (hot_wait(A), keeps_saying(sync(wait_for=STOP))), [], {"environment": [requests(A)], "possible": [STOP]}
    ),
    "possible events keep no b-thread hot around a cycle": Case(
        (hot_around_a_possible_event(),), [], {"environment": [keeps_saying(sync(request=A))], "possible": [STOP]}
    ),
    "each promise is owed": Case(
        (hot_wait(B),), [], {"environment": [keeps_saying(sync(request=A)).named("one"), requests(B)]}
    ),
    "an alternative is owed nothing": Case(
        (hot_wait(B), keeps_saying(sync(request=any_of(A, B)))), [("hot", "says", (), (A,))]
    ),
    "among no players the strategy owes nothing to one that it passes over": Case(
        (says(sync(request=B, hot=True)), keeps_saying(sync(request=A)).at_priority(1)),
        [("hot", "says", (), (A,))],
        {"free": []},
    ),
    "a started b-thread stays hot": Case(
        (says(sync(request=A), start(hot_wait(C).named("child"))), keeps_saying(sync(request=B))),
        [("hot", "child", (A,), (B,))],
    ),
    "loops of internal events are fine": Case(
        (says(sync(wait_for=STOP), *[sync(request=A)] * 2), keeps_saying(sync(request=B))), [], {"possible": [STOP]}
    ),
    "and reported when they are asked for": Case(
        (says(sync(wait_for=STOP), start(goes_around(sync(request=A), sync(request=B)))),),
        [("endless", None, (STOP,), (A, B))],
        {"possible": [STOP], "endless": True},
    ),
    "loops by way of an external event are not endless": Case(
        (goes_around(sync(wait_for=STOP), sync(request=A)),),
        [],
        {"environment": [keeps_saying(sync(request=STOP))], "possible": [STOP], "endless": True},
    ),
    "each endless component is a violation": Case(
        (goes_around_by_one(A, B),),
        [("endless", None, (A,), (A,)), ("endless", None, (B,), (B,))],
        {"endless": True},
    ),
}


def told(violation: bp.Violation) -> Found:
    cycle = (violation.cycle,) if violation.cycle else ()
    return (violation.kind, violation.bthread, violation.trace, *cycle)


@pytest.mark.slow
def test_exactly_the_violations_of_each_program_are_found() -> None:
    wrong = {}
    for name, case in (ERRORS | ENDS | CYCLES).items():
        found = [told(violation) for violation in verify(*case.program, **case.options).violations]
        if sorted(found, key=repr) != sorted(case.found, key=repr):
            wrong[name] = found

    assert wrong == {}
