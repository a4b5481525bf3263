"""Small events and b-threads that the tests of the engine share."""

import re
from collections.abc import Callable
from typing import Any

from attrs import frozen

from bp import BProgram, BThread, BThreadBody, Event, Sync, Verification, bthread, event, sync
from bp.program import Receipt

HOT = event("hot")
COLD = event("cold")
STOP = event("stop")


@frozen
class Ping(Event):
    value: int


@frozen
class Pong(Event):
    value: int
    note: str = ""


@bthread
def says(*statements: Any) -> BThreadBody:
    """Say one statement after the other."""
    for statement in statements:  # noqa: UP028 (what is sent must be taken; a tuple cannot)
        yield statement


@bthread
def keeps_saying(statement: Sync) -> BThreadBody:
    """Say the same statement for ever."""
    while True:
        yield statement


@bthread
def looping(*statements: Any) -> BThreadBody:
    """Say one statement after the other, again and again."""
    while True:
        for statement in statements:  # noqa: UP028
            yield statement


@bthread
def hears(notes: list[Any], *statements: Any) -> BThreadBody:
    """Say one statement after the other, and note what is sent back."""
    for statement in statements:
        said = yield statement
        notes.append(said)


@bthread
def alternate() -> BThreadBody:
    """Let HOT and COLD come in turn, HOT first."""
    while True:
        yield sync(wait_for=HOT, block=COLD)
        yield sync(wait_for=COLD, block=HOT)


@bthread
def does(action: Callable[[], Any]) -> BThreadBody:
    """Do something on HOT, from inside a b-thread."""
    yield sync(wait_for=HOT)
    action()


def trace(program: BProgram) -> list[Event]:
    """Run a program until it rests and return what happened."""
    return [step.event for step in program.run()]


def after(program: BProgram, *events: Event) -> list[Receipt]:
    """Run a program until it rests, then post events one by one, and return their receipts."""
    trace(program)
    receipts = []
    for happened in events:
        receipts.append(program.post(happened))
        trace(program)
    return receipts


@bthread
def requests(what: Any, times: int = 1) -> BThreadBody:
    """Request the same so many times."""
    for _ in range(times):
        yield sync(request=what)


@bthread
def fails_after(*events: Any) -> BThreadBody:
    """A monitor: after these events in this order, something is wrong."""
    for happened in events:
        yield sync(wait_for=happened)
    raise AssertionError("seen it")


def kinds(found: Verification) -> list[tuple[str, str | None]]:
    """Return what is wrong, and with which b-thread."""
    return [(violation.kind, violation.bthread) for violation in found.violations]


def check_refused(*cases: tuple[Callable[[], Any], str]) -> None:
    """Check that each use is refused with a TypeError whose message matches a regular expression."""
    missed = []
    for use, message in cases:
        try:
            use()
            missed.append(message)
        except TypeError as error:
            missed += [] if re.search(message, str(error)) else [f"{message} in {error}"]
    assert missed == []


# Dining philosophers: each takes the fork on the right, then the one on the left, and puts them back


def take(fork: int, philosopher: int) -> Event:
    return event(f"philosopher {philosopher} takes fork {fork}")


def put(fork: int, philosopher: int) -> Event:
    return event(f"philosopher {philosopher} puts fork {fork}")


@bthread
def philosopher(at: int, n: int) -> BThreadBody:
    right, left = at, (at + 1) % n
    while True:
        yield sync(request=take(right, at))
        yield sync(request=take(left, at))
        yield sync(request=put(left, at))
        yield sync(request=put(right, at))


@bthread
def fork(at: int, n: int, forgets: bool) -> BThreadBody:
    """A fork is with one philosopher at a time; `forgets` to clear the local that holds the last event."""
    neighbors = (at, (at - 1) % n)
    takes = tuple(take(at, neighbor) for neighbor in neighbors)
    puts = tuple(put(at, neighbor) for neighbor in neighbors)
    while True:
        taken = yield sync(wait_for=takes, block=puts)
        yield sync(wait_for=puts[takes.index(taken)], block=takes)
        if not forgets:
            taken = None


def philosophers(n: int, *, forgets: bool = False) -> list[BThread]:
    """Return n philosophers and their n forks."""
    return [philosopher(at, n).named(f"philosopher {at}") for at in range(n)] + [
        fork(at, n, forgets).named(f"fork {at}") for at in range(n)
    ]
