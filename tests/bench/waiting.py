"""Whether b-threads that are not concerned by an event cost anything: many that wait, and many that are over."""

from collections.abc import Iterator, Sequence

from attrs import frozen

from bp import BThread, BThreadBody, Event, bthread, event, start, sync, where
from tests.bench.hot_cold import add, hot_cold, row
from tests.bench.messages import Sent, messages
from tests.bench.rows import Aim, Row
from tests.bench.timing import fastest, scaled

__all__ = ["measure", "parked"]

FLAT = Aim(at_most=1.2, of="ratio")
FEW, MANY = 10, 100_000


@frozen
class Score(Event):
    """An event that never happens."""

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
    """Cost per event beside 100,000 b-threads that wait, in proportion to the cost beside ten, or beside none."""
    times, many = scaled(4_000, size), scaled(MANY, size)
    yield from beside_plain(times, many)
    yield from beside_values(times, many)
    predicates = [wait_for_ever(where(Score, _never)) for _ in range(scaled(1000, size))]
    alone, beside = fastest(hot_cold(times), hot_cold(times, *predicates))
    yield row("hot/cold beside 1,000 where(Other, predicate)", beside, times, alone, "alone", FLAT)
    yield from after_many(times, scaled(10_000, size))


def beside_plain(times: int, many: int) -> Iterator[Row]:
    """Measure both programs beside b-threads that each wait for a plain event of their own."""
    for what, program in (("hot/cold", hot_cold), ("messages", messages)):
        few, beside = fastest(program(times, *parked(FEW)), program(times, *parked(many)), rounds=3)
        yield row(f"{what} beside {MANY:,} waiting", beside, times, few, f"beside {FEW}", FLAT)


def beside_values(times: int, many: int) -> Iterator[Row]:
    """Measure messages beside b-threads that each wait for another value: found by field value, not by asking."""
    few, beside = fastest(messages(times, *other_numbers(FEW)), messages(times, *other_numbers(many)), rounds=3)
    yield row(f"messages beside {MANY:,} where(Sent, number=...)", beside, times, few, f"beside {FEW}", FLAT)


def parked(count: int) -> list[BThread]:
    """Return b-threads that wait, each for a plain event of its own that never comes."""
    return [wait_for_ever(event(f"never {number}")) for number in range(count)]


def other_numbers(count: int) -> Sequence[BThread]:
    """Return b-threads that wait, each for a message of its own that never comes."""
    return [wait_for_ever(where(Sent, number=-number)) for number in range(1, count + 1)]


def _never(_: object) -> bool:
    return False


def after_many(times: int, over: int) -> Iterator[Row]:
    """Measure what is left of b-threads that are over, and of a chain in which each started the next."""
    finished = [add(event(f"once {number}"), 0) for number in range(over)]
    alone, after_finished, after_chain = fastest(
        hot_cold(times), hot_cold(times, *finished), hot_cold(times, count_down(over))
    )
    yield row("hot/cold after 10,000 finished b-threads", after_finished, times, alone, "alone", FLAT)
    yield row("hot/cold after a chain of 10,000 starts", after_chain, times, alone, "alone", FLAT)
