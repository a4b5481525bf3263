"""The search through a state space: breadth first, so that known paths are shortest ones.

Larger spaces can be explored by random walks. With stubborn sets (`bp/verification/reduction.py`) only sufficient
events of a state are tried, and afterwards those that would be postponed for ever.
"""

import time
from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from random import Random
from typing import Any

from attrs import define, field

from bp.events import Event
from bp.verification.purity import LocalFailure
from bp.verification.reduction import StubbornSets
from bp.verification.report import Violations
from bp.verification.states import Choice, StateSpace

Node = Any
Edge = tuple[Any, int]  # target node, and the label of the choice


def _numbers() -> "array[int]":
    return array("i")  # four bytes for each


@define(eq=False)
class Search:
    """The reached states and edges.

    Invariant: `states[number]` was first reached from `parents[number]` by `by[number]`. The edges of an expanded state
    are those from `first_edge[number]` to `first_edge[number + 1]`, and those (target, label) taken `afterwards`; a
    label is the position of the choice in `choices`.
    """

    space: StateSpace
    violations: Violations
    max_states: int | None = None
    max_depth: int | None = None
    report: Callable[[int, int, int], None] = lambda states, waiting, violations: None
    sets: StubbornSets | None = None
    numbers: dict[str, int] = field(factory=dict)
    states: list[str] = field(factory=list)
    parents: "array[int]" = field(factory=_numbers)
    by: "array[int]" = field(factory=_numbers)
    first_edge: "array[int]" = field(factory=_numbers)
    targets: "array[int]" = field(factory=_numbers)
    labels: "array[int]" = field(factory=_numbers)
    afterwards: dict[int, list[tuple[int, int]]] = field(factory=dict)
    selected: set[int] = field(factory=set)
    bounded: bool = False
    partly: set[int] = field(factory=set)  # the states with choices left out by the reduction
    interrupted: bool = False  # by Ctrl-C
    runs: int = 0  # random ones

    def run(self) -> None:
        """Expand every state, level by level. Ending early makes the search bounded."""
        self._reach(self.space.initial, -1, -1)
        try:
            self._expand_levels()
            while not self.bounded and (late := self._put_off()):
                for number, choices in late:
                    self._take_afterwards(number, choices)
                self._expand_levels()
        finally:
            self.bounded = self.bounded or len(self.first_edge) < len(self.states)
            self.first_edge.append(len(self.targets))

    def walk(self, runs: int, random: Random) -> None:
        """Take random runs instead, each until its end, its first failure, or after `max_depth` events (1,000)."""
        self._reach(self.space.initial, -1, -1)
        while self.runs < runs:
            self.runs += 1
            number = 0
            for _ in range(1000 if self.max_depth is None else self.max_depth):
                state, before = self.states[number], len(self.targets)
                present, choices = self._judged(number, state)
                if choices:
                    self.take(number, state, present, (random.choice(choices),))
                if len(self.targets) == before:
                    break
                number = self.targets[-1]

    def path(self, number: int) -> tuple[Event, ...]:
        """Return the events that lead to a state first."""
        events = []
        while self.parents[number] >= 0:
            events.append(self.space.masks.events[self.by[number]])
            number = self.parents[number]
        return tuple(reversed(events))

    @property
    def choices(self) -> list[Choice]:
        """The choices that were selectable in any state so far, by label."""
        return self.space.selection.met

    @property
    def transitions(self) -> int:
        """The number of steps between states that were taken."""
        return len(self.targets) + sum(map(len, self.afterwards.values()))

    def steps(self, number: int) -> list[tuple[int, int]]:
        """Return the steps from an expanded state: target and label of each."""
        if number >= len(self.first_edge):
            return []
        first = self.first_edge[number]
        end = self.first_edge[number + 1] if number + 1 < len(self.first_edge) else len(self.targets)
        found = list(zip(self.targets[first:end], self.labels[first:end], strict=True))
        return found + self.afterwards[number] if number in self.afterwards else found

    def edges(self, number: int) -> list[tuple[int, Choice]]:
        """Return the targets of an expanded state, each with what was selected."""
        choices = self.choices
        return [(target, choices[label]) for target, label in self.steps(number)]

    def _expand_levels(self) -> None:
        depth, level = 0, range(len(self.first_edge), len(self.states))
        next_report = time.monotonic() + 1.0
        while level and not (self.max_depth is not None and depth >= self.max_depth):
            for number in level:
                self._expand(number)
                if not number & 0xFF and time.monotonic() > next_report:
                    self.report(len(self.states), len(self.states) - number, len(self.violations.found))
                    next_report = time.monotonic() + 1.0
            depth, level = depth + 1, range(level.stop, len(self.states))

    def _reach(self, state: str, parent: int, event: int) -> int:
        """Return the number of a new state; -1 at the limit of states."""
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
        present, choices = self._judged(number, state)
        if self.sets is not None and len(choices) > 1 and choices[0].origin == "internal":
            choices = self._take_enough(self.sets, number, state, present, choices)
        if choices:
            self.take(number, state, present, choices)

    def _judged(self, number: int, state: str) -> tuple[int, tuple[Choice, ...]]:
        """Return the choices in a state, with its local states (a mask); check it if it is an end."""
        try:
            present, choices = self.space.selection.choices(state)
        except LocalFailure as failure:
            self.violations.failed(failure, self.path(number))
            return 0, ()
        if not choices or choices[0].origin == "possible":
            self.violations.ended(state, partial(self.path, number), choices)
        return present, choices

    # The reduction.

    def _take_enough(
        self, sets: StubbornSets, number: int, state: str, present: int, choices: tuple[Choice, ...]
    ) -> tuple[Choice, ...]:
        """Take the fewest sufficient choices in a state; return those to take in addition.

        Of equally many, those that lead to new states are taken; if a b-thread fails on one, all are.
        """
        best = choices
        for enough in sets.ways(present, choices):
            if len(enough) < len(best):
                best = enough
            if len(enough) == 1 and self._leads_on(number, state, present, enough[0]):
                best = enough
                break
        before = len(self.targets)
        if len(best) < len(choices):
            self.take(number, state, present, best)
            choices = tuple(choice for choice in choices if choice not in best)
            if len(self.targets) - before == len(best):
                self.partly.add(number)
                return ()
        return choices

    def _leads_on(self, number: int, state: str, present: int, choice: Choice) -> bool:
        """Return whether a choice leads to an unexpanded state, or to none."""
        try:
            after = self.space.successor(state, present, choice)
        except LocalFailure:
            return True
        return self.numbers.get(after, len(self.states)) > number

    def _put_off(self) -> list[tuple[int, tuple[Choice, ...]]]:
        """Return choices that are always enabled and never taken in a component that no step leaves (by state)."""
        found = []

        def within(number: int) -> list[Edge]:
            return [step for step in self.steps(number) if step[0] in self.partly]

        for component in list(components(sorted(self.partly), within)):
            steps = [step for number in component for step in self.steps(number)]
            if {target for target, _ in steps}.issubset(component):
                missing = self._missing(component[0], {self.choices[label] for _, label in steps})
                found += [(component[0], missing)] if missing else []
        return found

    def _missing(self, number: int, taken: set[Choice]) -> tuple[Choice, ...]:
        """Return the choices not taken in a state, if some are not taken anywhere in its component."""
        _, choices = self.space.selection.choices(self.states[number])
        if taken.issuperset(choices):
            return ()
        self.partly.discard(number)
        here = {choice for _, choice in self.edges(number)}
        return tuple(choice for choice in choices if choice not in here)

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
        """Follow the edges of a state. (The hot loop: avoid calls.)"""
        numbers, targets, labels, successor = self.numbers, self.targets, self.labels, self.space.successor
        selected = self.selected
        for choice in choices:
            if choice.label not in selected:
                selected.add(choice.label)
                self.violations.selected(choice.event, partial(self.path, number))
            try:
                after = successor(state, present, choice)
            except LocalFailure:
                self.violations.failed_on(state, choice, partial(self.path, number))
                continue
            target = numbers.get(after)
            if target is None:
                target = self._reach(after, number, choice.event)
            if target >= 0:
                targets.append(target)
                labels.append(choice.label)


def components(nodes: Iterable[Node], edges: Callable[[Node], list[Edge]]) -> Iterator[list[Node]]:
    """Yield the strongly connected components with a cycle (Gabow 2000, without recursion); nodes sorted."""
    order: dict[Node, int] = {}
    work: list[tuple[Node, Iterator[Edge]]] = []  # the path to the present node, with the edges still to follow
    path: list[Node] = []  # nodes whose components are incomplete
    firsts: list[Node] = []  # of each component on the path, as far as it is known
    done, loops = set[Node](), set[Node]()

    def enter(node: Node) -> None:
        order[node] = len(order)
        path.append(node)
        firsts.append(node)
        work.append((node, iter(edges(node))))

    for root in nodes:
        if root not in order:
            enter(root)
        while work:
            node, following = work[-1]
            target = next((target for target, _ in following if target not in done), None)
            if target is None:
                work.pop()
                if firsts[-1] == node:
                    firsts.pop()
                    done.update(component := _popped(path, node))
                    if len(component) > 1 or node in loops:
                        yield sorted(component)
            elif target not in order:
                enter(target)
            else:
                while order[firsts[-1]] > order[target]:
                    firsts.pop()
                loops |= {node} if target == node else set()


def _popped(path: list[Node], first: Node) -> list[Node]:
    """Remove the nodes of a path from `first` on, and return them."""
    found = [path.pop()]
    while found[-1] != first:
        found.append(path.pop())
    return found
