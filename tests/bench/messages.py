"""What an event with data costs: messages and receipts in turn, so that no step repeats, beside bare generators."""

from collections.abc import Callable, Generator, Iterator

from attrs import frozen

from bp import BThread, BThreadBody, Event, bthread, sync, where
from tests.bench.hot_cold import ROUNDS, prepared, row
from tests.bench.rows import Aim, Row
from tests.bench.timing import Prepare, fastest, scaled

__all__ = ["Sent", "measure", "messages"]

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


def measure(size: float = 1.0) -> Iterator[Row]:
    """Cost per event: each carries a new value, and all three b-threads move at each one."""
    times = scaled(3_000, size)
    ours, floor = fastest(messages(times), bare_floor(times), rounds=ROUNDS)
    yield row("messages: every event carries a new value", ours, times, floor, "bare generators", Aim(45, of="ratio"))


def messages(times: int, *beside: BThread) -> Prepare:
    """Prepare a run of `times` messages and as many receipts, `beside` other b-threads."""
    return prepared(produce(times), consume(times), audit(), *beside)


# The floor: the same three b-threads without an engine.


def bare_floor(times: int) -> Prepare:
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
