"""What one event costs: hot and cold water in turn, the classic program, beside bare generators."""

import tracemalloc
from collections.abc import Callable, Generator, Iterator, Sequence

from attrs import frozen

from bp import BProgram, BThread, BThreadBody, Event, Verification, bthread, event, start, sync, verify, where
from bp.verification.model import Model
from bp.verification.report import Violations
from bp.verification.search import Search
from tests.bench.measuring import STATUS, Aim, Prepare, Row, cpu_of_processes, fastest, numbers, scaled
from tests.bp.programs import COLD, HOT, alternate, philosophers, requests, says

MICRO = 1e6
ROUNDS = 30  # short ones: on a busy machine some of them are undisturbed


def measure_hot_cold(size: float = 1.0) -> Iterator[Row]:
    """Cost per event of the engine and of its b-threads alone, beside the same generators without an engine."""
    times = scaled(3_000, size)
    ours, floor, statements = fastest(hot_cold(times), floor_of_hot_cold(times), statements_alone(times), rounds=ROUNDS)
    yield row("hot/cold", ours, times, floor, "bare generators", Aim(at_most=60, of="ratio"))
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
    yield row("messages: every event carries a new value", ours, times, floor, "bare generators", Aim(90, of="ratio"))


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
    for what, program, others in (
        (f"hot/cold beside {MANY:,} waiting", hot_cold, parked),
        (f"messages beside {MANY:,} waiting", messages, parked),
        (f"messages beside {MANY:,} where(Sent, number=...)", messages, other_numbers),  # not asked: found by value
    ):
        few, beside = fastest(program(times, *others(FEW)), program(times, *others(many)), rounds=3)
        yield row(what, beside, times, few, f"beside {FEW}", FLAT)
    predicates = [wait_for_ever(where(Score, lambda _: False)) for _ in range(scaled(1000, size))]
    alone, beside = fastest(hot_cold(times), hot_cold(times, *predicates))
    yield row("hot/cold beside 1,000 where(Other, predicate)", beside, times, alone, "alone", FLAT)
    over = scaled(10_000, size)
    finished = [requests(event(f"once {number}"), 0) for number in range(over)]
    alone, after_finished, after_chain = fastest(
        hot_cold(times), hot_cold(times, *finished), hot_cold(times, count_down(over))
    )
    yield row("hot/cold after 10,000 finished b-threads", after_finished, times, alone, "alone", FLAT)
    yield row("hot/cold after a chain of 10,000 starts", after_chain, times, alone, "alone", FLAT)


CLIENTS = 10, 1_000


@bthread
def client(number: int) -> BThreadBody:
    """Send again and again."""
    while True:
        yield sync(request=Sent(number))


@bthread
def open_and_close(times: int) -> BThreadBody:
    """Block all messages until a hot, and let one pass, in turn."""
    for _ in range(times):
        yield sync(request=HOT, block=Sent)
        yield sync(wait_for=Sent)
    yield sync(block=Sent)


def measure_held(size: float = 1.0) -> Iterator[Row]:
    """Cost per event of a block that comes and goes, with a thousand requests that it holds, beside ten."""
    times = scaled(2_000, size)
    few, many = (scaled(count, size) for count in CLIENTS)
    for what, held in (
        ("all requests held by one block", clients),
        ("the same, each blocked by value besides", guarded_clients),
        ("the same, asked by a predicate besides", asked_clients),
    ):
        ten, thousand = fastest(toggled(times, held(few)), toggled(times, held(many)), rounds=3)
        yield row(f"{CLIENTS[1]:,} clients: {what}", thousand, times, ten, f"beside {CLIENTS[0]}", Aim(1.5, of="ratio"))


def toggled(times: int, others: Sequence[BThread]) -> Prepare:
    """Prepare a run in which the requests of `others` are blocked at every second event."""
    return prepared(*others, open_and_close(times).at_priority(-1))


def clients(count: int) -> Sequence[BThread]:
    """Return b-threads that request, each a message of its own."""
    return [client(number) for number in range(count)]


def guarded_clients(count: int) -> Sequence[BThread]:
    """Return clients, and for each a b-thread that blocks another message."""
    return [*clients(count), *(says(sync(block=where(Sent, number=-number))) for number in range(1, count + 1))]


def asked_clients(count: int) -> Sequence[BThread]:
    """Return clients, and a b-thread that is asked about each message that may come."""
    return [*clients(count), says(sync(block=where(Sent, lambda sent: sent.number < 0)))]


def parked(count: int) -> list[BThread]:
    """Return b-threads that wait, each for a plain event of its own that never comes."""
    return [wait_for_ever(event(f"never {number}")) for number in range(count)]


def other_numbers(count: int) -> Sequence[BThread]:
    """Return b-threads that wait, each for a message of its own that never comes."""
    return [wait_for_ever(where(Sent, number=-number)) for number in range(1, count + 1)]


# What verification costs: dining philosophers, the shipped loop, and a program of three states


STATES = {6: 1297, 8: 14_158, 10: 154_450}  # of so many philosophers


def measure_verification(size: float = 1.0) -> Iterator[Row]:
    """States per second of CPU time in the search alone, traced bytes for each, and what real runs take beside it."""
    large, small = (10, 8) if size >= 1 else (6, 6)
    states = STATES[large]
    assert verify(*philosophers(large), runs=0).states == states
    (search,) = fastest(lambda: lambda: verify(*philosophers(large), runs=0), rounds=2)
    yield Row(f"search {large} philosophers, {states:,} states", states / search, "states/s", aim=Aim(at_least=15_000))
    yield Row(f"search {small} philosophers: memory", bytes_a_state(small), "bytes/state")
    yield from shipped_loop(None if size >= 1 else scaled(40_000, size))
    times = scaled(20, size)
    seconds = cpu_of_processes(lambda: [verify(requests(event("once"), 2)) for _ in range(times)])
    yield Row("verify a program of three states", 1000 * seconds / times, "ms", aim=Aim(at_most=300))


def bytes_a_state(n: int) -> float:
    """Return how many bytes the search of `n` philosophers holds at its end, by state."""
    model = Model()
    model.begin(philosophers(n))
    tracemalloc.start()
    search = Search(model, Violations(model, []))
    search.run()
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    model.close()
    return held / len(search.states)


def shipped_loop(max_states: int | None) -> Iterator[Row]:
    """Measure the loop of the preset "default" with its rules and invariants: the search, and real runs beside it."""
    from agent.presets import preset_named
    from agent.verification import loop_rules, verify_loop

    rules, found = loop_rules(preset_named("default")), list[Verification]()
    search = cpu_of_processes(lambda: found.append(verify_loop(rules, max_states=max_states, runs=0)))
    whole = cpu_of_processes(lambda: verify_loop(rules, max_states=max_states))
    states = found[0].states
    yield Row(f"search the shipped loop, {states:,} states", states / search, "states/s", aim=Aim(at_least=6_000))
    yield Row("real runs of it, in all processes", whole - search, "s", aim=Aim(at_most=50))


# How much memory it takes: after the imports, for each waiting b-thread, and over a super-step of a million events


MEGA = 1 << 20
RESIDENT = "int(open('/proc/self/status').read().partition('VmRSS:')[2].split()[0]) * 1024"  # Linux
AFTER_IMPORT = f"before = {RESIDENT}; {{}}; print(before, {RESIDENT})"  # in a fresh interpreter


def measure_memory(size: float = 1.0) -> Iterator[Row]:
    """Resident memory, each figure from an interpreter of its own."""
    if not STATUS.exists():
        yield Row("resident memory", None, "MB", note="skipped: this system has no /proc")
        return
    for code, aim in (("import bp", None), ("from agent import Agent, ScriptedModel, tool", Aim(at_most=40))):
        bare, after = numbers(AFTER_IMPORT.format(code))
        yield Row(f"resident after {code}", after / MEGA, "MB", bare / MEGA, "bare interpreter", aim)
    count = scaled(20_000, size)
    before, after = numbers(f"from tests.bench.engine import waiting; waiting({count})")
    yield Row("one more waiting b-thread", (after - before) / count, "bytes")
    early, late = numbers(f"from tests.bench.engine import long_super_step; long_super_step({scaled(500_000, size)})")
    constant = Aim(at_most=1.1, of="ratio")
    yield Row("after 1,000,000 events in a super-step", late / MEGA, "MB", early / MEGA, "after 10,000", constant)


# In fresh interpreters.


def waiting(count: int) -> None:
    """Print the memory before and after `count` b-threads came to their synchronization points."""
    BProgram(*parked(1)).step()
    before = eval(RESIDENT)
    program = BProgram(*parked(count))
    program.step()
    print(before, eval(RESIDENT))


def long_super_step(times: int) -> None:
    """Print the memory after the first hundredth, and after all of `2 * times` events."""
    early = 0
    for step in BProgram(alternate(), requests(HOT, times), requests(COLD, times)).run():
        if step.number == times // 50:
            early = eval(RESIDENT)
    print(early, eval(RESIDENT))
