"""How much faster this engine is than BPpy, where that is installed (`pip install bppy`), in the same run."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from math import prod
from typing import Any

from tests.bench.classics import PROGRAMS
from tests.bench.hot_cold import MICRO, hot_cold, row, run_through
from tests.bench.rows import Aim, Row
from tests.bench.timing import fastest, scaled
from tests.bench.waiting import parked

__all__ = ["measure"]

TIMES = {"hot/cold": 500, "tic-tac-toe": 1, "dining philosophers": 20, "level crossing": 40, "vending machine": 250}
WAITING = 1000


class Counter:
    """A listener of BPpy that counts events."""

    def __init__(self) -> None:
        self.events = 0

    def starting(self, b_program: Any) -> None: ...

    def event_selected(self, b_program: Any, event: Any) -> bool:
        """Count, and let the program go on."""
        self.events += 1
        return False

    def ended(self, b_program: Any) -> None: ...


def measure(size: float = 1.0) -> Iterator[Row]:
    """Five classic programs from their making to their end, their mean, and hot/cold beside 1,000 that wait."""
    if find_spec("bppy") is None:
        yield Row("BPpy, five classic programs", None, "µs/event", note="skipped: bppy is not installed")
        return
    from tests.bench import classics_in_bppy

    ratios = []
    for name, theirs in classics_in_bppy.PROGRAMS.items():
        found = compared(name, PROGRAMS[name], theirs, scaled(TIMES[name], size))
        ratios.append(found.ratio or 0)
        yield found
    mean = prod(ratios) ** (1 / len(ratios))
    yield Row("BPpy, geometric mean of the five ratios", mean, "times", aim=Aim(at_least=8))
    times, waiting = scaled(50, size), scaled(WAITING, size)

    def beside_waiting() -> Callable[[], object]:
        program = classics_in_bppy.hot_cold(times, waiting)
        program.setup()  # not measured, as with ours
        return program.run  # type: ignore[no-any-return]

    few, many = fastest(hot_cold(times, *parked(waiting)), beside_waiting, rounds=2)
    yield row(f"BPpy, hot/cold beside {WAITING:,} waiting", many, times, few, "this engine")


def compared(name: str, ours: Callable[[int], Any], theirs: Callable[[int], Any], times: int) -> Row:
    """Return the row of one program in both engines, which have to take the same number of events."""
    events = run_through(ours(times))
    assert events == events_of_bppy(theirs(times)), name
    our_seconds, their_seconds = fastest(
        lambda: lambda: run_through(ours(times)), lambda: lambda: theirs(times).run(), rounds=3
    )
    figures = their_seconds / events * MICRO, our_seconds / events * MICRO
    return Row(f"BPpy, {name}", figures[0], "µs/event", figures[1], "this engine")


def events_of_bppy(program: Any) -> int:
    """Return how many events a BPpy program takes."""
    program.listener = counter = Counter()
    program.run()
    return counter.events
