"""The programs of `classics` in BPpy, with the b-threads and events of the same names; BPpy must be installed."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, ParamSpec

from tests.bench.classics import CENTER_FIRST, GAME, LINES, PHILOSOPHERS, PRODUCTS, THIRDS, TRACKS

__all__ = ["PROGRAMS", "hot_cold"]

P = ParamSpec("P")

bppy: Any = import_module("bppy")
thread: Callable[[Callable[P, Any]], Callable[P, Any]] = bppy.thread
sync, named = bppy.sync, bppy.BEvent


def program(*bthreads: Any, by_priority: bool = False) -> Any:
    """Make a BPpy program."""
    strategy = bppy.PriorityBasedEventSelectionStrategy if by_priority else bppy.SimpleEventSelectionStrategy
    return bppy.BProgram(bthreads=list(bthreads), event_selection_strategy=strategy())


# Hot and cold water.

HOT, COLD = named("hot"), named("cold")


@thread
def alternate() -> Any:
    while True:
        yield sync(waitFor=HOT, block=COLD)
        yield sync(waitFor=COLD, block=HOT)


@thread
def add(what: Any, times: int) -> Any:
    for _ in range(times):
        yield sync(request=what)


@thread
def wait_for_ever(what: Any) -> Any:
    yield sync(waitFor=what)


def hot_cold(times: int, waiting: int = 0) -> Any:
    """Make a tap, beside b-threads that each wait for an event of their own."""
    others = [wait_for_ever(named(f"never {number}")) for number in range(waiting)]
    return program(alternate(), add(HOT, times), add(COLD, times), *others)


# Tic-tac-toe.

X = [named(f"X {square}") for square in range(9)]
O = [named(f"O {square}") for square in range(9)]  # noqa: E741
X_WINS, O_WINS, DRAW = named("X wins"), named("O wins"), named("draw")


@thread
def take_turns() -> Any:
    while True:
        yield sync(waitFor=X, block=O)
        yield sync(waitFor=O, block=X)


@thread
def take_a_square_once(square: int) -> Any:
    yield sync(waitFor=[X[square], O[square]])
    yield sync(block=[X[square], O[square]])


@thread
def detect_win(player: list[Any], line: tuple[int, ...], win: Any) -> Any:
    for _ in line:
        yield sync(waitFor=[player[square] for square in line])
    yield sync(request=win, block=X + O, priority=300)


@thread
def detect_draw() -> Any:
    for _ in range(9):
        yield sync(waitFor=X + O)
    yield sync(request=DRAW, priority=200)


@thread
def end_of_game() -> Any:
    yield sync(waitFor=[X_WINS, O_WINS, DRAW])
    yield sync(block=[*X, *O, X_WINS, O_WINS, DRAW])


@thread
def user() -> Any:
    for square in GAME:
        yield sync(request=X[square])


@thread
def prefer(square: int, priority: int) -> Any:
    yield sync(request=O[square], priority=priority)


@thread
def add_third(player: list[Any], third: tuple[int, int, int], priority: int) -> Any:
    for _ in range(2):
        yield sync(waitFor=[player[third[0]], player[third[1]]])
    yield sync(request=O[third[2]], priority=priority)


def tic_tac_toe(_: int) -> Any:
    """Make one game."""
    return program(
        take_turns(),
        *[take_a_square_once(square) for square in range(9)],
        *[detect_win(player, line, win) for line in LINES for player, win in ((X, X_WINS), (O, O_WINS))],
        detect_draw(),
        end_of_game(),
        user(),
        *[add_third(O, third, 150 - at) for at, third in enumerate(THIRDS)],
        *[add_third(X, third, 100 - at) for at, third in enumerate(THIRDS)],
        *[prefer(square, 50 - at) for at, square in enumerate(CENTER_FIRST)],
        by_priority=True,
    )


# Dining philosophers.


def take(philosopher: int, fork: int) -> Any:
    return named(f"{philosopher} takes {fork}")


def put(philosopher: int, fork: int) -> Any:
    return named(f"{philosopher} puts {fork}")


ENTER = [named(f"{philosopher} enters") for philosopher in range(PHILOSOPHERS)]
LEAVE = [named(f"{philosopher} leaves") for philosopher in range(PHILOSOPHERS)]


@thread
def philosopher(at: int, meals: int) -> Any:
    right, left = at, (at + 1) % PHILOSOPHERS
    for _ in range(meals):
        for act in (ENTER[at], take(at, right), take(at, left), put(at, left), put(at, right), LEAVE[at]):
            yield sync(request=act)


@thread
def fork(at: int) -> Any:
    neighbors = at, (at - 1) % PHILOSOPHERS
    takes, puts = [take(by, at) for by in neighbors], [put(by, at) for by in neighbors]
    while True:
        taken = yield sync(waitFor=takes)
        yield sync(waitFor=puts[takes.index(taken)], block=takes)


@thread
def arbiter() -> Any:
    seated = 0
    while True:
        moved = yield sync(waitFor=ENTER + LEAVE, block=ENTER if seated == PHILOSOPHERS - 1 else [])
        seated += 1 if moved in ENTER else -1


def dining_philosophers(meals: int) -> Any:
    """Make a table."""
    table = range(PHILOSOPHERS)
    return program(*[philosopher(at, meals) for at in table], *[fork(at) for at in table], arbiter())


# A level crossing.

LOWER, RAISE = named("lower"), named("raise")
APPROACHING = [named(f"approaching {track}") for track in range(TRACKS)]
ENTERING = [named(f"entering {track}") for track in range(TRACKS)]
LEAVING = [named(f"leaving {track}") for track in range(TRACKS)]


@thread
def railway(track: int, trains: int) -> Any:
    for _ in range(trains):
        yield sync(request=APPROACHING[track])
        yield sync(request=ENTERING[track])
        yield sync(request=LEAVING[track])


@thread
def barrier() -> Any:
    while True:
        yield sync(waitFor=APPROACHING)
        yield sync(request=LOWER)
        yield sync(waitFor=LEAVING)
        yield sync(request=RAISE)


@thread
def enter_behind_a_lowered_barrier() -> Any:
    while True:
        yield sync(waitFor=LOWER, block=ENTERING)
        yield sync(waitFor=RAISE)


@thread
def keep_it_lowered(track: int) -> Any:
    while True:
        yield sync(waitFor=ENTERING[track])
        yield sync(waitFor=LEAVING[track], block=RAISE)


@thread
def one_train_at_a_time() -> Any:
    while True:
        yield sync(waitFor=APPROACHING)
        yield sync(waitFor=RAISE, block=APPROACHING)


def level_crossing(trains: int) -> Any:
    """Make a crossing."""
    tracks = range(TRACKS)
    return program(
        *[railway(track, trains) for track in tracks],
        barrier(),
        enter_behind_a_lowered_barrier(),
        *[keep_it_lowered(track) for track in tracks],
        one_train_at_a_time(),
    )


# A vending machine.

COIN, CREDIT_SHOWN = named("coin"), named("credit shown", {"coins": 1})
CHOSEN = {product: named("chosen", {"product": product}) for product in PRODUCTS}
DISPENSED = {product: named("dispensed", {"product": product}) for product in PRODUCTS}


@thread
def show_credit() -> Any:
    while True:
        yield sync(waitFor=COIN)
        yield sync(request=CREDIT_SHOWN)


@thread
def dispense() -> Any:
    while True:
        yield sync(waitFor=COIN)
        chosen = yield sync(waitFor=list(CHOSEN.values()))
        yield sync(request=DISPENSED[chosen.data["product"]])


@thread
def count_stock(product: str) -> Any:
    stock = 0
    while True:
        yield sync(waitFor=DISPENSED[product])
        stock -= 1


def vending_machine(sales: int) -> Any:
    """Make a machine with so many customers in front of it."""
    machine = program(show_credit(), dispense(), *[count_stock(product) for product in PRODUCTS])
    for sale in range(sales):
        machine.enqueue_external_event(COIN)
        machine.enqueue_external_event(CHOSEN[PRODUCTS[sale % len(PRODUCTS)]])
    return machine


PROGRAMS: dict[str, Callable[[int], Any]] = {
    "hot/cold": hot_cold,
    "tic-tac-toe": tic_tac_toe,
    "dining philosophers": dining_philosophers,
    "level crossing": level_crossing,
    "vending machine": vending_machine,
}
