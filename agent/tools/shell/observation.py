"""The observation envelope `z2e.tool_observation.v1` (S4): a command's end as one JSON object."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from attrs import field, frozen, mutable

from agent.tools.process import Finished
from agent.vocabulary.events import AnswerCommitted
from bp import Event

__all__ = ["SCHEMA", "Observed", "Session", "compact"]

SCHEMA = "z2e.tool_observation.v1"
OUTPUT_CHARACTERS, RAW_CHARACTERS = 6000, 2000


def _now() -> datetime:
    return datetime.now(UTC)


@frozen
class Observed:
    """What there is to tell of a command. `tool`: tool, call_id, command, workdir. `notes` are lines about its end.

    `finished` is None for one that could not be run because of `problem`.
    """

    tool: dict[str, Any]
    interactive: bool
    problem: str = ""
    finished: Finished | None = None
    notes: tuple[str, ...] = ()

    @property
    def output(self) -> str:
        """What the command printed, standard output first where errors are on their own; or why it did not run."""
        return self.problem if self.finished is None else self.finished.output + self.finished.errors


@mutable
class Session:
    """What an agent's commands have in common: when it began, and how much there was.

    `turns` counts the answers of the model, as far as they are heard of, `calls` the commands that were asked for,
    `executed` those that ran, `observations` what was told.
    """

    now: Callable[[], datetime] = _now
    started: datetime = field(init=False)
    turns: int = 0
    calls: int = 0
    executed: int = 0
    observations: int = 0
    _latest: Event | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        self.started = self.now()

    @property
    def steps(self) -> int:
        """Turns of the model; outside of a loop, where there are none, calls."""
        return self.turns or self.calls

    def hear(self, event: Event) -> None:
        """Count a turn, once, however many tools share the session."""
        if isinstance(event, AnswerCommitted) and event is not self._latest:
            self._latest = event
            self.turns += 1

    def observe(self, observed: Observed, *, compacted: int | None) -> str:
        """Return the envelope of a command. Output is cut to `compacted` characters, 6000 by default."""
        self.observations += 1
        finished = observed.finished
        observation = {
            "schema": SCHEMA,
            "timestamp": _stamp(self.now()),
            "session": {
                "started_at": _stamp(self.started),
                "steps": self.steps,
                "executed_commands": self.executed,
                "observations": self.observations,
            },
            "tool": {**observed.tool, "raw": compact(observed.output, RAW_CHARACTERS)},
            "result": {
                "status": _status(finished),
                "exit_code": None if finished is None else finished.exit_code,
                "timed_out": finished is not None and finished.timed_out,
                "interactive": observed.interactive,
                "output": _with_notes(observed.output, observed.notes, compacted or OUTPUT_CHARACTERS),
            },
        }
        return json.dumps(observation, ensure_ascii=False)


def _with_notes(output: str, notes: tuple[str, ...], most: int) -> str:
    """Return the output with its notes after it, which are never what is left out."""
    if not notes:
        return compact(output, most)
    ending = "\n".join(notes)
    room = max(most - len(ending) - 1, 0)
    shown = compact(output, room).rstrip("\n")
    return (f"{shown}\n{ending}" if shown else ending)[:most]


def compact(text: str, most: int) -> str:
    """Return `text` with at most `most` characters: its beginning and its end, and how many are missing between."""
    if len(text) <= most:
        return text
    notice = f"\n[... {len(text)} characters in all ...]\n"
    room = max(most - len(notice), 0)
    return f"{text[: room - room // 2]}{notice}{text[len(text) - room // 2 :]}"[:most]


def _stamp(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _status(finished: Finished | None) -> str:
    """A command that ended by itself is completed, whatever its exit code (S4)."""
    if finished is None:
        return "failed"
    if finished.timed_out:
        return "timeout"
    return "completed" if finished.signal is None else "killed"
