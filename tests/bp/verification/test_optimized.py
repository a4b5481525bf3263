"""Under `python -O`, which drops `assert` statements, no violation vanishes."""

import json
import subprocess
import sys
from pathlib import Path

HELPERS = """
def check(condition):
    assert condition
"""
PROGRAM = """
import json
from collections import namedtuple
from dataclasses import dataclass

import helpers
from attrs import frozen

from bp import BProgram, Event, VerificationError, bthread, event, replay, start, sync, verify, where
from bp.testing import table
from bp.verification.properties import absence, bounded_existence, existence, precedence


@frozen
class Ping(Event):
    pass


Two = namedtuple("Two", "a b")
A, B, END = event("a"), Ping(), event("end")


@bthread
def says(*events):
    for each in events:
        yield sync(request=each)


@bthread
def asserts():
    yield sync(wait_for=B)
    assert False, "b happened"


@bthread
def asserts_in_a_helper():
    yield sync(wait_for=B)
    helpers.check(False)


@bthread
def starts_one():
    yield start(asserts())


def is_bad(said):
    assert said != B
    return False


@bthread
def asserts_in_a_predicate():
    yield sync(wait_for=where(Ping, is_bad))


@dataclass(frozen=True)
class Point:
    x: int


@bthread
def raises():
    values = Ping(), Point(1), Two(1, 2)  # their methods are generated
    yield sync(wait_for=B)
    raise AssertionError("b happened, which an assert would say")  # the word alone is no statement


generated = {}
exec("def unread(sync, B):\\n    yield sync(wait_for=B)\\n    assert False", generated)


def verdict(*bthreads):
    try:
        return verify(says(A, B, END), *bthreads).verdict
    except VerificationError as error:
        return str(error)


monitors = [
    asserts(), asserts_in_a_helper(), starts_one(), asserts_in_a_predicate(), bthread(generated["unread"])(sync, B),
    raises(), absence(B), bounded_existence(B, 0), existence(A, after=B, before=END), precedence(END, B),
    absence(END, after=END),
]


@bthread
def has_a_broken_predicate():
    yield sync(block=where(Ping, lambda said: "yes"))


print(json.dumps({
    "verdicts": [verdict(monitor) for monitor in monitors],
    "table": table(BProgram(says(A))),
    "replay": str(replay([says(A, B), has_a_broken_predicate()], [A]).error),
}))
"""


def test_what_lost_its_assertions_is_refused_and_what_raises_is_verified(tmp_path: Path) -> None:
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "program.py").write_text(PROGRAM)

    ran = subprocess.run([sys.executable, "-O", tmp_path / "program.py"], capture_output=True, text=True)

    assert not ran.stderr
    told = json.loads(ran.stdout)
    refused, verified = told["verdicts"][:5], told["verdicts"][5:]
    culprits = ["asserts", "check", "asserts", "is_bad", "unread"]
    assert [said for said, by in zip(refused, culprits, strict=True) if f"{by!r}" not in said or "-O" not in said] == []
    assert verified == ["violated"] * 5 + ["holds"]
    assert "says" in told["table"]  # the program began
    assert "has_a_broken_predicate" in told["replay"]
