"""Runs that never end: who stays hot in them, whether they are fair, and loops of internal events."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bp import BProgram, BThread, BThreadError, EndlessLoop, Event, Violation, contains, event, sync, verify, where
from bp.verification.properties import absence, bounded_existence, existence, precedence, response
from bp.verification.search import components
from tests.bp.programs import STOP, Ping, keeps_saying, kinds, looping, says
from tests.bp.reference import Say, Script
from tests.bp.test_against_reference import as_event
from tests.bp.verification.test_verifier_law import Naive, State, World, over, random_world, reproduce, standing

A, B, C = event("a"), event("b"), event("c")


def test_a_cycle_is_told_after_its_trace() -> None:
    found = verify(says(sync(request=B), sync(wait_for=C, hot=True)), keeps_saying(sync(request=A)))

    assert str(found.violations[0]).splitlines() == [
        "  1  b: requested by says",
        "     then again and again:",
        "  2  a: requested by keeps_saying",
        "hot: b-thread 'says' stays hot around a fair cycle",
    ]


def test_a_long_cycle_is_told_as_one_where_its_beginning_is_cut() -> None:
    goes_round = looping(*[sync(request=Ping(number)) for number in range(9)])
    first = says(*[sync(request=A)] * 9, sync(wait_for=C, hot=True))

    found = verify(first, says(*[sync(wait_for=A, block=Ping)] * 9), goes_round)

    assert "     ... 7 more, then again and again ..." in str(found.violations[0]).splitlines()


def test_a_cycle_leaves_no_bthread_out_that_could_always_go_on() -> None:
    """`a` and `b` can be selected all along, and the first is taken; `b` is held back now and then."""
    waits = says(sync(wait_for=B, hot=True)).named("waits")
    holds = looping(sync(wait_for=A), sync(wait_for=C, block=B)).named("holds")
    alternates = looping(sync(request=A), sync(request=C)).named("alternates")

    found = verify(alternates, says(sync(request=B)), waits, holds, keeps_saying(sync(request=STOP)))

    assert set(found.violations[0].cycle) == {A, C, STOP}


def test_components_are_those_of_a_graph() -> None:
    graph = {1: [2], 2: [3, 4], 3: [1], 4: [5], 5: [6], 6: [5], 7: [7], 8: []}

    def edges(node: int) -> list[tuple[int, int]]:
        return [(target, 0) for target in graph[node]]

    assert list(components(graph, edges)) == [[5, 6], [1, 2, 3], [7]]


@pytest.mark.slow
def test_long_paths_need_no_recursion() -> None:
    n = 50_000

    def edges(node: int) -> list[tuple[int, int]]:
        return [((node + 1) % n, 0)]

    assert [len(component) for component in components(range(n), edges)] == [n]


# `verify` finds the fair cycles and the endless loops that a naive search with real programs finds.


Place = tuple[str, int, int]  # name, priority and line of a b-thread
Node = tuple[State, Place]


class Step(NamedTuple):
    """A step that is owed or internal: whom it moves, and where to; None is its end."""

    target: State
    internal: bool
    moves: dict[Place, Place | None]


class Around(Naive):
    """The steps between the states of a program, with who is hot and who is owed something in each state."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.steps: dict[State, list[Step]] = {}
        self.hot: dict[State, set[Place]] = {}
        self.owed: dict[State, set[Place]] = {}

    def choices(self, program: BProgram, trace: tuple[Event, ...], state: State) -> list[Event]:
        """Note what there is in a state, and return what can happen."""
        living = list(program._scheduler.living)
        self.hot[state] = {place(by) for by in living if by.statement.hot}
        inside = [by for by in living if program._board.offered_by(by) and by.name not in self.environment]
        owed = inside or [by for by in living if program._board.offered_by(by)]
        self.owed[state] = {place(by) for by in owed}
        offered = list(dict.fromkeys(each for by in owed for each in program._board.offered_by(by)))
        self.steps[state] = [step for each in offered for step in self.step(trace, each, bool(inside))]
        possible = () if inside else map(as_event, self.world.possible)
        return [*offered, *(each for each in possible if not program.blockers(each))]

    def step(self, trace: tuple[Event, ...], event: Event, internal: bool) -> list[Step]:
        program = self.at(trace)
        assert program is not None
        concerned = {by: place(by) for by in program._scheduler.living if is_concerned(by, event)}
        try:
            program.select(event)
            assert program.candidates is not None
        except (BThreadError, EndlessLoop):  # `at` notes it
            return []
        after = {by: place(by) for by in program._scheduler.living}
        moves = {was: after.get(by) for by, was in concerned.items()}
        found = Step(standing(program), internal, moves)
        over(program)
        return [found]

    def hot_for_ever(self) -> set[str]:
        """Return the b-threads that stay hot around a fair cycle."""
        nodes = {(state, at) for state, places in self.hot.items() for at in places}

        def edges(node: Node) -> list[tuple[Node, Step]]:
            state, at = node
            following = [(step, step.moves.get(at, at)) for step in self.steps[state]]
            return [((step.target, to), step) for step, to in following if to and (step.target, to) in nodes]

        return {at[0] for _, at in kept(nodes, edges, self.demands())}

    def demands(self) -> list[Callable[[Node, Step], bool]]:
        """Return when a step does justice to a b-thread: it moves it, or nothing is owed to it there."""

        def demand(at: Place) -> Callable[[Node, Step], bool]:
            return lambda node, step: at in step.moves or at not in self.owed[node[0]]

        return [demand(at) for at in sorted(set().union(*self.owed.values()))] or [lambda node, step: True]

    def has_endless_loop(self) -> bool:
        def edges(state: Any) -> list[tuple[Any, Step]]:
            return [(step.target, step) for step in self.steps[state] if step.internal]

        return bool(kept(set(self.steps), edges, [lambda node, step: True]))


def place(running: Any) -> Place:
    return (running.name, running.priority, running.body.gi_frame.f_locals["line"])


def is_concerned(running: Any, event: Event) -> bool:
    """Tell whether an event moves a b-thread: by its statement, or because it is what it asks for instead."""
    said = running.statement
    sets = [events for events in (said.wait_for, said.interrupt) if events is not None]
    return event in (*said.requests, running.alternative) or any(contains(events, event) for events in sets)


def kept(
    nodes: Iterable[Any],
    edges: Callable[[Any], list[tuple[Any, Step]]],
    demands: list[Callable[[Any, Step], bool]],
) -> set[Any]:
    """Return the nodes from which all demands can be met for ever."""
    remaining = set(nodes)
    while True:
        within = {node: [edge for edge in edges(node) if edge[0] in remaining] for node in remaining}
        after = set(remaining)
        for demand in demands:
            after &= reaching(within, demand)
        if after == remaining:
            return remaining
        remaining = after


def reaching(within: dict[Any, list[tuple[Any, Step]]], demand: Callable[[Any, Step], bool]) -> set[Any]:
    """Return the nodes from which a step can be reached that meets a demand."""
    found = {node for node, edges in within.items() if any(demand(node, step) for _, step in edges)}
    while True:
        more = {node for node, edges in within.items() if any(to in found for to, _ in edges)} - found
        if not more:
            return found
        found |= more


def looping_world(random: Random) -> World:
    """Return a random program with more loops, and more that is hot."""
    world = random_world(random)

    def line(said: Any) -> Any:
        if isinstance(said, Say):
            return said._replace(hot=random.randrange(3) == 0)
        return tuple(map(looped, said)) if type(said) is tuple else said

    def looped(script: Script) -> Script:
        lines = [line(said) for said in script.lines]
        if lines and isinstance(lines[-1], Say) and random.randrange(3):
            lines[-1] = lines[-1]._replace(then=0)
        return script._replace(lines=tuple(lines))

    return world._replace(
        scripts=tuple(map(looped, world.scripts)), environment=tuple(map(looped, world.environment)), never=()
    )


def is_fair(naive: Around, violation: Violation) -> bool:
    """Tell whether each place to which something is owed in every state of a cycle moves in it."""
    program = naive.at(violation.trace)
    assert program is not None
    owed, moved = [], set[Place]()
    for happened in violation.cycle:
        assert program.candidates is not None  # asks each `otherwise`
        owed.append(naive.owed[standing(program)])
        moved |= {place(by) for by in program._scheduler.living if is_concerned(by, happened)}
        program.select(happened)
    over(program)
    return set.intersection(*owed) <= moved


def compare(world: World) -> str:
    """Compare both; return how it went."""
    naive = Around(world)
    if world.faulty or not naive.explore() or naive.failures:
        return "not compared"
    found = world.verify(endless=True)
    hot = {violation.bthread for violation in found.violations if violation.kind == "hot"}
    ends = {violation.bthread for violation in found.violations if violation.kind == "hot" and not violation.cycle}
    endless = [violation for violation in found.violations if violation.kind == "endless"]

    assert hot - ends <= naive.hot_for_ever() <= hot
    assert bool(endless) == naive.has_endless_loop()
    for violation in found.violations:
        reproduce(world, violation)
        if violation.kind == "hot" and violation.cycle:
            assert is_fair(naive, violation)
    return "hot" * bool(hot - ends) + "endless" * bool(endless) or "neither"


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.randoms(use_true_random=False))
def test_every_fair_cycle_and_every_endless_loop_is_found_and_no_others(random: Random) -> None:
    compare(looping_world(random))


# Temporal properties are monitors: what they forbid raises, what they demand is hot.

P, S, Q, R = event("p"), event("s"), event("q"), event("r")

# Each pattern as a monitor, and by its definition.
PATTERNS: list[tuple[Callable[..., BThread], Callable[[list[Event]], bool]]] = [
    (partial(absence, P), lambda part: P not in part),
    (partial(bounded_existence, P, 2), lambda part: part.count(P) <= 2),
    (partial(precedence, S, P), lambda part: P not in part or S in part[: part.index(P)]),
    (partial(existence, P), lambda part: P in part),
    (partial(response, P, S), lambda part: all(S in part[at:] for at, event in enumerate(part) if event == P)),
]
SCOPES: list[dict[str, Event]] = [
    {}, {"after": Q}, {"before": R}, {"until": R}, {"after": Q, "before": R}, {"after": Q, "until": R},
]  # fmt: skip


def parts(trace: list[Event], scope: dict[str, Event]) -> Iterator[list[Event]]:
    """Yield the parts of a trace in which a scope is open and its property is demanded."""
    after, before = scope.get("after"), scope.get("before")
    closing = before or scope.get("until")
    part: list[Event] | None = [] if after is None else None
    for happened in trace:
        if part is not None and happened == closing:
            yield part
            part = None
            if after is None:
                return
        elif part is not None:
            part.append(happened)
        elif happened == after:
            part = []
    if part is not None and before is None:
        yield part


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PATTERNS), st.sampled_from(SCOPES), st.lists(st.sampled_from([P, S, Q, R]), max_size=8))
def test_a_monitor_finds_exactly_the_traces_that_break_its_property(
    pattern: tuple[Callable[..., BThread], Callable[[list[Event]], bool]], scope: dict[str, Event], trace: list[Event]
) -> None:
    monitor, keeps = pattern

    found = verify(says(*[sync(request=happened) for happened in trace]), monitor(**scope))

    assert found.holds == all(map(keeps, parts(trace, scope)))


def test_a_broken_property_says_what_happened_and_where() -> None:
    forbidden = verify(says(sync(request=Q), sync(request=P)), absence(P, after=Q)).violations
    owed = verify(says(sync(request=P)), response(P, S)).violations

    assert "'absence of p': AssertionError: p happens after q" in forbidden[0].message
    assert [(violation.kind, violation.bthread) for violation in owed] == [("hot", "s after p")]


def test_a_response_that_is_put_off_for_ever_around_a_cycle_is_found() -> None:
    found = verify(says(sync(request=P)), keeps_saying(sync(request=Q)), response(P, S))

    assert kinds(found) == [("hot", "s after p")]
    assert found.violations[0].cycle == (Q,)


def test_properties_take_event_sets_and_lists_of_them() -> None:
    found = verify(says(sync(request=Ping(3))), precedence([S, Q], where(Ping, value=3)), absence([P, Ping], before=R))

    assert kinds(found) == [("error", "[s, q] before where(Ping, value=3)")]


def test_a_property_watches_a_run_too() -> None:
    with pytest.raises(BThreadError, match="p happens more than 1 times"):
        list(BProgram(says(sync(request=P), sync(request=P)), bounded_existence(P, 1)).run())


def test_a_property_of_what_never_comes_is_unreached() -> None:
    found = verify(says(sync(request=P)), absence(R, after=Q))

    assert found.holds
    assert not found
    assert found.coverage.unreached == ("absence of r",)
