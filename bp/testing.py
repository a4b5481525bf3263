"""Tests of b-threads in three lines, and programs shown step by step.

assert drive(alternate(), [HOT, COLD]) == [hot_statement, cold_statement, hot_statement]
assert trace_of(alternate(), add(HOT, 2), add(COLD, 2)) == [HOT, COLD, HOT, COLD]
show(BProgram(alternate(), add(HOT, 2), add(COLD, 2)))      # prints what each b-thread asks for, and each step
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

from bp.board import held_by
from bp.errors import shown
from bp.events import Event, contains
from bp.program import BProgram, Step, check_program
from bp.statements import BThread, Start, Sync, advance, as_list, check_bthreads

__all__ = ["drive", "show", "table", "trace_of"]

COLUMNS = {"waits for": "wait_for", "blocks": "block", "refuses": "refuse", "interrupted by": "interrupt"}


def drive(bthread: BThread, events: Iterable[Event] = ()) -> list[Sync]:
    """Run one b-thread alone and return its statements: at its first synchronization point and after each event.

    An event that does not concern it is ignored, as in a program. B-threads that it starts do not run. The list ends
    with the b-thread. Raises exceptions of the b-thread, and TypeError for an invalid statement.
    """
    check_bthreads("drive", (bthread,))
    body = bthread.begin()
    said: list[Sync] = []
    coming = iter(as_list("events", events))
    try:
        statement = advance(body.send, None, _ignore, None)
        while statement is not None:
            said.append(statement)
            event = next((event for event in coming if _concerns(statement, event)), None)
            if event is None or _has(statement.interrupt, event):
                break
            statement = advance(body.send, event, _ignore, None)
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
    with BProgram(*bthreads) as program:
        return [step.event for step in islice(_steps_of(program, posts, choose), most)]


def show(program: BProgram, posts: Iterable[Event] = (), most: int = 1000) -> None:
    """Print the statement of each b-thread of a program, now and after each step, until it rests after the last post.

    At most `most` steps are taken. By hand: `print(table(program))`, then `program.step()` or `program.select(event)`.
    """
    print(table(program))
    for step in islice(_steps_of(program, posts), most):
        print(f"\n{step.number}. {shown(step.event)}, from {step.bthread or 'outside'}")
        print(table(program))


def table(program: BProgram) -> str:
    """Return a line for each b-thread with its statement, and the b-threads that hold its requests back.

    Begins a new program. Raises like `BProgram.candidates`, and TypeError for no program.
    """
    check_program(program)
    _ = program.candidates  # begins the program
    rows = [{"b-thread": name, **_row(program, statement)} for name, statement in program.standing]
    columns = [column for column in ("b-thread", "requests", *COLUMNS, "hot") if any(row.get(column) for row in rows)]
    lines = [columns, *([row.get(column, "") for column in columns] for row in rows)]
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _row(program: BProgram, statement: Sync) -> dict[str, str]:
    requests = ", ".join(shown(event) + _held(program, event) for event in statement.requests)
    sets = {column: getattr(statement, word) for column, word in COLUMNS.items()}
    return {
        "requests": f"any of {requests}" if statement.any_of else requests,
        **{column: shown(events) for column, events in sets.items() if events is not None},
        "hot": "hot" if statement.hot else "",
    }


def _held(program: BProgram, event: Event) -> str:
    blockers = program.blockers(event)
    return f" ({held_by(blockers)})" if blockers else ""


def _steps_of(
    program: BProgram, posts: Iterable[Event], choose: Callable[[list[Event]], Event] | None = None
) -> Iterator[Step]:
    for post in chain((None,), as_list("posts", posts)):
        if post is not None:
            program.post(post)
        while (step := _step(program, choose)) is not None:
            yield step


def _step(program: BProgram, choose: Callable[[list[Event]], Event] | None) -> Step | None:
    selectable = [candidate.event for candidate in program.candidates] if choose is not None else []
    return program.select(choose(selectable)) if choose is not None and selectable else program.step()


def _ignore(_: None, __: Start) -> None:
    """Started b-threads do not run here."""


def _concerns(statement: Sync, event: Event) -> bool:
    return event in statement.requests or _has(statement.wait_for, event) or _has(statement.interrupt, event)


def _has(events: Any, event: Event) -> bool:
    return events is not None and contains(events, event)
