"""Paces: how often a role is asked in a minute, by all episodes of all processes that share a folder.

The moment of the next request stands in a file, which is locked while it is read and moved on: whoever comes takes a
turn, and waits for it. A moment that lies further ahead than anybody would wait is left from another time.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

import anyio

from agent.lab.locking import locked
from agent.models.model import Answer, Delta, Model, ModelRequest

__all__ = ["Pace", "PacedModel"]

LONGEST = 3600.0
"""Seconds that somebody may have to wait for a turn."""


class Pace:
    """At most `per_minute` turns, evenly spaced. The file's folder is made."""

    def __init__(self, path: Path, per_minute: float, now: Callable[[], float] = time.time) -> None:
        self._path, self._pause, self._now = path, 60 / per_minute, now

    async def turn(self) -> None:
        """Wait for the next turn. Raises OSError when the file cannot be written."""
        await anyio.sleep(self._take())

    def _take(self) -> float:
        """Take the next turn; return how many seconds it is away."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with locked(self._path) as descriptor:
            now = self._now()
            turn = _moment(descriptor)
            turn = turn if now <= turn <= now + LONGEST else now
            os.pwrite(descriptor, f"{turn + self._pause:024.6f}".encode(), 0)
            return turn - now


class PacedModel:
    """A model that is asked when there is a turn."""

    def __init__(self, model: Model, pace: Pace) -> None:
        self._model, self._pace = model, pace

    @property
    def name(self) -> str:
        """The model's name, for the log."""
        return self._model.name

    async def answer(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        """Return the model's answer, when it is time to ask."""
        await self._pace.turn()
        return await self._model.answer(request, on_delta)


def _moment(descriptor: int) -> float:
    try:
        return float(os.pread(descriptor, 24, 0))
    except ValueError:
        return 0.0
