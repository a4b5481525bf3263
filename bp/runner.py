"""Programs with effects: the one place where a behavioral program meets the world, on asyncio and trio.

An effect is data: *when this kind is selected, start that; one of those comes back*. The runner takes a super-step,
hands its steps to the journal and flushes it, then starts their effects in the order of selection, and waits for
the next external event. Blocked means never selected, and never selected means never started.

Every start yields exactly one outcome: what the effect returned, or what `broken` makes of its failing, its being
cancelled (an event of its `until` was selected) or abandoned (it ignored the cancellation for `GRACE` seconds).
Whatever comes later is discarded and counted. Effects run as tasks that the runner can leave behind, so that foreign
code which does not end cannot keep a run from ending.

An effect may say `LATER`: its outcome will come from elsewhere, perhaps in another process. When nothing else is under
way the runner rests; `resume` takes up what was under way when a recorded run rested, or when its process died.
"""

import sys
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from enum import Enum
from typing import Any, Literal, Protocol

import anyio
from attrs import define, field, fields_dict, frozen, has

from bp.errors import Deadlock, EffectError
from bp.event_sets import NONE, contains
from bp.events import Event
from bp.program import BProgram, Step, WhenBlocked
from bp.statements import Sync

__all__ = ["GRACE", "LATER", "Broken", "Effect", "Journal", "Later", "Runner"]

GRACE = 0.9  # seconds that a cancelled effect has to end


class Later(Enum):
    """What an effect gives whose outcome comes from elsewhere: the run rests until then."""

    LATER = "later"


LATER = Later.LATER


@frozen
class Broken:
    """How an effect ended without an outcome of its own; `error` when it failed, `by` the event that cancelled it.

    "interrupted": its process died while it was under way, and nobody can tell whether it happened.
    """

    how: Literal["failed", "cancelled", "abandoned", "interrupted"]
    error: BaseException | None = None
    by: Event | None = None


def _never(started: Event) -> Any:
    return NONE


@frozen
class Effect:
    """What an event starts in the world.

    on: the event kind that starts it. run: gets the event, returns the outcome event, or `LATER`. outcome: the kinds it
    may return (the verifier's environment knows it by these); an outcome has the same value in every field that its
    kind shares with `on`. broken: the outcome when it failed, was cancelled, abandoned or interrupted. until: the
    events that cancel it. on_resume: "again" if it may be started anew after a crash, "unknown" if nobody can tell
    whether it happened. is_clock: it is no work but time that passes, so that a run may rest, or be stuck, meanwhile.
    """

    on: type[Event]
    run: Callable[[Any], Awaitable[Event | Later]]
    outcome: tuple[type[Event], ...]
    broken: Callable[[Any, Broken], Event]
    until: Callable[[Any], Any] = _never
    on_resume: Literal["again", "unknown"] = "again"
    is_clock: bool = False

    def answers(self, started: Event, outcome: Event) -> bool:
        """Tell whether `outcome` is one of what `started` started: of a right kind, and about the same thing."""
        return isinstance(outcome, self.outcome) and all(
            getattr(started, name) == getattr(outcome, name) for name in _shared_fields(type(started), type(outcome))
        )


def _shared_fields(one: Any, other: Any) -> list[str]:
    return [name for name in fields_dict(one) if name in fields_dict(other)] if has(one) and has(other) else []


class Journal(Protocol):
    """Who writes down what happened, before it has effects."""

    def record(self, step: Step) -> None:
        """Take down one step."""

    def flush(self) -> None:
        """Make sure that what was recorded is kept; the effects start after this."""


@define(eq=False)
class Flight:
    """One effect under way; `is_later` while its outcome is to come from elsewhere.

    Invariant: `landed` turns true once, when its outcome goes into the inbox.
    """

    effect: Effect
    started: Event
    scope: anyio.CancelScope = field(factory=anyio.CancelScope)
    cancelled_by: Event | None = None
    landed: bool = False
    is_later: bool = False
    is_over: bool = False
    over: anyio.Event | None = None  # for whoever waits until it is over
    until: Any = field(init=False)  # the events that cancel it

    def __attrs_post_init__(self) -> None:
        self.until = self.effect.until(self.started)

    def end(self) -> None:
        """Note that its task is over."""
        self.is_over = True
        if self.over is not None:
            self.over.set()

    async def wait(self) -> None:
        """Wait until its task is over."""
        if not self.is_over:
            self.over = self.over or anyio.Event()
            await self.over.wait()


class Runner:
    """Runs one program with its effects; `post` offers events from outside while it runs.

    `discarded` counts the outcomes that came after their effect had been abandoned.
    """

    def __init__(self, program: BProgram, effects: Sequence[Effect] = (), journal: Journal | None = None) -> None:
        """Make a runner; raises ValueError when two effects start on one kind."""
        self._program = program
        self._effects = {effect.on: effect for effect in effects}
        if len(self._effects) != len(effects):
            raise ValueError("two effects start on the same event kind; make them one effect")
        self._journal = journal
        self._inbox: deque[tuple[Event, WhenBlocked]] = deque()
        self._flights: dict[Flight, None] = {}
        self._wake = anyio.Event()
        self._failure: Exception | None = None
        self.discarded = 0

    def post(self, event: Event, when_blocked: WhenBlocked = "keep") -> None:
        """Offer an external event, in its turn; call this from the event loop of the run."""
        self._inbox.append((event, when_blocked))
        self._wake.set()

    def fail(self, error: Exception) -> None:
        """End the run under way with `error`: something that looks on has failed. The first one counts."""
        self._failure = self._failure or error
        self._wake.set()

    @property
    def in_flight(self) -> tuple[Event, ...]:
        """The events whose effects are under way."""
        return tuple(flight.started for flight in self._flights)

    @property
    def is_resting(self) -> bool:
        """True when nothing is under way but what comes `LATER`, and there is some."""
        working = self._working
        return bool(working) and not self._inbox and all(flight.is_later for flight in working)

    @property
    def _working(self) -> list[Flight]:
        """What is under way, but for clocks."""
        return [flight for flight in self._flights if not flight.effect.is_clock]

    async def run(self, until: Any = NONE) -> None:
        """Run until an event of the set `until` was selected, or until nothing can happen any more.

        It also returns when nothing can happen before an outcome that comes `LATER`: see `is_resting`.
        Raises the program's errors, what the journal raises, what `fail` was given, EffectError for an effect without
        an outcome, and Deadlock when the program rests, nothing is under way, and somebody still wants something (or
        `until` has not come). After an error or a cancellation what is under way goes on; run again, or `close`.
        """
        while not self._super_step(until):
            await self._news()
            if not self._inbox:
                if not self._working:
                    self._judge_rest(until)
                return
            self._program.post(*self._inbox.popleft())

    def resume(self, steps: Iterable[Step]) -> None:
        """Take up the effects that were under way after `steps`, which were taken and recorded before.

        Each is started again, or has been interrupted, as its `on_resume` says. Call this in the event loop of the
        run, before `run`, with a program that has taken these steps.
        """
        under_way: list[Flight] = []
        for step in steps:
            if step.bthread is None:
                landed = (flight for flight in under_way if flight.effect.answers(flight.started, step.event))
                under_way = _without(under_way, next(landed, None))
            for flight in under_way:
                if flight.cancelled_by is None and contains(flight.until, step.event):
                    flight.cancelled_by = step.event
            effect = self._effects.get(type(step.event))
            if effect is not None:
                under_way.append(Flight(effect, step.event))
        self._take_off([flight for flight in under_way if flight.effect.on_resume == "again"])
        for flight in under_way:
            if flight.effect.on_resume == "unknown":
                self._flights[flight] = None
                self._land(flight, Broken("interrupted", by=flight.cancelled_by))

    def _super_step(self, until: Any) -> bool:
        """Take a super-step and start its effects; tell whether an event of `until` was among its events."""
        steps = []
        try:
            for step in self._program.run():
                steps.append(step)
                if self._journal is not None:
                    self._journal.record(step)
        finally:
            if self._journal is not None:
                self._journal.flush()
        starting: list[Flight] = []
        for step in steps:
            self._cancel_because_of(step.event, starting)
            effect = self._effects.get(type(step.event))
            if effect is not None:
                starting.append(Flight(effect, step.event))
        self._take_off(starting)
        return any(contains(until, step.event) for step in steps)

    async def _news(self) -> None:
        """Wait for an external event, as long as one may come; raise what went wrong meanwhile."""
        while not self._inbox and self._failure is None and not all(flight.is_later for flight in self._working):
            self._wake = anyio.Event()
            await self._wake.wait()
        if self._failure is not None:
            raise self._failure

    def _judge_rest(self, until: Any) -> None:
        """Nothing can come any more: fine, unless somebody still wants something."""
        if self._program.status != "blocked" and not self._program.hot and until is NONE:
            return
        waiting = tuple(_wish(self._program, name, sync) for name, sync in self._program.standing if sync.requests)
        hot = tuple(f"{name!r} must not stay where it is" for name in self._program.hot)
        raise Deadlock(
            "nothing can happen any more: " + ("; ".join(waiting + hot) or f"{until!r} did not come"),
            waiting=waiting + hot,
        )

    # Effects under way.

    def _take_off(self, starting: Sequence[Flight]) -> None:
        self._flights.update(dict.fromkeys(starting))
        if starting:
            _spawn(self._fly, tuple(starting))

    async def _fly(self, flights: tuple[Flight, ...]) -> None:
        """Run the first of `flights`; the others follow when it has begun, since trio starts tasks in any order."""
        flight, *others = flights
        if others:
            _spawn(self._fly, tuple(others))
        ending: Event | Later | Broken | None = None
        try:
            if flight.cancelled_by is None and not flight.landed:
                with flight.scope:
                    given = await flight.effect.run(flight.started)
                    ending = given if given is LATER else _checked(flight, given)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # also a cancellation of its own making: without an outcome the run would hang
            ending = Broken("failed", error)
        finally:
            flight.end()
        if ending is LATER and flight.cancelled_by is None:
            flight.is_later = True
            self._wake.set()
        elif isinstance(ending, Event | Broken):
            self._land(flight, ending)
        else:
            self._land(flight, Broken("cancelled", by=flight.cancelled_by))

    def _land(self, flight: Flight, ending: Event | Broken) -> None:
        """Take the one outcome of an effect; a second one is discarded."""
        if flight.landed:
            self.discarded += isinstance(ending, Event)
            return
        flight.landed = True
        del self._flights[flight]
        try:
            self.post(_outcome(flight, ending))
        except Exception as error:
            failure = EffectError(f"{flight.started.name} has no outcome: {_told(error)}", started=flight.started)
            failure.__cause__ = error
            self.fail(failure)

    def _cancel_because_of(self, event: Event, starting: Sequence[Flight]) -> None:
        if not self._flights and not starting:
            return
        for flight in (*self._flights, *starting):
            if flight.cancelled_by is None and contains(flight.until, event):
                flight.cancelled_by = event
                if flight.is_later:
                    self._land(flight, Broken("cancelled", by=event))
                elif flight in self._flights:
                    flight.scope.cancel()
                    _spawn(self._abandon_when_late, flight)

    async def _abandon_when_late(self, flight: Flight) -> None:
        with anyio.move_on_after(GRACE):
            await flight.wait()
        if not flight.landed:
            self._land(flight, Broken("abandoned", by=flight.cancelled_by))

    async def close(self) -> None:
        """End what is still under way, at the latest after the grace time; its outcomes are discarded."""
        leaving = list(self._flights)
        for flight in leaving:
            flight.landed = True
            flight.scope.cancel()
        self._flights.clear()
        if leaving:
            with anyio.move_on_after(GRACE, shield=True):
                for flight in leaving:
                    await flight.wait()


def _outcome(flight: Flight, ending: Event | Broken) -> Event:
    """Return the outcome of an effect that ended so. Raises what `broken` raises, and TypeError."""
    if isinstance(ending, Broken):
        return _checked(flight, flight.effect.broken(flight.started, ending))
    return ending


def _without(flights: list[Flight], landed: Flight | None) -> list[Flight]:
    return [flight for flight in flights if flight is not landed]


def _checked(flight: Flight, outcome: Event | Later) -> Event:
    if isinstance(outcome, Later) or not isinstance(outcome, flight.effect.outcome):
        kinds = " or ".join(kind.name for kind in flight.effect.outcome)
        raise TypeError(f"the effect of {flight.started.name} gave {outcome!r}; it must give {kinds}")
    return outcome


def _told(error: Exception) -> str:
    """Name an error, even one whose own text cannot be made."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def _wish(program: BProgram, name: str, statement: Sync) -> str:
    blockers = {
        blocker.bthread + (f" ({blocker.because})" if blocker.because is not None else "")
        for event in statement.requests
        for blocker in program.blockers(event)
    }
    requests = ", ".join(map(repr, statement.requests))
    return f"{name!r} requests {requests}, held by {', '.join(sorted(blockers)) or 'nobody'}"


_TASKS: set[Any] = set()


def _spawn(function: Callable[..., Coroutine[Any, Any, None]], *args: Any) -> None:
    """Start a task that nobody has to wait for: no task group, because one that hangs would hold its group open."""
    lowlevel: Any = sys.modules.get("trio.lowlevel")  # not imported here: whoever runs on trio has imported it
    if _in_trio_run(lowlevel):
        lowlevel.spawn_system_task(function, *args)
        return
    import asyncio

    task = asyncio.get_running_loop().create_task(function(*args))
    _TASKS.add(task)
    task.add_done_callback(_TASKS.discard)


def _in_trio_run(lowlevel: Any) -> bool:
    """Whether this runs on trio. A module that another thread is importing has not got everything yet: it does not."""
    asked = getattr(lowlevel, "in_trio_run", None)
    return asked is not None and bool(asked())
