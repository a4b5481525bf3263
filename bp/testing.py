"""Tests of b-threads in three lines: drive one alone, look at a trace, try many schedules.

assert drive(alternate(), [HOT, COLD]) == [hot_statement, cold_statement, hot_statement]
check_trace(trace_of(alternate(), add(HOT, 2), add(COLD, 2)), [HOT, COLD, HOT, COLD])
explore(bthreads, check)        # in a test: Hypothesis picks the schedule, and shrinks one that fails
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bp.errors import BProgramError
from bp.event_sets import contains
from bp.events import Event
from bp.program import BProgram
from bp.statements import BThread, Start, Sync

__all__ = ["check_trace", "drive", "trace_of"]


def drive(bthread: BThread, events: Iterable[Event] = ()) -> list[Sync]:
    """Run one b-thread alone and return what it says: at its first synchronization point and after each event.

    An event that does not concern it is passed over, as in a program. B-threads that it starts do not run. After its
    end the list stops. Raises what the b-thread raises, BProgramError for what is no statement.
    """
    body = bthread.begin()
    said: list[Sync] = []
    coming = iter(events)
    try:
        statement = _advanced(bthread, body, None)
        while statement is not None:
            said.append(statement)
            event = next((event for event in coming if _concerns(statement, event)), None)
            if event is None or _has(statement.interrupt, event):
                break
            statement = _advanced(bthread, body, event)
    finally:
        body.close()
    return said


def trace_of(
    *bthreads: BThread,
    posts: Iterable[Event] = (),
    choose: Callable[[list[Event]], Event] | None = None,
    most: int = 1000,
) -> list[Event]:
    """Return the events of a program that runs until it rests, then takes the posts, one after the other.

    choose: which of the selectable events comes next; by default the program's own choice. With Hypothesis:
    `choose=lambda events: data.draw(sampled_from(events))` tries many schedules, and shrinks one that fails. At most
    `most` events are taken.
    """
    trace: list[Event] = []
    with BProgram(*bthreads) as program:
        _run(program, trace, choose, most)
        for post in posts:
            program.post(post)
            _run(program, trace, choose, most)
    return trace


def check_trace(trace: Sequence[Event], expected: Sequence[Any]) -> None:
    """Raise AssertionError unless a trace is as expected: events, sets of events, or `...` for any number of them.

    The message says how far they agree.
    """
    reached = {0}
    for position, event in enumerate(trace):
        after = {step for at in _with_gaps(reached, expected) for step in _steps(expected, at, event)}
        if not after:
            wanted = " or ".join(sorted({_wish(expected, at) for at in _with_gaps(reached, expected)}))
            raise AssertionError(
                f"event {position + 1} is {event!r}; expected {wanted}; before it came {list(trace[:position])}"
            )
        reached = after
    if len(expected) not in _with_gaps(reached, expected):
        wanted = " or ".join(sorted({_wish(expected, at) for at in reached}))
        raise AssertionError(f"the trace ends after {len(trace)} events; expected {wanted}; it is {list(trace)}")


def _run(program: BProgram, trace: list[Event], choose: Callable[[list[Event]], Event] | None, most: int) -> None:
    while len(trace) < most:
        selectable = [candidate.event for candidate in program.candidates] if choose is not None else []
        step = program.select(choose(selectable)) if choose is not None and selectable else program.step()
        if step is None:
            return
        trace.append(step.event)


def _advanced(bthread: BThread, body: Any, event: Event | None) -> Sync | None:
    try:
        statement = body.send(event)
        while isinstance(statement, Start):
            statement = body.send(None)
    except StopIteration:
        return None
    if not isinstance(statement, Sync):
        raise BProgramError(f"b-thread {bthread.name!r} yielded {statement!r}; yield sync(...) instead")
    return statement


def _concerns(statement: Sync, event: Event) -> bool:
    return event in statement.requests or _has(statement.wait_for, event) or _has(statement.interrupt, event)


def _has(events: Any, event: Event) -> bool:
    return events is not None and contains(events, event)


def _with_gaps(reached: set[int], expected: Sequence[Any]) -> set[int]:
    """Add the positions behind a `...`, which may stand for nothing."""
    found = set(reached)
    for at in range(len(expected)):
        if at in found and expected[at] is ...:
            found.add(at + 1)
    return found


def _steps(expected: Sequence[Any], at: int, event: Event) -> list[int]:
    if at == len(expected):
        return []
    if expected[at] is ...:
        return [at]
    return [at + 1] if contains(expected[at], event) else []


def _wish(expected: Sequence[Any], at: int) -> str:
    return "its end" if at == len(expected) else repr(expected[at])
