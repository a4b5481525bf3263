"""What every b-thread did at every step of a log: the program once more on what came from outside.

Records alone say who requested an event and who refused. Who heard it, and what was held back meanwhile, the program
says, when it can be built again; up to where it does otherwise than its log.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from agent.history.rebuilding import rebuild
from agent.history.retracing import Held, held_back
from agent.log.decoding import Decoder
from agent.log.reading import LogError, RecordedRun
from agent.vocabulary.encoding import to_record
from bp import BProgram, BProgramError, BThread, Event, Record

__all__ = ["Moment", "Watched", "watch"]


@frozen
class Moment:
    """A record, and around it: who heard its event, whom it closed, and what was held back when it was selected."""

    record: Mapping[str, Any]
    heard: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    held: tuple[Held, ...] = ()


@frozen
class Watched:
    """The moments of a run. `problem` says why nothing is known of who heard and held, from some step on."""

    moments: tuple[Moment, ...]
    problem: str | None = None


def watch(run: RecordedRun, threads: Sequence[BThread] = ()) -> Watched:
    """Return every record of `run` with what the b-threads did; `threads` are those that do not ship."""
    seen: list[Record] = []
    try:
        program = rebuild(run, threads, listeners=(seen.append,))
    except LogError as error:
        return Watched(tuple(map(Moment, run.records)), str(error))
    moments: list[Moment] = []
    for recorded, moment in zip(run.records, _moments(run, program, seen), strict=False):
        if moment.record != recorded:
            break
        moments.append(moment)
    missing = run.records[len(moments) :]
    problem = f"from step {missing[0]['step']} on the program does otherwise than its log" if missing else None
    return Watched((*moments, *map(Moment, missing)), problem)


def _moments(run: RecordedRun, program: BProgram, seen: list[Record]) -> Iterator[Moment]:
    """Yield what the program does on the external events of the log."""
    decoder = Decoder()
    try:
        yield from _super_step(program, seen, None)
        for record in run.records:
            decoder.learn(record)
            if record["origin"] == "outside":
                yield from _super_step(program, seen, decoder.event(record))
    except (BProgramError, LogError):
        return  # here it broke off, then or now
    finally:
        program.close()


def _super_step(program: BProgram, seen: list[Record], event: Event | None) -> Iterator[Moment]:
    held = held_back(program)
    if event is not None:
        program.post(event)
    while (step := program.step()) is not None:
        record = seen[-1]
        yield Moment(to_record(step), record.resumed, record.interrupted, held)
        held = held_back(program)
