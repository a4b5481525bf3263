"""A reduced search tries fewer orders and finds the same."""

import time
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bp import BThread, BThreadBody, Verification, Violation, any_of, bthread, event, start, sync, verify, where
from tests.bp.programs import COLD, HOT, STOP, Ping, fails_after, keeps_saying, kinds, philosophers, requests, says
from tests.bp.scripts import HAPPENINGS, Author, Events, Say, Script
from tests.bp.verification.test_verifier_law import World, random_world, reproduce, standing_after

A, B, C = event("a"), event("b"), event("c")


@bthread
def counts(name: str, times: int) -> BThreadBody:
    for number in range(times):
        yield sync(request=event(f"{name} {number}"))


@bthread
def goes_around(name: str, places: int) -> BThreadBody:
    while True:
        for place in range(places):
            yield sync(request=event(f"{name} {place}"))


def both(*bthreads: BThread, **options: Any) -> tuple[Verification, Verification]:
    """Verify with every order, and with fewer; the reduction must not be given up."""
    full, reduced = verify(*bthreads, **options), verify(*bthreads, reduce=True, **options)
    assert not full.reduced
    assert reduced.reduced
    return full, reduced


# What it saves.


def test_one_order_of_independent_b_threads_is_tried() -> None:
    full, reduced = both(*[counts(f"counter {at}", 4).named(f"counter {at}") for at in range(4)])

    assert (full.states, full.transitions) == (5**4, 4 * 4 * 5**3)
    assert (reduced.states, reduced.transitions) == (4 * 4 + 1, 4 * 4)
    assert reduced.holds
    assert str(reduced) == "holds: 17 states, 16 transitions (reduced)"


@pytest.mark.slow
def test_philosophers_have_their_one_deadlock_in_fewer_states() -> None:
    full, reduced = both(*philosophers(6))

    assert full.states == 1297
    assert reduced.states < 700
    assert [violation.kind for violation in reduced.violations] == ["deadlock"]
    assert set(reduced.violations[0].trace) == set(full.violations[0].trace)


# What it must not lose.


@bthread
def starts_a_guard() -> BThreadBody:
    yield sync(request=C)
    yield start(says(sync(block=B)))


@bthread
def hears_either() -> BThreadBody:
    said = yield sync(request=B, wait_for=C)
    assert said == B


NOT_LOST: dict[str, tuple[list[BThread], dict[str, Any]]] = {
    "an event, while one b-thread goes around for ever": (
        [*[goes_around(f"thread {at}", 3).named(f"thread {at}") for at in range(3)], fails_after(event("thread 2 1"))],
        {"never": [event("thread 1 2")], "endless": True},
    ),
    "an event that takes two choices, while another takes one": (
        [keeps_saying(sync(request=A)), says(sync(request=any_of(B, C))), fails_after(B)],
        {"never": C},
    ),
    "another b-thread that fails": (
        [requests(A), fails_after(A).named("one"), requests(B), fails_after(B).named("other")],
        {},
    ),
    "a b-thread that comes to block later": ([requests(A), says(sync(request=C), sync(block=A))], {}),
    "a b-thread that is started and blocks later": ([requests(B), starts_a_guard()], {}),
    "an event that can only come before a block": ([says(sync(request=A), sync(block=C)), requests(C)], {"never": C}),
    "a request that comes later": ([hears_either(), says(sync(request=A), sync(request=C))], {}),
    "a second choice, while the first is blocked": (
        [says(sync(request=[A, B])), says(sync(request=C, block=A))],
        {"never": [A, B]},
    ),
}


def test_nothing_is_lost() -> None:
    for name, (program, options) in NOT_LOST.items():
        full, reduced = both(*program, **options)
        assert full.violations, name
        assert set(map(wrong, reduced.violations)) == set(map(wrong, full.violations)), name


def wrong(violation: Violation) -> str:
    return f"{violation.kind} {violation.bthread} {violation.message}"


def test_external_events_come_in_every_order() -> None:
    outside = [requests(HOT, 3).named("hot"), requests(COLD, 3).named("cold")]

    full, reduced = both(requests(A), requests(B), environment=outside, possible=[STOP])

    assert (full.states, reduced.states) == (3 + 16, 2 + 16)


# Where it is left alone.


LEFT_ALONE: list[tuple[list[BThread], dict[str, Any]]] = [
    ([says(sync(request=A, otherwise=lambda refusals: B)), requests(C)], {}),
    ([says(sync(request=A, hot=True)), requests(C)], {}),
    ([keeps_saying(sync(block=where(Ping, lambda ping: "yes"))), requests(Ping(1)), requests(C)], {}),  # type: ignore[arg-type, return-value]
    ([requests(A, 3), requests(B, 3)], {"order": "run"}),
    ([requests(A, 3), requests(B, 3)], {"max_depth": 4}),
]


def test_a_property_of_every_b_thread_or_every_order_is_not_reduced() -> None:
    for program, options in LEFT_ALONE:
        found = verify(*program, reduce=True, **options)

        assert not found.reduced
        assert found == verify(*program, **options)


def test_bthreads_of_endlessly_many_states_are_left_to_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """On its own it counts for ever; in the program it hears A twice."""
    monkeypatch.setattr("bp.verification.reduction.MOST_STEPS", 2_000)

    @bthread
    def hears_how_often() -> BThreadBody:
        count = 0
        while True:
            yield sync(wait_for=A)
            count += 1

    found = verify(hears_how_often(), requests(A, 2), reduce=True)

    assert (found.states, found.holds, found.reduced) == (3, True, False)


def test_a_failure_in_an_unreachable_state_is_no_error() -> None:
    @bthread
    def asks_the_clock_after_a_second_event() -> BThreadBody:
        yield sync(wait_for=A)
        yield sync(wait_for=B)
        yield sync(wait_for=event(f"it is {time.time()}"))

    program = [asks_the_clock_after_a_second_event(), requests(A), requests(B), keeps_saying(sync(block=B))]

    found = verify(*program, reduce=True)

    assert (found.reduced, kinds(found)) == (False, [("deadlock", None)])


def test_a_bounded_reduced_search_holds_as_little_as_any() -> None:
    found = verify(*[counts(f"counter {at}", 9).named(f"counter {at}") for at in range(3)], reduce=True, max_states=9)

    assert found.bounded
    assert found.states == 9


# The law.


def plain(script: Script) -> Script:
    """Return a script without what is never reduced."""

    def line(said: Any) -> Any:
        if isinstance(said, Say):
            return said._replace(otherwise=None, hot=False)
        return tuple(map(plain, said)) if type(said) is tuple else said

    return script._replace(lines=tuple(map(line, script.lines)))


def reducible_world(random: Random) -> World:
    world = random_world(random)
    others = tuple(script._replace(name=f"other {script.name}") for script in Author(random).program())
    if random.randrange(2):
        world = world._replace(scripts=(*world.scripts, *others))
    return world._replace(scripts=tuple(map(plain, world.scripts)), environment=tuple(map(plain, world.environment)))


def small_world(random: Random) -> World:
    """Return a small program that says little, so that much of it can be left out, and every word counts."""

    def some(percent: int) -> Events | None:
        return Events("event", random.choice(HAPPENINGS)) if random.randrange(100) < percent else None

    def line(lines: int, depth: int) -> Any:
        chance = random.randrange(30)
        if chance == 0:
            return "raise"
        if chance < 3 and depth < 1:
            return (script(depth + 1),)
        request = tuple(random.choice(HAPPENINGS) for _ in range(random.choice((0, 1, 1, 1, 2))))
        then = random.randrange(lines) if random.randrange(4) == 0 else None
        return Say(request, random.randrange(2) == 0, some(20 if request else 90), some(30), some(5), then=then)

    def script(depth: int = 0) -> Script:
        names.append(f"thread {len(names)}")
        lines = random.randrange(1, 4)
        return Script(names[-1], tuple(line(lines, depth) for _ in range(lines)))

    names: list[str] = []
    scripts = tuple(script() for _ in range(random.randrange(2, 6)))
    return World(scripts, (), (), tuple(some(100) for _ in range(4)), False)


def told(world: World, found: Verification) -> Any:
    """Return what must be the same: who fails, each deadlock, each broken property, and whether it is endless."""
    return (
        {violation.bthread for violation in found.violations if violation.kind == "error"},
        {standing_after(world, violation.trace) for violation in found.violations if violation.kind == "deadlock"},
        sum(violation.kind == "never" for violation in found.violations),
        any(violation.kind == "endless" for violation in found.violations),
    )


def compare(world: World, most: int = 300) -> tuple[int, int] | None:
    """Compare a search with its reduction; return the states of both, or None where there is nothing to compare."""
    full = world.verify(endless=True, max_states=most)
    if full.bounded or any(violation.trace == () and violation.kind == "error" for violation in full.violations):
        return None
    reduced = world.verify(endless=True, reduce=True)
    assert told(world, full) == told(world, reduced)
    assert reduced.states <= full.states
    for violation in () if world.faulty else reduced.violations:
        reproduce(world, violation)
    return (full.states, reduced.states) if reduced.reduced else None


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False))
def test_a_reduced_search_finds_what_a_full_one_finds(random: Random) -> None:
    compare(small_world(random) if random.randrange(4) else reducible_world(random))
