"""State that a b-thread keeps outside of its local state is refused, with its name, in every way that we know."""

import abc
import builtins
import contextvars
import datetime
import decimal
import enum
import functools
import gc
import importlib
import inspect
import io
import itertools
import json
import math
import operator
import os
import random
import re
import reprlib
import sys
import threading
import time
import typing
import urllib.parse
import uuid
import weakref
from collections import Counter as Count
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial, reduce
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from attrs import define, evolve, field, frozen

from bp import BThread, BThreadBody, VerificationError, bthread, event, sync, verify, where
from bp.verification.report import Violations
from bp.verification.search import Search
from bp.verification.states import StateSpace
from tests.bp.programs import Ping, keeps_saying, requests
from tests.bp.verification import impure_helpers as helpers
from tests.bp.verification.impure_helpers import Counter, add, cached, calls, counter, ids, inc, kept, queue
from tests.tables import rows

A, B = event("a"), event("b")


class Counting:
    total = 0
    notes: list[int] = []  # noqa: RUF012 - that is the fault

    def __init__(self) -> None:
        self.inner = SimpleNamespace(n=0)

    def grow(self) -> None:
        self.inner.n += 1


@define
class Mutable:
    n: int = 0


@define(eq=False)
class WithoutValue:
    n: int = 0


@frozen
class Configured:
    limit: int
    names: tuple[str, ...] = ()


def asks(question: Callable[[], Any]) -> BThread:
    """A b-thread that asks for ever, and does something else on a rare answer."""

    @bthread
    def asking() -> BThreadBody:
        while True:
            yield sync(request=A)
            if question() == 1_000_003:
                yield sync(request=B)

    return asking()


@bthread
def has_a_mutable_default(notes: list[int] = []) -> BThreadBody:  # noqa: B006 - that is the fault
    while True:
        yield sync(request=A)
        notes.append(1)


@bthread
def takes(given: Any) -> BThreadBody:
    while given:
        yield sync(request=A)
        given = None


def counts_in_a_cell() -> Callable[[], int]:
    notes: list[int] = []

    def counts() -> int:
        notes.append(1)
        return len(notes)

    return counts


@rows(
    ("guilty", "named"),
    [
        (has_a_mutable_default(), "a default value.*list"),
        (takes([A, B]), "argument 1.*list"),
        (takes({"a": 1}), "argument 1.*dict"),
        (takes(given={1}), "argument 1.*set"),
        (takes(([1],)), "argument 1.*list"),
        (takes(Mutable()), "argument 1.*Mutable"),
        (takes(WithoutValue()), "argument 1.*WithoutValue"),
        (takes(Counting()), "argument 1.*Counting"),
        (takes(Counting().grow), "argument 1.*Counting"),
        (takes(iter((1, 2))), "argument 1.*tuple_iterator"),
        (takes(counts_in_a_cell()), "argument 1.*list"),
        (takes(random.Random(1)), "argument 1.*Random"),
        (asks(counts_in_a_cell()), "'notes' of an outer function.*list"),
    ],
)
def test_arguments_of_a_bthread_must_be_immutable(guilty: BThread, named: str) -> None:
    with pytest.raises(VerificationError, match=rf"{guilty.name!r}.*{named}"):
        verify(guilty)


def test_b_threads_may_pass_immutable_values() -> None:
    values = [
        1, "a", (1, ("b", 2.0)), frozenset({1}), Configured(1, ("a",)), datetime.date(2020, 1, 1), Ping(1), Ping, len,
        lambda refusals: A, takes(1), sync(request=A), where(Ping, value=1),
    ]  # fmt: skip

    assert [value for value in values if verify(takes(value)).violations] == []


# What stands around b-threads and is not their own: shared objects and cells, events, globals, classes.


def shares_an_object() -> BThread:
    notes: list[int] = []

    @bthread
    def appends() -> BThreadBody:
        yield sync(request=A)
        notes.append(1)

    return appends()


def shares_a_cell() -> BThread:
    shared = 0

    @bthread
    def assigns() -> BThreadBody:
        nonlocal shared
        yield sync(request=A)
        shared = 1

    return assigns()


@bthread
def sends_what_can_change() -> BThreadBody:
    held: list[int] = []
    yield sync(request=event("carries", data=lambda: held.append(1)))


count = 0


@bthread
def assigns_a_global() -> BThreadBody:
    global count
    while True:
        yield sync(request=A)
        count += 1


@bthread
def counts_in_its_argument(kind: Any) -> BThreadBody:
    while True:
        yield sync(request=A)
        kind.total += 1


def counts_in(kind: Any) -> BThread:
    @bthread
    def counts() -> BThreadBody:
        while True:
            yield sync(request=A)
            kind.total += 1

    return counts()


@rows(
    ("guilty", "named"),
    [
        (shares_an_object(), r"'appends'.*'notes'.*list"),
        (shares_a_cell(), "'assigns' assigns to 'shared'"),
        (sends_what_can_change(), r"carries.*list"),
        (assigns_a_global(), r"'assigns_a_global'.* the global 'count'.*hidden state"),
        (counts_in(type("Local", (), {"total": 0})), r"'counts'.*'kind'.*hidden state"),
        (counts_in_its_argument(Counting), r"'counts_in_its_argument'.*an argument.*hidden state"),
    ],
)
def test_state_outside_of_a_bthread_is_refused_by_name(guilty: BThread, named: str) -> None:
    with pytest.raises(VerificationError, match=named):
        verify(guilty)


def test_the_same_step_is_taken_twice_and_must_lead_to_the_same_place() -> None:
    """No function here is impure; but the text of an object without one of its own has its address in it."""

    @bthread
    def flaky(*before: Any) -> BThreadBody:
        for statement in before:  # noqa: UP028 - what is sent must be taken; a tuple cannot
            yield statement
        made = (one for one in (1,))
        yield sync(request=Ping(int(str(made)[-9:-1], 16)))
        assert tuple(made)

    for before in ((), (sync(request=A),)):
        with pytest.raises(VerificationError, match="'flaky' has hidden state"):
            verify(flaky(*before))


# Programs that keep state outside of their local states, in every way that we know: none of them holds.


total = 0
stack: list[int] = [0]
ordered: OrderedDict[int, int] = OrderedDict({1: 1, 2: 2})
grouped: defaultdict[str, list[int]] = defaultdict(list)
line = iter(range(1_000_000))
environ = os.environ
clock = time.monotonic
own_stack: Any = type("Stack", (list,), {})()
reference = weakref.ref(Counter)
variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable", default=0)


class Color(enum.Enum):
    RED = 1


class Told:
    """It keeps nothing itself, and its class does."""

    times: list[int] = []  # noqa: RUF012 - that is the fault

    def __str__(self) -> str:
        return str(noted(self.times))

    def __len__(self) -> int:
        return noted(self.times)

    def __bool__(self) -> bool:
        return noted(self.times) > 0

    def __getitem__(self, at: int) -> int:
        return noted(self.times)

    @property
    def count(self) -> int:
        return noted(self.times)


def noted(times: list[int]) -> int:
    times.append(1)
    return len(times)


def counted(on: Any) -> int:
    """Count on anything that takes attributes."""
    on.counted = getattr(on, "counted", 0) + 1
    return int(on.counted)


teller = Told()
printing: Any = partial(print)


def set_anew() -> int:
    printing.__setstate__((print, (*printing.args, 1), {}, {}))
    return len(printing.args)


def frames_of(error: BaseException) -> int:
    try:
        raise error
    except ValueError:
        return len([*iterate_traceback(error.__traceback__)])


def iterate_traceback(found: Any) -> Any:
    while found:
        yield found
        found = found.tb_next


COUNTED: tuple[Any, ...] = (sync, json.JSONEncoder, reprlib.aRepr, type(A), re.escape)


@frozen
class Settings:
    limit: int = 3
    names: tuple[str, ...] = ("a", "b")

    def allows(self, number: int) -> bool:
        return number < self.limit


@dataclass
class Box:
    n: int = 0


box = Box()
settings = Settings()


class Meta(type):
    made = 0

    def __call__(cls, *args: Any) -> Any:
        Meta.made += 1
        return super().__call__(*args)


class Made(metaclass=Meta):
    pass


class Descriptor:
    n = 0

    def __get__(self, instance: Any, owner: Any = None) -> int:
        self.n += 1
        return self.n


class WithDescriptor:
    value = Descriptor()


def set_total() -> int:
    globals()["total"] = globals()["total"] + 1
    return total


def flip_total() -> int:
    global total
    total ^= 1
    return total


def set_by_module() -> int:
    module = sys.modules[__name__]
    module.total = total + 1  # type: ignore[attr-defined]
    return total


def set_builtin() -> int:
    builtins.hidden = getattr(builtins, "hidden", 0) + 1  # type: ignore[attr-defined]
    return int(builtins.hidden)  # type: ignore[attr-defined]


def imports_inside() -> int:
    from tests.bp.verification.impure_helpers import inc as again

    return again()


def imports_module_inside() -> int:
    import random as chance

    return chance.getrandbits(3)


def raises_count() -> int:
    try:
        raise KeyError(helpers.notes)
    except KeyError as error:
        error.args[0].append(1)
        return len(error.args[0])


def sets_an_attribute_of_a_frozen_one() -> int:
    object.__setattr__(settings, "limit", settings.limit + 1)
    return settings.limit


def asks_its_caller() -> int:
    return int(helpers.caller().get("count", 0))


def set_doc(what: Any) -> int:
    what.__doc__ = f"{what.__doc__}."
    return len(what.__doc__)


def set_name(what: Any) -> int:
    what.__name__ = f"{what.__name__}s"
    return len(what.__name__)


class Lazy:
    @functools.cached_property
    def first(self) -> int:
        return 1


lazy = Lazy()


@functools.singledispatch
def dispatched(value: Any) -> int:
    stack.append(1)
    return len(stack)


@bthread
def told() -> BThreadBody:
    yield sync(request=A)


HIDDEN: dict[str, Callable[[], Any]] = {
    "a global of another module, by attribute": lambda: helpers.inc() > 3,
    "a global of another module, imported by name": lambda: inc() > 3,
    "a function in a dictionary": lambda: helpers.TABLE["inc"]() > 3,
    "a function in a list": lambda: helpers.ROWS[0][1]() > 3,
    "a function by getattr": lambda: operator.attrgetter("inc")(helpers)() > 3,
    "a function by a computed name": lambda: getattr(helpers, "INC".lower())() > 3,
    "a function in a partial": lambda: helpers.partly() > 3,
    "an import inside": lambda: imports_inside() > 3,
    "a method of a global object": lambda: counter.inc() > 3,
    "a method that changes its class": lambda: Counter().inc_total() > 3,
    "a class method": lambda: Counter.inc_class() > 3,
    "a static method": lambda: Counter.inc_static() > 3,
    "a property": lambda: Counter().count > 3,
    "a singleton": lambda: Counter.get().inc() > 3,
    "an __eq__ that counts": lambda: Counter() == 1,
    "a metaclass": lambda: Made() and Meta.made > 3,
    "a descriptor": lambda: WithDescriptor().value > 3,
    "a function attribute": lambda: calls() > 3,
    "itertools.count": lambda: next(ids) > 3,
    "itertools.cycle": lambda: next(helpers.letters) == "c",
    "a global iterator": lambda: next(line) > 3,
    "a global generator": lambda: next(helpers.generator) > 3,
    "a queue": lambda: queue.put(1) or queue.qsize() > 3,  # type: ignore[func-returns-value]
    "a simple queue": lambda: helpers.simple_queue.put(1) or helpers.simple_queue.qsize() > 3,  # type: ignore[func-returns-value]
    "threading.Event": lambda: helpers.flag.set() or helpers.flag.is_set(),  # type: ignore[func-returns-value]
    "a lock": lambda: helpers.lock.locked(),
    "threading.local": lambda: setattr(helpers.per_thread, "n", 1),
    "a context variable": lambda: variable.set(variable.get() + 1) and variable.get() > 3,
    "a context variable of another module": lambda: helpers.variable.set(1),
    "how often a cache was asked": lambda: cached() and cached.cache_info().hits > 3,
    "a list in a cache": lambda: kept().append(1) or len(kept()) > 3,  # type: ignore[func-returns-value]
    "a list in a cache, changed once": lambda: helpers.flag_kept() or helpers.flag_kept().append(1),  # type: ignore[func-returns-value]
    "a mutable default of a helper": lambda: helpers.kept_in_a_default() > 3,
    "a closure of another module": lambda: add() > 3,
    "a global that is as before after every second call": lambda: flip_total() > 3,
    "globals()": lambda: set_total() > 3,
    "sys.modules": lambda: set_by_module() > 3,
    "builtins": lambda: set_builtin() > 3,
    "eval": lambda: eval("stack.append(1) or len(stack) > 3"),
    "exec": lambda: exec("stack.append(1)"),
    "__import__": lambda: __import__("tests.bp.verification.impure_helpers"),
    "locals()": lambda: locals().setdefault("n", 1),
    "vars()": lambda: vars(helpers).setdefault("more", 1),
    "__globals__": lambda: inc.__globals__["n"] > 3,
    "__dict__ of a module": lambda: helpers.__dict__.setdefault("more", 1),
    "a frame": lambda: sys._getframe(1).f_lineno,
    "a frame by inspect": lambda: inspect.currentframe(),
    "a frame of the caller": lambda: asks_its_caller(),
    "an enum member with an attribute": lambda: setattr(Color.RED, "n", 1) or Color.RED,  # type: ignore[func-returns-value]
    "a list": lambda: stack.append(1),
    "a list that is as before after every second call": lambda: stack.append(stack.pop() ^ 1) or stack[-1],  # type: ignore[func-returns-value]
    "a list of a class of its own": lambda: own_stack.append(1),
    "an ordered dictionary": lambda: ordered.move_to_end(next(iter(ordered))) or next(iter(ordered)) == 2,  # type: ignore[func-returns-value]
    "a default dictionary": lambda: grouped["x"],
    "a list changed by operator": lambda: operator.iadd(stack, [1]),  # type: ignore[no-untyped-call]
    "a list changed by map": lambda: [*map(stack.append, (1,))],
    "a namespace": lambda: setattr(helpers.space, "n", helpers.space.n + 1),
    "a dataclass": lambda: setattr(box, "n", box.n + 1),
    "a frozen object": lambda: sets_an_attribute_of_a_frozen_one() > 9,
    "the arguments of an exception": lambda: raises_count() > 3,
    "the docstring of a function": lambda: set_doc(calls) > 99,
    "the docstring of a class": lambda: set_doc(Counter) > 99,
    "the name of a function": lambda: set_name(calls) > 99,
    "the name of a class": lambda: set_name(Made) > 99,
    "the annotations of a function": lambda: inc.__annotations__.setdefault("n", 1),
    "an attribute of a b-thread function": lambda: setattr(told, "n", 1),
    "an attribute of an ordered dictionary": lambda: setattr(ordered, "n", 1),
    "a property that is kept": lambda: "first" in lazy.__dict__ or lazy.first,
    "a generic function": lambda: dispatched(1) > 3,
    "a thread": lambda: threading.Thread(target=print).start(),
    "a class made with a registry": lambda: abc.ABC.register(int),
    "a random generator of its own": lambda: random.Random().random() > 2,
    "an object of a C type": lambda: io.StringIO("x"),
    "the clock": lambda: time.time() < 0,
    "the clock by another name": lambda: clock() < 0,
    "today": lambda: datetime.date.today().year > 3000,
    "now": lambda: datetime.datetime.now().year > 3000,
    "now, through map": lambda: [*map(datetime.datetime.fromtimestamp, (0,))],
    "chance": lambda: random.random() > 2,
    "chance through partial": lambda: partial(random.getrandbits, 1)() > 3,
    "chance through map": lambda: next(map(random.getrandbits, (1,))) > 3,
    "chance through operator.call": lambda: operator.call(random.getrandbits, 1) > 3,
    "chance through iter": lambda: next(iter(partial(random.getrandbits, 3), 9)) > 8,
    "chance in a sort": lambda: sorted((1, 2), key=lambda _: random.random()) == [2, 1],
    "chance that a pure module is handed": lambda: re.sub("x", lambda _: uuid.uuid4().hex, "x"),
    "chance that a pure module calls": lambda: json.dumps({"x": object}, default=helpers.by_chance),
    "chance in a dictionary": lambda: helpers.drawing["draw"]() > 2,
    "chance in a global": lambda: partial(helpers.draw)() > 2,
    "chance imported inside": lambda: imports_module_inside() > 9,
    "the environment": lambda: os.environ.get("HOME") == "nowhere",
    "the environment by another name": lambda: "HOME" in environ,
    "os.getcwd": lambda: os.getcwd() == "nowhere",
    "a file": lambda: open(os.devnull).close(),
    "a file that exists": lambda: os.path.exists("nowhere"),
    "the identity of an object": lambda: id(object()) % 2 == 7,
    "a hash": lambda: hash("x") % 2 == 7,
    "the collector": lambda: gc.get_count()[0] < 0,
    "a weak reference": lambda: reference() is None,
    "the context of decimals": lambda: decimal.getcontext().prec == 3,
    "where a set is popped": lambda: {"a", "b"}.pop() == "c",
    "subclasses": lambda: len(Counter.__subclasses__()) > 3,
    "a class behind an object, told as text": lambda: f"{teller}" == "x",
    "a class behind an object, by its length": lambda: len(teller) == -1,
    "a class behind an object, by its truth": lambda: not teller,
    "a class behind an object, by its items": lambda: teller[0] == -1,
    "a class behind an object, by a property": lambda: teller.count == -1,
    "an attribute of a function of the engine": lambda: counted(sync),
    "an attribute of a class of a pure module": lambda: counted(json.JSONEncoder),
    "an attribute of an object of a pure module": lambda: counted(reprlib.aRepr),
    "an attribute of a function of a pure module": lambda: counted(re.escape),
    "an attribute of the class of an event": lambda: counted(A.__class__),
    "a list of a pure module": lambda: urllib.parse.uses_netloc.extend("x"),
    "the context that decimals begin with": lambda: decimal.DefaultContext.prec == 3,
    "a partial that is set anew": set_anew,
    "a module by its name": lambda: vars(importlib.import_module("reprlib")) == {},
    "where an error came by": lambda: frames_of(ValueError()),
}


def explored(*bthreads: BThread) -> tuple[str, ...]:
    """Explore a program; return what was not looked into. Raises VerificationError."""
    space = StateSpace(bthreads, (), (), in_order=False)
    Search(space, Violations(space, [])).run()
    space.automaton.purity.check()
    assert not space.failures
    return tuple(space.automaton.purity.not_looked_into)


def verdict(*bthreads: BThread) -> str:
    """Return why a program does not hold, or ""."""
    try:
        return ", ".join(explored(*bthreads))
    except VerificationError as error:
        return str(error)


@pytest.mark.slow
def test_hidden_state_is_refused_or_named_wherever_it_is() -> None:
    try:
        assert {name for name, question in HIDDEN.items() if not verdict(asks(question))} == set()
    finally:
        delattr(builtins, "hidden")
        urllib.parse.uses_netloc[:] = [name for name in urllib.parse.uses_netloc if name != "x"]
        for on in COUNTED:
            del on.counted


def double(number: int) -> int:
    return number * 2


class Shape(enum.Enum):
    ROUND = "round"
    FLAT = "flat"

    @property
    def is_round(self) -> bool:
        return self is Shape.ROUND


class Flags(enum.IntFlag):
    READ = 1
    WRITE = 2


class Place(NamedTuple):
    x: int
    y: int

    def moved(self) -> "Place":
        return self._replace(x=self.x + 1)


@define
class Tally:
    """Changes, but only where it is local."""

    n: int = 0
    seen: list[int] = field(factory=list)

    def add(self) -> int:
        self.n += 1
        self.seen.append(self.n)
        return self.n


@dataclass(frozen=True)
class Point:
    x: int
    y: int = 0


PATTERN = re.compile(r"(\w+)=(\d+)")
PRICES = {"milk": 3, "bread": 2}
ROWS = [("a", 1), ("b", 2)]


def matches(value: Any) -> str:
    match value:
        case {"kind": str(kind), **rest} if not rest:
            return kind
        case [first, *_]:
            return str(first)
        case Point(x=0):
            return "origin"
        case Shape.ROUND:
            return "round"
        case _:
            return "other"


def local_generator() -> int:
    def squares() -> Any:
        for number in range(3):
            yield number * number

    return sum(squares())


def local_state() -> int:
    count = 0

    def grow() -> None:
        nonlocal count
        count += 1

    grow()
    grow()
    return count


@functools.cache
def remembered(number: int) -> tuple[int, ...]:
    return tuple(range(number))


def handles_errors() -> str:
    try:
        return str(PRICES["nothing"])
    except KeyError as error:
        return f"no {error}"
    finally:
        double(1)


def imports_a_module_that_has_another_one() -> str:
    import ntpath  # which has `os` as well

    return os.fspath(ntpath.basename("a"))


@functools.lru_cache
def prices() -> dict[str, int]:
    return dict(PRICES)


@typing.runtime_checkable
class Moves(typing.Protocol):
    def moved(self) -> Any: ...


PURE: dict[str, Callable[[], Any]] = {
    "a helper of this module": lambda: double(2),
    "a helper of another module": lambda: Ping(1).value,
    "methods of frozen classes": lambda: Settings().allows(2) and evolve(settings, limit=9).limit,
    "enums": lambda: Shape("round").is_round and Shape["FLAT"].value,
    "flags": lambda: (Flags.READ | Flags.WRITE) & Flags.READ,
    "frozen dataclasses": lambda: Point(1) == Point(1, 0),
    "named tuples": lambda: Place(1, 2).moved().x,
    "local objects that change": lambda: Tally().add(),
    "decimals": lambda: Decimal("1.10") + 2 > Decimal(3),
    "fractions": lambda: Fraction(1, 3) * 3 == 1,
    "dates": lambda: datetime.date(2020, 1, 1) + datetime.timedelta(days=1) > datetime.date.fromisoformat("2020-01-01"),
    "a date that is parsed": lambda: datetime.datetime.strptime("2020-01-02 +01:00", "%Y-%m-%d %z").year,
    "regular expressions": lambda: PATTERN.match("a=1") and re.sub("a", "b", "aa"),
    "text that is translated": lambda: "abc".translate(str.maketrans("a", "b")),
    "f-strings": lambda: f"{1.5:.2f} {'x'!r} {PRICES['milk']:>5}",
    "comprehensions": lambda: ({n: list(range(n)) for n in range(3)}, {n for n, _ in ROWS}),
    "match": lambda: [matches(one) for one in ({"kind": "a"}, [1, 2], Point(0), Shape.ROUND, None)],
    "partial": lambda: partial(double, 2)() + partial(int, base=2)("11"),
    "itertools": lambda: list(itertools.islice(itertools.count(), 3)) + list(itertools.chain([1], [2])),
    "functools": lambda: reduce(operator.add, (1, 2, 3)) + functools.reduce(lambda a, b: a * b, (1, 2)),
    "sorting with a key": lambda: [*sorted(ROWS, key=lambda row: -row[1]), min(ROWS, key=operator.itemgetter(1))],
    "text": lambda: [*" a,b ".strip().split(","), "x".join("ab"), "a".upper(), f"{1}", f"{2}"],
    "json": lambda: json.loads(json.dumps({"a": [1, 2.5, None]}, sort_keys=True)),
    "mathematics": lambda: math.floor(math.sqrt(2)) + round(math.pi, 2),
    "collections": lambda: (Count("abca").most_common(1), deque([1, 2], maxlen=1), OrderedDict(a=1)),
    "local generators": local_generator,
    "local functions with state": local_state,
    "cached functions": lambda: remembered(3),
    "a dictionary in a cache": lambda: prices()["milk"],
    "protocols": lambda: isinstance(Place(1, 2), Moves),
    "paths without a disk": lambda: PurePosixPath("a") / "b",
    "quoted text": lambda: urllib.parse.quote("a b"),
    "a module that is imported late": imports_a_module_that_has_another_one,
    "errors": handles_errors,
    "slices and sums": lambda: sum([1, 2, 3][1:]) + len({1, 2} | {3}) + abs(-1) + divmod(7, 2)[0],
    "isinstance and getattr": lambda: (
        isinstance(1, int | str) and getattr(settings, "limit", 0) and hasattr(settings, "x")
    ),
    "paths": lambda: os.path.join("a", "b") + os.path.basename("/a/b") + os.sep,
    "an import inside": lambda: imports_a_pure_one(),
    "a set that is asked": lambda: 1 in {1, 2} and frozenset({1}) <= {1, 2},
    "an event set": lambda: isinstance(Ping(1), Ping) and (Ping | B),
}


def imports_a_pure_one() -> str:
    from textwrap import dedent

    return dedent(" a")


class HashesItself:
    def __hash__(self) -> int:
        return hash("x")


def test_a_hash_is_refused_though_it_is_fine_where_an_object_hashes_itself() -> None:
    assert not verdict(asks(lambda: {HashesItself(): 1}))
    assert "calls hash" in verdict(asks(lambda: {HashesItself(): 1} and hash("x")))


def flips(_: Any) -> bool:
    stack.append(stack.pop() ^ 1)
    return bool(stack[-1])


@rows(
    "statement",
    [
        sync(block=where(Ping, flips)),
        sync(wait_for=where(Ping, flips)),
        sync(request=A, otherwise=lambda refusals: B if flips(refusals) else Ping(1)),
    ],
)
def test_predicates_and_otherwise_keep_no_state_either(statement: Any) -> None:
    assert "'stack'" in verdict(
        keeps_saying(statement), requests(Ping(1), 2), keeps_saying(sync(refuse=A, because="no"))
    )


def test_code_that_cannot_be_read_is_reported() -> None:
    pydantic_core = pytest.importorskip("pydantic_core", exc_type=ImportError)
    assert verdict(asks(lambda: pydantic_core.from_json("1"))) == "pydantic_core._pydantic_core.from_json"
    assert verdict(asks(lambda: partial(getattr, helpers)("TABLE"))) == (
        "tests.bp.verification.impure_helpers, which <lambda> hands on as a whole"
    )


def test_code_that_never_runs_does_not_matter() -> None:
    assert not verdict(asks(lambda: PRICES or time.time()))


def test_ordinary_pure_programs_hold() -> None:
    assert {name: why for name, question in PURE.items() if (why := verdict(asks(question)))} == {}
