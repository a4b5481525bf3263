"""A behavioral program: b-threads that synchronize, one selected event at a time.

The theory of operation. Each b-thread is at a synchronization point, with a statement. One step is:

    offer      find the events that requests offer: those that are neither blocked nor refused  (bp/board.py)
    choose     one of them by the strategy, or else the first post that is neither blocked nor refused
    concern    find the b-threads that request the event, wait for it, or are interrupted by it
    advance    resume each of them, by priority and age, then start new ones                    (`Scheduler`)

A program *rests* when no internal event is selectable. Errors up to `concern` select and record nothing. When a
b-thread raises, the others of its round still reach their synchronization points. Either way the program has failed,
and its generators are closed, youngest first. The rules are decided one by one in docs/semantics.md.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal, NamedTuple, Self, TypeVar, get_args

from attrs import define

from bp.board import SILENT, Blocker, Board, Running
from bp.errors import BProgramError, BThreadError, EndlessLoop, ProgramEnded, listed, shortened, shown
from bp.events import Event
from bp.statements import BThread, Refusals, Start, Sync, advance, check_bthreads
from bp.strategies import Candidate, Strategy, choose, chooser_of

T = TypeVar("T")
Status = Literal["ready", "idle", "blocked", "finished", "failed", "closed"]
WhenBlocked = Literal["keep", "drop", "reject"]


class Step(NamedTuple):
    """One selected event: its number (from 1), the super-step it belongs to, and the b-thread that requested it.

    `super_step`: the number of external events so far; `bthread`: None for an external event. `refusals`: those
    answered by an `otherwise` event, else None.
    """

    number: int
    event: Event
    super_step: int
    bthread: str | None
    refusals: Refusals | None = None


class Record(NamedTuple):
    """A step for listeners: the other candidates, the b-threads that resumed, and the error, if any."""

    step: Step
    candidates: tuple[Candidate, ...]
    resumed: tuple[str, ...]
    interrupted: tuple[str, ...]
    error: BThreadError | EndlessLoop | None = None


Listener = Callable[[Record], None]


@define(eq=False)
class Receipt:
    """The fate of a post: "queued", "taken", "dropped" or "rejected".

    `refusals` and `blockers`: the b-threads that held it back, and why, if it was dropped or rejected. Posts still
    queued when a program finishes or ends are dropped.
    """

    event: Event
    when_blocked: WhenBlocked = "keep"
    state: Literal["queued", "taken", "dropped", "rejected"] = "queued"
    refusals: Refusals = Refusals()
    blockers: tuple[Blocker, ...] = ()


TAIL = 10  # events and starts shown for an endless loop
MOST_NOTES = 10  # further failures of a step that an error tells


class Scheduler:
    """The living b-threads of one program, by age, and those started in the current round.

    `step`: the number of the current step; `event`: its event; `super_step`: the number of external events so far;
    `busy`: a b-thread is running now.
    """

    def __init__(self, board: Board, max_steps: int) -> None:
        """Begin without b-threads; statements are filed on `board`. Raises TypeError for `max_steps` below 1."""
        if type(max_steps) is not int or max_steps < 1:
            raise TypeError(f"max_steps={max_steps!r}: give a positive integer")
        self._board = board
        self._ages = 0
        self._started: deque[tuple[BThread, int]] = deque()
        self._errors: list[BThreadError] = []
        self.event: Event | None = None
        self.step = 0
        self.super_step = 0
        self.living: dict[Running, None] = {}
        self.busy = False
        self._max_steps = max_steps
        self._left = max_steps  # events and starts in this super-step
        self._last: deque[tuple[Event | None, str]] = deque(maxlen=TAIL)
        self._endless: EndlessLoop | None = None

    def begin(self, bthreads: Iterable[BThread]) -> None:
        """Start the first b-threads, in order. Raises like `advance`."""
        self._started.extend((bthread, 0) for bthread in bthreads)
        self.advance((), (), None)

    def advance(self, concerned: Iterable[Running], interrupted: Collection[Running], event: Event | None) -> None:
        """Resume all `concerned` to their next synchronization point; close the `interrupted` ones.

        Raises BThreadError for the first failure, with the others as its notes, after all were resumed.
        """
        board, take_on = self._board, self._take_on
        self.busy = True
        try:
            for running in concerned:
                try:
                    if interrupted and running in interrupted:
                        self._retire(running)
                        self._close(running)
                    elif (statement := advance(running.body.send, event, take_on, running)) is None:
                        self._retire(running)
                    else:
                        board.file(running, statement)
                except Exception as error:
                    if error is self._endless:
                        raise
                    self._blame(running.name, error)
        finally:
            self.busy = False
        if self._started:
            self.advance(self._begun(), (), None)
        if self._errors:
            raise self._first_error()

    def _first_error(self) -> BThreadError:
        first, *others = self._errors
        self._errors = []
        for other in others[:MOST_NOTES]:
            first.add_note(str(other))
        if len(others) > MOST_NOTES:
            first.add_note(f"and {len(others) - MOST_NOTES} other b-threads failed in this step")
        return first

    def close(self) -> list[BThreadError]:
        """Close all generators, youngest first; return the errors of their `finally` blocks."""
        self._started.clear()
        self.event, self.step = None, -1
        for running in reversed(self.living):
            self._close(running)
        self.living.clear()
        errors, self._errors = self._errors, []
        return errors

    def _take_on(self, starter: Running, statement: Start) -> None:
        for bthread in statement or (None,):  # an empty start counts too, or it could repeat endlessly
            self.spend(None, starter.name)
            if bthread is not None:
                self._started.append((bthread, starter.priority))

    def _begun(self) -> Iterator[Running]:
        """Begin the started b-threads, in order, and those that these start."""
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
        self._board.file(running, SILENT)
        del self.living[running]

    def _close(self, running: Running) -> None:
        try:
            running.body.close()
        except Exception as error:
            self._blame(running.name, error)
            with suppress(Exception):
                running.body.close()  # it may have yielded in its `finally`

    def _blame(self, name: str, error: Exception) -> None:
        """Record that b-thread `name` failed; the round continues."""
        if self.step < 0:
            on = "when it was closed"
        else:
            on = "at its start" if self.event is None else f"on {shown(self.event)} (step {self.step})"
        blame = BThreadError(
            f"b-thread {name!r} failed {on}: {type(error).__name__}: {error}",
            bthread=name, event=self.event, step=max(self.step, 0),
        )  # fmt: skip
        blame.__cause__ = error
        self._errors.append(blame)

    # The bound of a super-step.

    def next_super_step(self) -> None:
        """Begin a new super-step, for an external event."""
        self.super_step += 1
        self._left = self._max_steps
        self._last.clear()

    def spend(self, event: Event | None, bthread: str) -> None:
        """Count an event or a start. Raises EndlessLoop beyond the bound."""
        self._left -= 1
        if self._left < 0:
            self._endless = self._past_the_bound()
            raise self._endless
        self._last.append((event, bthread))

    def _past_the_bound(self) -> EndlessLoop:
        last = list(self._last)
        period = next((some for some in range(1, len(last) // 2 + 1) if last[some:] == last[:-some]), None)
        told = [f"{bthread!r} {'started' if event is None else shown(event)}" for event, bthread in last]
        cure = "make its b-threads wait for something, or raise max_steps"
        head = f"a super-step went past {self._max_steps} events and starts; {cure}; the last were"
        return EndlessLoop(
            listed(f"{head}{', again and again' if period else ''}:", told[-(period or 0) :]),
            events=tuple(event for event, _ in self._last if event is not None),
            bthreads=tuple(bthread for _, bthread in self._last),
        )


class BProgram:
    """A behavioral program over b-threads.

    `run` (or `step`) selects events until the program rests; `post` offers external events; `status` shows whether it
    can continue; `blockers` returns the b-threads that hold an event back. As a context manager it closes its b-threads
    at the end.
    """

    def __init__(
        self,
        *bthreads: BThread,
        strategy: Strategy | None = None,
        max_steps: int = 10_000_000,
        listeners: Iterable[Listener] = (),
    ) -> None:
        """Make a program; nothing runs before the first step.

        max_steps: the most events and starts in one super-step. Raises TypeError for anything but b-threads: decorate
        the function with @bthread and call it.
        """
        check_bthreads("BProgram", bthreads)
        self._definitions = bthreads
        self._chooser = chooser_of(strategy)
        self._listeners = tuple(listeners)
        self._board = Board()
        self._scheduler = Scheduler(self._board, max_steps)
        self._posts: deque[Receipt] = deque()
        self._phase: Literal["new", "alive", "failed", "closed"] = "new"
        self._stepping = False

    def __repr__(self) -> str:
        living = len(self._definitions) if self._phase == "new" else len(self._scheduler.living)
        how = self._phase if self._phase in ("new", "failed", "closed") else f"step {self._scheduler.step}"
        return f"<BProgram: {living} b-thread{'' if living == 1 else 's'}, {how}>"

    def run(self) -> Iterator[Step]:
        """Return an iterator that takes steps until the program rests: nothing happens before it is iterated.

        Raises BThreadError, EventSetError or EndlessLoop, after which the program has failed; ProgramEnded after
        its end.
        """
        self._check_usable()
        return iter(self.step, None)

    def step(self) -> Step | None:
        """Select one event and advance the b-threads that it concerns; return None if the program rests.

        Raises like `run`.
        """
        return self._inside(self._next_step)

    def _next_step(self) -> Step | None:
        if (chosen := self._choose()) is not None:
            return self._take(*chosen)
        post = self._next_post()
        return None if post is None else self._take(post.event, None, post)

    def _take(self, event: Event, requester: Running | None, post: Receipt | None = None) -> Step:
        """Make `event` happen. An error before a b-thread advances changes nothing."""
        board, scheduler = self._board, self._scheduler
        concerned, interrupted = board.concerned(event)
        candidates = _candidates(board.offers()) if self._listeners else ()
        name = refusals = None
        if requester is not None:
            name = requester.name
            if requester.alternative is not None:
                refusals = board.refusals_of(*requester.statement.requests)
        elif post is not None:
            self._posts.remove(post)
            post.state = "taken"
            scheduler.next_super_step()
        scheduler.event = event
        scheduler.step = number = scheduler.step + 1
        scheduler.spend(event, name or "outside")
        step = Step(number, event, scheduler.super_step, name, refusals)
        try:
            scheduler.advance(concerned, interrupted, event)
        except (BThreadError, EndlessLoop) as error:
            self._tell(step, candidates, concerned, interrupted, error)
            raise
        if self._listeners:
            self._tell(step, candidates, concerned, interrupted)
        if self._posts and not scheduler.living:
            self._drop_posts()
        return step

    def select(self, event: Event) -> Step:
        """Make `event` happen now, bypassing the strategy: as requested by a b-thread, or else as an external event.

        Used for replay (`bp/replay.py`). Raises BProgramError if a b-thread blocks or refuses it: then nothing has
        happened. Otherwise raises like `step`.
        """
        if not isinstance(event, Event):
            raise TypeError(f"select({event!r}): only events can be selected")
        requester, post = self._inside(self._board.offers).get(event), None
        self._board.kinds.meet(event._kind)
        if requester is None:
            blockers = self._asking(lambda: self._board.blockers_of(event))
            if blockers:
                by = ", ".join(blocker.bthread for blocker in blockers)
                raise BProgramError(f"{event!r} cannot be selected: {by} hold it back")
            post = Receipt(event)
            self._posts.append(post)
        return self._inside(lambda: self._take(event, requester, post))

    def post(self, event: Event, when_blocked: WhenBlocked = "keep") -> Receipt:
        """Offer an external event; it is judged when its turn comes, at once if that is now.

        A program belongs to one thread: from others, post to the `Runner` that runs it.

        Raises TypeError for an invalid event and for a name that is another sort of event in this program,
        BProgramError from inside a b-thread, EventSetError, ProgramEnded.
        """
        check_post(event, when_blocked)
        self._check_usable()
        if self._scheduler.busy:
            raise BProgramError(f"a b-thread posted {event!r}; b-threads request events: yield sync(request=...)")
        self._board.kinds.meet(event._kind)
        receipt = Receipt(event, when_blocked)
        turn_is_now = not self._stepping and not self._asking(self._can_step)
        self._posts.append(receipt)
        if self._phase == "alive" and not self._scheduler.living:
            self._drop_posts()
        elif turn_is_now:
            self._asking(self._next_post)
        return receipt

    @property
    def status(self) -> Status:
        """The state of the program.

        ready: a step can be taken; idle: only waiters; blocked: there are requests, none selectable; finished:
        no b-thread is left; failed: a b-thread or a predicate raised; closed.
        """
        if self._phase == "failed" or self._phase == "closed":
            return self._phase
        if self._phase == "new":
            return "ready"
        if not self._scheduler.living:
            return "finished"
        if self._asking(self._can_step):
            return "ready"
        return "blocked" if self._board.requesters else "idle"

    def blockers(self, event: Event) -> tuple[Blocker, ...]:
        """Return the b-threads that block or refuse `event` now, by priority and age, and why. Raises EventSetError."""
        return self._board.blockers_of(event)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The internal events that can be selected now, each with its first requester, by priority and age.

        Begins a new program. Raises BThreadError, EventSetError, ProgramEnded, BProgramError from inside a b-thread.
        """
        return _candidates(self._inside(self._board.offers))

    @property
    def hot(self) -> tuple[str, ...]:
        """The b-threads with `hot` statements, by age."""
        return tuple(running.name for running in self._scheduler.living if running.statement.hot)

    @property
    def standing(self) -> tuple[tuple[str, Sync], ...]:
        """Every living b-thread with its current statement, by age."""
        return tuple((running.name, running.statement) for running in self._scheduler.living)

    def close(self) -> None:
        """End the program: close all generators, youngest first, then raise the first error of a `finally`.

        Raises BProgramError from inside a b-thread.
        """
        if self._scheduler.busy:
            raise BProgramError("a b-thread closed its own program; close it from outside its b-threads")
        if self._phase in ("new", "alive"):
            errors = self._end("closed")
            if errors:
                raise errors[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _inside(self, action: Callable[[], T]) -> T:
        """Begin a new program, and do something that must not be nested. Any error ends the program."""
        self._check_usable()
        if self._stepping:
            raise BProgramError("the program is taking a step already; run it from outside its b-threads")
        self._stepping = True
        try:
            if self._phase == "new":
                self._begin()
            return action()
        except BaseException as error:
            self._fail(error)
            raise
        finally:
            self._stepping = False

    def _begin(self) -> None:
        self._phase = "alive"
        self._scheduler.begin(self._definitions)
        if not self._scheduler.living:
            self._drop_posts()

    def _check_usable(self) -> None:
        if self._phase == "failed" or self._phase == "closed":
            how = "has failed" if self._phase == "failed" else "is closed"
            raise ProgramEnded(f"the program {how}; make a new BProgram")

    # Choosing.

    def _choose(self) -> tuple[Event, Running] | None:
        if self._chooser is None:
            offer = self._board.first_offer()
            return None if offer is None else (offer.event, offer.requester)
        offers = self._board.offers()
        chosen = choose(self._chooser, _candidates(offers))
        return None if chosen is None else (chosen.event, offers[chosen.event])

    def _can_step(self) -> bool:
        return self._board.first_offer() is not None or any(self._board.is_free(post.event) for post in self._posts)

    def _next_post(self) -> Receipt | None:
        """Return the first post that can be taken; those before it follow their `when_blocked`."""
        turned_away, free = [], None
        for receipt in self._posts:
            if self._board.is_free(receipt.event):
                free = receipt
                break
            if receipt.when_blocked != "keep":
                turned_away.append(receipt)
        for receipt in turned_away:
            self._turn_away(receipt)
        return free

    def _turn_away(self, receipt: Receipt) -> None:
        receipt.refusals = self._board.refusals_of(receipt.event)
        receipt.blockers = self._board.blockers_of(receipt.event)
        self._posts.remove(receipt)
        receipt.state = "dropped" if receipt.when_blocked == "drop" else "rejected"

    def _drop_posts(self) -> None:
        """Drop the queued posts, since no b-thread is left."""
        for receipt in self._posts:
            receipt.state = "dropped"
        self._posts.clear()

    # Listeners and the end.

    def _tell(
        self,
        step: Step,
        candidates: tuple[Candidate, ...],
        concerned: list[Running],
        interrupted: dict[Running, Any],
        error: BThreadError | EndlessLoop | None = None,
    ) -> None:
        resumed = tuple(running.name for running in concerned if running not in interrupted)
        closed = tuple(running.name for running in concerned if running in interrupted)
        for listener in self._listeners:
            listener(Record(step, candidates, resumed, closed, error))

    def _asking(self, question: Callable[[], T]) -> T:
        """Call b-threads or predicates; an error ends the program."""
        try:
            return question()
        except BaseException as error:
            self._fail(error)
            raise

    def _fail(self, error: BaseException) -> None:
        if self._phase == "alive":
            for other in self._end("failed"):
                error.add_note(str(other))

    def _end(self, phase: Literal["failed", "closed"]) -> list[BThreadError]:
        self._phase = phase
        self._drop_posts()
        return self._scheduler.close()


def _candidates(offers: Mapping[Event, Running]) -> tuple[Candidate, ...]:
    return tuple(Candidate(event, by.name, by.priority, by.age) for event, by in offers.items())


def check_post(event: Any, when_blocked: Any) -> None:
    """Raise TypeError for anything but an event, and for an unknown word."""
    if not isinstance(event, Event):
        raise TypeError(f"post({event!r}): only events can be posted")
    if when_blocked not in get_args(WhenBlocked):
        raise TypeError(f"when_blocked={when_blocked!r}: use 'keep', 'drop' or 'reject'")


def check_program(given: Any) -> None:
    """Raise TypeError for anything but a program, such as a list of b-threads."""
    if not isinstance(given, BProgram):
        raise TypeError(f"{shortened(repr(given))}: give a program, for example BProgram(guard())")
