"""What goes on just now, in one line: the turn, the model or the tool at work, tokens, and the time it takes."""

import time
from collections.abc import Callable

import anyio

from agent.cli.screen import Screen, visible
from agent.projections.totals import Totals
from agent.vocabulary.events import (
    ApprovalAsked,
    BackoffStarted,
    InferenceRequested,
    PromptGiven,
    RunEnded,
    SummaryRequested,
    ToolFinished,
    ToolStarted,
)
from bp import Event

__all__ = ["Progress"]

PAUSE = 0.5  # seconds between two looks


class Progress:
    """The status line of a run; `now` gives seconds."""

    def __init__(self, screen: Screen, now: Callable[[], float] = time.monotonic) -> None:
        """Begin with nothing going on."""
        self._screen = screen
        self._now = now
        self._totals = Totals()
        self._begun = now()
        self._activity = ""
        self._since = now()

    def fold(self, event: Event) -> None:
        """Take an event into account."""
        self._totals.fold(event)
        match event:
            case PromptGiven():
                self._begun = self._now()
            case InferenceRequested():
                self._begin("the model answers")
            case SummaryRequested():
                self._begin("the model sums up")
            case ToolStarted():
                self._begin(event.call.tool)
            case BackoffStarted():
                self._begin("waiting, to ask again")
            case ToolFinished():
                self._begin("")
            case ApprovalAsked() | RunEnded():
                self._begin("")
                self._screen.clear_status()

    def text(self) -> str:
        """Return the line; nothing when nothing goes on."""
        if not self._activity:
            return ""
        used, now = self._totals.usage, self._now()
        tokens = used.input_tokens + used.output_tokens
        parts = [f"turn {self._totals.turns + 1}" if "model" in self._activity else f"turn {self._totals.turns}"]
        parts.append(f"{visible(self._activity)} ({now - self._since:.0f} s)")
        parts += [f"{tokens:,} tokens"] if tokens else []
        parts.append(f"{now - self._begun:.0f} s in all")
        return " · ".join(parts)

    async def show(self) -> None:
        """Keep the status line up to date until cancelled."""
        while True:
            await anyio.sleep(PAUSE)
            if text := self.text():
                self._screen.status(text)

    def _begin(self, activity: str) -> None:
        self._activity, self._since = activity, self._now()
