"""Model checking: explores every reachable state of a program, and compares what it found with real runs.

It finds b-threads that fail (monitors are b-threads), events that must never happen, deadlocks, internal loops without
end, and b-threads that stay hot: at an end, or around a fair cycle. A search that reached a bound is `bounded` and
never "holds"; neither does a program with a b-thread that was never reached, or one of which too little was run.

    looks           what distinguishes two local states of a b-thread
    model           each b-thread alone as an automaton; the states of the program, and its steps
    search          breadth first through the states
    cycles          b-threads that stay hot around cycles, events without end
    trials          real runs in copies of the process, and in a fresh one
    agreement       the runs, followed in the model
    report          counterexamples with their stories, and the coverage
    properties      patterns over events (absence, response, ...) as monitors
    drawing         a b-thread as a graph
"""

import time
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from attrs import field, frozen

from bp.events import Event
from bp.statements import BThread, as_list, check_bthreads
from bp.verification.agreement import Agreement, Trials
from bp.verification.cycles import cyclic_states, endless_components, hot_components
from bp.verification.looks import VerificationError
from bp.verification.model import Model
from bp.verification.report import Coverage, FirstFound, Violation, Violations, coverage_of, local_states
from bp.verification.search import Progress, Search
from bp.verification.trials import Program

__all__ = ["Verification", "VerificationError", "verify"]

RUNS = 512


@frozen
class Verification:
    """The result of `verify`. It is true if and only if its verdict is "holds", so `assert verify(...)` suffices.

    verdict: "violated" (see `violations`), "bounded" (not every state was explored), "unchecked" (real runs made too
    few of the moves that the search found: see `agreed`), "unreached" (no violation, but some b-threads were never
    reached: see `coverage`), or "holds". local_states: by name of b-threads, the number of their local states.
    interrupted: bounded by Ctrl-C.
    """

    states: int
    transitions: int
    violations: tuple[Violation, ...]
    bounded: bool
    seconds: float = field(default=0.0, eq=False)
    agreed: Agreement = field(default=Agreement(), eq=False)
    coverage: Coverage = field(default=Coverage(), eq=False)
    local_states: tuple[tuple[str, int], ...] = field(default=(), eq=False)
    interrupted: bool = field(default=False, eq=False)

    @property
    def holds(self) -> bool:
        """True if every reachable state was explored, real runs agree, and there is no violation."""
        return not self.violations and not self.bounded and self.agreed.suffices

    @property
    def verdict(self) -> Literal["violated", "bounded", "unchecked", "unreached", "holds"]:
        """The result in a word."""
        if self.violations:
            return "violated"
        if self.bounded:
            return "bounded"
        if not self.agreed.suffices:
            return "unchecked"
        return "holds" if self.coverage.complete else "unreached"

    def __bool__(self) -> bool:
        """Return whether it holds, and every b-thread was reached."""
        return self.verdict == "holds"

    def __str__(self) -> str:
        searched = f"{_counted(self.states, 'state')}, {_counted(self.transitions, 'transition')}"
        why = "interrupted" if self.interrupted else "bounded"
        bound = f" ({why}: not all states were looked at)" if self.bounded else ""
        word = _counted(len(self.violations), "violation") if self.violations else str(self.verdict)
        word = "nothing wrong so far" if word == "bounded" else word
        lines = [f"{word}: {searched}{bound}", *self._details()]
        told = {(violation.kind, violation.bthread): str(violation) for violation in reversed(self.violations)}
        more = len(self.violations) - len(told)
        rest = [f"and {more:,} more: see .violations, or give first=True"] if more else []
        return "\n\n".join(["\n".join(lines), *reversed(told.values()), *rest])

    def _details(self) -> list[str]:
        most = [f"{name} {count:,}" for name, count in self.local_states[:10]] if self.bounded else []
        lines = [f"local states: {', '.join(most)}"] if most else []
        return [str(self.agreed), *lines, *str(self.coverage).splitlines()]


def verify(
    *bthreads: BThread,
    environment: Sequence[BThread] = (),
    possible: Iterable[Event] = (),
    never: Any = (),
    free: Iterable[BThread | str] | None = None,
    endless: bool = False,
    first: bool = False,
    max_states: int | None = None,
    max_depth: int | None = None,
    runs: int = RUNS,
    progress: Progress = lambda states, waiting, violations: None,
) -> Verification:
    """Explore every reachable state of a program, compare with real runs, and return its violations.

    environment: b-threads whose requests are external events, promised to come at rest, in any order. possible:
    external events that may come between super-steps, any number of times, or never. never: an event set, or a list of
    them, of events that must not happen. free: players, b-threads or their names, that may choose any of their events;
    the others follow the priority strategy (of equal priorities each is tried). Without it every selectable event is
    tried, which covers every priority, strategy and seed, except that a b-thread may stay hot in runs that are not fair
    (docs/verification.md). endless: also report cycles of internal events only. first: stop at the first violation.
    runs: how many real runs there are by chance; with 0 the verdict is "unchecked" at best. progress: called with the
    numbers of states, of those still to expand, and of violations, about every second.

    Raises VerificationError for a b-thread that is not a function of its events, or lost its assertions (`python -O`),
    and TypeError. Ctrl-C ends the search and returns the result so far, as bounded.
    """
    environment, possible = as_list("environment", environment), as_list("possible", possible)
    check_bthreads("verify", (*bthreads, *environment))
    for event in possible:
        if not isinstance(event, Event):
            raise TypeError(f"possible={event!r}: only events are possible; give each by itself")
    if type(runs) is not int or runs < 0:
        raise TypeError(f"runs={runs!r}: give a number of runs")
    players = None
    if isinstance(free, str):
        raise TypeError(f"free={free!r}: give a list, free=[...]")
    if free is not None:
        players = frozenset(each if isinstance(each, str) else each.name for each in as_list("free", free))
    began = time.perf_counter()
    trials = Trials(Program(bthreads, environment, possible, players), runs)
    model = Model(players)
    try:
        model.begin(bthreads, environment, possible)
        search = Search(model, Violations(model, never, first=first), max_states, max_depth, progress)
        return searched(search, endless, began, trials)
    finally:
        trials.close()
        model.close()


def searched(search: Search, endless: bool, began: float, trials: Trials | None = None) -> Verification:
    """Run a search, compared with `trials`, and return the result; `began`: by `time.perf_counter`."""
    bounded = not _run(search, endless, trials) or search.bounded
    model, found = search.model, search.violations
    return Verification(
        len(search.states), len(search.targets), found.all(), bounded, time.perf_counter() - began,
        agreed=Agreement() if trials is None else trials.agreement(model),
        coverage=coverage_of(model),
        local_states=local_states(model),
        interrupted=search.interrupted,
    )  # fmt: skip


def _run(search: Search, endless: bool, trials: Trials | None) -> bool:
    """Search, and compare with real runs before and afterwards; return whether all was looked at."""
    is_whole = False
    try:
        if trials is not None:
            trials.before(search.model)
        for failure in search.model.failures:
            search.violations.failed(failure, tuple)
        if not search.model.failures:
            _search(search, endless)
        is_whole = True
    except FirstFound:
        pass
    except KeyboardInterrupt:
        search.interrupted = True
    if trials is not None and not search.interrupted:
        trials.after(search)
    return is_whole


def _search(search: Search, endless: bool) -> None:
    search.run()
    if not endless and not any(local.statement.hot for local in search.model.locals):
        return
    cyclic = cyclic_states(search)
    for local, number, cycle in hot_components(search, cyclic):
        search.violations.hot(local, lambda: search.path(number), cycle)  # noqa: B023 - called at once
    for number, cycle in endless_components(search, cyclic) if endless else ():
        search.violations.endless(number, search.path(number), cycle)


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
