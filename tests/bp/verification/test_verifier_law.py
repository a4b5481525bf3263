"""`verify` finds what a naive exploration with real programs finds, on random programs."""

import time
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bp
from bp import BProgram, BThreadBody, Event, Verification, any_of, bthread, contains, event, start, sync, verify, where
from bp.verification.report import Violations
from bp.verification.search import Search
from bp.verification.states import StateSpace
from tests.bp.programs import COLD, HOT, STOP, Ping, fails_after, keeps_saying, kinds, philosophers, requests, says
from tests.bp.reference import HAPPENINGS, Author, Events, Happening, Instead, Say, Script
from tests.bp.test_against_reference import as_event, as_event_set, performer

MOST = 60  # states of a program that is compared

State = tuple[tuple[str, int, int], ...]


as_bthread = performer()


def names(scripts: Iterable[Any]) -> set[str]:
    """Return the names of scripts and of those that they start."""
    found = set()
    for script in scripts:
        found.add(script.name)
        found |= names(line for lines in script.lines if type(lines) is tuple for line in lines)
    return found


class World(NamedTuple):
    """A random program: its scripts, its environment, what is possible and what never must happen."""

    scripts: tuple[Script, ...]
    environment: tuple[Script, ...]
    possible: tuple[Happening, ...]
    never: tuple[Any, ...]
    faulty: bool

    def program(self) -> BProgram:
        return BProgram(*map(as_bthread, (*self.scripts, *self.environment)), max_steps=200)

    def verify(self, **options: Any) -> Verification:
        return verify(
            *map(as_bthread, self.scripts),
            environment=tuple(map(as_bthread, self.environment)),
            possible=tuple(map(as_event, self.possible)),
            never=[as_event_set(events) for events in self.never],
            **options,
        )


def random_world(random: Random) -> World:
    faulty = random.randrange(4) == 0
    author = Author(random, faulty)
    scripts = author.program()
    cut = random.choice((0, 0, 1, len(scripts) // 2))
    possible = tuple(author.happening() for _ in range(random.choice((0, 0, 1, 2))))
    author.faulty = False
    never = tuple(author.events(2) for _ in range(random.randrange(3)))
    return World(scripts[cut:], scripts[:cut], possible, never, faulty)


class Naive:
    """Everything that real programs do when every choice is tried, from the start each time."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.environment = names(world.environment)
        self.states: set[State] = set()
        self.transitions = 0
        self.deadlocks: set[State] = set()
        self.hot_ends: set[str] = set()
        self.failures: list[tuple[tuple[Event, ...], set[str]]] = []
        self.selected: set[Event] = set()
        self.is_endless = False  # a loop of starts: `max_steps` counts them, too

    def explore(self) -> bool:
        """Explore; return False when there is too much of it."""
        waiting: deque[tuple[Event, ...]] = deque([()])
        while waiting:
            trace = waiting.popleft()
            program = self.at(trace)
            if program is not None:
                state = standing(program)
                if state not in self.states:
                    self.states.add(state)
                    waiting.extend((*trace, event) for event in self.choices(program, trace, state))
                over(program)
                if len(self.states) > MOST or len(state) > 12:
                    return False
        return not self.is_endless

    def at(self, trace: tuple[Event, ...]) -> BProgram | None:
        """Return a program after a trace; None, and a failure noted, when it fails."""
        program = self.world.program()
        try:
            for event in trace:
                program.select(event)
            assert program.candidates is not None
        except bp.BThreadError as error:
            culprits = {error.bthread, *(note.split("'")[1] for note in getattr(error, "__notes__", ()))}
            self.failures.append((trace, culprits))
            over(program)
            return None
        except bp.EndlessLoop:
            self.is_endless = True
            return None
        self.transitions += bool(trace)
        return program

    def choices(self, program: BProgram, trace: tuple[Event, ...], state: State) -> list[Event]:
        living = list(program._scheduler.living)
        inside = [event for by in living if by.name not in self.environment for event in program._board.offered_by(by)]
        if inside:
            return self.met(inside)
        promised = [event for by in living for event in program._board.offered_by(by)]
        try:
            possible = [event for event in map(as_event, self.world.possible) if not program.blockers(event)]
        except bp.EventSetError as error:
            self.failures.append((trace, {error.bthread}))
            return []
        if not promised:
            self.judge(program, state)
        return self.met(promised + possible)

    def met(self, events: list[Event]) -> list[Event]:
        self.selected.update(events)
        return list(dict.fromkeys(events))

    def judge(self, program: BProgram, state: State) -> None:
        """Nothing internal and nothing promised: is that an end?"""
        living = program._scheduler.living
        if any(by.statement.requests for by in living if by.name not in self.environment):
            self.deadlocks.add(state)
        else:
            self.hot_ends |= set(program.hot)


def over(program: BProgram) -> None:
    with suppress(bp.BThreadError):
        program.close()


def standing(program: BProgram) -> State:
    """Return the multiset of where the b-threads stand."""
    bodies: list[Any] = [(by.name, by.priority, by.body) for by in program._scheduler.living]
    return tuple(sorted((name, priority, body.gi_frame.f_locals["line"]) for name, priority, body in bodies))


def check(world: World) -> str:
    """Compare both; return how it went."""
    naive = Naive(world)
    if not naive.explore():
        return "large"
    found = world.verify()
    by_kind: dict[str, list[bp.Violation]] = {}
    for violation in found.violations:
        by_kind.setdefault(violation.kind, []).append(violation)

    errors = {violation.bthread for violation in by_kind.get("error", ())}
    if world.faulty:  # either may ask a predicate that the other does not need
        assert errors or not naive.failures
        return "faulty"
    assert bool(errors) == bool(naive.failures)
    for _, culprits in naive.failures:
        assert errors & culprits
    assert errors <= {name for _, culprits in naive.failures for name in culprits}
    if not any(violation.trace == () for violation in by_kind.get("error", ())):
        assert errors or found.states == len(naive.states)
        assert {standing_after(world, violation.trace) for violation in by_kind.get("deadlock", ())} == naive.deadlocks
        hot_ends = {violation.bthread for violation in by_kind.get("hot", ()) if not violation.cycle}
        assert hot_ends == naive.hot_ends
        never = [as_event_set(events) for events in world.never]
        broken = [any(contains(events, event) for event in naive.selected) for events in never]
        assert len(by_kind.get("never", ())) == sum(broken)
    for violation in found.violations:
        reproduce(world, violation)
    return "+".join(by_kind) or "holds"


def standing_after(world: World, trace: tuple[Event, ...]) -> State:
    program = world.program()
    assert program.candidates is not None
    for happened in trace:
        program.select(happened)
    state = standing(program)
    over(program)
    return state


def reproduce(world: World, violation: bp.Violation) -> None:
    """Take the trace of a violation in a real program, and see that it is as told."""
    naive = Naive(world)
    program = naive.at(violation.trace)
    if violation.kind == "error":
        if program is None:
            assert violation.bthread in naive.failures[-1][1]
        else:
            naive.choices(program, violation.trace, ())
            assert violation.bthread in naive.failures[-1][1]
        return
    if program is None:
        assert violation.kind == "never"
        return
    if violation.kind == "deadlock":
        assert not naive.choices(program, (), ()) or world.possible
        for name, event, blockers in violation.blockers:
            assert name in {by.name for by in program._scheduler.living}
            assert {(by.bthread, by.because) for by in program.blockers(event)} == set(blockers)
    if violation.kind == "hot":
        before = standing(program)
        for event in violation.cycle:
            assert violation.bthread in program.hot
            program.select(event)
        assert violation.bthread in program.hot
        assert not violation.cycle or standing(program) == before
    over(program)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False))
def test_every_state_and_every_fault_is_found_and_no_others(random: Random) -> None:
    check(random_world(random))


WANTED, GIVEN, OTHER, NEVER = (Happening("warm", number) for number in range(4))


def world_of_alternatives(random: Random) -> World:
    """A request that is refused by some, and an `otherwise` that is held back by others, now and then; outside too."""

    def holder(name: str) -> Script:
        held = Events("event", random.choice((WANTED, GIVEN, OTHER)))
        until = Events("event", random.choice((WANTED, GIVEN, OTHER)))
        refusing = Say(refuse=held, because=random.choice(("no", "too late")), wait_for=until)
        says = [refusing, Say(block=held, wait_for=until), Say(wait_for=until)]
        return Script(name, tuple(random.sample(says, random.choice((1, 2, 3)))), random.choice((None, 0, 1)))

    def asker(name: str) -> Script:
        instead = Instead(*(random.choice((GIVEN, OTHER, NEVER)) for _ in range(3)))
        request = random.sample((WANTED, OTHER), random.choice((1, 1, 2)))
        asks = Say(tuple(request), any_of=random.random() < 0.5, otherwise=instead, on_otherwise=random.choice((0, 1)))
        return Script(name, (asks, Say((OTHER,))), random.choice((None, 1)))

    outside = tuple(asker(f"outside {number}") for number in range(random.choice((0, 1, 2))))
    inside = [asker("inside")] * (random.random() < 0.7)
    holders = [holder(f"holder {number}") for number in range(random.choice((1, 2, 3)))]
    twins = [holders[0]] * (random.random() < 0.3)
    return World((*inside, *holders, *twins), outside, (), (Events("event", NEVER),), False)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False))
def test_an_otherwise_does_not_depend_on_who_refuses_and_in_which_order(random: Random) -> None:
    world = world_of_alternatives(random)

    assert check(world) != "large"
    if not world.environment:
        compare_runs(world.scripts)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False))
def test_in_run_order_exactly_what_a_program_does_is_found(random: Random) -> None:
    compare_runs(Author(random).program())


def compare_runs(scripts: tuple[Script, ...]) -> None:
    """Compare the one path of `order="run"` with a program's own trace."""
    space = StateSpace(tuple(map(as_bthread, scripts)), (), (), in_order=True)
    try:
        if not space.failures:
            compare_paths(scripts, space)
    finally:
        space.automaton.close()


def compare_paths(scripts: tuple[Script, ...], space: StateSpace) -> None:
    search = Search(space, Violations(space, []), max_states=30)
    search.run()
    program = BProgram(*map(as_bthread, scripts), max_steps=100_000)
    assert program.candidates is not None
    for happened in search.path(len(search.states) - 1):
        step = program.step()
        assert step is not None
        assert step.event == happened
    assert [running.name for running in program._scheduler.living] == [
        space.automaton.locals[ord(character)].name for character in search.states[-1]
    ]
    over(program)
    assert all(by == number - 1 for number, by in enumerate(search.parents))


# A reduced search tries fewer orders and finds the same.

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


def both(*bthreads: bp.BThread, **options: Any) -> tuple[Verification, Verification]:
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


NOT_LOST: dict[str, tuple[list[bp.BThread], dict[str, Any]]] = {
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


def test_reduction_loses_no_violation() -> None:
    for name, (program, options) in NOT_LOST.items():
        full, reduced = both(*program, **options)
        assert full.violations, name
        assert set(map(wrong, reduced.violations)) == set(map(wrong, full.violations)), name


def wrong(violation: bp.Violation) -> str:
    return f"{violation.kind} {violation.bthread} {violation.message}"


def test_external_events_come_in_every_order() -> None:
    outside = [requests(HOT, 3).named("hot"), requests(COLD, 3).named("cold")]

    full, reduced = both(requests(A), requests(B), environment=outside, possible=[STOP])

    assert (full.states, reduced.states) == (3 + 16, 2 + 16)


# Where it is left alone.


LEFT_ALONE: list[tuple[list[bp.BThread], dict[str, Any]]] = [
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
        called.append(f"thread {len(called)}")
        lines = random.randrange(1, 4)
        return Script(called[-1], tuple(line(lines, depth) for _ in range(lines)))

    called: list[str] = []
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
