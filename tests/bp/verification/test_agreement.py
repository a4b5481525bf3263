"""A verdict rests on real runs: what is no function of its events is refused, and ordinary programs are not."""

import itertools
import logging
import os
import random
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import datetime
from functools import cache, cached_property, singledispatch
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import define

import bp
from bp import BThread, BThreadBody, Event, bthread, event, sync, verify, where
from bp.verification import agreement
from bp.verification.agreement import Agreement
from tests.bp.programs import HOT, STOP, Ping, fails_after, keeps_saying, kinds, requests, says

A, B, C = event("a"), event("b"), event("c")

pytestmark = pytest.mark.slow

# Hidden state: each b-thread requests B where something outside of it says so.

LOG: list[int] = []
SEEN: dict[str, int] = {}
TOTAL = 0
remember, seen = LOG.append, LOG.copy


def a_global() -> bool:
    global TOTAL
    TOTAL += 1
    return TOTAL % 3 == 0


def a_bound_method_of_a_list() -> bool:
    remember(1)
    return len(seen()) % 3 == 0


def an_attribute_of_a_function() -> bool:
    an_attribute_of_a_function.count = getattr(an_attribute_of_a_function, "count", 0) + 1  # type: ignore[attr-defined]
    return bool(an_attribute_of_a_function.count % 3 == 0)  # type: ignore[attr-defined]


@cache
def remembered() -> list[int]:
    return []


def what_a_cache_holds() -> bool:
    remembered().append(1)
    return len(remembered()) % 3 == 0


def a_default(notes: list[int] = []) -> bool:  # noqa: B006
    notes.append(1)
    return len(notes) % 3 == 0


class Counter:
    count = 0

    @cached_property
    def first(self) -> int:
        Counter.count += 1
        return Counter.count


HIDDEN: dict[str, Callable[[], bool]] = {
    **{each.__name__: each for each in (a_global, a_bound_method_of_a_list, an_attribute_of_a_function)},
    **{each.__name__: each for each in (what_a_cache_holds, a_default)},
    "a class": lambda: Counter().first % 3 == 0,
    "chance": lambda: random.random() < 0.5,
    "the clock": lambda: int(time.time() * 1e6) % 2 == 0,
    "the hour": lambda: datetime.now().hour % 2 == 0,
    "the day": lambda: int(time.time() / 86_400) % 2 == 0,
    "the process": lambda: os.getpid() % 2 == 0,
    "a module": lambda: vars(itertools).setdefault("seen", []).append(1) or len(vars(itertools)["seen"]) % 3 == 0,
}


@bthread
def asks(name: str) -> BThreadBody:
    for _ in range(6):
        yield sync(request=B if HIDDEN[name]() else A)


def may_be_hot(name: str) -> BThread:
    @bthread
    def hot() -> BThreadBody:
        while True:
            yield sync(wait_for=A, hot=HIDDEN[name]())

    return hot()


@pytest.mark.parametrize("name", HIDDEN)
def test_state_outside_of_a_b_thread_is_refused(name: str) -> None:
    blocks = keeps_saying(sync(block=where(Ping, lambda _: HIDDEN[name]())))
    for program in ([asks(name)], [may_be_hot(name), requests(A, 8)], [requests(Ping(1), 3), blocks]):
        with pytest.raises(bp.VerificationError, match="not a function of its events"):
            verify(*program)


def test_hashes_of_texts_are_seen_by_a_fresh_interpreter() -> None:
    with pytest.raises(bp.VerificationError, match="not a function of its events"):
        verify(in_the_order_of_a_set(), runs=8)


@bthread
def in_the_order_of_a_set() -> BThreadBody:
    for text in {"a", "b", "c", "d", "e", "f", "g", "h"}:
        yield sync(request=event(text))


def shared(notes: list[int]) -> Iterator[BThread]:
    @bthread
    def writes(notes: list[int]) -> BThreadBody:
        yield sync(wait_for=A)
        notes.append(1)
        yield sync(request=C)

    @bthread
    def reads(notes: list[int]) -> BThreadBody:
        yield sync(wait_for=A)
        yield sync(wait_for=C)
        yield sync(request=HOT if notes else STOP)

    yield from (writes(notes), reads(notes))


def test_an_object_that_two_b_threads_share_is_refused_where_it_matters() -> None:
    with pytest.raises(bp.VerificationError, match="selectable are hot, expected stop"):
        verify(requests(A), *shared([]))


def test_a_state_that_is_reached_with_little_chance_is_seen_after_the_search() -> None:
    """A global list is written only after eight events that chance would not choose."""
    notes: list[int] = []
    many = [event(f"e{n}") for n in range(4)]

    @bthread
    def writes() -> BThreadBody:
        for _ in range(8):
            if (yield sync(wait_for=many)) != many[0]:
                return
        notes.append(1)

    @bthread
    def reads() -> BThreadBody:
        yield sync(wait_for=many[0])
        yield sync(request=B if notes else A)

    with pytest.raises(bp.VerificationError, match="not a function"):
        verify(writes(), reads(), says(*[sync(request=bp.any_of(*many))] * 8))


# What people write.


@define
class Account:
    """State of a b-thread in an object."""

    total: int = 0

    @bthread
    def counts(self) -> BThreadBody:
        while self.total < 3:
            yield sync(request=A)
            self.total += 1


class Plain:
    """A helper without `==`."""

    def __init__(self) -> None:
        self.seen: list[Event] = []


@singledispatch
def named(value: object) -> Event:
    return A


@named.register
def _(value: int) -> Event:
    return B


@contextmanager
def open_door() -> Iterator[str]:
    yield "open"


MISSING = object()


def ordinary() -> dict[str, Callable[..., BThreadBody]]:  # noqa: C901
    """Return generator functions that are pure, as people write them."""

    def a_list(events: list[Event]) -> BThreadBody:
        while events:
            yield sync(request=events.pop())

    def a_dict(counts: dict[str, int]) -> BThreadBody:
        while counts["a"] < 3:
            yield sync(request=A)
            counts["a"] += 1

    def a_cycle() -> BThreadBody:
        turns = itertools.cycle([A, B])
        while True:
            yield sync(request=next(turns))

    def chained() -> BThreadBody:
        for what in itertools.chain([A], itertools.repeat(B, 2), itertools.islice([C, A, B], 1, 2)):
            yield sync(request=what)

    def zipped() -> BThreadBody:
        for number, (one, other) in enumerate(zip([A, B], [B, C], strict=True)):
            yield sync(request=[one, other], wait_for=Ping(number))

    def a_context() -> BThreadBody:
        with open_door() as door, nullcontext():
            yield sync(request=A)
            yield sync(request=event(door))

    def a_file() -> BThreadBody:
        with open(os.devnull) as file:
            yield sync(request=A)
            yield sync(request=B if file.read() else C)

    def a_helper() -> BThreadBody:
        helper = Plain()
        for _ in range(3):
            helper.seen.append((yield sync(request=A)))
        yield sync(request=event(f"seen {len(helper.seen)}"))

    def a_seeded_chance() -> BThreadBody:
        chance = random.Random(42)
        for _ in range(3):
            yield sync(request=chance.choice([A, B]))

    def a_sentinel(given: Any = MISSING, other: Any = MISSING) -> BThreadBody:
        yield sync(request=A if given is other is MISSING else B)
        own = object()
        yield sync(request=C)
        yield sync(request=A if own is not given else B)

    def prints() -> BThreadBody:
        print("starting")
        yield sync(request=A)
        logging.getLogger("bp.test").warning("at work")
        yield sync(request=B)

    def dispatches() -> BThreadBody:
        for value in ("text", 1):
            yield sync(request=named(value))

    def a_deque() -> BThreadBody:
        waiting = deque([A, B], maxlen=3)
        while waiting:
            yield sync(request=waiting.popleft())

    def a_set() -> BThreadBody:
        left = {1, 2, 3}
        while left:
            yield sync(request=Ping(left.pop()))

    def a_namespace() -> BThreadBody:
        state = SimpleNamespace(turn=0)
        while state.turn < 2:
            yield sync(request=Ping(state.turn))
            state.turn += 1

    def a_lock() -> BThreadBody:
        lock = threading.Lock()
        with lock:
            yield sync(request=A)
        yield sync(request=B)

    def an_error() -> BThreadBody:
        try:
            yield sync(request=A)
            raise KeyError("a")
        except KeyError as error:
            yield sync(request=event(str(error)))

    def a_closure() -> BThreadBody:
        count = 0

        def more() -> int:
            nonlocal count
            count += 1
            return count

        while more() < 3:
            yield sync(request=A)

    def a_path_and_a_date() -> BThreadBody:
        for value in (Path("a"), datetime(2026, 1, 1), 1.5, 2j, b"x", range(2), slice(1), {"a": [1]}):
            yield sync(request=event(type(value).__name__))

    return dict(locals())


ARGUMENTS: dict[str, tuple[Any, ...]] = {"a_list": ([A, B, C],), "a_dict": ({"a": 0},), "a_sentinel": (MISSING,)}


@pytest.mark.parametrize("name", ordinary())
def test_ordinary_programs_hold_at_once(name: str) -> None:
    program = bthread(ordinary()[name])(*ARGUMENTS.get(name, ()))

    found = verify(program, runs=32)

    assert found.verdict == "holds", str(found)


def test_scalars_of_numpy_and_state_in_self_hold() -> None:
    numpy = pytest.importorskip("numpy")

    @bthread
    def counts() -> BThreadBody:
        total = numpy.int64(0)
        while total < 3:
            yield sync(request=A)
            total += 1

    assert verify(counts(), Account().counts(), runs=32)


def test_a_b_thread_that_fails_by_its_own_state_is_a_violation() -> None:
    @bthread
    def overdraws(account: Account) -> BThreadBody:
        while True:
            yield sync(wait_for=A)
            account.total += 1
            assert account.total < 3

    assert kinds(verify(overdraws(Account()), requests(A, 5))) == [("error", "overdraws")]


# How much a verdict rests on.


def test_the_result_says_how_much_it_rests_on() -> None:
    found = verify(requests(A, 2), requests(B, 2))

    assert found.agreed.moves == (4, 4)
    assert found.agreed.runs > 500
    assert str(found).splitlines()[1] == (
        f"agreed: {found.agreed.runs} runs, {found.agreed.steps:,} steps, 100 % of the moves, 100 % of their pairs"
    )


def test_without_runs_the_verdict_is_unchecked() -> None:
    found = verify(requests(A), runs=0)

    assert (found.verdict, found.holds, bool(found)) == ("unchecked", False, False)
    assert not Agreement(9, 90, (7, 10)).suffices
    assert Agreement(9, 90, (8, 10)).suffices


def test_directed_runs_make_the_moves_that_chance_leaves_out() -> None:
    @bthread
    def a_long_way() -> BThreadBody:
        for number in range(30):
            if (yield sync(request=bp.any_of(A, B, C))) != A:
                return
            yield sync(request=Ping(number))

    found = verify(a_long_way())

    assert found.agreed.moves[0] == found.agreed.moves[1]


def test_where_nothing_can_be_copied_the_program_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "fork")

    assert verify(requests(A), keeps_saying(sync(block=STOP, wait_for=A)), possible=[STOP], runs=8)
    with pytest.raises(bp.VerificationError):
        verify(asks("a_global"))


def test_a_copy_that_hangs_is_killed_and_counts_as_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agreement, "PATIENCE", 1.0)
    here, lock = os.getpid(), threading.Lock()
    lock.acquire()

    @bthread
    def hangs() -> BThreadBody:
        if os.getpid() != here:
            lock.acquire()
        yield sync(request=A)

    found = verify(hangs(), runs=8)

    assert found.verdict == "holds"
    assert found.agreed.runs == 7 + len(found.violations)


def test_no_child_of_the_embedder_is_reaped() -> None:
    child = subprocess.Popen([sys.executable, "-c", "raise SystemExit(3)"])

    assert verify(requests(A))
    assert child.wait() == 3


def test_it_verifies_beside_threads() -> None:
    over = threading.Event()
    threads = [threading.Thread(target=over.wait) for _ in range(9)]
    for thread in threads:
        thread.start()
    try:
        assert verify(requests(A), fails_after(A, A).named("twice"), runs=16).agreed.runs >= 16
    finally:
        over.set()
        for thread in threads:
            thread.join()


SCRIPT = """
import sys
from bp import bthread, event, sync, verify

@bthread
def local(notes):
    yield sync(request=event("a"))
    notes.append(1)
    yield sync(request=event(f"b{len(notes)}"))

print(verify(local([])).verdict)
exec("@bthread\\ndef cell():\\n    yield sync(request=event('c'))\\nprint(verify(cell()).verdict)")
"""


def test_scripts_and_cells_of_notebooks_are_verified() -> None:
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)

    assert (ran.stdout, ran.stderr) == ("holds\nholds\n", "")
