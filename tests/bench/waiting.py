"""Whether b-threads that are not concerned by an event cost anything: many that wait, and many that are over."""

from collections.abc import Callable, Iterator

from attrs import frozen

from bp import BProgram, BThread, BThreadBody, Event, bthread, event, start, sync, where
from tests.bench.hot_cold import add, hot_cold, row
from tests.bench.rows import Aim, Row
from tests.bench.timing import Prepare, fastest, scaled

__all__ = ["measure", "parked"]

FLAT = Aim(at_most=1.5, of="ratio")
FEW = 10


@frozen
class Score(Event):
    """An event of which many b-threads wait for one value each."""

    subject: int


@bthread
def wait_for_ever(what: object) -> BThreadBody:
    yield sync(wait_for=what)


@bthread
def count_down(left: int) -> BThreadBody:
    """One link of a chain: starts the next and is over."""
    if left:
        yield start(count_down(left - 1))


def measure(size: float = 1.0) -> Iterator[Row]:
    """Cost per event beside many b-threads, in proportion to the cost beside ten that wait, or beside none."""
    times = scaled(4_000, size)
    counts = (10_000, 100_000)
    few, *many = fastest(*(hot_cold(times, *parked(scaled(count, size))) for count in (FEW, *counts)), rounds=3)
    for count, seconds in zip(counts, many, strict=True):
        yield row(f"hot/cold beside {count:,} waiting", seconds, times, few, f"beside {FEW}", FLAT)
    alone, scores, predicates = fastest(
        hot_cold(times),
        hot_cold(times, *(wait_for_ever(where(Score, subject=number)) for number in range(scaled(1000, size)))),
        hot_cold(times, *(wait_for_ever(where(Score, _never)) for _ in range(scaled(1000, size)))),
    )
    yield row("... beside 1,000 where(Kind, field=value)", scores, times, alone, "alone", FLAT)
    yield row("... beside 1,000 where(Other, predicate)", predicates, times, alone, "alone", FLAT)
    yield from selected_among_many(times, size)
    yield from after_many(times, size)


def parked(count: int) -> list[BThread]:
    """Return b-threads that wait, each for a plain event of its own that never comes."""
    return [wait_for_ever(event(f"never {number}")) for number in range(count)]


def _never(_: object) -> bool:
    return False


def selected_among_many(times: int, size: float) -> Iterator[Row]:
    """Measure a kind of event whose every value somebody waits for: found by field value, not by asking."""
    few, many = fastest(*(scoring(times, scaled(count, size)) for count in (FEW, 10_000)))
    yield row("Score selected, 10,000 wait for other values", many, times, few, f"{FEW} wait", FLAT)


def scoring(times: int, waiting: int) -> Prepare:
    """Prepare `2 * times` scores that one b-thread gives and another hears, with `waiting` for other subjects."""

    @bthread
    def give_and_hear() -> BThreadBody:
        while True:
            yield sync(request=Score(-1), wait_for=where(Score, subject=-1))

    def prepare() -> Callable[[], object]:
        others = [wait_for_ever(where(Score, subject=number)) for number in range(waiting)]
        program = BProgram(give_and_hear(), *others)
        program.step()
        return lambda: [program.step() for _ in range(2 * times)]

    return prepare


def after_many(times: int, size: float) -> Iterator[Row]:
    """Measure what is left of b-threads that are over, and of a chain in which each started the next."""
    over = scaled(10_000, size)
    finished = [add(event(f"once {number}"), 0) for number in range(over)]
    alone, after_finished, after_chain = fastest(
        hot_cold(times), hot_cold(times, *finished), hot_cold(times, count_down(over))
    )
    yield row("... after 10,000 finished b-threads", after_finished, times, alone, "alone", FLAT)
    yield row("... after a chain of 10,000 starts", after_chain, times, alone, "alone", FLAT)
