"""The search through the states of a program: breadth first, so that known paths are shortest ones."""

import time
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import inf
from typing import Any

from attrs import define, field

from bp.events import Event
from bp.verification.model import Choice, Failure, Model, State
from bp.verification.report import Violations

Node = Any
Edge = tuple[Any, int]  # target node, and the label of the choice
Progress = Callable[[int, int, int], None]


def _numbers() -> "array[int]":
    return array("i")  # four bytes for each


@define(eq=False)
class Search:
    """The reached states and edges.

    Invariant: `states[number]` was first reached from `parents[number]` by `by[number]`. The edges of an expanded state
    are those from `first_edge[number]` to `first_edge[number + 1]`: target and label, the position in `choices`.
    """

    model: Model
    violations: Violations
    max_states: int | None = None
    max_depth: int | None = None
    report: Progress = lambda states, waiting, violations: None
    states: list[State] = field(factory=list)
    numbers: dict[State, int] = field(factory=dict)
    parents: "array[int]" = field(factory=_numbers)
    by: "array[int]" = field(factory=_numbers)
    first_edge: "array[int]" = field(factory=_numbers)
    targets: "array[int]" = field(factory=_numbers)
    labels: "array[int]" = field(factory=_numbers)
    choices: list[Choice] = field(factory=list)
    bounded: bool = False
    interrupted: bool = False  # by Ctrl-C
    known: dict[Choice, int] = field(factory=dict)  # their positions

    def run(self) -> None:
        """Expand every state, level by level. Ending early makes the search bounded."""
        self._reach(self.model.initial, -1, -1)
        depth, level, next_report = 0, range(1), time.monotonic() + 1.0
        try:
            while level and depth != self.max_depth:
                for number in level:
                    self._expand(number)
                    if not number & 0xFF and time.monotonic() > next_report:
                        self.report(len(self.states), len(self.states) - number, len(self.violations.found))
                        next_report = time.monotonic() + 1.0
                depth, level = depth + 1, range(level.stop, len(self.states))
        finally:
            self.bounded = self.bounded or len(self.first_edge) < len(self.states)
            self.first_edge.append(len(self.targets))

    def path(self, number: int) -> tuple[Event, ...]:
        """Return the events that lead to a state first."""
        events = []
        while self.parents[number] >= 0:
            events.append(self.model.events[self.by[number]])
            number = self.parents[number]
        return tuple(reversed(events))

    def steps(self, number: int) -> list[tuple[int, int]]:
        """Return the steps from an expanded state: target and label of each."""
        if number >= len(self.first_edge) - 1:
            return []
        part = slice(self.first_edge[number], self.first_edge[number + 1])
        return list(zip(self.targets[part], self.labels[part], strict=True))

    def _reach(self, state: State, parent: int, event: int) -> int:
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
        state, path = self.states[number], partial(self.path, number)
        try:
            choices = self.model.choices(state)
        except Failure as failure:
            self.violations.failed(failure, path)
            return
        if not choices or choices[0].origin == "possible":
            self.violations.ended(state, path, choices)
        for choice in choices:
            label = self.known.get(choice)
            if label is None:
                label = self.known[choice] = len(self.choices)
                self.choices.append(choice)
                self.violations.selected(choice.event, path)
            self._take(number, choice, label)

    def _take(self, number: int, choice: Choice, label: int) -> None:
        try:
            after = self.model.successor(self.states[number], choice)
        except Failure:
            self.violations.failed_on(self.states[number], choice, partial(self.path, number))
            return
        target = self.numbers.get(after)
        if target is None:
            target = self._reach(after, number, choice.event)
        if target >= 0:
            self.targets.append(target)
            self.labels.append(label)


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


def way(
    start: Node, edges: Callable[[Node], list[Edge]], is_wanted: Callable[[Node, Node, int], bool], most: float = inf
) -> tuple[list[int], Node]:
    """Return the labels of a shortest path whose last edge is wanted, and its target; none if there is none.

    is_wanted: of an edge, by source, target and label. most: nodes to look at.
    """
    ways: dict[Node, tuple[Any, ...]] = {start: ()}  # by node: the last label, and the path before it
    waiting = deque([start])
    while waiting:
        node = waiting.popleft()
        for target, label in edges(node):
            if is_wanted(node, target, label):
                labels, before = [label], ways[node]
                while before:
                    labels.append(before[0])
                    before = before[1]
                return labels[::-1], target
            if target not in ways and len(ways) < most:
                ways[target] = (label, ways[node])
                waiting.append(target)
    return [], start
