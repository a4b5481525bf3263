"""What a program may do in a state: the rules of a step, as `verify` takes them, and what an end is."""

from typing import Any

import pytest

from bp import (
    BThreadBody,
    VerificationError,
    any_of,
    bthread,
    event,
    start,
    sync,
    verify,
)
from tests.bp.programs import STOP, Ping, fails_after, keeps_saying, kinds, requests, says

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
