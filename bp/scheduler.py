"""The scheduler: starts, resumes, interrupts and closes the b-threads of one program.

A round lets every b-thread that an event concerns reach its next synchronization point, one after the other, and then
those that were started meanwhile. The events and starts between two external events are a super-step, and counted, so
that an endless one is an error.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress

from bp.board import SILENT, Board, Running
from bp.errors import BThreadError, EndlessLoop
from bp.events import Event
from bp.statements import BThread, Start, advance

__all__ = ["TAIL", "Scheduler"]

TAIL = 10  # how many of its last events an endless loop shows


class Scheduler:
    """The living b-threads of one program, by age, and those that the current round started.

    `super_step` counts the external events so far, `left` what may yet happen in this super-step; `busy`: a b-thread is
    running right now.
    """

    def __init__(self, board: Board, max_steps: int) -> None:
        """Begin without b-threads; statements are filed on `board`. Raises TypeError for `max_steps` below 1."""
        if type(max_steps) is not int or max_steps < 1:
            raise TypeError(f"max_steps={max_steps!r}: give a positive integer")
        self._board = board
        self._ages = 0
        self._started: deque[tuple[BThread, int]] = deque()
        self._errors: list[BThreadError] = []
        self._event: Event | None = None
        self._step = 0
        self.living: dict[Running, None] = {}
        self.busy = False
        self.left = self._limit = max_steps
        self._tail: deque[tuple[Event | None, str]] = deque(maxlen=TAIL)
        self._endless: EndlessLoop | None = None
        self.super_step = 0

    def begin(self, bthreads: Iterable[BThread]) -> None:
        """Start the first b-threads, in order. Raises like `advance`."""
        self._started.extend((bthread, 0) for bthread in bthreads)
        self.advance((), (), None, 0)

    def advance(
        self, concerned: Iterable[Running], interrupted: Collection[Running], event: Event | None, step: int
    ) -> None:
        """Let all `concerned` reach their next synchronization point; close those that are `interrupted`.

        Raises BThreadError for the first that failed, with the others as its notes, after all had their turn.
        """
        self._event, self._step = event, step
        self.busy = True
        try:
            self._round(concerned, interrupted, event)
            if self._started:
                self._round(self._begun(), (), None)
        finally:
            self.busy = False
        if self._errors:
            first, *others = self._errors
            self._errors = []
            for other in others:
                first.add_note(str(other))
            raise first

    def _round(self, bthreads: Iterable[Running], interrupted: Collection[Running], event: Event | None) -> None:
        board, take_on = self._board, self._take_on
        for running in bthreads:
            try:
                if interrupted and running in interrupted:
                    self._retire(running)
                    self._close(running)
                elif (statement := advance(running.send, event, take_on, running)) is None:
                    self._retire(running)
                else:
                    board.file(running, statement)
            except Exception as error:
                if error is self._endless:
                    raise
                self._blame(running.name, error)

    def close(self) -> list[BThreadError]:
        """Close all generators, youngest first; return the errors of their `finally` blocks."""
        self._started.clear()
        self._event, self._step = None, -1
        for running in reversed(self.living):
            self._close(running)
        self.living.clear()
        errors, self._errors = self._errors, []
        return errors

    def _take_on(self, starter: Running, statement: Start) -> None:
        for _ in range(len(statement.bthreads) or 1):  # an empty start counts too: it could go on for ever
            self.spend(None, starter.name)
        self._started.extend((bthread, starter.priority) for bthread in statement.bthreads)

    def _begun(self) -> Iterator[Running]:
        """Begin the b-threads that were started, in order, and those that they start meanwhile."""
        while self._started:
            bthread, inherited = self._started.popleft()
            try:
                body = bthread.begin()
            except Exception as error:
                self._blame(bthread.name, error)
                continue
            priority = inherited if bthread.priority is None else bthread.priority
            running = Running(bthread.name, priority, self._ages, body)
            self._ages += 1
            self.living[running] = None
            yield running

    def _retire(self, running: Running) -> None:
        """Forget a b-thread that is over; from now on it costs nothing."""
        self._board.file(running, SILENT)
        del self.living[running]

    def _close(self, running: Running) -> None:
        try:
            running.body.close()
        except Exception as error:
            self._blame(running.name, error)
            with suppress(Exception):
                running.body.close()  # it may have yielded in its `finally`; now it is really over

    def _blame(self, name: str, error: Exception) -> None:
        """Note that b-thread `name` failed; the round goes on."""
        if self._step < 0:
            on = "when it was closed"
        else:
            on = "at its start" if self._event is None else f"on {self._event!r} (step {self._step})"
        blame = BThreadError(
            f"b-thread {name!r} failed {on}: {type(error).__name__}: {error}",
            bthread=name, event=self._event, step=max(self._step, 0),
        )  # fmt: skip
        blame.__cause__ = error
        self._errors.append(blame)

    # The bound of a super-step.

    def next_super_step(self) -> None:
        """Note an external event: a new super-step begins."""
        self.super_step += 1
        self.left = self._limit
        self._tail.clear()

    def spend(self, event: Event | None, bthread: str) -> None:
        """Count an event (None: a start) by `bthread`; raises EndlessLoop when the bound is reached."""
        self.left -= 1
        if self.left < TAIL:
            self.note(event, bthread)

    def note(self, event: Event | None, bthread: str) -> None:
        """Remember one of the last events before the bound. Raises EndlessLoop behind it."""
        if self.left < 0:
            self._endless = self._past_the_bound()
            raise self._endless
        self._tail.append((event, bthread))

    def _past_the_bound(self) -> EndlessLoop:
        shown = ", ".join(f"{bthread!r} {'started' if event is None else event!r}" for event, bthread in self._tail)
        return EndlessLoop(
            f"a super-step went past {self._limit} events and starts; the last were: {shown}; "
            "make its b-threads wait for something, or raise max_steps",
            events=tuple(event for event, _ in self._tail if event is not None),
            bthreads=tuple(bthread for _, bthread in self._tail),
        )
