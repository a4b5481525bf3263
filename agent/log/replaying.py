"""Replay: the external events of a log, fed to the same program, must give the same records.

Nothing outside is asked: no model, no tool, no disk. The first record that differs is reported with both sides.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from agent.log.decoding import Decoder
from agent.log.encoding import to_record
from agent.log.reading import RecordedRun
from bp import BProgram, BProgramError, Event

__all__ = ["Difference", "ReplayResult", "replay"]

ENGINE = "engine"  # the origin of the last record of a run that broke off


@frozen
class Difference:
    """Where a replay parts from its log: the number of the record, from 1, and both sides; None for a missing one."""

    number: int
    recorded: Mapping[str, Any] | None
    replayed: Mapping[str, Any] | None

    def __str__(self) -> str:
        return f"record {self.number} differs\n  recorded: {_shown(self.recorded)}\n  replayed: {_shown(self.replayed)}"


@frozen
class ReplayResult:
    """How many records were equal, and the first difference, if any."""

    equal: int
    difference: Difference | None = None


def replay(run: RecordedRun, program: BProgram) -> ReplayResult:
    """Replay `run` on `program`, which must not have begun. Raises LogError for a record that cannot be an event."""
    broke_off = bool(run.records) and run.records[-1]["origin"] == ENGINE
    replayed = _replayed(run, program)
    equal = 0
    for recorded in run.records[: len(run.records) - broke_off]:
        made = next(replayed, None)
        if made != recorded:
            return ReplayResult(equal, Difference(equal + 1, recorded, made))
        equal += 1
    if broke_off:  # why, the program cannot know: a listener, or the disk
        return ReplayResult(equal + 1)
    if not run.torn and (made := next(replayed, None)) is not None:
        return ReplayResult(equal, Difference(equal + 1, None, made))
    return ReplayResult(equal)


def _replayed(run: RecordedRun, program: BProgram) -> Iterator[Mapping[str, Any]]:
    """Yield the records that the program makes of the external events of the log."""
    decoder = Decoder()
    with program:
        yield from _records(program)
        for record in run.records:
            decoder.learn(record)
            if record["origin"] == "outside":
                yield from _records(program, decoder.event(record))


def _records(program: BProgram, event: Event | None = None) -> Iterator[Mapping[str, Any]]:
    """Yield the records of a super-step, which begins with the external `event`."""
    try:
        if event is not None:
            program.post(event)
        for step in program.run():
            yield to_record(step)
    except BProgramError:
        return  # here the program ends; if it did so then too, the log says so in its last record


def _shown(record: Mapping[str, Any] | None) -> str:
    if record is None:
        return "nothing"
    return f"step {record['step']} {record['name']} by {record['origin']}: {record['data']}"
