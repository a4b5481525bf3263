"""Runs that never end: who stays hot in them, whether they are fair, and loops of internal events."""

from itertools import permutations

import pytest

from bp import BThreadBody, Event, any_of, bthread, event, start, sync, verify
from bp.verification.liveness import components
from tests.bp.programs import STOP, keeps_saying, says

A, B, C = event("a"), event("b"), event("c")


@bthread
def lasso(to_p: Event, to_q: Event, back: Event) -> BThreadBody:
    """Hot in w and q, cold in p: around by p it is cold now and then, around by w and q never."""
    while True:
        said = yield sync(request=any_of(to_p, to_q), hot=True)  # w
        if said == to_p:
            yield sync(request=to_q)  # p
        yield sync(request=back, hot=True)  # q


@pytest.mark.parametrize("names", list(permutations("abc")))
def test_a_hot_cycle_within_a_cold_one_is_found_whatever_its_events_are_called(
    names: tuple[str, str, str],
) -> None:
    to_p, to_q, back = map(event, names)

    found = verify(lasso(to_p, to_q, back))

    (hot,) = found.violations
    assert (hot.kind, hot.bthread, hot.trace) == ("hot", "lasso", ())
    assert hot.cycle == (to_q, back)


def test_a_cycle_that_is_cold_now_and_then_is_fine() -> None:
    @bthread
    def goes_around() -> BThreadBody:
        while True:
            yield sync(request=A, hot=True)
            yield sync(request=B)

    assert verify(goes_around()).holds


def test_a_cycle_that_leaves_out_someone_who_could_always_go_on_is_not_fair() -> None:
    """`waits` may be passed over for ever, but no fair scheduler would."""
    waits = says(sync(request=B, hot=True))

    assert verify(waits, keeps_saying(sync(request=A))).holds


def test_a_cycle_that_leaves_out_someone_who_can_go_on_only_now_and_then_is_fair() -> None:
    @bthread
    def blocks_now_and_then() -> BThreadBody:
        while True:
            yield sync(request=A, block=B)
            yield sync(request=C)

    found = verify(says(sync(request=B, hot=True)).named("waits"), blocks_now_and_then())

    assert [(violation.kind, violation.bthread) for violation in found.violations] == [("hot", "waits")]
    assert set(found.violations[0].cycle) == {A, C}


def test_someone_hot_who_waits_while_others_go_around_is_reported() -> None:
    found = verify(says(sync(wait_for=B, hot=True)).named("waits"), keeps_saying(sync(request=A)))

    assert [(violation.bthread, violation.trace, violation.cycle) for violation in found.violations] == [
        ("waits", (), (A,))
    ]


def test_a_hot_bthread_that_goes_around_without_cooling_is_reported() -> None:
    assert verify(keeps_saying(sync(request=A, hot=True))).violations[0].cycle == (A,)


def test_repeatable_possible_events_make_no_false_alarm() -> None:
    """Nobody promised that STOP comes for ever; and what is promised does come."""
    found = verify(
        says(sync(wait_for=A, hot=True)), keeps_saying(sync(wait_for=STOP)), environment=[says(sync(request=A))],
        possible=[STOP],
    )  # fmt: skip

    assert found.holds


def test_what_the_environment_promises_and_never_keeps_is_no_fair_cycle() -> None:
    """Two promises: one comes again and again, the other is owed too."""
    found = verify(
        says(sync(wait_for=B, hot=True)),
        environment=[keeps_saying(sync(request=A)).named("one"), says(sync(request=B)).named("other")],
    )

    assert found.holds


def test_an_alternative_is_owed_nothing() -> None:
    found = verify(says(sync(wait_for=B, hot=True)).named("waits"), keeps_saying(sync(request=any_of(A, B, C))))

    assert [violation.bthread for violation in found.violations] == ["waits"]


def test_in_run_order_the_scheduler_owes_nothing_to_whom_it_passes_over() -> None:
    """By priority `waits` never has its turn: `run` would go around for ever, however unfair that is."""
    waits = says(sync(request=B, hot=True)).named("waits")
    urgent = keeps_saying(sync(request=A)).at_priority(1)

    found = verify(waits, urgent, order="run")

    assert [(violation.kind, violation.bthread, violation.cycle) for violation in found.violations] == [
        ("hot", "waits", (A,))
    ]


def test_a_started_bthread_that_stays_hot_is_named() -> None:
    @bthread
    def rests() -> BThreadBody:
        yield sync(wait_for=C, hot=True)

    @bthread
    def starts() -> BThreadBody:
        yield sync(request=A)
        yield start(rests())
        while True:
            yield sync(request=B)

    found = verify(starts())

    assert [(violation.bthread, violation.trace, violation.cycle) for violation in found.violations] == [
        ("rests", (A,), (B,))
    ]


def test_internal_loops_are_reported_when_asked_for() -> None:
    @bthread
    def ponders() -> BThreadBody:
        yield sync(wait_for=STOP)
        while True:
            yield sync(request=A)
            yield sync(request=B)

    assert verify(ponders(), possible=[STOP]).holds
    found = verify(ponders(), possible=[STOP], endless=True)
    assert [(violation.kind, violation.trace, violation.cycle) for violation in found.violations] == [
        ("endless", (STOP,), (A, B))
    ]


def test_a_loop_by_way_of_an_external_event_is_not_endless() -> None:
    @bthread
    def answers() -> BThreadBody:
        while True:
            yield sync(wait_for=STOP)
            yield sync(request=A)

    assert verify(answers(), possible=[STOP], endless=True).holds
    assert verify(answers(), environment=[keeps_saying(sync(request=STOP))], endless=True).holds


def test_each_endless_component_is_a_violation() -> None:
    @bthread
    def either() -> BThreadBody:
        said = yield sync(request=any_of(A, B))
        while True:
            yield sync(request=said)

    found = verify(either(), endless=True)

    assert [(violation.trace, violation.cycle) for violation in found.violations] == [((A,), (A,)), ((B,), (B,))]


def test_a_cycle_is_told_after_its_trace() -> None:
    found = verify(says(sync(request=B), sync(wait_for=C, hot=True)), keeps_saying(sync(request=A)))

    assert str(found.violations[0]).splitlines() == [
        "  1  b: requested by says",
        "     then again and again:",
        "  2  a: requested by keeps_saying",
        "hot: b-thread 'says' stays hot around a fair cycle",
    ]


def test_components_are_those_of_a_graph() -> None:
    graph = {1: [2], 2: [3, 4], 3: [1], 4: [5], 5: [6], 6: [5], 7: [7], 8: []}

    def edges(node: int) -> list[tuple[int, int]]:
        return [(target, 0) for target in graph[node]]

    assert list(components(graph, edges)) == [[5, 6], [1, 2, 3], [7]]


def test_long_paths_need_no_recursion() -> None:
    n = 50_000

    def edges(node: int) -> list[tuple[int, int]]:
        return [((node + 1) % n, 0)]

    assert [len(component) for component in components(range(n), edges)] == [n]
