"""What verification costs: dining philosophers, the shipped loop, and a program of three states."""

import tracemalloc
from collections.abc import Callable, Iterator

from agent.presets import preset_named
from agent.verification import loop_rules, verify_loop
from bp import event, verify
from bp.verification.report import Violations
from bp.verification.search import Search
from bp.verification.states import StateSpace
from tests.bench.measuring import Aim, Row, fastest, scaled
from tests.bp.programs import philosophers, requests

STATES = {6: 1297, 8: 14_158, 10: 154_450}  # of so many philosophers


def measure_verification(size: float = 1.0) -> Iterator[Row]:
    """States and whole verifications per second of CPU time, and traced bytes for each state."""
    large, small = (10, 8) if size >= 1 else (6, 6)
    yield from table(large)
    yield Row(f"verify {small} philosophers: memory", bytes_a_state(small), "bytes/state")
    yield shipped_loop(None if size >= 1 else scaled(40_000, size))
    times = scaled(200, size)
    (seconds,) = fastest(lambda: lambda: [verify(requests(event("once"), 2)) for _ in range(times)])
    yield Row("verify a program of three states", times / seconds, "verifications/s", aim=Aim(at_least=3900))


def table(n: int) -> Iterator[Row]:
    """Measure `n` dining philosophers, also with one of several orders that come to the same."""
    assert verify(*philosophers(n)).states == STATES[n]
    whole, reduced = fastest(
        lambda: lambda: verify(*philosophers(n)), lambda: lambda: verify(*philosophers(n), reduce=True), rounds=2
    )
    yield Row(f"verify {n} philosophers, {STATES[n]:,} states", STATES[n] / whole, "states/s", aim=Aim(at_least=30_000))
    yield Row(f"verify {n} philosophers, reduce=True", reduced, "s", whole, "reduce=False")


def bytes_a_state(n: int) -> float:
    """Return how many bytes the search of `n` philosophers holds at its end, by state."""
    space = StateSpace(philosophers(n), (), (), in_order=False)
    tracemalloc.start()
    search = Search(space, Violations(space, []))
    search.run()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    space.automaton.close()
    return held / len(search.states)


def shipped_loop(max_states: int | None) -> Row:
    """Measure the loop of the preset "default" with its rules and invariants."""
    rules = loop_rules(preset_named("default"))
    states = 0

    def prepare() -> Callable[[], object]:
        def run() -> None:
            nonlocal states
            states = verify_loop(rules, max_states=max_states).states

        return run

    (seconds,) = fastest(prepare, rounds=1)
    aim = Aim(at_least=16_800)  # three times what it was
    return Row(f"verify the shipped loop, {states:,} states", states / seconds, "states/s", aim=aim)
