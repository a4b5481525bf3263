"""The search through a state space: breadth first, so that every way it knows to a state is a shortest one."""

import time
from array import array
from collections.abc import Callable
from typing import Protocol

from attrs import define, field

from bp.events import Event
from bp.verification.local_states import LocalFailure
from bp.verification.selection import Choice
from bp.verification.state_space import StateSpace

__all__ = ["Findings", "Reducer", "Search"]


class Findings(Protocol):
    """Who is told what the search comes across."""

    def selected(self, search: "Search", number: int, event: int) -> None:
        """Hear that an event can be selected in a state, for the first time in its role: internal, promised..."""

    def ended(self, search: "Search", number: int) -> None:
        """Hear that nothing internal and nothing promised can come in a state."""

    def failed_at(self, search: "Search", number: int, failure: LocalFailure) -> None:
        """Hear that a predicate or an `otherwise` fails in a state."""

    def failed_on(self, search: "Search", number: int, choice: Choice) -> None:
        """Hear that b-threads fail when an event is selected in a state."""


class Reducer(Protocol):
    """Who says which of the selectable events of a state are enough."""

    def take_enough(
        self, search: "Search", number: int, state: str, present: int, choices: tuple[Choice, ...]
    ) -> tuple[Choice, ...]:
        """Have the search take what is enough; return what it must take besides."""

    def put_off(self, search: "Search") -> list[tuple[int, tuple[Choice, ...]]]:
        """Return what has to be taken after all, by state, now that everything reached is expanded."""


def _numbers() -> "array[int]":
    return array("i")  # four bytes for each


@define(eq=False)
class Search:
    """Everything reached so far. Invariant: `states[number]` was first reached from `parents[number]` by `by[number]`.

    The edges of an expanded state are those from `first_edge[number]` to `first_edge[number + 1]`, and those (target,
    label) that were taken `afterwards`.
    """

    space: StateSpace
    findings: Findings
    max_states: int | None = None
    max_depth: int | None = None
    report: Callable[[int, int], None] = lambda states, waiting: None
    reducer: Reducer | None = None
    numbers: dict[str, int] = field(factory=dict)
    states: list[str] = field(factory=list)
    parents: "array[int]" = field(factory=_numbers)
    by: "array[int]" = field(factory=_numbers)
    first_edge: "array[int]" = field(factory=_numbers)
    targets: "array[int]" = field(factory=_numbers)
    labels: "array[int]" = field(factory=_numbers)
    afterwards: dict[int, list[tuple[int, int]]] = field(factory=dict)
    met: dict[int, Choice] = field(factory=dict)  # by label: what was selected there first
    varied: set[int] = field(factory=set)  # the labels of events that are somebody's `otherwise` in some states only
    bounded: bool = False

    def run(self) -> None:
        """Expand every state, level by level. Ctrl-C ends the search, which is then bounded."""
        self._reach(self.space.initial, -1, -1)
        try:
            self._expand_levels()
            while self.reducer is not None and not self.bounded and (late := self.reducer.put_off(self)):
                for number, choices in late:
                    self._take_afterwards(number, choices)
                self._expand_levels()
        except KeyboardInterrupt:
            self.bounded = True
        self.bounded = self.bounded or len(self.first_edge) < len(self.states)
        self.first_edge.append(len(self.targets))

    def path(self, number: int) -> tuple[Event, ...]:
        """Return the events that lead to a state first."""
        events = []
        while self.parents[number] >= 0:
            events.append(self.space.masks.events[self.by[number]])
            number = self.parents[number]
        return tuple(reversed(events))

    @property
    def transitions(self) -> int:
        """How many steps between states were taken."""
        return len(self.targets) + sum(map(len, self.afterwards.values()))

    def steps(self, number: int) -> list[tuple[int, int]]:
        """Return the steps from an expanded state: target and label of each."""
        if number >= len(self.first_edge):
            return []
        end = self.first_edge[number + 1] if number + 1 < len(self.first_edge) else len(self.targets)
        first = self.first_edge[number]
        found = list(zip(self.targets[first:end], self.labels[first:end], strict=True))
        return found + self.afterwards[number] if number in self.afterwards else found

    def edges(self, number: int) -> list[tuple[int, Choice]]:
        """Return the targets of an expanded state, each with what was selected."""
        steps = self.steps(number)
        by_label = self.met
        if not self.varied.isdisjoint(label for _, label in steps):
            _, choices = self.space.selection.choices(self.states[number])
            by_label = {choice.label: choice for choice in choices}
        return [(target, by_label[label]) for target, label in steps]

    def _expand_levels(self) -> None:
        depth, level = 0, range(len(self.first_edge), len(self.states))
        next_report = time.monotonic() + 1.0
        while level and not (self.max_depth is not None and depth >= self.max_depth):
            for number in level:
                self._expand(number)
                if not number & 0xFF and time.monotonic() > next_report:
                    self.report(len(self.states), len(self.states) - number)
                    next_report = time.monotonic() + 1.0
            depth, level = depth + 1, range(level.stop, len(self.states))

    def _reach(self, state: str, parent: int, event: int) -> int:
        """Return the number of a new state; -1 when there may be no more."""
        if self.max_states is not None and len(self.states) >= self.max_states:
            self.bounded = True
            return -1
        number = self.numbers[state] = len(self.states)
        self.states.append(state)
        self.parents.append(parent)
        self.by.append(event)
        return number

    def _expand(self, number: int) -> None:
        self.first_edge.append(len(self.targets))
        state = self.states[number]
        try:
            present, choices = self.space.selection.choices(state)
        except LocalFailure as failure:
            self.findings.failed_at(self, number, failure)
            return
        if not choices or choices[0].origin == "possible":
            self.findings.ended(self, number)
        if self.reducer is not None:
            choices = self.reducer.take_enough(self, number, state, present, choices)
        if choices:
            self.take(number, state, present, choices)

    def _take_afterwards(self, number: int, choices: tuple[Choice, ...]) -> None:
        """Follow edges of a state that was expanded before."""
        state, first = self.states[number], len(self.targets)
        present, _ = self.space.selection.choices(state)
        try:
            self.take(number, state, present, choices)
        finally:
            taken = zip(self.targets[first:], self.labels[first:], strict=True)
            self.afterwards.setdefault(number, []).extend(taken)
            del self.targets[first:], self.labels[first:]

    def take(self, number: int, state: str, present: int, choices: tuple[Choice, ...]) -> None:
        """Follow the edges of a state. (This is where the time goes: no calls that could be left out.)"""
        numbers, targets, labels, successor = self.numbers, self.targets, self.labels, self.space.successor
        met = self.met
        for choice in choices:
            known = met.get(choice.label)
            if known is None:
                met[choice.label] = choice
                self.findings.selected(self, number, choice.event)
            elif known is not choice and known.advancing != choice.advancing:
                self.varied.add(choice.label)
            try:
                after = successor(state, present, choice)
            except LocalFailure:
                self.findings.failed_on(self, number, choice)
                continue
            target = numbers.get(after)
            if target is None:
                target = self._reach(after, number, choice.event)
            if target >= 0:
                targets.append(target)
                labels.append(choice.label)
