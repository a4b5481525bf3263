"""Model checking: every state that a program can reach, and what is wrong with any of them.

`verify` searches breadth first, so that every trace is a shortest one. It finds b-threads that fail (monitors are
b-threads), events that must never happen, deadlocks, internal loops without end, and b-threads that stay hot: at an
end, or around a fair cycle. A search that hit a bound is `bounded`, and then nothing "holds".
"""

import sys
import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal

from attrs import define, field, frozen

from bp.automaton import LocalFailure
from bp.bthreads import BThread
from bp.cycles import endless_components, hot_components
from bp.event_sets import as_event_set, contains
from bp.events import Event
from bp.state_space import Choice, Origin, Selectable, StateSpace

__all__ = ["Verification", "Violation", "verify"]

ORIGINS: tuple[Origin, ...] = ("internal", "promised", "possible")


@frozen
class Violation:
    """One thing that is wrong, and a shortest way there.

    kind: "error" (a b-thread raised), "never" (a forbidden event), "deadlock", "hot" (a b-thread must go on and need
    not), or "endless" (internal events without end). trace: the events from the start. bthread: the culprit, where
    there is one. blockers: at a deadlock, (who requests, what, blocked by whom). cycle: the events that repeat.
    """

    kind: Literal["error", "never", "deadlock", "hot", "endless"]
    trace: tuple[Event, ...]
    message: str
    bthread: str | None = None
    blockers: tuple[tuple[str, Event, tuple[tuple[str, Any], ...]], ...] = ()
    cycle: tuple[Event, ...] = ()

    def __str__(self) -> str:
        shown = " → ".join(map(_shown, self.trace)) or "(at the start)"
        repeated = f", then for ever {' → '.join(map(_shown, self.cycle))}" if self.cycle else ""
        return f"{self.kind}: {self.message}\n  after {shown}{repeated}"


@frozen
class Verification:
    """What `verify` found. It holds when nothing is wrong and no bound was hit."""

    states: int
    transitions: int
    violations: tuple[Violation, ...]
    bounded: bool
    seconds: float = field(default=0.0, eq=False)

    @property
    def holds(self) -> bool:
        """True when every reachable state was looked at and nothing is wrong."""
        return not self.violations and not self.bounded

    def __str__(self) -> str:
        searched = f"{self.states:,} states, {self.transitions:,} transitions"
        if self.holds:
            return f"holds: {searched}"
        bound = " (bounded: not all states were looked at)" if self.bounded else ""
        return "\n".join([f"{len(self.violations)} violations: {searched}{bound}", *map(str, self.violations)])


def verify(
    *bthreads: BThread,
    environment: Sequence[BThread] = (),
    possible: Iterable[Event] = (),
    never: Any = (),
    order: Literal["any", "run"] = "any",
    endless: bool = False,
    max_states: int | None = None,
    max_depth: int | None = None,
    progress: Callable[[int, int], None] | bool = False,
) -> Verification:
    """Explore every reachable state of a program and return what is wrong with it.

    environment: b-threads whose requests are external events that are promised to come, in any order.
    possible: external events that may come between super-steps, any number of times, or never.
    never: an event set, or a list of them, of events that must not happen.
    order: "any" tries every selectable event, and so covers every priority, strategy and seed; "run" what the
    scheduler does by default. endless: also report cycles of internal events alone. progress: called with the
    numbers of states and of those still to expand, about every second; True prints them.

    Raises VerificationError for a b-thread that keeps state where it cannot be seen. Ctrl-C ends the search: what
    was found until then is returned, as bounded.
    """
    if order not in ("any", "run"):
        raise TypeError(f"order={order!r}: use 'any' or 'run'")
    forbidden = [as_event_set(events) for events in (never if isinstance(never, list | tuple) else (never,))]
    began = time.perf_counter()
    try:
        space = StateSpace(bthreads, environment, possible, in_order=order == "run")
    except LocalFailure as failure:
        violation = Violation("error", (), str(failure), bthread=failure.name)
        return Verification(0, 0, (violation,), bounded=False, seconds=time.perf_counter() - began)
    search = Search(space, forbidden, max_states, max_depth, _reporter(progress))
    search.run()
    search.look_for_cycles(endless)
    space.automaton.globals.check()
    violations = tuple(search.violations.values())
    return Verification(
        len(search.states), len(search.targets), violations, search.bounded, time.perf_counter() - began
    )


@define(eq=False)
class Search:
    """A breadth-first search. Invariant: `states[number]` was first reached from `parents[number]` by `by[number]`."""

    space: StateSpace
    never: list[Any]
    max_states: int | None
    max_depth: int | None
    report: Callable[[int, int], None]
    numbers: dict[str, int] = field(factory=dict)
    states: list[str] = field(factory=list)
    parents: "array[int]" = field(factory=lambda: array("l"))
    by: "array[int]" = field(factory=lambda: array("l"))
    first_edge: "array[int]" = field(factory=lambda: array("l"))  # where the edges of each expanded state begin
    targets: "array[int]" = field(factory=lambda: array("l"))
    labels: "array[int]" = field(factory=lambda: array("l"))  # event number times 3, plus the origin
    violations: dict[Any, Violation] = field(factory=dict)
    bounded: bool = False

    def run(self) -> None:
        """Expand every state, level by level."""
        self._reach(self.space.initial, -1, -1)
        depth, level = 0, range(1)
        next_report = time.monotonic() + 1.0
        try:
            while level and not (self.max_depth is not None and depth >= self.max_depth):
                for number in level:
                    self._expand(number)
                    if not number & 0xFF and time.monotonic() > next_report:
                        self.report(len(self.states), len(self.states) - number)
                        next_report = time.monotonic() + 1.0
                depth, level = depth + 1, range(level.stop, len(self.states))
        except KeyboardInterrupt:
            self.bounded = True
        self.bounded = self.bounded or len(self.first_edge) < len(self.states)
        self.first_edge.append(len(self.targets))

    def trace(self, number: int) -> tuple[Event, ...]:
        """Return the events that lead to a state first."""
        events = []
        while self.parents[number] >= 0:
            events.append(self.space.events[self.by[number]])
            number = self.parents[number]
        return tuple(reversed(events))

    def edges(self, number: int) -> Iterator[tuple[int, int, Origin]]:
        """Yield target, event and origin of the edges of an expanded state."""
        if number + 1 < len(self.first_edge):
            for edge in range(self.first_edge[number], self.first_edge[number + 1]):
                yield self.targets[edge], self.labels[edge] // 3, ORIGINS[self.labels[edge] % 3]

    def look_for_cycles(self, endless: bool) -> None:
        """Find fair cycles in which somebody stays hot, and internal loops."""
        for name, number, cycle in hot_components(self):
            self._hot(name, number, cycle)
        if endless:
            for position, (number, cycle) in enumerate(endless_components(self)):
                message = "internal events go on without end"
                self._violate(("endless", position), Violation("endless", self.trace(number), message, cycle=cycle))

    def _reach(self, state: str, parent: int, event: int) -> int:
        number = self.numbers.get(state)
        if number is None:
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
            selectable = self.space.selectable(state)
        except LocalFailure as failure:
            self._failed(failure, self.trace(number))
            return
        if not any(choice.origin != "possible" for choice in selectable.choices):
            self._judge_end(number, selectable)
        for choice in selectable.choices:
            self._take(number, state, choice)

    def _take(self, number: int, state: str, choice: Choice) -> None:
        event = self.space.events[choice.event]
        self._check_never(number, event)
        try:
            successor = self.space.successor(state, choice)
        except LocalFailure:
            self._blame_all(number, state, choice)
            return
        target = self._reach(successor, number, choice.event)
        if target >= 0:
            self.targets.append(target)
            self.labels.append(choice.event * 3 + ORIGINS.index(choice.origin))

    def _blame_all(self, number: int, state: str, choice: Choice) -> None:
        """Report every b-thread that fails on this event."""
        trace = (*self.trace(number), self.space.events[choice.event])
        for local in dict.fromkeys(map(ord, state)):
            try:
                if local in choice.advancing or self.space.concerns(local, choice.event):
                    self.space.move(local, choice.event)
            except LocalFailure as failure:
                self._failed(failure, trace)

    def _check_never(self, number: int, event: Event) -> None:
        for position, events in enumerate(self.never):
            if ("never", position) not in self.violations and contains(events, event):
                message = f"{_shown(event)} happens, which is never to happen"
                self._violate(("never", position), Violation("never", (*self.trace(number), event), message))

    def _judge_end(self, number: int, selectable: Selectable) -> None:
        """Nothing is selectable and nothing promised: a deadlock, a hot end, or all is well."""
        state = self.states[number]
        if selectable.blocked:
            self._violate(("deadlock", state), self._deadlock(number, state, selectable))
            return
        for local in dict.fromkeys(map(ord, state)):
            if self.space.is_hot(local):
                self._hot(self.space.automaton.locals[local].name, number, ())

    def _deadlock(self, number: int, state: str, selectable: Selectable) -> Violation:
        wishes = []
        for local in sorted(selectable.blocked):
            found = self.space.automaton.locals[local]
            wishes += [(found.name, event, self.space.blockers(state, event)) for event in found.statement.requests]
        told = "; ".join(
            f"{name!r} requests {_shown(event)}, held by {', '.join(by for by, _ in blockers) or 'nobody'}"
            for name, event, blockers in wishes
        )
        return Violation("deadlock", self.trace(number), told, blockers=tuple(wishes))

    def _hot(self, name: str, number: int, cycle: tuple[Event, ...]) -> None:
        message = f"b-thread {name!r} stays hot " + ("around a fair cycle" if cycle else "at an end")
        self._violate(("hot", name), Violation("hot", self.trace(number), message, bthread=name, cycle=cycle))

    def _failed(self, failure: LocalFailure, trace: tuple[Event, ...]) -> None:
        self._violate(("error", failure.name), Violation("error", trace, str(failure), bthread=failure.name))

    def _violate(self, key: Any, violation: Violation) -> None:
        self.violations.setdefault(key, violation)


def _reporter(progress: Callable[[int, int], None] | bool) -> Callable[[int, int], None]:
    if callable(progress):
        return progress
    return _print_progress if progress else lambda states, waiting: None


def _print_progress(states: int, waiting: int) -> None:
    print(f"\r{states:,} states, {waiting:,} to expand ", end="", file=sys.stderr, flush=True)


def _shown(event: Event) -> str:
    text = repr(event)
    return event.name if text == f"event({event.name!r})" else text
