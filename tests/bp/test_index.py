"""What an event costs is counted, not timed: predicates asked, values compared, lines of the engine run."""

import gc
import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

import bp
from bp import BProgram, BThreadBody, Event, bthread, event, start, sync, where
from tests.bp.programs import COLD, HOT, STOP, Ping, Pong, keeps_saying, looping, says, trace
from tests.tables import rows


class Asked:
    """A predicate that remembers what it was asked about."""

    def __init__(self) -> None:
        self.about: list[Event] = []

    def __call__(self, happened: Event) -> bool:
        self.about.append(happened)
        return False


def lines_run(action: Callable[[], Any]) -> int:
    """Return how many lines of the engine an action runs."""
    lines = 0
    home = str(bp.__path__[0])

    def count(frame: FrameType, what: str, _: Any) -> Any:
        nonlocal lines
        if not frame.f_code.co_filename.startswith(home):
            return None
        lines += what == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        action()
    finally:
        sys.settrace(before)
    return lines


def test_predicates_are_asked_about_their_kinds_only() -> None:
    asked = [Asked() for _ in range(4)]
    program = BProgram(
        says(sync(wait_for=where(Ping, asked[0]))),
        says(sync(block=where(Ping, asked[1]))),
        says(sync(refuse=where("warm", asked[2]) | HOT, because="no")),
        says(sync(interrupt=where(Ping, asked[3]) & ~Ping(1))),
        says(sync(request=Pong(1)), sync(request=COLD), sync(request=event("warmer"))),
    )

    trace(program)

    assert [predicate.about for predicate in asked] == [[], [], [], []]


def test_a_predicate_with_fields_is_asked_about_events_with_these_fields_only() -> None:
    asked = Asked()
    program = BProgram(says(sync(wait_for=where(Pong, asked, note="x"))), says(sync(wait_for=STOP)))
    trace(program)
    for happened in (Pong(1), Pong(2, "y"), Pong(3, "x")):
        program.post(happened)

    trace(program)

    assert asked.about == [Pong(3, "x")]


def waiting(number: int) -> list[bp.BThread]:
    """Return b-threads that wait for, block, refuse and are interrupted by other events of the kinds that come."""
    others = [where(Ping, value=n + 1) for n in range(number)]
    return [
        says(sync(wait_for=[event(f"other {n}"), other], block=other, interrupt=other, refuse=other, because="no"))
        for n, other in enumerate(others)
    ]


def requesting(number: int) -> list[bp.BThread]:
    return [keeps_saying(sync(request=Pong(n))) for n in range(number)]


TOGGLE = looping(sync(request=HOT, block=Pong), sync(wait_for=Pong)).at_priority(-1)
UNASKED = says(sync(block=where(Pong, value=-1)))
FLAT: dict[str, Callable[[int], list[bp.BThread]]] = {
    "waiting b-threads": lambda number: [
        *waiting(number),
        keeps_saying(sync(request=HOT, wait_for=Ping(0))),
        keeps_saying(sync(wait_for=HOT, block=Pong(1))),
        says(sync(wait_for=HOT), *[sync(request=Ping(0), block=COLD)] * 20).at_priority(1),
    ],
    "requests of a kind, while a block of another kind comes and goes": lambda number: [
        *requesting(number),
        says(sync(block=Pong)),
        looping(sync(wait_for=Ping, block=Ping(7)), sync(wait_for=Ping)),
        keeps_saying(sync(request=Ping(1))),
    ],
    "requests that one block holds and releases": lambda number: [*requesting(number), TOGGLE],
    "requests that one block holds and releases, beside another": lambda number: [
        *requesting(number), UNASKED, TOGGLE,
    ],
    "requests each held by a block of its own": lambda number: [
        *requesting(number),
        *(says(sync(block=where(Pong, value=n))) for n in range(1, number)),
        looping(sync(request=HOT, block=Pong(0)), sync(wait_for=Pong)).at_priority(-1),
    ],
}  # fmt: skip


@rows(("name", "bthreads"), FLAT.items())
def test_the_cost_of_an_event_does_not_depend_on_how_many_there_are(
    name: str, bthreads: Callable[[int], list[bp.BThread]]
) -> None:
    """Found: a thousand requests that one b-thread held and released cost sixty times what ten cost."""

    def lines(number: int) -> int:
        program = BProgram(*bthreads(number))
        steps = [program.step() for _ in range(3)]
        cost = lines_run(lambda: steps.extend(program.step() for _ in range(20)))
        assert None not in steps
        return cost

    assert lines(10) == lines(300)


# Programs that go on for ever, and whose b-threads do not: what is over leaves nothing behind.


@bthread
def starts_again_and_again(*children: bp.BThread) -> BThreadBody:
    """Start two of each, and again when they are over."""
    while True:
        yield start(*children, *children)
        yield sync(wait_for=HOT)


@bthread
def link(number: int) -> BThreadBody:
    yield sync(request=Ping(number))
    yield start(link(number + 1))


@bthread
def blocks_another_number_each_time() -> BThreadBody:
    number = 0
    while True:
        number += 1
        yield sync(request=event("counted", data=number % 7), block=Ping(number % 5))
        yield start(says(sync(wait_for=where("counted"), block=Ping(number % 3))))


WORDS: list[dict[str, Any]] = [
    {"request": COLD, "otherwise": lambda _: STOP}, {"wait_for": [COLD, where(Pong, value=1)]},
    {"block": where(Ping, lambda ping: ping.value > 2) & ~Ping(3)}, {"refuse": where(Ping, value=1), "because": "no"},
    {"request": [Ping(1), Pong(1)], "hot": True}, {"interrupt": ~COLD},
]  # fmt: skip
LATE_HOT = keeps_saying(sync(request=HOT)).at_priority(-1)
ENDLESS: dict[str, list[bp.BThread]] = {
    "every word": [starts_again_and_again(*[says(sync(**({"interrupt": HOT} | word))) for word in WORDS]), LATE_HOT],
    "requesters that never come to their turn": [
        keeps_saying(sync(request=HOT)), starts_again_and_again(says(sync(request=HOT))),
    ],
    "requests that are held back": [
        says(sync(block=COLD)), says(sync(block=Ping)), LATE_HOT,
        starts_again_and_again(says(sync(request=[COLD, Ping(1)], interrupt=HOT))),
    ],
    "a chain of starts": [link(0)],
    "blocks and waits": [blocks_another_number_each_time(), keeps_saying(sync(wait_for=where("counted")))],
}  # fmt: skip


@pytest.mark.slow
@rows(("name", "bthreads"), ENDLESS.items())
def test_b_threads_that_are_over_leave_nothing_behind(name: str, bthreads: list[bp.BThread]) -> None:
    program = BProgram(*bthreads, says(sync(wait_for=event("never"))))

    def grown(steps: int) -> int:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(steps):
            assert program.step()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        grown(500)
        assert grown(2000) < 10_000, "five bytes a step at most: tables that are made anew"
    finally:
        tracemalloc.stop()
