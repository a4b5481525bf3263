"""`verify` finds what a naive exploration with real programs finds, on random programs."""

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bp
from bp import BProgram, Event, Verification, contains, verify
from tests.bp.reference import Author, Events, Happening, Instead, Say, Script
from tests.bp.test_against_reference import as_event, as_event_set, performer

MOST = 60  # states of a program that is compared
RUNS = 8  # of each

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
            **{"runs": RUNS, **options},
        )


def random_world(random: Random) -> World:
    faulty = random.randrange(4) == 0
    author = Author(random, faulty)
    scripts = author.program()
    cut = random.choice((0, 0, 1, len(scripts) // 2))
    possible = tuple(author.happening() for _ in range(random.choice((0, 0, 1, 2))))
    author.faulty = False
    never = tuple(author.events(2) for _ in range(random.randrange(3)))
    return World(scripts[cut:], tuple(map(obedient, scripts[:cut])), possible, never, faulty)


def obedient(script: Script) -> Script:
    """Return a script without `otherwise`, which the environment has not."""

    def line(said: Any) -> Any:
        if isinstance(said, Say):
            return said._replace(otherwise=None)
        return tuple(map(obedient, said)) if type(said) is tuple else said

    return script._replace(lines=tuple(map(line, script.lines)))


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
    if world.faulty:  # either may ask a predicate that the other does not need, as of what comes from outside later
        assert errors or not naive.failures or world.environment
        return "faulty"
    assert bool(errors) == bool(naive.failures)
    for _, culprits in naive.failures:
        assert errors & culprits
    assert errors <= {name for _, culprits in naive.failures for name in culprits}
    if not any(violation.trace == () for violation in by_kind.get("error", ())):
        assert errors or found.states == len(naive.states)
        deadlocks = by_kind.get("deadlock", ())
        assert {standing_after(world, violation.trace) for violation in deadlocks} <= naive.deadlocks
        assert sum(violation.count for violation in deadlocks) == len(naive.deadlocks)
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

    outside = tuple(obedient(asker(f"outside {number}")) for number in range(random.choice((0, 1, 2))))
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
