"""Five classic behavioral programs, each from its making to its end; `classics_in_bppy` has the same in BPpy."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import permutations
from math import prod
from typing import Any

from attrs import frozen

from bp import BProgram, BThreadBody, Event, bthread, event, sync, where
from tests.bench.engine import MICRO, parked, row, run_through
from tests.bench.engine import hot_cold as tap
from tests.bench.measuring import Aim, Row, fastest, scaled
from tests.bp.programs import COLD, HOT, alternate, requests

# Tic-tac-toe: the user plays X along a fixed game, rules play O. Squares are numbered by rows.


GAME = (0, 1, 6, 5, 7)  # the moves of X; O takes the center and answers every threat: a draw
CENTER_FIRST = (4, 0, 2, 6, 8, 1, 3, 5, 7)
LINES = ((0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8), (0, 4, 8), (2, 4, 6))
THIRDS = tuple(
    (first, second, third) for line in LINES for first, second, third in permutations(line) if first < second
)


@frozen
class X(Event):
    """X takes a square."""

    square: int


@frozen
class O(Event):  # noqa: E742
    """O takes a square."""

    square: int


X_WINS, O_WINS, DRAW = event("X wins"), event("O wins"), event("draw")


@bthread
def take_turns() -> BThreadBody:
    while True:
        yield sync(wait_for=X, block=O)
        yield sync(wait_for=O, block=X)


@bthread
def take_a_square_once(square: int) -> BThreadBody:
    yield sync(wait_for=[X(square), O(square)])
    yield sync(block=[X(square), O(square)])


@bthread
def detect_win(player: type[X] | type[O], line: tuple[int, ...], win: Event) -> BThreadBody:
    for _ in line:
        yield sync(wait_for=[player(square) for square in line])
    yield sync(request=win, block=X | O)


@bthread
def detect_draw() -> BThreadBody:
    for _ in range(9):
        yield sync(wait_for=X | O)
    yield sync(request=DRAW)


@bthread
def end_of_game() -> BThreadBody:
    yield sync(wait_for=[X_WINS, O_WINS, DRAW])
    yield sync(block=[X, O, X_WINS, O_WINS, DRAW])


@bthread
def user() -> BThreadBody:
    for square in GAME:
        yield sync(request=X(square))


@bthread
def prefer(square: int) -> BThreadBody:
    yield sync(request=O(square))


@bthread
def add_third(player: type[X] | type[O], first: int, second: int, third: int) -> BThreadBody:
    """Let O take the third square of a line when `player` has the other two: to win, or to defend."""
    for _ in range(2):
        yield sync(wait_for=[player(first), player(second)])
    yield sync(request=O(third))


def tic_tac_toe(_: int) -> BProgram:
    """Make one game."""
    return BProgram(
        take_turns(),
        *[take_a_square_once(square) for square in range(9)],
        *[
            detect_win(player, line, win).at_priority(300)
            for line in LINES
            for player, win in ((X, X_WINS), (O, O_WINS))
        ],
        detect_draw().at_priority(200),
        end_of_game(),
        user(),
        *[add_third(O, *third).at_priority(150 - at) for at, third in enumerate(THIRDS)],
        *[add_third(X, *third).at_priority(100 - at) for at, third in enumerate(THIRDS)],
        *[prefer(square).at_priority(50 - at) for at, square in enumerate(CENTER_FIRST)],
    )


# Dining philosophers, with an arbiter that lets all but one of them to the table.


PHILOSOPHERS = 5


@frozen
class Enter(Event):
    """A philosopher comes to the table."""

    philosopher: int


@frozen
class Leave(Event):
    """A philosopher leaves the table."""

    philosopher: int


@frozen
class Take(Event):
    """A philosopher takes a fork."""

    philosopher: int
    fork: int


@frozen
class Put(Event):
    """A philosopher puts a fork back."""

    philosopher: int
    fork: int


@bthread
def philosopher(at: int, meals: int) -> BThreadBody:
    right, left = at, (at + 1) % PHILOSOPHERS
    for _ in range(meals):
        for act in (Enter(at), Take(at, right), Take(at, left), Put(at, left), Put(at, right), Leave(at)):
            yield sync(request=act)


@bthread
def fork(at: int) -> BThreadBody:
    while True:
        taken = yield sync(wait_for=where(Take, fork=at))
        yield sync(wait_for=Put(taken.philosopher, at), block=where(Take, fork=at))


@bthread
def arbiter() -> BThreadBody:
    seated = 0
    while True:
        moved = yield sync(wait_for=Enter | Leave, block=Enter if seated == PHILOSOPHERS - 1 else None)
        seated += 1 if isinstance(moved, Enter) else -1


def dining_philosophers(meals: int) -> BProgram:
    """Make a table at which each philosopher has so many meals."""
    table = range(PHILOSOPHERS)
    return BProgram(*[philosopher(at, meals) for at in table], *[fork(at) for at in table], arbiter())


# A level crossing: trains on several tracks, one at a time, and one barrier.


TRACKS = 4
LOWER, RAISE = event("lower"), event("raise")


@frozen
class Approaching(Event):
    """A train comes near."""

    track: int


@frozen
class Entering(Event):
    """A train enters the crossing."""

    track: int


@frozen
class Leaving(Event):
    """A train leaves the crossing."""

    track: int


@bthread
def railway(track: int, trains: int) -> BThreadBody:
    for _ in range(trains):
        yield sync(request=Approaching(track))
        yield sync(request=Entering(track))
        yield sync(request=Leaving(track))


@bthread
def barrier() -> BThreadBody:
    while True:
        yield sync(wait_for=Approaching)
        yield sync(request=LOWER)
        yield sync(wait_for=Leaving)
        yield sync(request=RAISE)


@bthread
def enter_behind_a_lowered_barrier() -> BThreadBody:
    while True:
        yield sync(wait_for=LOWER, block=Entering)
        yield sync(wait_for=RAISE)


@bthread
def keep_it_lowered(track: int) -> BThreadBody:
    while True:
        yield sync(wait_for=Entering(track))
        yield sync(wait_for=Leaving(track), block=RAISE)


@bthread
def one_train_at_a_time() -> BThreadBody:
    while True:
        yield sync(wait_for=Approaching)
        yield sync(wait_for=RAISE, block=Approaching)


def level_crossing(trains: int) -> BProgram:
    """Make a crossing with so many trains on each track."""
    tracks = range(TRACKS)
    return BProgram(
        *[railway(track, trains) for track in tracks],
        barrier(),
        enter_behind_a_lowered_barrier(),
        *[keep_it_lowered(track) for track in tracks],
        one_train_at_a_time(),
    )


# A vending machine: coins and choices come from outside.


PRODUCTS = ("tea", "coffee", "cocoa")
COIN = event("coin")


@frozen
class Chosen(Event):
    """The customer chooses."""

    product: str


@frozen
class Dispensed(Event):
    """The machine gives something."""

    product: str


@frozen
class CreditShown(Event):
    """The machine shows how many coins are in it."""

    coins: int


@bthread
def show_credit() -> BThreadBody:
    while True:
        yield sync(wait_for=COIN)
        yield sync(request=CreditShown(1))


@bthread
def dispense() -> BThreadBody:
    while True:
        yield sync(wait_for=COIN)
        chosen = yield sync(wait_for=Chosen)
        yield sync(request=Dispensed(chosen.product))


@bthread
def count_stock(product: str) -> BThreadBody:
    stock = 0
    while True:
        yield sync(wait_for=where(Dispensed, product=product))
        stock -= 1


def vending_machine(sales: int) -> BProgram:
    """Make a machine with so many customers in front of it."""
    program = BProgram(show_credit(), dispense(), *[count_stock(product) for product in PRODUCTS])
    for sale in range(sales):
        program.post(COIN)
        program.post(Chosen(PRODUCTS[sale % len(PRODUCTS)]))
    return program


def hot_cold(times: int) -> BProgram:
    """Make a tap that gives so many hots and as many colds."""
    return BProgram(alternate(), requests(HOT, times), requests(COLD, times))


PROGRAMS: dict[str, Callable[[int], BProgram]] = {
    "hot/cold": hot_cold,
    "tic-tac-toe": tic_tac_toe,
    "dining philosophers": dining_philosophers,
    "level crossing": level_crossing,
    "vending machine": vending_machine,
}


# How much faster this engine is than BPpy, where that is installed (`pip install bppy`), in the same run


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


def measure_bppy(size: float = 1.0) -> Iterator[Row]:
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

    few, many = fastest(tap(times, *parked(waiting)), beside_waiting, rounds=2)
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
