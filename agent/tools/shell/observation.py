"""The observation envelope `z2e.tool_observation.v1` (S4): a command's end as one JSON object."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from attrs import field, mutable

from agent.tools.process import Finished

__all__ = ["SCHEMA", "Session", "compact"]

SCHEMA = "z2e.tool_observation.v1"
OUTPUT_CHARACTERS, RAW_CHARACTERS = 6000, 2000


def _now() -> datetime:
    return datetime.now(UTC)


@mutable
class Session:
    """What an agent's commands have in common: when it began, and how much there was.

    `steps` counts calls, `executed` the commands that ran, `observations` what was told.
    """

    now: Callable[[], datetime] = _now
    started: datetime = field(init=False)
    steps: int = 0
    executed: int = 0
    observations: int = 0

    def __attrs_post_init__(self) -> None:
        self.started = self.now()

    def observe(
        self, tool: dict[str, Any], finished: Finished | None, problem: str, *, interactive: bool, compacted: int | None
    ) -> str:
        """Return the envelope of a command that ended, or could not be run because of `problem`.

        `tool` says which: tool, call_id, command, workdir. Output is cut to `compacted` characters, 6000 by default.
        """
        self.observations += 1
        output = problem if finished is None else finished.output
        observation = {
            "schema": SCHEMA,
            "timestamp": _stamp(self.now()),
            "session": {
                "started_at": _stamp(self.started),
                "steps": self.steps,
                "executed_commands": self.executed,
                "observations": self.observations,
            },
            "tool": {**tool, "raw": compact(output, RAW_CHARACTERS)},
            "result": {
                "status": _status(finished),
                "exit_code": None if finished is None else finished.exit_code,
                "timed_out": finished is not None and finished.timed_out,
                "interactive": interactive,
                "output": compact(output, compacted or OUTPUT_CHARACTERS),
            },
        }
        return json.dumps(observation, ensure_ascii=False)


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
