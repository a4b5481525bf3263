"""Playback: the external events of a log, fed to the same program, must give the same records.

No model, tool or disk is asked. `played` is the one way in which a program takes recorded events: `replay` reports the
first record that differs; `retrace` tells which events were held back at each step, and by which b-thread; a `Shadow`
does so step by step.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from attrs import frozen

from agent.history.rebuilding import rebuild
from agent.log.reading import Decoder, LogError, RecordedRun
from agent.vocabulary.encoding import to_record
from bp import BProgram, BProgramError, BThread, Event, Step
from bp.board import Blocker
from bp.program import Record

ENGINE = "engine"  # the origin of the last record of a run that broke off


@frozen
class Difference:
    """The place where a replay departs from its log: the record's number, from 1, and both sides, None if missing."""

    number: int
    recorded: Mapping[str, Any] | None
    replayed: Mapping[str, Any] | None

    def __str__(self) -> str:
        return f"record {self.number} differs\n  recorded: {_shown(self.recorded)}\n  replayed: {_shown(self.replayed)}"


class LogDiffers(LogError):
    """A log differs from its replay; `difference` says where."""

    def __init__(self, run: RecordedRun, difference: Difference) -> None:
        super().__init__(f"{run.path} is not what its program makes of it: {difference}")
        self.difference = difference


@frozen
class ReplayResult:
    """The number of records that were equal, and the first difference, if there is one."""

    equal: int
    difference: Difference | None = None


def replay(run: RecordedRun, program: BProgram) -> ReplayResult:
    """Replay `run` on `program`, which must not have begun. Raises LogError for a record that cannot be an event."""
    equal = 0
    with program:
        try:
            for _ in retaken(run, program):
                equal += 1
        except LogDiffers as differs:
            return ReplayResult(equal, differs.difference)
        if broke_off(run):  # for a reason outside of the program: a listener, or the disk
            return ReplayResult(equal + 1)
        if not run.torn and (step := next(_until_it_fails(program), None)) is not None:
            return ReplayResult(equal, Difference(equal + 1, None, to_record(step)))
    return ReplayResult(equal)


def played(program: BProgram, heard: Iterable[Event]) -> Iterator[Step]:
    """Yield the steps that `program` takes until it rests, then on each of the external events `heard`.

    The next event is taken from `heard` only when the program rests. Raises the errors of the program.
    """
    yield from program.run()
    for event in heard:
        program.post(event)
        yield from program.run()


def _until_it_fails(program: BProgram, heard: Iterable[Event] = ()) -> Iterator[Step]:
    """Yield the steps of `played` until its program fails; a recorded failure ends the log in the same way."""
    with suppress(BProgramError):
        yield from played(program, heard)


def broke_off(run: RecordedRun) -> bool:
    """Return whether the engine, and not a b-thread, ended the run."""
    return bool(run.records) and run.records[-1]["origin"] == ENGINE


def retaken(run: RecordedRun, program: BProgram) -> Iterator[Step]:
    """Yield the steps of `program` on the recorded external events, up to the end of the log.

    A final record of the engine is no step. Raises LogDiffers at the first record that the program does not make,
    LogError for one that cannot be an event.
    """
    taken = run.records[:-1] if broke_off(run) else run.records
    steps = _until_it_fails(program, heard_in(taken))
    for number, record in enumerate(taken, start=1):
        step = next(steps, None)
        made = None if step is None else to_record(step)
        if step is None or made != record:
            raise LogDiffers(run, Difference(number, record, made))
        yield step


def heard_in(records: Iterable[Mapping[str, Any]]) -> Iterator[Event]:
    """Yield the external events of a log. Raises LogError for a record that cannot be one."""
    decoder = Decoder()
    for record in records:
        decoder.learn(record)
        if record["origin"] == "outside":
            yield decoder.event(record)


def _shown(record: Mapping[str, Any] | None) -> str:
    if record is None:
        return "nothing"
    return f"step {record['step']} {record['name']} by {record['origin']}: {record['data']}"


@frozen
class Held:
    """A requested event that could not be selected: its requester, and which b-threads held it back and why."""

    event: Event
    requester: str
    blockers: tuple[Blocker, ...]


def retrace(
    bthreads: Sequence[BThread], heard: Sequence[Event], steps: Sequence[Step]
) -> tuple[tuple[Step | None, tuple[Held, ...]], ...]:
    """Return each step with the events held back at it; the last entry, of None, is the state after all steps.

    heard: the external events of the whole conversation, in order.

    From the first step at which an impure b-thread decides otherwise, no event is listed as held.
    """
    seen: dict[Step | None, tuple[Held, ...]] = {}
    with BProgram(*bthreads) as program, suppress(BProgramError):  # the run failed here
        held = held_back(program)
        for step in played(program, heard):
            seen[step] = held
            held = held_back(program)
        seen[None] = held
    told: list[tuple[Step | None, tuple[Held, ...]]] = [(step, seen.get(step, ())) for step in steps]
    if None in seen and list(steps[-1:]) == list(seen)[-2:-1]:
        told.append((None, seen[None]))
    return tuple(told)


def held_back(program: BProgram) -> tuple[Held, ...]:
    """Return the requested events that cannot be selected; a request with an `otherwise` is refused, not held back."""
    return tuple(
        Held(event, name, blockers)
        for name, sync in program.standing
        for event in sync.requests
        if (blockers := program.blockers(event))
        and (sync.otherwise is None or all(blocker.because is None for blocker in blockers))
    )


@frozen
class WatchedStep:
    """A record with its context: which b-threads heard its event or were closed by it, and what was held back."""

    record: Mapping[str, Any]
    heard: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    held: tuple[Held, ...] = ()


class Shadow:
    """A second program that takes the same steps, and tells which b-threads received each, and which events were held
    back.

    make: makes the program, which must not have begun, with these listeners. `problem` says why nothing is known, or
    from which step on the program differs from the log.
    """

    def __init__(self, make: Callable[[tuple[Callable[[Record], None], ...]], BProgram]) -> None:
        self._seen: deque[Record] = deque(maxlen=1)
        self._decoder = Decoder()
        self.problem: str | None = None
        try:
            self._program = make((self._seen.append,))
        except LogError as error:
            self._program, self.problem = BProgram(), str(error)

    def take(self, record: Mapping[str, Any]) -> WatchedStep:
        """Take the step of a record and return it with its context."""
        if self.problem is None:
            with suppress(BProgramError, LogError):  # it failed here, then or now
                self._decoder.learn(record)
                moment = self._taken(record)
                if moment.record == record:
                    return moment
            self.problem = f"from step {record['step']} on the program does otherwise than its log"
            self.close()
        return WatchedStep(record)

    def close(self) -> None:
        """End the program."""
        with suppress(BProgramError):
            self._program.close()

    def _taken(self, record: Mapping[str, Any]) -> WatchedStep:
        held = held_back(self._program)
        if record["origin"] == "outside":
            self._program.post(self._decoder.event(record))
        step = self._program.step()
        if step is None:
            return WatchedStep({})
        return WatchedStep(to_record(step), self._seen[-1].resumed, self._seen[-1].interrupted, held)


def shadow_of(run: RecordedRun, threads: Sequence[BThread] = ()) -> Shadow:
    """Return the program of a log, to take its records; `threads` are those that do not ship."""
    return Shadow(lambda listeners: rebuild(run, threads, listeners))
