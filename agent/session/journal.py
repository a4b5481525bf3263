"""The journal of a conversation: the log, then the projections."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.projections import Projection
from agent.projections.context import Context
from agent.projections.conversation import CARRY_ALL, Carried, Conversation
from agent.projections.state import OpenCalls, StateTracker, Totals
from agent.vocabulary.errors import AgentError, RunError
from agent.vocabulary.events import PromptGiven, RunEnded
from bp import Event, ProgramEnded, Step

if TYPE_CHECKING:
    from agent.log.writing import LogWriter


class _Folds(dict[type, tuple[Callable[[Any], None], ...]]):
    """The folds of each kind of event, in the order of the projections: the context reads the two before it."""

    def __init__(self, *projections: Projection) -> None:
        super().__init__()
        self._projections = projections

    def __missing__(self, kind: type) -> tuple[Callable[[Any], None], ...]:
        folds = [(projection, projection.FOLDS.get(kind)) for projection in self._projections]
        return self.setdefault(kind, tuple(partial(fold, each) for each, fold in folds if fold is not None))


class Journal:
    """The log and the projections of one conversation.

    `heard` is what came from outside so far, in order; `unfinished` are the steps since the last run ended.
    """

    def __init__(
        self,
        log: "LogWriter | None",
        max_iterations: int | None = None,
        context_tokens: int | None = None,
        carried: Carried = CARRY_ALL,
    ) -> None:
        """Begin with nothing; without a log, nothing is written. The others are what the projections show and keep."""
        self.conversation = Conversation()
        self.tracker = StateTracker(max_iterations)
        self.context = Context(self.conversation, self.tracker, context_tokens, carried)
        self.totals = Totals()
        self.heard: list[Event] = []
        self.unfinished: list[Step] = []
        self._open_calls = OpenCalls()
        self._last: Step | None = None
        self._log = log
        self._folds = _Folds(self.conversation, self.tracker, self.context, self.totals, self._open_calls)
        self._hear: Callable[[Step], None] = _ignore
        self._others: tuple[tuple[str, Callable[[Step], object]], ...] = ()

    @property
    def log_path(self) -> Path | None:
        """The path of the log, or None without one."""
        return None if self._log is None else self._log.path

    @property
    def last_record(self) -> str:
        """The latest line of the log, as it stands there; empty where there is none."""
        return "" if self._log is None else self._log.last

    @property
    def is_under_way(self) -> bool:
        """True if a run has begun and not ended."""
        return any(isinstance(step.event, PromptGiven) for step in self.unfinished)

    def watch(self, hear: Callable[[Step], None], *others: tuple[str, Callable[[Step], object]]) -> None:
        """Call a run with each step before the projections fold it, then other listeners, which errors name."""
        self._hear, self._others = hear, others

    def leave(self) -> None:
        """Remove the listeners."""
        self._hear, self._others = _ignore, ()

    def record(self, step: Step) -> None:
        """Record a step in the log, then in the projections, then call the listeners. Raises RunError."""
        who = "the log"
        self._last = step
        try:
            if self._log is not None:
                self._log.record(step)
            who = "the run"
            self._hear(step)
            who = "a projection"
            self.take_up(step)
            for name, watch in self._others:
                who = name
                watch(step)
        except Exception as error:
            at = f"step {step.number} ({step.event.name})"
            raise RunError(f"{who} failed at {at}: {type(error).__name__}: {error}") from error

    def take_up(self, step: Step) -> None:
        """Take a step into account that is in the log already."""
        event = step.event
        self._last = step
        if step.bthread is None:
            self.heard.append(event)
        self.unfinished.append(step)
        if isinstance(event, RunEnded):
            self.unfinished.clear()
        for fold in self._folds[type(event)]:
            fold(event)

    def flush(self) -> None:
        """Flush the log. Raises RunError."""
        if self._log is not None:
            try:
                self._log.flush()
            except AgentError as error:
                raise RunError(str(error)) from error

    def break_off(self, ended: RunEnded, error: Exception) -> None:
        """Answer the calls that are open, and write down that the run broke off.

        What goes wrong here becomes a note of `error`, which is why.
        """
        for event in (*self._open_calls.answers(), ended):
            for fold in self._folds[type(event)]:
                fold(event)
        self.unfinished.clear()
        if not isinstance(error, ProgramEnded):  # else there was no run
            note_failure(error, lambda: self._write_end(ended))

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()

    def _write_end(self, ended: RunEnded) -> None:
        if self._log is not None:
            self._log.record(failure_record(self._last, ended))
            self._log.flush()


def failure_record(last: Step | None, ended: RunEnded) -> dict[str, Any]:
    """Return the record of a run that broke off after the step `last`."""
    return {
        "step": (last.number if last else 0) + 1,
        "super_step": last.super_step if last else 0,
        "name": ended.name,
        "data": {"status": ended.status, "reason": ended.reason, "text": ended.text, "result": None},
        "origin": "engine",
    }


def _ignore(_: Step) -> None:
    """Hear nothing of a step."""


def note_failure(error: Exception, function: Callable[[], None]) -> None:
    """Call `function`, the clean-up after `error`; what it raises becomes a note of `error`."""
    try:
        function()
    except Exception as another:
        error.add_note(f"and then: {type(another).__name__}: {another}")
