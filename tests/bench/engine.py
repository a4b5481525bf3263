"""What one event costs: hot and cold water in turn, the classic program, beside bare generators."""

from collections.abc import Callable, Generator, Iterator, Sequence

from attrs import frozen

from bp import BProgram, BThread, BThreadBody, Event, bthread, event, start, sync, where
from tests.bench.measuring import Aim, Prepare, Row, fastest, scaled
from tests.bp.programs import COLD, HOT, alternate, requests

MICRO = 1e6
ROUNDS = 30  # short ones: on a busy machine some of them are undisturbed


def measure_hot_cold(size: float = 1.0) -> Iterator[Row]:
    """Cost per event of the engine and of its b-threads alone, beside the same generators without an engine."""
    times = scaled(3_000, size)
    ours, floor, statements = fastest(hot_cold(times), floor_of_hot_cold(times), statements_alone(times), rounds=ROUNDS)
    yield row("hot/cold", ours, times, floor, "bare generators", Aim(at_most=30, of="ratio"))
    yield row("its b-threads alone: sync(...) without an engine", statements, times, floor, "bare generators")


def row(
    what: str, seconds: float, times: int, peer: float | None = None, against: str = "", aim: Aim | None = None
) -> Row:
    """Return the row of a run with `times` hots and as many colds."""
    events = 2 * times
    return Row(what, seconds / events * MICRO, "µs/event", peer and peer / events * MICRO, against, aim)


def hot_cold(times: int, *beside: BThread) -> Prepare:
    """Prepare a run of `times` hots and as many colds, `beside` other b-threads."""
    return prepared(alternate(), requests(HOT, times), requests(COLD, times), *beside)


def prepared(*bthreads: BThread) -> Prepare:
    """Prepare a run of these b-threads."""

    def prepare() -> Callable[[], object]:
        program = BProgram(*bthreads)
        program.step()  # not measured: all b-threads run to their first synchronization points
        return lambda: run_through(program)

    return prepare


def run_through(program: BProgram) -> int:
    """Run until nothing is selectable; return the number of steps."""
    steps = 0
    for _ in program.run():
        steps += 1
    return steps


# The floor: the same three b-threads without an engine.


def floor_of_hot_cold(times: int) -> Prepare:
    """Prepare the least that CPython can do: `send` to both participants and look each one's statement up."""

    def alternating() -> Generator[str, str, None]:
        while True:
            yield "hot"
            yield "cold"

    def adding(what: str) -> Generator[str, str, None]:
        for _ in range(times + 1):
            yield what

    def prepare() -> Callable[[], object]:
        tap, hot, cold = alternating(), adding("hot"), adding("cold")
        participants = {"hot": (hot.send, tap.send), "cold": (cold.send, tap.send)}
        selected = [next(hot), next(cold), next(tap)][-1]

        def run() -> None:
            event, concerned = selected, participants[selected]
            for _ in range(2 * times):
                for send in concerned:
                    concerned = participants[event := send(event)]

        return run

    return prepare


def statements_alone(times: int) -> Prepare:
    """Prepare the generators of the real b-threads, sent to in turn without an engine."""

    def prepare() -> Callable[[], object]:
        bodies = alternate().begin(), requests(HOT, times).begin(), requests(COLD, times).begin()
        tap, hot, cold = (body.send for body in bodies)
        for body in bodies:
            next(body)

        def run() -> None:
            for _ in range(times - 1):
                hot(HOT), tap(HOT)
                cold(COLD), tap(COLD)

        return run

    return prepare


# What an event with data costs: messages and receipts in turn, so that no step repeats, beside bare generators


Pair = tuple[str, int]
"""An event of the floor: its kind and its number."""


@frozen
class Sent(Event):
    """A message, by number."""

    number: int


@frozen
class Received(Event):
    """The receipt of the message with this number."""

    number: int


@bthread
def produce(times: int) -> BThreadBody:
    for number in range(times):
        yield sync(request=Sent(number))
        yield sync(wait_for=where(Received, number=number))


@bthread
def consume(times: int) -> BThreadBody:
    for number in range(times):
        yield sync(wait_for=where(Sent, number=number))
        yield sync(request=Received(number))


@bthread
def audit() -> BThreadBody:
    """Messages and receipts alternate, and each receipt is for the message before it."""
    while True:
        sent = yield sync(wait_for=Sent, block=Received)
        received = yield sync(wait_for=Received, block=Sent)
        assert received.number == sent.number


def measure_messages(size: float = 1.0) -> Iterator[Row]:
    """Cost per event: each carries a new value, and all three b-threads move at each one."""
    times = scaled(3_000, size)
    ours, floor = fastest(messages(times), floor_of_messages(times), rounds=ROUNDS)
    yield row("messages: every event carries a new value", ours, times, floor, "bare generators", Aim(45, of="ratio"))


def messages(times: int, *beside: BThread) -> Prepare:
    """Prepare a run of `times` messages and as many receipts, `beside` other b-threads."""
    return prepared(produce(times), consume(times), audit(), *beside)


# The floor: the same three b-threads without an engine.


def floor_of_messages(times: int) -> Prepare:
    """Prepare the least that CPython can do: `send` to all three, and look each one's statement up by its kind."""

    def sending() -> Generator[Pair, Pair, None]:
        for number in range(times + 1):
            yield "sent", number
            yield "received", number

    def auditing() -> Generator[Pair, Pair, None]:
        kind, number = "sent", 0
        while True:
            _, number = yield kind, number
            kind = "received" if kind == "sent" else "sent"

    def prepare() -> Callable[[], object]:
        producer, consumer, auditor = sending(), sending(), auditing()
        first = [next(producer), next(consumer), next(auditor)][0]
        participants = {
            "sent": (producer.send, auditor.send, consumer.send),
            "received": (consumer.send, auditor.send, producer.send),
        }  # the one that requests the next event comes last

        def run() -> None:
            event = said = first
            concerned = participants[first[0]]
            for _ in range(2 * times):
                for send in concerned:
                    said = send(event)
                    concerned = participants[said[0]]
                event = said

        return run

    return prepare


# Whether b-threads that are not concerned by an event cost anything: many that wait, and many that are over


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


def measure_waiting(size: float = 1.0) -> Iterator[Row]:
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
    finished = [requests(event(f"once {number}"), 0) for number in range(over)]
    alone, after_finished, after_chain = fastest(
        hot_cold(times), hot_cold(times, *finished), hot_cold(times, count_down(over))
    )
    yield row("hot/cold after 10,000 finished b-threads", after_finished, times, alone, "alone", FLAT)
    yield row("hot/cold after a chain of 10,000 starts", after_chain, times, alone, "alone", FLAT)
