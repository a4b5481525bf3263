"""State that a b-thread keeps outside of its local state is refused, with its name; see also `test_hidden_state`."""

import datetime
import os
import posixpath
import random
import secrets
import time
import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import define, frozen

from bp import BThread, BThreadBody, VerificationError, bthread, event, start, sync, verify, where
from tests.bp.programs import Ping, keeps_saying, says

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


def reads(question: Callable[[], Any]) -> BThread:
    """A b-thread that asks for ever, and does something else on a rare answer."""

    @bthread
    def asks() -> BThreadBody:
        while True:
            yield sync(request=A)
            if question() == 1_000_003:
                yield sync(request=B)

    return asks()


@pytest.mark.parametrize(
    ("question", "named"),
    [
        (lambda: time.time(), "time"),
        (lambda: time.monotonic(), "monotonic"),
        (lambda: datetime.datetime.now(), "now"),
        (lambda: datetime.date.today(), "today"),
        (lambda: random.random(), "random"),
        (lambda: random.choice((1, 2)), "getrandbits|choice|random"),
        (lambda: random.Random().random(), "Random|seed|sha512"),
        (lambda: secrets.token_hex(), "urandom|token|SystemRandom"),
        (lambda: uuid.uuid4(), "urandom|uuid"),
        (lambda: os.getpid(), "getpid"),
        (lambda: open(os.devnull).close(), "open"),
    ],
)
def test_what_is_not_in_the_program_may_not_be_asked(question: Callable[[], Any], named: str) -> None:
    with pytest.raises(VerificationError, match=rf"'asks' (calls|reaches|assigns) .*({named}).*hidden state"):
        verify(reads(question))


def test_a_helper_two_calls_away_may_not_ask_either() -> None:
    def inner() -> Any:
        return time.time_ns()

    def outer() -> Any:
        return inner()

    with pytest.raises(VerificationError, match=r"'asks' calls time\.time_ns"):
        verify(reads(outer))


def test_a_predicate_and_an_otherwise_may_not_ask_either() -> None:
    def by_the_clock(ping: Ping) -> bool:
        return time.time() < 0

    with pytest.raises(VerificationError, match=r"'keeps_saying' calls time\.time"):
        verify(says(sync(request=Ping(1))), keeps_saying(sync(block=where(Ping, by_the_clock))))
    with pytest.raises(VerificationError, match="'says' calls time"):
        verify(
            says(sync(request=A, otherwise=lambda refusals: Ping(int(time.time())))),
            keeps_saying(sync(refuse=A, because="no")),
        )


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


def counter() -> Callable[[], int]:
    notes: list[int] = []

    def counts() -> int:
        notes.append(1)
        return len(notes)

    return counts


@pytest.mark.parametrize(
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
        (takes(counter()), "argument 1.*list"),
        (takes(random.Random(1)), "argument 1.*Random"),
        (reads(counter()), "'notes' of an outer function.*list"),
    ],
)
def test_what_a_bthread_is_given_must_not_be_able_to_change(guilty: BThread, named: str) -> None:
    with pytest.raises(VerificationError, match=rf"{guilty.name!r}.*{named}"):
        verify(guilty)


@pytest.mark.parametrize(
    "given",
    [
        1, "a", (1, ("b", 2.0)), frozenset({1}), Configured(1, ("a",)), datetime.date(2020, 1, 1), Ping(1), Ping, len,
        lambda refusals: A, takes(1), sync(request=A), where(Ping, value=1),
    ],
)  # fmt: skip
def test_values_may_be_given(given: Any) -> None:
    assert not verify(takes(given)).violations


def test_an_object_shared_by_two_bthreads_is_refused_by_name() -> None:
    notes: list[int] = []

    @bthread
    def writes() -> BThreadBody:
        yield sync(request=A)
        notes.append(1)

    @bthread
    def reads_it() -> BThreadBody:
        yield sync(wait_for=A)
        assert not notes

    with pytest.raises(VerificationError, match=r"'writes'.*'notes'.*list"):
        verify(writes(), reads_it())


def test_a_cell_shared_by_two_bthreads_is_refused_by_name() -> None:
    shared = 0

    @bthread
    def writes() -> BThreadBody:
        nonlocal shared
        yield sync(request=A)
        shared = 1

    @bthread
    def reads_it() -> BThreadBody:
        yield sync(wait_for=A)
        assert not shared

    with pytest.raises(VerificationError, match="'writes' assigns to 'shared'"):
        verify(writes(), reads_it())


@bthread
def starter(when: str) -> BThreadBody:
    shared = 0

    @bthread
    def child() -> BThreadBody:
        yield sync(wait_for=B)
        assert shared == 0

    if when == "in a helper":

        def assigns() -> None:
            nonlocal shared
            shared = 1

        assigns()
    yield start(child())
    yield sync(request=A)
    shared = 0 if when == "never" else 1
    yield sync(request=B)


@bthread
def starter_that_is_done_with_it() -> BThreadBody:
    shared = 0
    shared += 1

    @bthread
    def child() -> BThreadBody:
        yield sync(wait_for=B)
        assert shared == 0

    yield start(child())
    yield sync(request=B)


@bthread
def starter_in_a_loop() -> BThreadBody:
    for shared in (1, 2):

        @bthread
        def child() -> BThreadBody:
            yield sync(wait_for=B)
            assert shared == 1  # noqa: B023 - that is the fault

        yield start(child())
        yield sync(request=A)
    yield sync(request=B)


@bthread
def starter_by_delegation() -> BThreadBody:
    yield from starter_in_a_loop().begin()


@pytest.mark.parametrize(
    "guilty",
    [starter("later"), starter("in a helper"), starter_in_a_loop(), starter_by_delegation()],
)
def test_a_variable_that_a_started_bthread_reads_and_its_starter_assigns_later_is_refused(guilty: BThread) -> None:
    with pytest.raises(VerificationError, match=rf"{guilty.name!r}: it shares the variable 'shared' with 'child'"):
        verify(guilty)


def test_a_variable_that_a_started_bthread_reads_and_nobody_assigns_is_fine() -> None:
    found = verify(starter_that_is_done_with_it())

    assert [violation.bthread for violation in found.violations] == ["child"]


def test_an_event_that_carries_what_can_change_is_refused() -> None:
    @bthread
    def makes() -> BThreadBody:
        held: list[int] = []
        yield sync(request=event("carries", data=lambda: held.append(1)))

    with pytest.raises(VerificationError, match=r"carries.*list"):
        verify(makes())


def test_paths_may_be_joined_and_normalized_as_texts() -> None:
    """That looks at no disk, though it calls functions of the module that does."""

    @bthread
    def tidy() -> BThreadBody:
        yield sync(request=A if posixpath.normpath(posixpath.join("/a", "../b")) == "/b" else B)

    assert verify(tidy()).holds


# What stands around b-threads: globals, classes, modules, and objects in them.

count = 0
table: dict[str, list[int]] = {}
space = SimpleNamespace(n=0)


class Inheriting(Counting):
    pass


counting = Counting()


@bthread
def assigns_a_global() -> BThreadBody:
    global count
    while True:
        yield sync(request=A)
        count += 1


@bthread
def fills_a_global() -> BThreadBody:
    while True:
        yield sync(request=A)
        table.setdefault("n", []).append(1)


@bthread
def changes_a_namespace() -> BThreadBody:
    while True:
        yield sync(request=A)
        space.n += 1


@bthread
def counts_in_a_class() -> BThreadBody:
    while True:
        yield sync(request=A)
        Counting.total += 1


@bthread
def notes_in_a_class() -> BThreadBody:
    while True:
        yield sync(request=A)
        Inheriting.notes.append(1)


@bthread
def changes_an_object() -> BThreadBody:
    while True:
        yield sync(request=A)
        counting.inner.n += 1


@bthread
def changes_a_module() -> BThreadBody:
    while True:
        yield sync(request=A)
        os.sep = "/" if len(os.sep) > 5 else os.sep + "/"


@pytest.mark.parametrize(
    ("guilty", "named"),
    [
        (assigns_a_global(), "'count'"),
        (fills_a_global(), "'table'"),
        (changes_a_namespace(), "'space'"),
        (counts_in_a_class(), "'Counting'"),
        (notes_in_a_class(), "'Inheriting'"),
        (changes_an_object(), "'counting'"),
        (changes_a_module(), "'sep'"),
    ],
)
def test_a_global_that_changes_is_hidden_state(guilty: BThread, named: str) -> None:
    separator = os.sep
    try:
        with pytest.raises(VerificationError, match=rf"{guilty.name!r}.* the global {named}.*hidden state"):
            verify(guilty)
    finally:
        os.sep = separator


def test_a_class_of_an_outer_function_that_changes_is_hidden_state() -> None:
    class Local:
        n = 0

    @bthread
    def counts() -> BThreadBody:
        while True:
            yield sync(request=A)
            Local.n += 1

    @bthread
    def counts_in_its_argument(kind: Any) -> BThreadBody:
        while True:
            yield sync(request=A)
            kind.n += 1

    with pytest.raises(VerificationError, match=r"'counts'.*'Local'.*hidden state"):
        verify(counts())
    with pytest.raises(VerificationError, match=r"'counts_in_its_argument'.*an argument.*hidden state"):
        verify(counts_in_its_argument(Local))


def test_the_same_step_is_taken_twice_and_must_lead_to_the_same_place() -> None:
    """No function here is impure; but the text of an object without one of its own has its address in it."""

    @bthread
    def flaky() -> BThreadBody:
        while True:
            yield sync(request=A)
            made = (one for one in (1,))
            yield sync(request=Ping(int(str(made)[-9:-1], 16)))
            assert tuple(made)

    with pytest.raises(VerificationError, match="'flaky' has hidden state"):
        verify(flaky())


def test_constants_and_functions_of_the_module_may_be_read() -> None:
    @bthread
    def reads_around() -> BThreadBody:
        yield sync(request=A if Counting.total is not None and keeps_saying else B)

    assert verify(reads_around()).holds
