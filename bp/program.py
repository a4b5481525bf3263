"""A behavioral program: b-threads that synchronize, one selected event at a time.

The theory of operation. A program *rests* when no internal event is selectable. One step is:

    judge      the requests whose blocks came or went, and nothing else          (bp/board.py)
    choose     an internal event by the strategy, or else the first post that nobody blocks
    concern    decide who resumes: who requests it, waits for it, or is interrupted by it
    advance    each of them, by priority and age, then those they started        (bp/scheduler.py)

A step that is known from before does the last of these at once (bp/habits.py). Only the strategy by priority without
listeners has such steps. What they leave unfiled is put on the board before anybody looks at it: see `_file`.

Errors up to `concern` select and record nothing. A b-thread that raises lets the others of its round reach their
synchronization points. Either way the program has failed, and its generators are closed, youngest first.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Literal, Self, TypeVar

from bp.board import Blocker, Board, Running
from bp.bthreads import BThread
from bp.errors import BProgramError, BThreadError, EndlessLoop, ProgramEnded
from bp.events import Event
from bp.habits import Habits, Place
from bp.posts import Posts, Receipt, WhenBlocked
from bp.scheduler import Crew, Raised
from bp.statements import Refusals, Sync
from bp.steps import Listener, Record, Step
from bp.strategies import Candidate, Strategy, choose, chooser_of
from bp.super_step import SuperStep

__all__ = ["BProgram", "Status"]

T = TypeVar("T")
_new = tuple.__new__  # a NamedTuple's own way to be made takes twice as long
Status = Literal["ready", "idle", "blocked", "finished", "failed", "closed"]


class BProgram:
    """A behavioral program over b-threads.

    `run` (or `step`) selects events until the program rests; `post` offers external events; `status` says how it
    stands; `blockers` says who is in the way of an event. As a context manager it closes its b-threads at the end.
    """

    def __init__(
        self,
        *bthreads: BThread,
        strategy: Strategy | None = None,
        max_steps: int = 10_000_000,
        listeners: Iterable[Listener] = (),
    ) -> None:
        """Make a program; nothing runs before the first step.

        max_steps: how many events and starts one super-step may have.
        Raises TypeError for what is not a b-thread: decorate its function with @bthread and call it.
        """
        for bthread in bthreads:
            if not isinstance(bthread, BThread):
                raise TypeError(f"BProgram takes called b-threads, for example guard(); found {bthread!r}")
        self._definitions = bthreads
        self._chooser = chooser_of(strategy)
        self._listeners = tuple(listeners)
        self._board = Board()
        self._super_step = SuperStep(max_steps)
        self._crew = Crew(self._board, self._super_step)
        self._posts = Posts(self._board)
        self._habits = Habits(self._board) if self._chooser is None and not self._listeners else None
        self._place: Place | None = None  # where the program stands, if it is known
        self._fuse = 0  # the number of the last step that may be taken from a place without counting: see `_arrive`
        self._steps = 0
        self._phase: Literal["new", "alive", "failed", "closed"] = "new"
        self._stepping = False

    def run(self) -> Iterator[Step]:
        """Return an iterator that takes steps until the program rests.

        Raises BThreadError, EventSetError or EndlessLoop, after which the program has failed; ProgramEnded after
        its end.
        """
        self._check_usable()
        return iter(self.step, None)

    def step(self) -> Step | None:
        """Select one event and advance whom it concerns; return None when the program rests. Raises like `run`."""
        place, number = self._place, self._steps + 1
        if place is None or (moves := place.moves) is None or self._stepping or number > self._fuse:
            return self._step_at_length()
        self._stepping = True
        event = place.event
        try:
            for send, expected in moves:  # nothing is called here that need not be: this loop is the hot one
                said = send(event)
                if said is not expected:
                    break
            else:
                self._place = place.next
                self._steps = number
                return _new(Step, (number, event, self._super_step.number, place.bthread, None))
        except Exception as error:
            said = Raised(error)
        except BaseException as error:
            self._fail(error)
            raise
        finally:
            self._stepping = False
        return self._guarded(partial(self._stray, place, send, said))

    def _step_at_length(self) -> Step | None:
        if self._phase != "alive":
            self._check_usable()
        if self._stepping:
            raise BProgramError("the program is taking a step already; run it from outside its b-threads")
        return self._guarded(self._step)

    def _guarded(self, step: Callable[[], T]) -> T:
        self._stepping = True
        try:
            return self._asking(step)
        finally:
            self._stepping = False

    def select(self, event: Event) -> Step:
        """Make `event` happen now, whatever the strategy would choose: requested by a b-thread, or else from outside.

        So a trace is taken again (`bp/replay.py`). Raises BProgramError when somebody blocks or refuses it: then
        nothing has happened. Otherwise raises like `step`.
        """
        if not isinstance(event, Event):
            raise TypeError(f"select({event!r}): only events can be selected")
        offers = self._ready_offers()
        self._place = None
        self._board.meet(event)
        requester = offers.get(event)
        blockers = () if requester is not None else self._asking(lambda: self._board.blockers_of(event))
        if blockers:
            raise BProgramError(
                f"{event!r} cannot be selected: {', '.join(by.bthread for by in blockers)} hold it back"
            )
        return self._guarded(lambda: self._take_offered(event, requester))

    def post(self, event: Event, when_blocked: WhenBlocked = "keep") -> Receipt:
        """Offer an external event; it is judged when its turn comes, at once if that is now.

        Raises TypeError for what is no event and for a name that means another sort of event in this program,
        BProgramError from inside a b-thread, EventSetError, ProgramEnded.
        """
        if not isinstance(event, Event):
            raise TypeError(f"post({event!r}): only events can be posted")
        if when_blocked not in ("keep", "drop", "reject"):
            raise TypeError(f"when_blocked={when_blocked!r}: use 'keep', 'drop' or 'reject'")
        self._check_usable()
        if self._is_busy():
            raise BProgramError(f"a b-thread posted {event!r}; b-threads request events: yield sync(request=...)")
        self._file()
        self._board.meet(event)
        receipt = Receipt(event, when_blocked)
        turn_is_now = not self._stepping and self._phase == "alive" and not self._asking(self._can_step)
        self._posts.add(receipt)
        if not self._crew.living and self._phase == "alive":
            self._posts.discard()
        elif turn_is_now:
            self._asking(self._posts.next_free)
        return receipt

    @property
    def status(self) -> Status:
        """How the program stands.

        ready: a step can be taken; idle: only waiters; blocked: there are requests, none selectable; finished:
        nobody is left; failed: a b-thread or a predicate raised; closed.
        """
        if self._phase == "failed" or self._phase == "closed":
            return self._phase
        if self._phase == "new":
            return "ready"
        if not self._crew.living:
            return "finished"
        self._file()
        if self._asking(self._can_step):
            return "ready"
        return "blocked" if self._board.requesters else "idle"

    def blockers(self, event: Event) -> tuple[Blocker, ...]:
        """Return who blocks or refuses `event` now, by priority and age, and why. Raises EventSetError."""
        self._file()
        return self._board.blockers_of(event)

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The internal events that can be selected now, each with its first requester, by priority and age.

        Begins a program that is new. Raises BThreadError, EventSetError, ProgramEnded, BProgramError from inside a
        b-thread.
        """
        self._ready_offers()
        return self._candidates()

    @property
    def hot(self) -> tuple[str, ...]:
        """The b-threads that must not stay where they are, by age."""
        self._file()
        return tuple(running.name for running in sorted(self._board.hot, key=lambda running: running.age))

    @property
    def standing(self) -> tuple[tuple[str, Sync], ...]:
        """Every living b-thread with its current statement, by age."""
        self._file()
        return tuple((running.name, running.statement) for running in self._crew.living)

    def close(self) -> None:
        """End the program: close all generators, youngest first, then raise the first error of a `finally`.

        Raises BProgramError from inside a b-thread.
        """
        if self._is_busy():
            raise BProgramError("a b-thread closed its own program; close it from outside its b-threads")
        if self._phase in ("new", "alive"):
            errors = self._end("closed")
            if errors:
                raise errors[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # One step.

    def _step(self) -> Step | None:
        board = self._board
        if self._phase == "new":
            self._begin()
        self._file()
        here, self._place = self._place, None
        if board.stale:
            board.judge()
        chosen = board.first_offer() if self._chooser is None else self._choose_by_strategy()
        if chosen is not None:
            event, requester = chosen
            refusals = None if requester.alternative is None else board.refusals_of(*requester.statement.requests)
            return self._take(event, requester.name, refusals, here=here)
        receipt = self._posts.next_free()
        return None if receipt is None else self._take(receipt.event, None, None, post=receipt)

    def _take_offered(self, event: Event, requester: Running | None) -> Step:
        if requester is not None:
            refusals = None if requester.alternative is None else self._board.refusals_of(*requester.statement.requests)
            return self._take(event, requester.name, refusals)
        receipt = Receipt(event)
        self._posts.add(receipt)
        return self._take(event, None, None, post=receipt)

    def _take(
        self, event: Event, requester: str | None, refusals: Refusals | None, *,
        post: Receipt | None = None, here: Place | None = None,
    ) -> Step:  # fmt: skip
        """Make `event` happen; until somebody advances, an error leaves everything as it was.

        here: where that is known to be what happens.
        """
        concerned, interrupted = self._board.concerned(event)
        candidates = self._candidates() if self._listeners else ()
        if post is not None:
            self._posts.take(post)
            self._super_step.next()
        self._super_step.spend(event, requester or "outside")
        self._steps = number = self._steps + 1
        step = Step(number, event, self._super_step.number, requester, refusals)
        if self._listeners:
            self._advance_watched(step, candidates, concerned, interrupted)
        else:
            self._crew.advance(concerned, interrupted, event, number)
            if here is not None and refusals is None:
                here.learn(event, requester or "outside", concerned)
        self._arrive(here, concerned)
        return step

    def _arrive(self, here: Place | None, resumed: Sequence[Running]) -> None:
        """A step from `here` is over, in which `resumed` moved: find out whether the next one is known."""
        if not self._crew.living:
            self._posts.discard()
        if self._habits is not None:
            self._place = self._habits.follow(self._steps, resumed, self._crew.changes)
            self._fuse = self._steps + self._super_step.unwatched
            if here is not None and self._place is not None:
                here.lead_to(self._place)

    def _stray(self, here: Place, send: Callable[[Event], Any], said: Any) -> Step:
        """Go on with a known step after the first answer that is not as expected: `said`, by the one with `send`."""
        assert self._habits is not None
        answers = self._habits.hear_out(here, send, said)
        if here.turn(answers):
            self._place = here.next
            self._steps += 1
        else:
            self._file()
            self._place = None
            self._super_step.spend(here.event, here.bthread)
            self._steps += 1
            self._crew.go_on(here.resumed, answers, here.event, self._steps)
            self._arrive(here, here.resumed)
        return Step(self._steps, here.event, self._super_step.number, here.bthread)

    def _file(self) -> None:
        """Put on the board, and count, what was left out by steps that were known."""
        if self._place is not None:
            assert self._habits is not None
            self._habits.file(self._place)
            self._super_step.unwatched = self._fuse - self._steps

    def _is_busy(self) -> bool:
        """Tell whether a b-thread is running right now."""
        return self._crew.busy or (self._stepping and self._place is not None)

    def _begin(self) -> None:
        self._phase = "alive"
        self._crew.begin(self._definitions)
        if not self._crew.living:
            self._posts.discard()

    def _advance_watched(
        self, step: Step, candidates: tuple[Candidate, ...], concerned: list[Running], interrupted: Collection[Running]
    ) -> None:
        closing = tuple(running.name for running in concerned if running in interrupted)
        resumed = tuple(running.name for running in concerned if running not in interrupted)
        try:
            self._crew.advance(concerned, interrupted, step.event, step.number)
        except (BThreadError, EndlessLoop) as error:
            self._tell(Record(step, candidates, resumed, closing, error))
            raise
        self._tell(Record(step, candidates, resumed, closing))

    def _tell(self, record: Record) -> None:
        for listener in self._listeners:
            listener(record)

    def _choose_by_strategy(self) -> tuple[Event, Running] | None:
        assert self._chooser is not None
        chosen = choose(self._chooser, self._candidates())
        return None if chosen is None else (chosen.event, self._board.offers()[chosen.event])

    def _candidates(self) -> tuple[Candidate, ...]:
        return tuple(
            Candidate(event, running.name, running.priority, running.age)
            for event, running in self._board.offers().items()
        )

    # Between steps.

    def _ready_offers(self) -> dict[Event, Running]:
        """Return the selectable internal events with their requesters, of a program that has begun."""
        self._check_usable()
        if self._stepping:
            raise BProgramError("the program is taking a step already; ask it from outside its b-threads")
        if self._phase == "new":
            self._asking(self._begin)
        self._file()
        self._asking(self._board.judge)
        return self._board.offers()

    def _can_step(self) -> bool:
        """Tell whether an internal event, or a post, can be selected."""
        self._board.judge()
        return self._board.first_offer() is not None or self._posts.any_free()

    def _asking(self, question: Callable[[], T]) -> T:
        """Ask b-threads' predicates between steps; one that fails ends the program."""
        try:
            return question()
        except BaseException as error:
            self._fail(error)
            raise

    def _check_usable(self) -> None:
        if self._phase == "failed" or self._phase == "closed":
            how = "has failed" if self._phase == "failed" else "is closed"
            raise ProgramEnded(f"the program {how}; make a new BProgram")

    def _fail(self, error: BaseException) -> None:
        if self._phase in ("new", "alive"):
            for other in self._end("failed"):
                error.add_note(str(other))

    def _end(self, phase: Literal["failed", "closed"]) -> list[BThreadError]:
        self._phase = phase
        self._posts.discard()
        self._file()
        self._place = None
        errors = self._crew.close()
        if self._habits is not None:
            self._habits.forget()
        return errors
