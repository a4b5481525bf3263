"""What one event costs: hot and cold water in turn, the classic program, beside bare generators."""

from collections.abc import Callable, Generator, Iterator

from bp import BProgram, BThread, BThreadBody, bthread, event, sync
from tests.bench.rows import Aim, Row
from tests.bench.timing import Prepare, fastest, scaled

__all__ = [
    "COLD",
    "HOT",
    "MICRO",
    "ROUNDS",
    "add",
    "alternate",
    "hot_cold",
    "measure",
    "prepared",
    "row",
    "run_through",
]

HOT, COLD = event("hot"), event("cold")
MICRO = 1e6
ROUNDS = 30  # short ones: on a busy machine some of them are undisturbed


@bthread
def alternate() -> BThreadBody:
    while True:
        yield sync(wait_for=HOT, block=COLD)
        yield sync(wait_for=COLD, block=HOT)


@bthread
def add(what: object, times: int) -> BThreadBody:
    for _ in range(times):
        yield sync(request=what)


def measure(size: float = 1.0) -> Iterator[Row]:
    """Cost per event of the engine and of its b-threads alone, beside the same generators without an engine."""
    times = scaled(3_000, size)
    ours, floor, statements = fastest(hot_cold(times), bare_floor(times), statements_alone(times), rounds=ROUNDS)
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
    return prepared(alternate(), add(HOT, times), add(COLD, times), *beside)


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


def bare_floor(times: int) -> Prepare:
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
        bodies = alternate().begin(), add(HOT, times).begin(), add(COLD, times).begin()
        tap, hot, cold = (body.send for body in bodies)
        for body in bodies:
            next(body)

        def run() -> None:
            for _ in range(times - 1):
                hot(HOT), tap(HOT)
                cold(COLD), tap(COLD)

        return run

    return prepare
