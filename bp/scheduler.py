"""The b-threads that are alive: starting, resuming, interrupting and closing their generators.

This is the one place that touches generators. A round lets everybody whom an event concerns reach the next
synchronization point, one after the other, and then those that were started meanwhile.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from bp.board import SILENT, Board, Running
from bp.bthreads import BThread
from bp.errors import BThreadError
from bp.events import Event
from bp.statements import Start, Sync
from bp.super_step import SuperStep

__all__ = ["Crew", "Raised", "answer"]


class Raised:
    """An answer of a b-thread that raised: its error, to be raised again, once."""

    __slots__ = ("errors",)

    def __init__(self, error: Exception) -> None:
        """Keep `error` until it is raised again; later would make a circle with the frames that it passed."""
        self.errors = [error]


def answer(send: Callable[[Event], Any], event: Event) -> Any:
    """Return what a b-thread answers to `event`: what it yields, or `Raised`."""
    try:
        return send(event)
    except Exception as error:
        return Raised(error)


class Crew:
    """The living b-threads of one program, by age, and the newcomers of the current round."""

    __slots__ = (
        "_ages", "_board", "_errors", "_event", "_newcomers", "_step", "_super_step", "busy", "changes", "living",
    )  # fmt: skip

    def __init__(self, board: Board, super_step: SuperStep) -> None:
        """Make an empty crew that files its statements on `board` and counts its starts in `super_step`."""
        self._board = board
        self._super_step = super_step
        self._ages = 0
        self._newcomers: deque[tuple[BThread, int]] = deque()
        self._errors: list[BThreadError] = []
        self._event: Event | None = None
        self._step = 0
        self.living: dict[Running, None] = {}
        self.changes = 0  # how many b-threads were started, and were over, so far
        self.busy = False  # whether a b-thread is running right now

    def begin(self, bthreads: Iterable[BThread]) -> None:
        """Start the b-threads of a program, in order, then whom they start. Raises BThreadError."""
        self._newcomers.extend((bthread, 0) for bthread in bthreads)
        self._finish_round()

    def advance(self, concerned: Iterable[Running], interrupted: Collection[Running], event: Event, step: int) -> None:
        """Let all `concerned` reach their next synchronization point; close those who are `interrupted`.

        Raises BThreadError for the first that failed, with the others as its notes, after all had their turn.
        """
        self._event, self._step = event, step
        self.busy = True
        try:
            resume = self._resume
            for running in concerned:
                if interrupted and running in interrupted:
                    self._interrupt(running)
                else:
                    resume(running, event, running.send)
        finally:
            self.busy = False
        if self._newcomers or self._errors:
            self._finish_round()

    def go_on(self, resumed: Sequence[Running], answers: Sequence[Any], event: Event, step: int) -> None:
        """Let all `resumed` reach their next synchronization point, the first of whom have answered already.

        Raises as `advance` does.
        """
        self._event, self._step = event, step
        self.busy = True
        try:
            for running, answered in zip(resumed, answers, strict=False):
                self._resume(running, event, partial(_repeat, answered))
            for running in resumed[len(answers) :]:
                self._resume(running, event, running.send)
        finally:
            self.busy = False
        if self._newcomers or self._errors:
            self._finish_round()

    def close(self) -> list[BThreadError]:
        """Close all generators, youngest first; return the errors of their `finally` blocks."""
        self._newcomers.clear()
        for running in reversed(self.living):
            self._close(running)
        self.living.clear()
        errors, self._errors = self._errors, []
        return errors

    def _finish_round(self) -> None:
        self.busy = True
        try:
            while self._newcomers:
                self._start(*self._newcomers.popleft())
        finally:
            self.busy = False
        if self._errors:
            first, *others = self._errors
            self._errors = []
            for other in others:
                first.add_note(str(other))
            raise first

    def _start(self, bthread: BThread, inherited: int) -> None:
        priority = inherited if bthread.priority is None else bthread.priority
        try:
            body = bthread.begin()
        except Exception as error:
            self._blame(bthread.name, error)
            return
        running = Running(bthread.name, priority, self._ages, body)
        self._ages += 1
        self.living[running] = None
        self.changes += 1
        self._resume(running, None, running.send)

    def _resume(self, running: Running, event: Event | None, send: Callable[[Any], Any]) -> None:
        try:
            statement = send(event)
            while type(statement) is Start:
                self._take_on(running, statement)
                statement = running.send(None)
            if type(statement) is not Sync:
                raise TypeError(f"it yielded {statement!r}; yield sync(...) instead")
            self._board.file(running, statement)
        except StopIteration:
            self._retire(running)
        except Exception as error:
            if error is self._super_step.endless:
                raise
            self._blame(running.name, error)

    def _take_on(self, starter: Running, statement: Start) -> None:
        for _ in range(len(statement.bthreads) or 1):  # an empty start counts too: it could go on for ever
            self._super_step.spend(None, starter.name)
        self._newcomers.extend((bthread, starter.priority) for bthread in statement.bthreads)

    def _interrupt(self, running: Running) -> None:
        self._retire(running)
        self._close(running)

    def _retire(self, running: Running) -> None:
        """Forget a b-thread that is over; from now on it costs nothing."""
        self._board.file(running, SILENT)
        del self.living[running]
        self.changes += 1

    def _close(self, running: Running) -> None:
        try:
            running.body.close()
        except Exception as error:
            self._blame(running.name, error)
            with suppress(Exception):
                running.body.close()  # it may have yielded in its `finally`; now it is really over

    def _blame(self, name: str, error: Exception) -> None:
        """Note that b-thread `name` failed; the round goes on."""
        on = "at its start" if self._event is None else f"on {self._event!r} (step {self._step})"
        blame = BThreadError(
            f"b-thread {name!r} failed {on}: {type(error).__name__}: {error}",
            bthread=name, event=self._event, step=self._step,
        )  # fmt: skip
        blame.__cause__ = error
        self._errors.append(blame)


def _repeat(answered: Any, _: Event) -> Any:
    if isinstance(answered, Raised):
        raise answered.errors.pop()
    return answered
