"""The journal of a conversation: the log, then the projections."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.projections import Projection
from agent.projections.conversation import CARRY_ALL, Carried, Context, Conversation
from agent.projections.state import StateTracker, Totals, answers_to_open_calls
from agent.vocabulary.errors import AgentError, RunError
from agent.vocabulary.events import PromptGiven, RunEnded
from bp import Event, ProgramEnded, Step

if TYPE_CHECKING:
    from agent.log.writing import LogWriter


Listener = tuple[str, Callable[[Step], object]]


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

    `heard`: the external events so far, in order. `unfinished`: the steps since the last run ended.
    """

    def __init__(
        self,
        log: "LogWriter | None",
        max_iterations: int | None = None,
        context_tokens: int | None = None,
        carried: Carried = CARRY_ALL,
    ) -> None:
        """Without a log, nothing is written; the other arguments are those of the projections."""
        self.conversation = Conversation()
        self.tracker = StateTracker(max_iterations)
        self.context = Context(self.conversation, self.tracker, context_tokens, carried)
        self.totals = Totals()
        self.heard: list[Event] = []
        self.unfinished: list[Step] = []
        self._last: Step | None = None
        self._log = log
        self._projections = (self.conversation, self.tracker, self.context, self.totals)
        self._folds = _Folds(*self._projections)
        self._listeners: tuple[Listener, ...] = ()

    @property
    def log_path(self) -> Path | None:
        """The path of the log, or None without one."""
        return None if self._log is None else self._log.path

    @property
    def last_record(self) -> str:
        """The latest line of the log; empty without one."""
        return "" if self._log is None else self._log.last

    @property
    def is_under_way(self) -> bool:
        """True if a run has begun and not ended."""
        return any(isinstance(step.event, PromptGiven) for step in self.unfinished)

    def begin(self, run: Projection, *listeners: Listener) -> list[Step]:
        """Fold events into `run` first, then into the others, then call the listeners; return its steps, as they come.

        listeners: each with its name, for errors.
        """
        self._folds, self._listeners = _Folds(run, *self._projections), listeners
        self.unfinished = [*self.unfinished]
        return self.unfinished

    def leave(self) -> None:
        """Forget the run."""
        self._folds, self._listeners = _Folds(*self._projections), ()

    def record(self, step: Step) -> None:
        """Record a step in the log, then in the projections, then call the listeners. Raises RunError."""
        event, who = step.event, "the log"
        self._last = step
        try:
            if self._log is not None:
                self._log.record(step)
            who = "a projection"
            if step.bthread is None:
                self.heard.append(event)
            self.unfinished.append(step)
            if type(event) is RunEnded:
                self.unfinished = []
            for fold in self._folds[type(event)]:
                fold(event)
            for name, listen in self._listeners:
                who = name
                listen(step)
        except Exception as error:
            at = f"step {step.number} ({event.name})"
            raise RunError(f"{who} failed at {at}: {type(error).__name__}: {error}") from error

    def take_up(self, step: Step) -> None:
        """Record a step that is already in the log. Raises RunError."""
        log, self._log = self._log, None
        try:
            self.record(step)
        finally:
            self._log = log

    def flush(self) -> None:
        """Flush the log. Raises RunError."""
        if self._log is not None:
            try:
                self._log.flush()
            except AgentError as error:
                raise RunError(str(error)) from error

    def break_off(self, ended: RunEnded, error: Exception) -> None:
        """Answer the open calls and record that the run failed with `error`; errors raised here become its notes."""
        for event in (*answers_to_open_calls(step.event for step in self.unfinished), ended):
            for fold in self._folds[type(event)]:
                fold(event)
        self.unfinished = []
        if not isinstance(error, ProgramEnded):  # else there was no run
            note_failure(error, lambda: self._write_end(ended))

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()

    def _write_end(self, ended: RunEnded) -> None:
        if self._log is not None:
            last = self._last
            record = {
                "step": (last.number if last else 0) + 1,
                "super_step": last.super_step if last else 0,
                "name": ended.name,
                "data": {"status": ended.status, "reason": ended.reason, "text": ended.text, "result": None},
                "origin": "engine",
            }
            self._log.record(record)
            self._log.flush()


def note_failure(error: Exception, function: Callable[[], None]) -> None:
    """Call `function`, the clean-up after `error`; its errors become notes of `error`."""
    try:
        function()
    except Exception as another:
        error.add_note(f"and then: {type(another).__name__}: {another}")
