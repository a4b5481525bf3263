"""Replay: the external events of a log, fed to the same program, must give the same records.

Nothing outside is asked: no model, no tool, no disk. The first record that differs is reported with both sides.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from attrs import frozen

from agent.log.decoding import Decoder
from agent.log.reading import LogError, RecordedRun
from agent.vocabulary.encoding import to_record
from bp import BProgram, BProgramError, Event, Step

__all__ = ["Difference", "LogDiffers", "ReplayResult", "broke_off", "replay", "retaken"]

ENGINE = "engine"  # the origin of the last record of a run that broke off


@frozen
class Difference:
    """Where a replay parts from its log: the number of the record, from 1, and both sides; None for a missing one."""

    number: int
    recorded: Mapping[str, Any] | None
    replayed: Mapping[str, Any] | None

    def __str__(self) -> str:
        return f"record {self.number} differs\n  recorded: {_shown(self.recorded)}\n  replayed: {_shown(self.replayed)}"


class LogDiffers(LogError):
    """A log is not what its program makes of it; `difference` says where."""

    def __init__(self, run: RecordedRun, difference: Difference) -> None:
        super().__init__(f"{run.path} is not what its program makes of it: {difference}")
        self.difference = difference


@frozen
class ReplayResult:
    """How many records were equal, and the first difference, if any."""

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
        if broke_off(run):  # why, the program cannot know: a listener, or the disk
            return ReplayResult(equal + 1)
        if not run.torn and (step := _next_step(program)) is not None:
            return ReplayResult(equal, Difference(equal + 1, None, to_record(step)))
    return ReplayResult(equal)


def broke_off(run: RecordedRun) -> bool:
    """Whether the engine, and no b-thread, ended the run."""
    return bool(run.records) and run.records[-1]["origin"] == ENGINE


def retaken(run: RecordedRun, program: BProgram) -> Iterator[Step]:
    """Yield the steps that `program` takes as they are recorded, up to the end of the log, wherever that is.

    What the engine wrote at the end is no step. Raises LogDiffers at the first record that the program does not make,
    LogError for one that cannot be an event.
    """
    decoder = Decoder()
    for number, record in enumerate(_taken(run), start=1):
        decoder.learn(record)
        step = _next_step(program)
        if step is None and record["origin"] == "outside":
            step = _next_step(program, decoder.event(record))
        made = None if step is None else to_record(step)
        if step is None or made != record:
            raise LogDiffers(run, Difference(number, record, made))
        yield step


def _taken(run: RecordedRun) -> Sequence[Mapping[str, Any]]:
    return run.records[:-1] if broke_off(run) else run.records


def _next_step(program: BProgram, event: Event | None = None) -> Step | None:
    """Take a step, with the external `event` if there is one; None when the program rests, or has failed."""
    with suppress(BProgramError):  # here the program ends; if it did so then too, the log says so in its last record
        if event is not None:
            program.post(event)
        return program.step()
    return None


def _shown(record: Mapping[str, Any] | None) -> str:
    if record is None:
        return "nothing"
    return f"step {record['step']} {record['name']} by {record['origin']}: {record['data']}"
