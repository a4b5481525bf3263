"""Model checking: every state that a program can reach, and what is wrong with any of them.

It finds b-threads that fail (monitors are b-threads), events that must never happen, deadlocks, internal loops
without end, and b-threads that stay hot: at an end, or around a fair cycle. A search that hit a bound is `bounded`,
and then nothing "holds".
"""

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Literal

from bp.bthreads import BThread
from bp.event_sets import as_event_set
from bp.events import Event
from bp.verification.counterexamples import Verification
from bp.verification.findings import Violations
from bp.verification.fingerprint import VerificationError
from bp.verification.ignored import ByOrder
from bp.verification.liveness import endless_components, hot_components
from bp.verification.reduction import Irreducible, Reduction
from bp.verification.search import Search
from bp.verification.state_space import StateSpace

__all__ = ["verify"]


def verify(
    *bthreads: BThread,
    environment: Sequence[BThread] = (),
    possible: Iterable[Event] = (),
    never: Any = (),
    order: Literal["any", "run"] = "any",
    endless: bool = False,
    reduce: bool = False,
    max_states: int | None = None,
    max_depth: int | None = None,
    progress: Callable[[int, int], None] | bool = False,
) -> Verification:
    """Explore every reachable state of a program and return what is wrong with it.

    environment: b-threads whose requests are external events that are promised to come, in any order.
    possible: external events that may come between super-steps, any number of times, or never.
    never: an event set, or a list of them, of events that must not happen.
    order: "any" tries every selectable event, and so covers every priority, strategy and seed; "run" what the
    scheduler does by default. endless: also report cycles of internal events alone. reduce: of orders that come to the
    same, try one, where that is known to find the same: fewer states, the same verdicts, the same deadlocks; traces
    need not be the shortest then. progress: called with the numbers of states and of those still to expand, about
    every second; True prints them.

    Raises VerificationError for a b-thread that keeps state where it cannot be seen, and TypeError. Ctrl-C ends the
    search: what was found until then is returned, as bounded.
    """
    possible = tuple(possible)
    _check_arguments(bthreads, environment, possible, order)
    forbidden = [as_event_set(events) for events in (never if isinstance(never, list | tuple) else (never,))]
    began = time.perf_counter()
    make = partial(StateSpace, bthreads, environment, possible, in_order=order == "run")
    space, reducer = _with_reducer(make) if reduce and order == "any" and max_depth is None else (make(), None)
    try:
        found = Violations(space, forbidden)
        search = Search(space, found, max_states, max_depth, _reporter(progress), reducer)
        _run(search, found, endless)
    finally:
        space.automaton.close()
    return _verification(search, found, time.perf_counter() - began)


def _check_arguments(
    bthreads: Sequence[BThread], environment: Sequence[BThread], possible: tuple[Event, ...], order: str
) -> None:
    for bthread in (*bthreads, *environment):
        if not isinstance(bthread, BThread):
            raise TypeError(f"verify takes called b-threads, for example guard(); found {bthread!r}")
    for event in possible:
        if not isinstance(event, Event):
            raise TypeError(f"possible={event!r}: only events are possible; give each by itself")
    if order not in ("any", "run"):
        raise TypeError(f"order={order!r}: use 'any' or 'run'")


def _with_reducer(make: Callable[[], StateSpace]) -> tuple[StateSpace, ByOrder | None]:
    """Return a space with its reduction, or another one without, where there is none."""
    space = make()
    if space.failures:
        return space, None
    try:
        reducer = ByOrder(Reduction(space))
        space.automaton.purity.check()
    except (Irreducible, VerificationError):  # perhaps only where the program never gets: the search will tell
        space.automaton.close()
        return make(), None
    except BaseException:
        space.automaton.close()
        raise
    return space, reducer


def _run(search: Search, found: Violations, endless: bool) -> None:
    """Search, and make sure that no b-thread kept state where the search could not see it."""
    for failure in search.space.failures:
        found.failed(failure, ())
    if not search.space.failures:
        search.run()
        _look_for_cycles(search, found, endless)
    search.space.automaton.purity.check()


def _look_for_cycles(search: Search, found: Violations, endless: bool) -> None:
    try:
        for name, number, cycle in hot_components(search):
            found.hot(search, name, number, cycle)
        for number, cycle in endless_components(search) if endless else ():
            found.endless(search, number, cycle)
    except KeyboardInterrupt:
        search.bounded = True


def _verification(search: Search, found: Violations, seconds: float) -> Verification:
    violations = tuple(found.found.values())
    is_reduced = search.reducer is not None
    return Verification(len(search.states), search.transitions, violations, search.bounded, seconds, is_reduced)


def _reporter(progress: Callable[[int, int], None] | bool) -> Callable[[int, int], None]:
    if callable(progress):
        return progress
    return _print_progress if progress else lambda states, waiting: None


def _print_progress(states: int, waiting: int) -> None:
    print(f"\r{states:,} states, {waiting:,} to expand ", end="", file=sys.stderr, flush=True)
