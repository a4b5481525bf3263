"""The order of a set of texts is another in every process, so that what a program does may not depend on it."""

import heapq
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from bp import BThreadBody, Event, Verification, VerificationError, bthread, event, sync, verify

A, B = event("a"), event("b")
TOOLS = frozenset({"read", "write", "shell", "search"})
TABLE = {"safe": frozenset({"read", "search"}), "all": TOOLS}
SEEDS = ("0", "1", "2", "3")


@frozen
class Allowed(Event):
    tools: frozenset[str]


@frozen
class Wish:
    wanted: frozenset[str]

    def listed(self) -> str:
        return ",".join(self.wanted)


@dataclass(frozen=True)
class Plan:
    steps: frozenset[str]


def first_of(names: Any) -> Any:
    return next(iter(names))


def all_of(names: frozenset[str]) -> frozenset[str]:
    return names | {"more"}


def each() -> Any:
    yield TOOLS


def in_order(names: Any) -> tuple[str, ...]:
    return tuple(sorted(names))


GIVEN = Allowed(TOOLS)

BY_ORDER: dict[str, Callable[[Allowed], Any]] = {
    "a loop over a field": lambda said: first_of([name + "!" for name in said.tools]),
    "a loop over a display": lambda said: first_of(name + "!" for name in {"a", "b", said.name}),
    "a loop over a constant": lambda said: [name + "!" for name in {"a", "b"}],
    "a global": lambda said: next(iter(TOOLS)),
    "as a list": lambda said: list(TOOLS),
    "joined": lambda said: ",".join(said.tools),
    "as text": lambda said: f"{said.tools}",
    "the text of what holds it": lambda said: repr(said),
    "the text of a dataclass": lambda said: str(Plan(said.tools)),
    "handed to a function": lambda said: first_of(said.tools),
    "handed on in a list": lambda said: first_of(first_of([said.tools])),
    "given back by a function": lambda said: tuple(all_of(said.tools)),
    "given by a generator": lambda said: [name for names in each() for name in names],
    "of a dictionary": lambda said: first_of(TABLE["safe"]),
    "values of a dictionary": lambda said: [list(names) for names in TABLE.values()],
    "in a method": lambda said: Wish(said.tools).listed(),
    "by unpacking": lambda said: [*said.tools],
    "by name": lambda said: list(getattr(said, "tools")),  # noqa: B009
    "by a pattern": lambda said: by_pattern(said),
    "by sorting what is equal": lambda said: sorted(said.tools, key=len)[0],
    "the greatest of equals": lambda said: max(said.tools, key=lambda name: 0),
    "handed to the standard library": lambda said: heapq.nsmallest(1, said.tools, key=len),
    "in Python of the standard library": lambda said: list(heapq.merge(said.tools)),
    "joined sets": lambda said: tuple(said.tools | {"x"}),
    "conditionally": lambda said: first_of(said.tools if said.tools else ()),
    "through a variable": lambda said: through_a_variable(said),
    "through a dictionary": lambda said: through_a_dictionary(said),
    "as arguments": lambda said: max(*said.tools, "a", key=lambda name: 0),
    "in a nested function": lambda said: (lambda: first_of(said.tools))(),
}


def by_pattern(said: Any) -> Any:
    match said:
        case Allowed(tools=names):
            return tuple(names)


def through_a_variable(said: Any) -> Any:
    names = said.tools
    other = names
    return [name + "!" for name in other]


def through_a_dictionary(said: Any) -> Any:
    known = {}
    known["x"] = said.tools
    return first_of(known["x"])


IN_ANY_ORDER: dict[str, Callable[[Allowed], Any]] = {
    "asked": lambda said: "read" in said.tools and "a" not in TOOLS and "x" in TABLE["all"],
    "asked in a loop": lambda said: [name for name in ("a", "read") if name in said.tools],
    "compared": lambda said: said.tools == TOOLS and said.tools <= TOOLS,
    "sorted": lambda said: [name + "!" for name in sorted(said.tools)],
    "sorted by a function": lambda said: in_order(said.tools),
    "joined": lambda said: len(said.tools | {"x"} - TOOLS) + len(TOOLS.union({"x"})),
    "filled": lambda said: filled(),
    "handed on": lambda said: Allowed(said.tools) == said and all_of(said.tools) > TOOLS,
    "of numbers": lambda said: [number + 1 for number in sorted({1, 2})],
}


def filled() -> bool:
    seen: set[str] = set()
    for name in ("a", "b"):
        if name not in seen:
            seen.add(name)
    return "a" in seen


def asks(question: Callable[[Any], Any]) -> Verification:
    @bthread
    def asking() -> BThreadBody:
        while True:
            said = yield sync(wait_for=Allowed)
            if question(said) == "never":
                yield sync(request=B)

    @bthread
    def requesting() -> BThreadBody:
        yield sync(request=GIVEN)

    return verify(asking(), requesting())


def verdict(question: Callable[[Any], Any]) -> str:
    try:
        return asks(question).verdict
    except VerificationError as error:
        return str(error)


def test_a_program_that_depends_on_the_order_of_a_set_of_texts_does_not_hold() -> None:
    found = {name: verdict(question) for name, question in BY_ORDER.items()}
    assert {name: said for name, said in found.items() if "holds a set" not in said} == {}


def test_a_set_of_texts_may_be_asked_compared_joined_and_sorted() -> None:
    found = {name: verdict(question) for name, question in IN_ANY_ORDER.items()}
    assert {name: said for name, said in found.items() if said != "holds"} == {}


def test_the_message_says_where_and_the_cure() -> None:
    with pytest.raises(VerificationError, match=r"'asking': first_of depends on the order of names, .*; sort it"):
        asks(lambda said: first_of(said.tools))


PROGRAM = """
from bp import *

TOOLS = frozenset({"read", "write", "shell", "search"})

@bthread
def picks():
    yield sync(request=event([name for name in PICKED][0]))

@bthread
def remembers():
    seen = set()
    while True:
        said = yield sync(wait_for=ALL)
        if said.name in seen:
            return
        seen.add(said.name)

@bthread
def adds():
    for name in sorted(TOOLS):
        yield sync(request=event(name))

try:
    print(verify(picks(), adds(), remembers(), never=event("read") if PICKED else []).verdict)
except VerificationError as error:
    print("refused")
"""


@pytest.mark.parametrize(("picked", "answer"), [("TOOLS", "refused"), ("sorted(TOOLS)", "violated")])
def test_the_verdict_is_the_same_in_every_process(picked: str, answer: str) -> None:
    script = PROGRAM.replace("PICKED", picked)
    verdicts = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(__file__).parents[3])},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in SEEDS
    ]
    assert verdicts == [answer] * len(SEEDS)
