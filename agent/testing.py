"""Assertions on runs: absence and order of events, and that every call is answered.

    assert_never(run, started("bash"), GateRejected)
    assert_order(run, ApprovalAnswered, "write_file")

A failure shows the end of the trace: each event with its requester, refusals with reasons, and requests held back.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, cast

from attrs import fields, frozen, has

from agent.history.playback import Held, retrace
from agent.log.reading import RecordedRun, recorded_steps
from agent.session.agent import Run
from agent.vocabulary.calls import ToolCall, thaw
from agent.vocabulary.events import ToolStarted
from agent.vocabulary.messages import AssistantMessage, Message, ToolMessage, ToolResult, Usage, shortened
from bp import Event, EventSet, FrozenMapping, Refusals, Step, contains, where
from bp.errors import require
from constitution import Action

__all__ = ["assert_calls_answered", "assert_never", "assert_order", "started", "trace"]

TAIL = 20  # how many of the last steps a failure shows
WIDTH = 120  # characters of one event in it


def started(tool: str, **arguments: Any) -> EventSet:
    """Return the event set of all starts of `tool` with at least these arguments."""
    return where(ToolStarted, StartOf(tool, FrozenMapping(arguments)))  # type: ignore[no-any-return]


@frozen
class StartOf:
    """A predicate: an event starts a tool with these arguments."""

    tool: str
    arguments: Mapping[str, Any]

    def __call__(self, event: Any) -> bool:
        """Return whether the event is such a start."""
        return bool(event.call.tool == self.tool and event.call.arguments.items() >= self.arguments.items())

    @property
    def __name__(self) -> str:
        return f"the call is {self.tool}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


def assert_never(run: Run | RecordedRun, *events: Any) -> None:
    """Raise AssertionError if an event of any of `events` happened in `run`, or in the log of one.

    Each is an event, a kind, or any other event set; a text means the starts of that tool.
    """
    __tracebackhide__ = True  # pytest shows the line of the test
    steps = _steps(run, assert_never, events)
    for one in events:
        if found := _found(steps, one):
            raise AssertionError(f"{_told_set(one)} happened, at step {found[0]}\n{trace(run, until=found[0])}")


def assert_order(run: Run | RecordedRun, *events: Any) -> None:
    """Raise AssertionError unless each of `events` happened in `run`, for the first time after the one before it did.

    Each is given as in `assert_never`. One that is named again means its next occurrence.
    """
    __tracebackhide__ = True
    steps, before, last = _steps(run, assert_order, events), 0, ""
    for position, one in enumerate(events):
        earlier, found = events[:position].count(one), _found(steps, one)
        if len(found) <= earlier:
            times = "once" if len(found) == 1 else f"{len(found)} times"
            how_often = f"happened only {times}, not {earlier + 1}" if found else "never happened"
            raise AssertionError(f"{_told_set(one)} {how_often}\n{trace(run)}")
        if found[earlier] <= before:
            which = f"for the {earlier + 1}. time" if earlier else "first"
            raise AssertionError(
                f"{_told_set(one)} happened {which} at step {found[earlier]}, and {last} only at step {before}\n"
                f"{trace(run, until=before)}"
            )
        before, last = found[earlier], _told_set(one)


def assert_calls_answered(messages: Iterable[Message]) -> None:
    """Raise AssertionError unless each call has one answer, in source order: after its message, before any other."""
    owed: list[str] = []
    for number, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            require(owed, f"message {number} answers {message.call_id!r}, which no call before it asks for")
            first = owed.pop(0)
            require(message.call_id == first, f"message {number} answers {message.call_id!r}; {first!r} comes first")
            continue
        require(not owed, f"message {number} ({type(message).__name__}) comes before the answers to {owed}")
        if isinstance(message, AssistantMessage):
            owed = [call.id for call in message.calls]
            require(len(set(owed)) == len(owed), f"message {number} has two calls with one id: {owed}")
            require(all(owed), f"message {number} has a call without an id: {owed}")
    require(not owed, f"nothing answers {owed}")


def trace(run: Run | RecordedRun, *, until: int | None = None, tail: int = TAIL) -> str:
    """Return the last steps of `run`, or the last up to step `until`, with refusals and requests held back.

    A log alone does not record which requests were held back.
    """
    moments = [each for each in _moments(run) if until is None or (each[0] and each[0].number <= until)]
    title = "the last steps (who requested them), with what was refused or held back then, by whom, and why:"
    return "\n".join([title, *_told_moments(moments[-tail:])])


def _moments(run: Run | RecordedRun) -> Iterable[tuple[Step | None, tuple[Held, ...]]]:
    if isinstance(run, RecordedRun):
        return [(step, ()) for step in recorded_steps(run)]
    return retrace(run.agent.bthreads, run.agent.journal.heard, run.steps)


def _steps(run: Run | RecordedRun, check: Callable[..., None], events: Sequence[Any]) -> Sequence[Step]:
    """Return the steps of `run`. Raises ValueError and TypeError for no events, or events that cannot happen."""
    if not isinstance(run, Run | RecordedRun):
        raise TypeError(f"{check.__name__} takes the result of agent.run(...) or read_log(...), not {run!r}")
    if not events:
        raise ValueError(f"{check.__name__} was given no events; name at least one")
    for one in events:
        for start in _starts_in(_as_set(one)):
            _check_start(run, start)
    return run.steps if isinstance(run, Run) else recorded_steps(run)


def _starts_in(events: Any) -> Iterator[StartOf]:
    """Yield the starts of tools that an event set is made of."""
    if isinstance(predicate := getattr(events, "predicate", None), StartOf):
        yield predicate
    for part in getattr(events, "members", ()):
        yield from _starts_in(part)


def _check_start(run: Run | RecordedRun, start: StartOf) -> None:
    if isinstance(run, Run):
        tools = {tool.name: tool.parameters.get("properties") for tool in run.agent.toolbox.tools}
    else:
        tools = dict.fromkeys(run.header["tools"])
    if start.tool not in tools:
        raise ValueError(f"the agent has no tool {start.tool!r}; its tools: {', '.join(tools) or 'none'}")
    parameters = tools[start.tool]
    unknown = [name for name in start.arguments if isinstance(parameters, dict) and name not in parameters]
    if unknown and isinstance(parameters, dict):
        known = ", ".join(parameters) or "none"
        raise ValueError(f"the tool {start.tool!r} has no parameter {unknown[0]!r}; its parameters: {known}")
    tool = run.agent.toolbox.get(start.tool) if isinstance(run, Run) else None
    for problem in tool.shape.problems(thaw(start.arguments)) if tool else ():
        if re.split(r"[:.\[]", problem)[0] in start.arguments:  # others are missing here
            raise ValueError(f"no start of the tool {start.tool!r} can have these arguments: {problem}")


def _found(steps: Iterable[Step], events: Any) -> list[int]:
    wanted = _as_set(events)
    return [step.number for step in steps if contains(wanted, step.event)]


def _as_set(events: Any) -> Any:
    if isinstance(events, list | tuple):
        return reduce(or_, map(_as_set, events))
    if not isinstance(events, str):
        return events
    return started(events)


def _told_set(events: Any) -> str:
    if isinstance(events, str):
        return f"the start of {events!r}"
    return str(getattr(events, "name", events) if isinstance(events, type) else events)


def _told_moments(moments: Iterable[tuple[Step | None, tuple[Held, ...]]]) -> Iterator[str]:
    before: tuple[Held, ...] = ()
    for step, held in moments:
        if step is not None:
            yield f"{step.number:>5} {told(step.event)} ({step.bthread or 'from outside'})"
            for refusal in step.refusals or ():
                yield f"      refused by {refusal.bthread}: {refusal.because}"
        for news in held:
            if news not in before:
                yield f"      held: {told(news.event)} ({news.requester}), {_blamed(news)}"
        before = held


def _blamed(held: Held) -> str:
    return ", ".join(
        f"by {blocker.bthread}" + ("" if blocker.because is None else f": {blocker.because}")
        for blocker in held.blockers
    )


def told(event: Event) -> str:
    """Return an event in one line: its name, its call and its other fields, shortened."""
    if not has(type(event)):
        return event.name
    texts = (_told_value(getattr(event, field.name)) for field in fields(cast(Any, type(event))))
    line = " ".join([event.name, *filter(None, texts)])
    return shortened(line, WIDTH)


def _told_value(value: Any) -> str:
    """Return a field as text; empty for an empty one, or one that another line shows."""
    match value:
        case ToolCall():
            arguments = ", ".join(f"{name}={argument!r}" for name, argument in value.arguments.items())
            return f"{value.id} {value.tool}({arguments})"
        case tuple() if value and isinstance(value[0], ToolCall):
            return ", ".join(map(_told_value, value))
        case AssistantMessage() | ToolResult():
            return repr(value.text) if value.text else ""
        case Action() | Usage() | Refusals() | Mapping() | float() | None | () | "" | False:
            return ""
        case _:
            return repr(value)
