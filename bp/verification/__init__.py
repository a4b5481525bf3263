"""Model checking: explores every reachable state of a program and reports violations.

It finds b-threads that fail (monitors are b-threads), events that must never happen, deadlocks, internal loops without
end, and b-threads that stay hot: at an end, or around a fair cycle. A search that reached a bound is `bounded` and
never "holds"; neither does a program with a b-thread that was never reached.

    states          global states and steps: the rules of the board, over bit masks
    local_states    each b-thread alone as an automaton; every step is computed twice
    fingerprint     equality of local states
    purity          checks that a step depends only on local state and event
    search          breadth first through the states, or random runs; the cycle proviso of the reduction
    reduction       partial-order reduction: stubborn sets
    liveness        cycles: b-threads that stay hot, events without end
    report          counterexamples with their stories, and the coverage
    properties      patterns over events (absence, response, ...) as monitors
    drawing         automata and state spaces as Mermaid flowcharts
"""

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any, Literal

from attrs import field, frozen

from bp.events import Event
from bp.statements import BThread, as_list, check_bthreads
from bp.verification.fingerprint import VerificationError
from bp.verification.liveness import cyclic_states, endless_components, hot_components
from bp.verification.reduction import Irreducible, StubbornSets
from bp.verification.report import Coverage, FirstFound, Violation, Violations, coverage_of, local_states
from bp.verification.search import Search
from bp.verification.states import StateSpace


@frozen
class Verification:
    """The result of `verify`. It is true if and only if its verdict is "holds", so `assert verify(...)` suffices.

    verdict: "violated" (see `violations`), "bounded" (not every state was explored), "unchecked" (`not_looked_into`
    names functions that were not read), "unreached" (no violation, but some b-threads were never reached: see
    `coverage`), or "holds". reduced: only some of the equivalent orders were tried, and are counted. runs: the number
    of sampled runs instead of a search. local_states: by name of b-threads, the number of their local states.
    interrupted: bounded by Ctrl-C.
    """

    states: int
    transitions: int
    violations: tuple[Violation, ...]
    bounded: bool
    seconds: float = field(default=0.0, eq=False)
    reduced: bool = False
    runs: int = 0
    coverage: Coverage = field(default=Coverage(), eq=False)
    local_states: tuple[tuple[str, int], ...] = field(default=(), eq=False)
    not_looked_into: tuple[str, ...] = ()
    interrupted: bool = field(default=False, eq=False)

    @property
    def holds(self) -> bool:
        """True if every reachable state was explored, every function was read, and there is no violation."""
        return not self.violations and not self.bounded and not self.not_looked_into

    @property
    def verdict(self) -> Literal["violated", "bounded", "unchecked", "unreached", "holds"]:
        """The result in a word."""
        if self.violations:
            return "violated"
        if self.bounded:
            return "bounded"
        if self.not_looked_into:
            return "unchecked"
        return "holds" if self.coverage.complete else "unreached"

    def __bool__(self) -> bool:
        """Return whether it holds, and every b-thread was reached."""
        return self.verdict == "holds"

    def __str__(self) -> str:
        searched = f"{_counted(self.states, 'state')}, {_counted(self.transitions, 'transition')}"
        searched = f"{_counted(self.runs, 'run')}, {searched}" if self.runs else searched
        reduced, bound = " (reduced)" if self.reduced else "", ""
        if self.bounded:
            why = "interrupted" if self.interrupted else "bounded"
            bound = " (sampled)" if self.runs else f" ({why}: not all states were looked at)"
        word = _counted(len(self.violations), "violation") if self.violations else str(self.verdict)
        word = "nothing wrong so far" if word == "bounded" else word
        lines = [f"{word}: {searched}{reduced}{bound}", *self._details()]
        told = {(violation.kind, violation.bthread): str(violation) for violation in reversed(self.violations)}
        more = len(self.violations) - len(told)
        rest = [f"and {more:,} more: see .violations, or give first=True"] if more else []
        return "\n\n".join(["\n".join(lines), *reversed(told.values()), *rest])

    def _details(self) -> list[str]:
        lines = [f"not looked into: {', '.join(self.not_looked_into)}"] if self.not_looked_into else []
        if self.bounded and not self.runs:
            most = [f"{name} {count:,}" for name, count in self.local_states[:10]]
            lines += [f"local states: {', '.join(most)}"] if most else []
        return [*lines, *str(self.coverage).splitlines()]


def verify(
    *bthreads: BThread,
    environment: Sequence[BThread] = (),
    possible: Iterable[Event] = (),
    never: Any = (),
    order: Literal["any", "run"] = "any",
    endless: bool = False,
    first: bool = False,
    reduce: bool = False,
    max_states: int | None = None,
    max_depth: int | None = None,
    samples: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int, int], None] = lambda states, waiting, violations: None,
) -> Verification:
    """Explore every reachable state of a program and return its violations.

    environment: b-threads whose requests are external events, promised to come at rest, in any order. possible:
    external events that may come between super-steps, any number of times, or never. never: an event set, or a list of
    them, of events that must not happen. order: "any" tries every selectable event, and so covers every priority,
    strategy and seed, except that a b-thread may stay hot in runs that are not fair (docs/verification.md); the default
    strategy is not: "run" does what it does. endless: also report cycles of internal events only. first: stop at the
    first violation. reduce: of equivalent orders try only one, where this is sound: fewer states, the same verdicts and
    deadlocks, but traces may not be shortest. samples: for spaces that are too large to search, the number of random
    runs from `seed`, each of at most `max_depth` events (1,000), without search for cycles; such a result is bounded.
    progress: called with the numbers of states, of those still to expand, and of violations, about every second.

    Raises VerificationError for a b-thread with hidden state, or without its assertions (`python -O`), and TypeError.
    Ctrl-C ends the search and returns the result so far, as bounded.
    """
    environment, possible = as_list("environment", environment), as_list("possible", possible)
    _check_arguments(bthreads, environment, possible, order)
    if samples is not None and (samples < 1 or reduce or endless or max_states is not None):
        raise TypeError(f"samples={samples!r}: give a number of runs, and leave reduce, endless and max_states out")
    began = time.perf_counter()
    make = partial(StateSpace, bthreads, environment, possible, in_order=order == "run")
    may_reduce = reduce and order == "any" and max_depth is None
    space, sets = _with_sets(make) if may_reduce else (make(), None)
    try:
        found = Violations(space, never, first=first)
        search = Search(space, found, max_states, max_depth, progress, sets)
        return searched(search, endless, began, samples, seed)
    finally:
        space.automaton.close()


def _check_arguments(
    bthreads: Sequence[BThread], environment: Sequence[BThread], possible: tuple[Event, ...], order: str
) -> None:
    check_bthreads("verify", (*bthreads, *environment))
    for event in possible:
        if not isinstance(event, Event):
            raise TypeError(f"possible={event!r}: only events are possible; give each by itself")
    if order not in ("any", "run"):
        raise TypeError(f"order={order!r}: use 'any' or 'run'")


def _with_sets(make: Callable[[], StateSpace]) -> tuple[StateSpace, StubbornSets | None]:
    """Return a space with its stubborn sets, or without them if it cannot be reduced."""
    space = make()
    if space.failures:
        return space, None
    try:
        sets = StubbornSets(space)
        space.automaton.purity.check()
    except (Irreducible, VerificationError):  # perhaps in an unreachable state: the search decides
        space.automaton.close()
        return make(), None
    return space, sets


@contextmanager
def _few_collections() -> Iterator[None]:
    """Collect cyclic garbage rarely: a search keeps its objects, and each collection traverses all of them."""
    before = gc.get_threshold()
    gc.set_threshold(max(100_000, before[0]) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _run(search: Search, explore: Callable[[], None]) -> bool:
    """Explore, and check that no b-thread has hidden state; return whether the exploration is complete."""
    space, is_whole = search.space, False
    try:
        for failure in space.failures:
            search.violations.failed(failure, ())
        if not space.failures:
            with _few_collections():
                explore()
        is_whole = True
    except FirstFound:
        pass
    except KeyboardInterrupt:
        search.interrupted = True
    space.automaton.purity.check()
    return is_whole


def searched(search: Search, endless: bool, began: float, samples: int | None = None, seed: int = 0) -> Verification:
    """Run a search, or `samples` random runs from a seed, and return the result; `began`: by `time.perf_counter`."""
    explore = partial(_search, search, endless) if samples is None else partial(search.walk, samples, Random(seed))
    bounded = not _run(search, explore) or search.bounded or samples is not None
    return _result(search, bounded=bounded, seconds=time.perf_counter() - began)


def _search(search: Search, endless: bool) -> None:
    search.run()
    if not endless and not any(local.statement.hot for local in search.space.automaton.locals):
        return
    cyclic = cyclic_states(search)
    for local, number, cycle in hot_components(search, cyclic):
        search.violations.hot(local, search.path(number), cycle)
    for number, cycle in endless_components(search, cyclic) if endless else ():
        search.violations.endless(number, search.path(number), cycle)


def _result(search: Search, *, bounded: bool, seconds: float) -> Verification:
    space, found = search.space, search.violations
    return Verification(
        len(search.states), search.transitions, tuple(found.found.values()), bounded, seconds,
        reduced=search.sets is not None, runs=search.runs,
        coverage=coverage_of(space, found.never, found.withheld.values()), local_states=local_states(space),
        not_looked_into=tuple(space.automaton.purity.not_looked_into), interrupted=search.interrupted,
    )  # fmt: skip


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
