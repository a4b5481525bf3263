"""Runs programs with effects on asyncio and trio.

An effect is data: *an event of this kind starts this function, which returns one of these outcomes*. The runner takes a
super-step, hands its steps to the journal and flushes it, then starts their effects in the order of selection, and
waits for the next external event. Blocked means never selected, and never selected means never started.

Every start has exactly one outcome: the result of the effect, or that of `broken` after a failure, a cancellation (an
event of its `until` was selected) or abandonment (it ignored the cancellation for `GRACE` seconds). Later results are
discarded and counted. Effects run as tasks that the runner can abandon, so that foreign code which does not end cannot
prevent the end of a run.

An effect may return `LATER`: its outcome will be posted, perhaps in another process. When no other effect is under way
the runner rests; `resume` continues the effects that were under way when a recorded run rested, or its process died.

Program, journal and effects live in one event loop. `Runner.post` and `Runner.fail` may be called from any thread: they
store the event, or the failure, and wake the running task by a `Wakeup`.
"""

import sys
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from contextvars import copy_context
from enum import Enum
from math import inf
from typing import Any, Literal, Protocol

import anyio
from attrs import NOTHING, define, field, fields, frozen, has

from bp.board import held_by
from bp.errors import BProgramError, Deadlock, EffectError, listed, shown
from bp.events import NONE, Event, EventKind, as_event_set, contains
from bp.program import BProgram, Step, WhenBlocked, check_post, check_program
from bp.statements import Sync, as_list

__all__ = ["GRACE", "LATER", "Broken", "Effect", "Journal", "Later", "Runner", "Wakeup", "timer"]

GRACE = 0.9  # seconds that a cancelled effect has to end


class Later(Enum):
    """The result of an effect whose outcome will be posted: the run rests until then."""

    LATER = "later"


LATER = Later.LATER


@frozen
class Broken:
    """The end of an effect without an outcome of its own; `error`: of a failure; `by`: the event that cancelled it.

    "interrupted": its process died meanwhile; whether it happened is unknown.
    """

    how: Literal["failed", "cancelled", "abandoned", "interrupted"]
    error: BaseException | None = None
    by: Event | None = None

    def __str__(self) -> str:
        return f"{type(self.error).__name__}: {self.error}" if self.error else self.how


@frozen
class _Always:
    """A function that returns the same event set for every started event; comparable, so that effects are values."""

    events: Any
    __name__ = "<lambda>"  # to reports, like any function without a name

    def __call__(self, started: Event) -> Any:
        return self.events


def _as_function(until: Any) -> Any:
    """Return `until` as a function of the started event."""
    try:
        return _Always(as_event_set(until))
    except TypeError:
        return until


@frozen
class Effect:
    """An action outside of the program that an event starts.

    on: the event kind that starts it. run: gets the event, returns the outcome event, or `LATER`; an async function, or
    a plain one that takes no time (it may also return an awaitable). outcome: the kinds it may return
    (used by the verifier's environment); an outcome has the same value in every field that its kind shares with `on`.
    broken: the outcome when it failed, was cancelled, abandoned or interrupted. until: the events that cancel it: an
    event set, or a function of the started event that returns one. on_resume: "again" if it may be started again after
    a crash, "unknown" if its result is then unknown. is_clock: a timer, which does not keep an otherwise idle run
    alive. Raises TypeError for an invalid field.
    """

    on: type[Event]
    run: Callable[[Any], Awaitable[Event | Later] | Event | Later]
    outcome: tuple[type[Event], ...]
    broken: Callable[[Any, Broken], Event]
    until: Any = field(default=NONE, converter=_as_function)
    on_resume: Literal["again", "unknown"] = "again"
    is_clock: bool = False

    def __attrs_post_init__(self) -> None:
        kinds: tuple[Any, ...] = self.outcome if isinstance(self.outcome, tuple) and self.outcome else (None,)
        are_kinds = all(isinstance(kind, EventKind) for kind in kinds)
        for name, fits, wanted in (
            ("on", isinstance(self.on, EventKind), "an event kind"),
            ("run", callable(self.run), "a function of the event, async or not"),
            ("outcome", are_kinds, "a tuple of event kinds, for example (Answered,)"),
            ("broken", callable(self.broken), "a function of the event and a Broken"),
            ("until", callable(self.until), "an event set, or a function of the event that returns one"),
            ("on_resume", self.on_resume in ("again", "unknown"), "'again' or 'unknown'"),
            ("is_clock", isinstance(self.is_clock, bool), "True or False"),
        ):
            if not fits:
                raise TypeError(f"Effect({name}={getattr(self, name)!r}): give {wanted}")

    def answers(self, started: Event, outcome: Event) -> bool:
        """Return whether `outcome` is an outcome of the effect that `started` began: by its kind and shared fields."""
        return isinstance(outcome, self.outcome) and _difference(started, outcome) is None


def timer(
    *,
    on: type[Event],
    outcome: type[Event],
    seconds: float | Callable[[Any], float],
    until: Any = NONE,
    cancelled: type[Event] | None = None,
) -> Effect:
    """Return a timer effect: `outcome` comes `seconds` after an event of the kind `on`.

    seconds: a number, or a function of the event. until: the events that cancel it, as in `Effect`; its outcome is then
    of the kind `cancelled`. Outcomes take the values of the fields that they share with the event. Raises TypeError.
    """
    if until is not NONE and cancelled is None:
        raise TypeError(f"timer(until={until!r}): give cancelled= as well, the kind of event that comes then instead")
    if not callable(seconds):
        _checked_seconds(seconds)
    kinds = (outcome,) if cancelled is None else (outcome, cancelled)

    async def run_down(started: Event) -> Event:
        await anyio.sleep(_checked_seconds(seconds(started) if callable(seconds) else seconds))
        return _about(started, outcome)

    def broken(started: Event, broken: Broken) -> Event:
        if broken.error is not None:
            raise broken.error
        return _about(started, kinds[-1])

    effect = Effect(on, run_down, kinds, broken, until)
    for kind in kinds:
        for each in _fields(kind):
            if each.default is NOTHING and each.name not in _shared_fields(on, kind):
                raise TypeError(f"timer: {kind.__name__} has a field {each.name!r} that {on.__name__} does not have")
    return effect


def _checked_seconds(given: Any) -> float:
    if not isinstance(given, int | float) or not 0 <= given < inf:
        raise TypeError(
            f"timer(seconds={given!r}): give a number of seconds, 0 or more, or a function that returns one"
        )
    return given


def _about(started: Event, kind: Any) -> Event:
    """Return the event of `kind` with the values of `started`."""
    return kind(**{name: getattr(started, name) for name in _shared_fields(type(started), kind)})  # type: ignore[no-any-return]


def _fields(kind: Any) -> Any:
    return fields(kind) if has(kind) else ()


def _shared_fields(one: Any, other: Any) -> tuple[str, ...]:
    names = {field.name for field in _fields(one)}
    return tuple(field.name for field in _fields(other) if field.name in names)


def _difference(started: Event, outcome: Event) -> str | None:
    """Return a shared field with different values, compared like events: an object equals itself."""
    for name in _shared_fields(type(started), type(outcome)):
        if (getattr(started, name),) != (getattr(outcome, name),):
            return name
    return None


class Wakeup:
    """A flag for one waiting task; any thread and signal handlers may set it, on asyncio and on trio."""

    def __init__(self) -> None:
        self._is_set = False
        self._wake: Callable[[], Any] | None = None  # while a task waits
        self._call_soon: Callable[..., Any]  # thread-safe scheduling in its event loop

    def set(self) -> None:
        """Wake the waiting task, or else the next one that begins to wait."""
        self._is_set = True  # before the check for a waiting task; `wait` does both in the opposite order
        wake = self._wake
        if wake is not None:
            with suppress(RuntimeError):  # the event loop has ended
                self._call_soon(wake)

    async def wait(self) -> None:
        """Wait until it is set, and reset it."""
        if self._is_set:
            self._is_set = False
            return
        trio, news = _trio_that_runs_here(), anyio.Event()
        if trio is not None:
            self._call_soon = trio.current_trio_token().run_sync_soon
        else:
            import asyncio

            self._call_soon = asyncio.get_running_loop().call_soon_threadsafe
        self._wake = news.set
        try:
            if not self._is_set:
                await news.wait()
        finally:
            self._wake = None
            self._is_set = False


class Journal(Protocol):
    """Records steps before their effects start."""

    def record(self, step: Step) -> None:
        """Record one step."""

    def flush(self) -> None:
        """Flush the record; effects start after this."""


@define(eq=False)
class Flight:
    """One effect under way; `is_later`: its outcome will be posted.

    Invariant: `landed` turns true once, when its outcome goes into the inbox. `over`: its task, if it has one, is over.
    """

    effect: Effect
    started: Event
    scope: "anyio.CancelScope" = field(factory=anyio.CancelScope)
    over: "anyio.Event" = field(factory=anyio.Event)
    cancelled_by: Event | None = None
    task: Any = None  # a reference, since the event loop keeps none
    landed: bool = False
    is_later: bool = False
    until: Any = field(init=False)  # the events that cancel it

    def __attrs_post_init__(self) -> None:
        until = self.effect.until
        try:
            self.until = as_event_set(until(self.started))
        except Exception as error:
            raise _failure(f"the `until` of the effect of {self.started!r} failed", self, error) from error

    def outcome(self, ending: Event | Broken) -> Event:
        """Return its outcome for this ending. Raises exceptions of `broken`, and TypeError for an invalid outcome."""
        if isinstance(ending, Broken):
            ending = self.checked(self.effect.broken(self.started, ending))
        if (name := _difference(self.started, ending)) is not None:
            wanted = getattr(self.started, name)
            raise TypeError(f"it gave {ending!r}; its {name} must be {wanted!r}, as in {self.started!r}")
        return ending

    def checked(self, outcome: Event | Later) -> Event:
        """Return `outcome`. Raises TypeError unless it is of a right kind."""
        if isinstance(outcome, Later) or not isinstance(outcome, self.effect.outcome):
            kinds = " or ".join(kind.name for kind in self.effect.outcome)
            raise TypeError(f"the effect of {self.started.name} gave {outcome!r}; it must give {kinds}")
        return outcome


def _failure(what: str, flight: Flight, error: BaseException) -> EffectError:
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # its representation fails
        text = type(error).__name__
    return EffectError(f"{what}: {text}", started=flight.started)


class Runner:
    """Runs one program with its effects; `post` offers external events meanwhile.

    `discarded` counts the outcomes that came after their effect had been abandoned.
    """

    def __init__(self, program: BProgram, effects: Sequence[Effect] = (), journal: Journal | None = None) -> None:
        """Make a runner. Raises ValueError if two effects start on one kind, TypeError for no program or no list."""
        check_program(program)
        self._program = program
        self._effects: dict[Any, Effect] = {}
        for effect in as_list("effects", effects):
            if effect.on in self._effects:
                raise ValueError(f"two effects start on {effect.on.__name__}; make them one effect")
            self._effects[effect.on] = effect
        self._journal = journal
        self._inbox: deque[tuple[Event, WhenBlocked]] = deque()
        self._flights: dict[Flight, None] = {}
        self._wakeup = Wakeup()
        self._failure: BaseException | None = None
        self._is_running = False
        self.discarded = 0

    def post(self, event: Event, when_blocked: WhenBlocked = "keep") -> None:
        """Queue an external event; thread-safe. Without a run under way the next one takes it.

        Raises TypeError for an invalid event.
        """
        check_post(event, when_blocked)
        self._inbox.append((event, when_blocked))
        self._wakeup.set()

    def fail(self, error: BaseException) -> None:
        """End the run under way with `error`, of a failed observer. Thread-safe; the first one counts."""
        self._failure = self._failure or error
        self._wakeup.set()

    @property
    def in_flight(self) -> tuple[Event, ...]:
        """The events whose effects are under way."""
        return tuple(flight.started for flight in self._flights)

    def run(self, until: Any = NONE) -> Coroutine[Any, Any, None]:
        """Run, when awaited, until an event of the set `until` was selected, or until nothing can happen any more.

        It also returns if nothing can happen before an outcome that comes `LATER`, which is then `in_flight`. Raises
        errors of the program and the journal, the error given to `fail`, EffectError for an effect without an outcome,
        Deadlock if the program rests, no effect is under way, and a b-thread has a request or is hot (or `until` has
        not come), TypeError if `until` is not an event set, and BProgramError while it is already running. After an
        error or a cancellation effects under way continue; run again, or `close`.
        """
        return self._run(until, serving=False)

    def serve(self, until: Any = NONE) -> Coroutine[Any, Any, None]:
        """Like `run`, but wait for posts where that would end: until `until`, or until all b-threads have ended.

        Raises like `run`; Deadlock only when all b-threads have ended and `until` did not come.
        """
        return self._run(until, serving=True)

    async def _run(self, until: Any, *, serving: bool) -> None:
        until = as_event_set(until)
        if self._is_running:
            raise BProgramError("this runner runs already; await that run before the next one, or post to it")
        self._is_running = True
        try:
            while not self._super_step(until):
                if self._inbox:
                    await anyio.sleep(0)  # let other tasks run, however many posts wait
                while not self._inbox and self._is_awaiting(serving=serving):
                    await self._wakeup.wait()
                if self._failure is not None:
                    raise self._failure
                if not self._inbox:
                    self._judge_rest(until)
                    return
                self._program.post(*self._inbox.popleft())
        finally:
            self._is_running = False

    def resume(self, steps: Iterable[Step]) -> None:
        """Continue the effects that were under way after `steps`, which were taken and recorded before.

        Each is started again or counts as interrupted, by its `on_resume`. Call this in the event loop of the run,
        before `run`, with a program that has taken these steps.
        """
        under_way: list[Flight] = []
        for step in steps:
            if step.bthread is None:
                landed = (flight for flight in under_way if flight.effect.answers(flight.started, step.event))
                if (over := next(landed, None)) is not None:
                    under_way.remove(over)
            for flight in under_way:
                if flight.cancelled_by is None and contains(flight.until, step.event):
                    flight.cancelled_by = step.event
            under_way += self._started_by(step.event)
        self._take_off([flight for flight in under_way if flight.effect.on_resume == "again"])
        for flight in under_way:
            if flight.effect.on_resume == "unknown":
                self._flights[flight] = None
                self._land(flight, Broken("interrupted", by=flight.cancelled_by))

    def _super_step(self, until: Any) -> bool:
        """Take a super-step and start its effects; return whether one of its events is in the set `until`."""
        steps = []
        try:
            for step in iter(self._program.step, None):
                steps.append(step)
                if self._journal is not None:
                    self._journal.record(step)
        finally:
            if self._journal is not None:
                self._journal.flush()
        starting: list[Flight] = []
        for step in steps:
            self._cancel_because_of(step.event, starting)
            starting += self._started_by(step.event)
        is_over = any(contains(until, step.event) for step in steps)
        self._take_off(starting)
        return is_over

    def _started_by(self, event: Event) -> list[Flight]:
        """Return the flight of the effect of this event's kind, or of the nearest kind that it extends, if any."""
        effects = [self._effects[kind] for kind in event._kinds if kind in self._effects]
        return [Flight(effect, event) for effect in effects[:1]]

    def _is_awaiting(self, *, serving: bool) -> bool:
        """Return whether an external event may come: from an effect under way, or by a post while serving."""
        if self._failure is not None:
            return False
        if serving and self._program.status != "finished":
            return True
        return bool([flight for flight in self._flights if not (flight.is_later or flight.effect.is_clock)])

    def _judge_rest(self, until: Any) -> None:
        """Raise Deadlock if a b-thread has a request or is hot, or `until` did not come, and no event can come."""
        if not all(flight.effect.is_clock for flight in self._flights):
            return
        if self._program.status != "blocked" and not self._program.hot and until is NONE:
            return
        waiting = tuple(_wish(self._program, name, sync) for name, sync in self._program.standing if sync.requests)
        hot = tuple(f"{name!r} must not stay where it is" for name in self._program.hot)
        raise Deadlock(
            listed("nothing can happen any more:", waiting + hot or (f"{until!r} did not come",)), waiting=waiting + hot
        )

    # Effects under way.

    def _take_off(self, starting: Sequence[Flight]) -> None:
        """Start effects, in order."""
        self._flights.update(dict.fromkeys(starting))
        if starting:
            starting[0].task = _spawn(self._fly, starting)

    async def _fly(self, flights: Sequence[Flight]) -> None:
        """Run the first of `flights`; the others follow when it has begun, since trio starts tasks in any order."""
        flight, *others = flights
        if others:
            others[0].task = _spawn(self._fly, others)
        ending: Event | Later | Broken | None = None
        try:
            if flight.cancelled_by is None and not flight.landed:
                with flight.scope:
                    given = flight.effect.run(flight.started)
                    given = given if isinstance(given, Event | Later) else await given
                    ending = given if given is LATER else flight.checked(given)
        except BaseException as error:  # also a cancellation by itself: without an outcome the run would hang
            ending = Broken("failed", error)
            if isinstance(error, KeyboardInterrupt):
                self.fail(error)
        finally:
            flight.over.set()
        self._land(flight, ending)

    def _land(self, flight: Flight, ending: Event | Later | Broken | None) -> None:
        """Record the outcome of an effect; a second one is discarded. Without one it was cancelled, or comes later."""
        if flight.landed:
            self.discarded += isinstance(ending, Event)
            return
        if not isinstance(ending, (Event, Broken)):
            if ending is LATER and flight.cancelled_by is None:
                flight.is_later = True
                self._wakeup.set()
                return
            ending = Broken("cancelled", by=flight.cancelled_by)
        flight.landed = True
        del self._flights[flight]
        try:
            self._inbox.append((flight.outcome(ending), "keep"))
            self._wakeup.set()
        except BaseException as error:
            failure = _failure(f"{flight.started.name} has no outcome", flight, error)
            failure.__cause__ = error
            self.fail(failure)

    def _cancel_because_of(self, event: Event, starting: Sequence[Flight]) -> None:
        is_until: dict[int, bool] = {}  # a thousand effects under way share one `until`
        for flight in (*self._flights, *starting):
            if id(flight.until) not in is_until:
                is_until[id(flight.until)] = contains(flight.until, event)
            if is_until[id(flight.until)] and flight.cancelled_by is None:
                flight.cancelled_by = event
                if flight.is_later:
                    self._land(flight, Broken("cancelled", by=event))
                elif flight in self._flights:
                    flight.scope.cancel()
                    _keep(_spawn(self._abandon_when_late, flight))

    async def _abandon_when_late(self, flight: Flight) -> None:
        with anyio.move_on_after(GRACE):
            await flight.over.wait()
        if not flight.landed:
            _keep(flight.task)
            self._land(flight, Broken("abandoned", by=flight.cancelled_by))

    async def close(self) -> None:
        """Cancel the effects under way, at the latest after the grace time; their outcomes are discarded."""
        leaving = list(self._flights)
        for flight in leaving:
            _keep(flight.task)
            flight.landed = True
            flight.scope.cancel()
        self._flights.clear()
        if leaving:
            with anyio.move_on_after(GRACE, shield=True):
                for flight in leaving:
                    await flight.over.wait()


def _wish(program: BProgram, name: str, statement: Sync) -> str:
    blockers = (blocker for event in statement.requests for blocker in program.blockers(event))
    return f"{name!r} requests {', '.join(map(shown, statement.requests))}, {held_by(blockers)}"


_TASKS: set[Any] = set()


def _spawn(function: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> Any:
    """Start a detached task in the caller's context: not in a task group, which a hanging task would keep open.

    Return it on asyncio, for the caller to hold.
    """
    trio = _trio_that_runs_here()
    if trio is not None:
        return trio.spawn_system_task(function, *args, context=copy_context())
    import asyncio

    return asyncio.get_running_loop().create_task(function(*args))


def _keep(task: Any) -> None:
    """Keep a reference to an abandoned asyncio task until it is done."""
    if hasattr(task, "add_done_callback"):
        _TASKS.add(task)
        task.add_done_callback(_TASKS.discard)


def _trio_that_runs_here() -> Any:
    """Return `trio.lowlevel` if this runs on trio, without importing trio."""
    lowlevel: Any = sys.modules.get("trio.lowlevel")
    asked = getattr(lowlevel, "in_trio_run", None)
    return lowlevel if asked is not None and asked() else None
