"""State that helpers of another module keep, for b-threads that are verified (`test_purity`)."""

import functools
import itertools
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from queue import Queue, SimpleQueue
from threading import Event as ThreadEvent
from threading import Lock, local
from types import SimpleNamespace
from typing import Any

n = 0
ids = itertools.count()
letters = itertools.cycle("abc")
queue: "Queue[int]" = Queue()
simple_queue: "SimpleQueue[int]" = SimpleQueue()
flag = ThreadEvent()
lock = Lock()
per_thread = local()
variable: ContextVar[int] = ContextVar("variable", default=0)
notes: list[int] = []
space = SimpleNamespace(n=0)
draw = random.Random(1).random


def numbers() -> Iterator[int]:
    yield from range(1_000_000)


generator = numbers()


def inc() -> int:
    global n
    n += 1
    return n


TABLE: dict[str, Callable[[], int]] = {"inc": inc}
ROWS = [("inc", inc)]
partly = functools.partial(inc)
drawing = {"draw": draw}


class Counter:
    total = 0
    notes: list[int] = []  # noqa: RUF012 - that is the fault
    single: "Counter | None" = None

    def __init__(self) -> None:
        self.n = 0

    def inc(self) -> int:
        self.n += 1
        return self.n

    def inc_total(self) -> int:
        Counter.total += 1
        return Counter.total

    @classmethod
    def inc_class(cls) -> int:
        cls.total += 1
        return cls.total

    @staticmethod
    def inc_static() -> int:
        Counter.notes.append(1)
        return len(Counter.notes)

    @property
    def count(self) -> int:
        Counter.total += 1
        return Counter.total

    @classmethod
    def get(cls) -> "Counter":
        cls.single = cls.single or cls()
        return cls.single

    def __eq__(self, other: object) -> bool:
        Counter.total += 1
        return Counter.total > 3

    def __hash__(self) -> int:
        return 1


counter = Counter()


def calls() -> int:
    calls.n = getattr(calls, "n", 0) + 1  # type: ignore[attr-defined]
    return calls.n  # type: ignore[attr-defined, no-any-return]


@functools.cache
def cached() -> int:
    return 1


@functools.cache
def kept() -> list[int]:
    return []


@functools.cache
def flag_kept() -> list[int]:
    return []


def kept_in_a_default(held: list[int] = []) -> int:  # noqa: B006 - that is the fault
    held.append(1)
    return len(held)


def adder() -> Callable[[], int]:
    count = 0

    def add() -> int:
        nonlocal count
        count += 1
        return count

    return add


add = adder()


by_chance = tempfile.mktemp


def caller() -> Any:
    return sys._getframe(1).f_locals
