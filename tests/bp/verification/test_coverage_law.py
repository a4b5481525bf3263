"""Coverage says of random programs what a naive exploration with real programs sees."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from bp import BProgram, Event, contains
from tests.bp.test_against_reference import as_event
from tests.bp.verification.test_cycle_law import Around, State, is_concerned
from tests.bp.verification.test_reduction import plain
from tests.bp.verification.test_verifier_law import World, random_world


class Reached(Around):
    """An exploration that notes which b-threads move, which have a candidate in their sets, and what happens."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.seen: set[str] = set()
        self.moved: set[str] = set()
        self.reached: set[str] = set()
        self.happened: set[Event] = set()

    def look(self, program: BProgram, trace: tuple[Event, ...], state: State) -> list[Event]:
        living = list(program._scheduler.living)
        rests = not any(program._board.offered_by(by) for by in living if by.name not in self.environment)
        candidates = {
            event for by in living if rests or by.name not in self.environment for event in by.statement.requests
        }
        candidates |= set(map(as_event, self.world.possible)) if rests else set()
        for by in living:
            said = by.statement
            self.seen.add(by.name)
            stops = [events for events in (said.block, said.refuse) if events is not None]
            waits = [events for events in (said.wait_for, said.interrupt) if events is not None]
            if any(contains(events, event) for events in stops for event in candidates) or any(
                contains(events, event) for events in waits for event in candidates.difference(said.requests)
            ):
                self.reached.add(by.name)
        events = super().look(program, trace, state)
        self.happened.update(events)
        self.moved |= {by.name for by in living for event in events if is_concerned(by, event)}
        return events


def compare(world: World) -> str:
    """Compare both; return how it went."""
    naive = Reached(world)
    if world.faulty or not naive.explore():
        return "not compared"
    coverage = world.verify().coverage

    named = [script.name for script in (*world.scripts, *world.environment)]
    alone = {name for name in named if named.count(name) == 1} & naive.seen
    idle = alone - naive.moved
    assert idle == alone & {*coverage.silent, *coverage.unreached, *coverage.never_advanced}
    assert alone & set(coverage.unreached) == idle - naive.environment - naive.reached
    assert alone & set(coverage.silent) <= idle & naive.environment
    assert not naive.happened & set(coverage.never_happened)
    assert set(map(as_event, world.possible)) - naive.happened <= set(coverage.never_happened)
    return "all reached" if coverage.complete else "unreached"


@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False))
def test_coverage_says_what_a_naive_exploration_sees(random: Random) -> None:
    world = random_world(random)
    compare(world._replace(scripts=tuple(map(plain, world.scripts)), environment=tuple(map(plain, world.environment))))
