"""Five classic behavioral programs, each from its making to its end, in this engine and in BPpy (`pip install bppy`).

Each program stands once, in the words of an `Engine`; events of one kind are a `Family`.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import permutations
from math import prod
from operator import add, or_
from typing import Any, NamedTuple

from attrs import make_class

from bp import BProgram, Event, bthread, event, sync
from tests.bench.engine import MICRO, hot_cold, parked, row, run_through
from tests.bench.measuring import Aim, Row, fastest, scaled


class Family(NamedTuple):
    """The events of one kind, by value, and the event set of them all."""

    of: dict[Any, Any]
    all: Any


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


class Engine(NamedTuple):
    """The words of one engine: b-threads come into a program with their priorities, `at` gives one to a statement."""

    event: Callable[[str], Any]
    family: Callable[[str, Sequence[Any]], Family]
    union: Callable[[Any, Any], Any]  # of event sets
    value: Callable[[Any], Any]  # of an event of a family
    thread: Callable[..., Any]
    sync: Callable[..., Any]
    at: Callable[[int], dict[str, int]]
    program: Callable[[list[tuple[Any, int]]], Any]
    post: Callable[[Any, Any], Any]
    run: Callable[[Any], int]  # returns the number of events


def this_engine() -> Engine:
    """Return the words of this engine: a family is an event kind."""

    @cache  # the making of events is not measured
    def family(name: str, values: Sequence[Any]) -> Family:
        kind: Any = make_class(name, ["value"], bases=(Event,), frozen=True)
        return Family({value: kind(value) for value in values}, kind)

    def program(threads: list[tuple[Any, int]]) -> BProgram:
        return BProgram(*[thread.at_priority(priority) for thread, priority in threads])

    def value(happened: Any) -> Any:
        return happened.value

    return Engine(event, family, or_, value, bthread, sync, lambda _: {}, program, BProgram.post, run_through)


def bppy_engine() -> Engine:
    """Return the words of BPpy: a family is a list of events, and each statement has its priority."""
    bppy: Any = import_module("bppy")

    @cache  # the making of events is not measured
    def family(name: str, values: Sequence[Any]) -> Family:
        events = {value: bppy.BEvent(f"{name} {value}", {"value": value}) for value in values}
        return Family(events, list(events.values()))

    def statement(wait_for: Any = None, **words: Any) -> Any:
        return bppy.sync(waitFor=wait_for, **words)

    def program(threads: list[tuple[Any, int]]) -> Any:
        has_priorities = any(priority for _, priority in threads)
        strategy = "PriorityBasedEventSelectionStrategy" if has_priorities else "SimpleEventSelectionStrategy"
        bthreads = [thread for thread, _ in threads]
        return bppy.BProgram(bthreads=bthreads, event_selection_strategy=getattr(bppy, strategy)())

    def run(program: Any) -> int:
        program.listener = counter = Counter()
        program.run()
        return counter.events

    def value(happened: Any) -> Any:
        return happened.data["value"]

    return Engine(
        bppy.BEvent, family, add, value, bppy.thread, statement, lambda priority: {"priority": priority}, program,
        bppy.BProgram.enqueue_external_event, run,
    )  # fmt: skip


def tap(engine: Engine, times: int, waiting: int = 0) -> Any:
    """Make a tap that gives so many hots and as many colds, beside b-threads that each wait for their own event."""
    sync, hot, cold = engine.sync, engine.event("hot"), engine.event("cold")

    @engine.thread
    def alternate() -> Any:
        while True:
            yield sync(wait_for=hot, block=cold)
            yield sync(wait_for=cold, block=hot)

    @engine.thread
    def add(what: Any) -> Any:
        for _ in range(times):
            yield sync(request=what)

    @engine.thread
    def wait_for_ever(what: Any) -> Any:
        yield sync(wait_for=what)

    others = [wait_for_ever(engine.event(f"never {number}")) for number in range(waiting)]
    return engine.program([(thread, 0) for thread in (alternate(), add(hot), add(cold), *others)])


# Tic-tac-toe: the user plays X along a fixed game, rules play O. Squares are numbered by rows.


GAME = (0, 1, 6, 5, 7)  # the moves of X; O takes the center and answers every threat: a draw
CENTER_FIRST = (4, 0, 2, 6, 8, 1, 3, 5, 7)
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
THIRDS = [(first, second, third) for line in LINES for first, second, third in permutations(line) if first < second]


def tic_tac_toe(engine: Engine, _: int) -> Any:  # noqa: C901 - its b-threads count
    """Make one game."""
    sync, at = engine.sync, engine.at
    x, o = (engine.family(name, range(9)) for name in "XO")
    ends = x_wins, o_wins, draw = [engine.event(name) for name in ("X wins", "O wins", "draw")]
    either = engine.union(x.all, o.all)
    everything = engine.union(either, ends)

    @engine.thread
    def take_turns() -> Any:
        while True:
            yield sync(wait_for=x.all, block=o.all)
            yield sync(wait_for=o.all, block=x.all)

    @engine.thread
    def take_a_square_once(square: int) -> Any:
        yield sync(wait_for=[x.of[square], o.of[square]])
        yield sync(block=[x.of[square], o.of[square]])

    @engine.thread
    def detect_win(player: Family, line: tuple[int, ...], win: Any) -> Any:
        for _ in line:
            yield sync(wait_for=[player.of[square] for square in line])
        yield sync(request=win, block=either, **at(300))

    @engine.thread
    def detect_draw() -> Any:
        for _ in range(9):
            yield sync(wait_for=either)
        yield sync(request=draw, **at(200))

    @engine.thread
    def end_of_game() -> Any:
        yield sync(wait_for=ends)
        yield sync(block=everything)

    @engine.thread
    def user() -> Any:
        for square in GAME:
            yield sync(request=x.of[square])

    @engine.thread
    def prefer(square: int, priority: int) -> Any:
        yield sync(request=o.of[square], **at(priority))

    @engine.thread
    def add_third(player: Family, third: tuple[int, int, int], priority: int) -> Any:
        """Let O take the third square of a line when `player` has the other two: to win, or to defend."""
        for _ in range(2):
            yield sync(wait_for=[player.of[third[0]], player.of[third[1]]])
        yield sync(request=o.of[third[2]], **at(priority))

    thirds = [(player, third, first - at) for player, first in ((o, 150), (x, 100)) for at, third in enumerate(THIRDS)]
    return engine.program(
        [
            (take_turns(), 0),
            *[(take_a_square_once(square), 0) for square in range(9)],
            *[(detect_win(player, line, win), 300) for line in LINES for player, win in ((x, x_wins), (o, o_wins))],
            *((detect_draw(), 200), (end_of_game(), 0), (user(), 0)),
            *[(add_third(*third), third[2]) for third in thirds],
            *[(prefer(square, 50 - at), 50 - at) for at, square in enumerate(CENTER_FIRST)],
        ]
    )


PHILOSOPHERS = 5


def dining_philosophers(engine: Engine, meals: int) -> Any:
    """Make a table at which each philosopher has so many meals, with an arbiter that lets all but one to it."""
    sync, table = engine.sync, range(PHILOSOPHERS)
    enter, leave = (engine.family(name, table) for name in ("Enter", "Leave"))
    take, put = ([engine.family(f"{name}{fork}", table) for fork in table] for name in ("Take", "Put"))

    @engine.thread
    def philosopher(at: int) -> Any:
        right, left = at, (at + 1) % PHILOSOPHERS
        for _ in range(meals):
            for act in (enter, take[right], take[left], put[left], put[right], leave):
                yield sync(request=act.of[at])

    @engine.thread
    def fork(at: int) -> Any:
        while True:
            taken = yield sync(wait_for=take[at].all)
            yield sync(wait_for=put[at].of[engine.value(taken)], block=take[at].all)

    @engine.thread
    def arbiter() -> Any:
        seated = 0
        both, entering = engine.union(enter.all, leave.all), set(enter.of.values())
        while True:
            moved = yield sync(wait_for=both, block=enter.all if seated == PHILOSOPHERS - 1 else [])
            seated += 1 if moved in entering else -1

    return engine.program([(thread, 0) for thread in (*map(philosopher, table), *map(fork, table), arbiter())])


TRACKS = 4


def level_crossing(engine: Engine, trains: int) -> Any:  # noqa: C901 - its b-threads count
    """Make a crossing with so many trains on each track, one at a time, and one barrier."""
    sync, tracks, lower, lift = engine.sync, range(TRACKS), engine.event("lower"), engine.event("raise")
    approaching, entering, leaving = (engine.family(name, tracks) for name in ("Approaching", "Entering", "Leaving"))

    @engine.thread
    def railway(track: int) -> Any:
        for _ in range(trains):
            yield sync(request=approaching.of[track])
            yield sync(request=entering.of[track])
            yield sync(request=leaving.of[track])

    @engine.thread
    def barrier() -> Any:
        while True:
            yield sync(wait_for=approaching.all)
            yield sync(request=lower)
            yield sync(wait_for=leaving.all)
            yield sync(request=lift)

    @engine.thread
    def enter_behind_a_lowered_barrier() -> Any:
        while True:
            yield sync(wait_for=lower, block=entering.all)
            yield sync(wait_for=lift)

    @engine.thread
    def keep_it_lowered(track: int) -> Any:
        while True:
            yield sync(wait_for=entering.of[track])
            yield sync(wait_for=leaving.of[track], block=lift)

    @engine.thread
    def one_train_at_a_time() -> Any:
        while True:
            yield sync(wait_for=approaching.all)
            yield sync(wait_for=lift, block=approaching.all)

    rules = (enter_behind_a_lowered_barrier(), *map(keep_it_lowered, tracks), one_train_at_a_time())
    return engine.program([(thread, 0) for thread in (*map(railway, tracks), barrier(), *rules)])


PRODUCTS = ("tea", "coffee", "cocoa")


def vending_machine(engine: Engine, sales: int) -> Any:
    """Make a machine with so many customers in front of it: coins and choices come from outside."""
    sync, coin, shown = engine.sync, engine.event("coin"), engine.family("CreditShown", (1,))
    chosen, dispensed = (engine.family(name, PRODUCTS) for name in ("Chosen", "Dispensed"))

    @engine.thread
    def show_credit() -> Any:
        while True:
            yield sync(wait_for=coin)
            yield sync(request=shown.of[1])

    @engine.thread
    def dispense() -> Any:
        while True:
            yield sync(wait_for=coin)
            choice = yield sync(wait_for=chosen.all)
            yield sync(request=dispensed.of[engine.value(choice)])

    @engine.thread
    def count_stock(product: str) -> Any:
        stock = 0
        while True:
            yield sync(wait_for=dispensed.of[product])
            stock -= 1

    program = engine.program([(thread, 0) for thread in (show_credit(), dispense(), *map(count_stock, PRODUCTS))])
    for sale in range(sales):
        engine.post(program, coin)
        engine.post(program, chosen.of[PRODUCTS[sale % len(PRODUCTS)]])
    return program


CLASSICS: dict[str, tuple[Callable[[Engine, int], Any], int]] = {  # and how many times
    "hot/cold": (tap, 500),
    "tic-tac-toe": (tic_tac_toe, 1),
    "dining philosophers": (dining_philosophers, 20),
    "level crossing": (level_crossing, 40),
    "vending machine": (vending_machine, 250),
}
WAITING = 1000


def measure_bppy(size: float = 1.0) -> Iterator[Row]:
    """Five classic programs from their making to their end, their mean, and hot/cold beside 1,000 that wait."""
    if find_spec("bppy") is None:
        yield Row("BPpy, five classic programs", None, "µs/event", note="skipped: bppy is not installed")
        return
    ours, theirs, ratios = this_engine(), bppy_engine(), []
    for name, (classic, many) in CLASSICS.items():
        times = scaled(many, size)
        events = ours.run(classic(ours, times))
        assert events == theirs.run(classic(theirs, times)), name
        seconds = fastest(*[lambda e=e: lambda: e.run(classic(e, times)) for e in (theirs, ours)], rounds=3)  # noqa: B023, used at once
        slow, fast = (taken / events * MICRO for taken in seconds)
        ratios.append(slow / fast)
        yield Row(f"BPpy, {name}", slow, "µs/event", fast, "this engine")
    mean = prod(ratios) ** (1 / len(ratios))
    yield Row("BPpy, geometric mean of the five ratios", mean, "times", aim=Aim(at_least=8))
    times, waiting = scaled(50, size), scaled(WAITING, size)

    def beside_waiting() -> Callable[[], object]:
        program = tap(theirs, times, waiting)
        program.setup()  # not measured, as with ours
        return program.run  # type: ignore[no-any-return]

    few, many_seconds = fastest(hot_cold(times, *parked(waiting)), beside_waiting, rounds=2)
    yield row(f"BPpy, hot/cold beside {WAITING:,} waiting", many_seconds, times, few, "this engine")
