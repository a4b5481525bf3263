"""What stands around b-threads and changes is found out: globals, classes, modules, and objects in them."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from bp import BThread, BThreadBody, VerificationError, bthread, event, sync, verify
from tests.bp.programs import Ping, keeps_saying

A, B = event("a"), event("b")

count = 0
table: dict[str, list[int]] = {}
space = SimpleNamespace(n=0)


class Counting:
    total = 0
    notes: list[int] = []  # noqa: RUF012 - that is the fault

    def __init__(self) -> None:
        self.inner = SimpleNamespace(n=0)

    def grow(self) -> None:
        self.inner.n += 1


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
