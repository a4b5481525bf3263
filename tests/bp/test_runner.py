"""The runner: each start has exactly one outcome, written down before it is started, on both event loops."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from functools import partial
from threading import Thread, Timer
from types import ModuleType
from typing import Any

import anyio
import pytest
from attrs import frozen

import bp
from bp import BProgram, BProgramError, BThreadBody, Deadlock, EffectError, Event, Step, bthread, event, sync, where
from bp.runner import GRACE, LATER, Broken, Effect, Later, Runner, Wakeup, timer
from tests.bp.programs import check_refused

pytestmark = pytest.mark.anyio

# A small program with an effect: `ask` requests `Asked`, whose effect gives `Told`.


@frozen
class Asked(Event):
    number: int = 0


@frozen
class Told(Event):
    number: int
    how: str = "told"


@frozen
class Halt(Event):
    pass


@bthread
def ask(numbers: tuple[int, ...] = (0,)) -> BThreadBody:
    for number in numbers:
        yield sync(request=Asked(number))


@bthread
def ask_and_wait(numbers: tuple[int, ...] = (0,)) -> BThreadBody:
    for number in numbers:
        yield sync(request=Asked(number))
        yield sync(wait_for=Told)


@bthread
def listen() -> BThreadBody:
    while True:
        yield sync(wait_for=bp.ALL)


async def tell(asked: Asked) -> Told:
    return Told(asked.number)


async def hang(_: Asked) -> Told:
    await anyio.sleep_forever()
    raise AssertionError("unreachable")


async def never(_: Asked) -> Told:
    raise AssertionError("it was started")


async def halt(runner: Runner) -> None:
    await anyio.wait_all_tasks_blocked()
    runner.post(Halt())


def say_how(asked: Asked, broken: Broken) -> Told:
    return Told(asked.number, f"{broken.how}: {broken.error}" if broken.error else broken.how)


def effect(run: Callable[[Any], Any] = tell, **options: Any) -> Effect:
    return Effect(
        **{"on": Asked, "run": run, "outcome": (Told,), "broken": say_how, "until": lambda _: Halt, **options}
    )


class Book:
    """A journal that keeps everything, and knows what was flushed."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.flushed: list[Event] = []

    def record(self, step: Step) -> None:
        self.steps.append(step)

    def flush(self) -> None:
        self.flushed = self.events

    @property
    def events(self) -> list[Event]:
        return [step.event for step in self.steps]


async def outcomes_of(*effects: Effect, meanwhile: Callable[[Runner], Coroutine[Any, Any, None]] | None = None) -> Book:
    """Run a program whose one event starts these effects, and return its journal; `meanwhile` runs beside it."""
    book = Book()
    runner = Runner(BProgram(ask(), listen()), effects, book)
    async with anyio.create_task_group() as tasks:
        if meanwhile is not None:
            tasks.start_soon(meanwhile, runner)
        await runner.run()
    return book


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_loop_that_another_thread_is_importing_is_not_the_one_that_runs(
    anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model's library imports trio in a thread: for a moment it is there, and has nothing."""
    for name in ("trio", "trio.lowlevel"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))

    book = await outcomes_of(effect())

    assert book.events == [Asked(0), Told(0)]


async def give_another(_: Asked) -> Event:
    return Halt()


async def leave(_: Asked) -> Told:
    raise SystemExit("gone")


class Odd(BaseException):
    """No Exception: only `except BaseException` catches it."""


async def be_odd(_: Asked) -> Told:
    raise Odd("odd")


def be_odd_at_once(asked: Asked) -> Told:
    raise Odd("odd")


async def fail(_: Asked) -> Told:
    raise ValueError("no")


async def finish_anyway(asked: Asked) -> Told:
    with suppress(BaseException):
        await hang(asked)
    return Told(0, "just in time")


def fail_at_once(asked: Asked) -> Told:
    raise OSError("no disk")


def close_at_once(asked: Asked) -> Told:
    raise GeneratorExit("closed")


async def close(_: Asked) -> Told:
    raise GeneratorExit("closed")


@pytest.mark.parametrize(
    ("run", "how"),
    [
        (tell, "told"),
        (fail, "failed: no"),
        (give_another, "failed: the effect of asked gave Halt(); it must give told"),
        (leave, "failed: gone"),
        (lambda asked: Told(asked.number), "told"),
        (fail_at_once, "failed: no disk"),
        (close, "failed: closed"),
        (close_at_once, "failed: closed"),
        (be_odd, "failed: odd"),
        (be_odd_at_once, "failed: odd"),
    ],
)
async def test_each_effect_has_one_outcome_however_it_ends(run: Any, how: str) -> None:
    book = await outcomes_of(effect(run))

    assert book.events == [Asked(0), Told(0, how)]
    assert [step.bthread for step in book.steps] == ["ask", None]


async def test_a_keyboard_interrupt_in_an_effect_ends_the_run_and_the_effect_has_failed() -> None:
    """Found: it broke trio's event loop, and the effect had no outcome."""

    async def interrupt(_: Asked) -> Told:
        raise KeyboardInterrupt

    runner = Runner(BProgram(ask(), listen()), [effect(interrupt)], book := Book())

    with pytest.raises(KeyboardInterrupt):
        await runner.run()
    assert runner.in_flight == ()
    with pytest.raises(KeyboardInterrupt):
        await runner.run()
    assert book.events == [Asked(0)]


@pytest.mark.parametrize("until", [Halt, Halt(), [Halt], Halt | Told, where(Halt), lambda _: [Halt]])
@pytest.mark.parametrize(("run", "how"), [(hang, "cancelled"), (finish_anyway, "just in time")])
async def test_an_effect_is_cancelled_by_a_set_and_an_answer_to_that_is_not_lost(
    until: Any, run: Any, how: str
) -> None:
    book = await outcomes_of(effect(run, until=until), meanwhile=halt)

    assert book.events == [Asked(0), Halt(), Told(0, how)]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_effect_that_meets_a_cancellation_of_its_own_making_has_failed(anyio_backend: str) -> None:
    """Without an outcome the run would wait for ever: awaiting a cancelled task is an ordinary mistake."""

    async def await_cancelled(_: Asked) -> Told:
        task = asyncio.ensure_future(asyncio.sleep(10))
        task.cancel()
        await task
        raise AssertionError("unreachable")

    book = await outcomes_of(effect(await_cancelled))

    [_, told] = book.events
    assert isinstance(told, Told)
    assert told.how.startswith("failed")


@pytest.mark.slow
async def test_an_effect_that_ignores_its_cancellation_is_abandoned_when_its_grace_is_over() -> None:
    """Its own outcome, when it comes at last, is discarded and counted."""
    let_go = anyio.Event()
    runner = Runner(BProgram(ask(), listen()), [effect(ignore_cancellation_until(let_go))], book := Book())

    begin = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(halt, runner)
        await runner.run()
    seconds = anyio.current_time() - begin
    discarded_before = runner.discarded
    let_go.set()
    await anyio.wait_all_tasks_blocked()

    assert book.events == [Asked(0), Halt(), Told(0, "abandoned")]
    assert GRACE <= seconds < GRACE + 5
    assert (discarded_before, runner.discarded) == (0, 1)


def ignore_cancellation_until(let_go: anyio.Event) -> Callable[[Asked], Awaitable[Told]]:
    async def run(asked: Asked) -> Told:
        with anyio.CancelScope(shield=True):
            await let_go.wait()
        return Told(asked.number, "much too late")

    return run


@bthread
def halt_at_once() -> BThreadBody:
    yield sync(wait_for=Asked)
    yield sync(request=Halt())


async def test_an_effect_cancelled_in_the_super_step_of_its_start_never_runs() -> None:
    runner = Runner(BProgram(halt_at_once(), ask(), listen()), [effect(never)], book := Book())
    await runner.run()

    assert book.events == [Asked(0), Halt(), Told(0, "cancelled")]


@pytest.mark.slow
async def test_outcomes_after_close_are_discarded() -> None:
    let_go = anyio.Event()
    program = BProgram(ask(), listen())
    runner = Runner(program, [effect(ignore_cancellation_until(let_go))], book := Book())
    await runner.run(until=Asked)
    await anyio.wait_all_tasks_blocked()

    await runner.close()
    let_go.set()
    await anyio.wait_all_tasks_blocked()

    assert runner.in_flight == ()
    assert runner.discarded == 1  # and nothing of it reaches the program
    assert book.events == [Asked(0)]


class Mute(Exception):
    """An error whose text raises."""

    def __str__(self) -> str:
        raise ValueError("no text")


def raise_mute(asked: Asked, error: Exception) -> Broken:
    raise Mute


@pytest.mark.parametrize(
    "broken",
    [lambda asked, _: None, lambda asked, _: 1 / 0, raise_mute, lambda asked, _: Told(7), lambda asked, _: sys.exit()],
    ids=["wrong kind", "raises", "raises without a text", "about something else", "leaves"],
)
async def test_an_effect_that_cannot_say_how_it_broke_ends_the_run_with_an_error(
    broken: Callable[[Asked, Broken], Any],
) -> None:
    runner = Runner(BProgram(ask(), listen()), [effect(fail, broken=broken)])

    with pytest.raises(EffectError, match="asked has no outcome") as error:
        await runner.run()
    assert error.value.started == Asked(0)


# Effects and timers are checked where they are given, and their outcomes where they come.


async def test_two_effects_of_one_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="two effects start on Asked; make them one effect"):
        Runner(BProgram(ask()), [effect(), effect()])


async def test_a_function_that_returns_no_set_is_named() -> None:
    for until in (lambda asked: "halt", lambda asked: 1 / 0):
        with pytest.raises(EffectError, match=r"the `until` of the effect of Asked\(number=0\)") as error:
            await Runner(BProgram(ask()), [effect(until=until)]).run()
        assert error.value.started == Asked(0)


async def test_an_outcome_about_something_else_is_an_error() -> None:
    """Found: it was delivered, no b-thread heard it, and the run returned as if all were well."""
    runner = Runner(BProgram(ask(), listen()), [effect(lambda asked: Told(asked.number + 1))], book := Book())

    with pytest.raises(EffectError, match=r"its number must be 0, as in Asked\(number=0\)"):
        await runner.run()
    assert book.events == [Asked(0)]


async def test_a_value_that_is_not_equal_to_itself_is_still_the_same() -> None:
    nan = float("nan")

    @bthread
    def light() -> BThreadBody:
        yield sync(request=Lit(nan, 0))  # type: ignore[arg-type]
        ended.append((yield sync(wait_for=WentOut)))

    ended: list[WentOut] = []
    await Runner(BProgram(light()), [timer(on=Lit, outcome=WentOut, seconds=0)]).run()

    assert [type(event) for event in ended] == [WentOut]


@frozen
class Lit(Event):
    lamp: int
    seconds: float = 0.01


@frozen
class WentOut(Event):
    lamp: int


@frozen
class Kept(Event):
    lamp: int


@frozen
class Touched(Event):
    lamp: int


@bthread
def light_two_lamps(seconds: float = 0.01) -> BThreadBody:
    yield sync(request=Lit(1, seconds))
    yield sync(request=Lit(2, 0.01))
    yield sync(wait_for=WentOut(2))


@pytest.mark.parametrize("seconds", [0.01, 0, lambda lit: lit.seconds])
async def test_a_timer_goes_off_about_what_started_it(seconds: Any) -> None:
    runner = Runner(BProgram(light_two_lamps()), [timer(on=Lit, outcome=WentOut, seconds=seconds)], book := Book())

    await runner.run()

    assert {*book.events[2:]} <= {WentOut(1), WentOut(2)}
    assert WentOut(2) in book.events


async def test_a_timer_that_is_cancelled_says_so_and_never_goes_off() -> None:
    @bthread
    def touch() -> BThreadBody:
        yield sync(wait_for=WentOut(2))
        yield sync(request=Touched(1))

    lamps = timer(
        on=Lit,
        outcome=WentOut,
        seconds=lambda lit: lit.seconds,
        until=lambda lit: where(Touched, lamp=lit.lamp),
        cancelled=Kept,
    )
    runner = Runner(BProgram(light_two_lamps(seconds=1000), touch(), listen()), [lamps], book := Book())

    await runner.run()

    assert book.events == [Lit(1, 1000), Lit(2), WentOut(2), Touched(1), Kept(1)]


@frozen
class Colored(Event):
    lamp: int
    color: str


def a_timer(**options: Any) -> Effect:
    return timer(**{"on": Lit, "outcome": WentOut, "seconds": 1, **options})


def test_wrong_fields_of_an_effect_or_a_timer_are_refused_where_they_are_given() -> None:
    wrong: list[tuple[str, Any, str]] = [
        *[("on", wrong, "an event kind") for wrong in (Asked(0), event("asked"), int)],
        *[("run", wrong, "a function of the event") for wrong in (Told(0), None)],
        *[("outcome", wrong, "a tuple of event kinds") for wrong in (Told, (), (Told, "halt"))],
        ("broken", Told(0, "broken"), "a function of the event and a Broken"),
        *[("until", wrong, "an event set, or a function of the event that returns one") for wrong in ("halt", None)],
        ("on_resume", "never", "'again' or 'unknown'"),
        ("is_clock", 1, "True or False"),
    ]

    check_refused(
        *[
            (partial(effect, **{name: value}), re.escape(f"Effect({name}={value!r}): give {cure}"))
            for name, value, cure in wrong
        ],
        *[
            (partial(a_timer, seconds=seconds), rf"timer\(seconds={seconds!r}\): give a number of seconds")
            for seconds in (-1, float("nan"), float("inf"), "1")
        ],
        (partial(a_timer, until=Touched), r"timer\(until=.*\): give cancelled= as well"),
        (partial(a_timer, outcome=Colored), r"Colored has a field 'color'.* that Lit does not have"),
        (
            partial(a_timer, until=Touched, cancelled=Colored),
            r"Colored has a field 'color'.* that Lit does not have",
        ),
        (partial(a_timer, on=Lit(1)), r"Effect\(on=Lit"),
        (partial(a_timer, outcome="went out"), r"Effect\(outcome=\('went out',\)\)"),
        (partial(a_timer, until="touched", cancelled=Kept), r"Effect\(until='touched'\)"),
    )


@pytest.mark.parametrize("seconds", [lambda lit: -1, lambda lit: "1", lambda lit: lit.minutes])
async def test_a_timer_whose_time_cannot_be_told_ends_the_run_with_an_error(seconds: Any) -> None:
    runner = Runner(BProgram(light_two_lamps()), [timer(on=Lit, outcome=WentOut, seconds=seconds)])

    with pytest.raises(EffectError, match="lit has no outcome"):
        await runner.run()
    await runner.close()


# The runner: first written down, then started, in order; and how it ends when something is wrong.


NUMBERS = (7, 3, 1, 9, 4, 8, 2, 6, 5, 0)


async def test_effects_start_in_the_order_of_selection() -> None:
    begun: list[int] = []

    async def begin(asked: Asked) -> Told:
        begun.append(asked.number)
        return Told(asked.number)

    await Runner(BProgram(ask(NUMBERS), listen()), [effect(begin)]).run()

    assert begun == list(NUMBERS)


async def test_records_are_flushed_before_their_effects_start() -> None:
    book = Book()
    seen: list[list[Event]] = []

    async def look(asked: Asked) -> Told:
        seen.append(list(book.flushed))
        return Told(asked.number)

    await Runner(BProgram(ask_and_wait((1, 2)), listen()), [effect(look)], book).run()

    assert seen == [[Asked(1)], [Asked(1), Told(1), Asked(2)]]


async def test_posts_are_taken_one_super_step_each_in_their_order() -> None:
    book = Book()
    runner = Runner(BProgram(listen()), [], book)
    for number in range(3):
        runner.post(Told(number))

    await runner.run(until=where(Told, number=2))

    assert [(step.event, step.super_step) for step in book.steps] == [(Told(n), n + 1) for n in range(3)]


async def test_a_run_ends_with_the_super_step_of_until() -> None:
    book = Book()
    runner = Runner(BProgram(ask_and_wait((1, 2)), listen()), [effect()], book)

    await runner.run(until=where(Told, number=1))

    assert book.events == [Asked(1), Told(1), Asked(2)]
    await runner.close()


async def test_a_b_thread_that_raises_starts_no_effect_of_its_super_step() -> None:
    @bthread
    def stumble() -> BThreadBody:
        yield sync(wait_for=Asked)
        raise ValueError("stumbled")

    ran: list[Asked] = []

    with pytest.raises(bp.BThreadError, match="'stumble'"):
        await Runner(BProgram(ask(), stumble()), [effect(ran.append)]).run()
    assert ran == []


async def test_a_journal_that_raises_ends_the_run_before_any_effect() -> None:
    class Full(Book):
        def record(self, step: Step) -> None:
            raise OSError("disk full")

    ran: list[Asked] = []

    with pytest.raises(OSError, match="disk full"):
        await Runner(BProgram(ask()), [effect(ran.append)], Full()).run()
    assert ran == []


async def test_a_deadlock_tells_each_request_on_a_line_of_its_own_in_short_and_who_holds_it() -> None:
    @bthread
    def ask_at_length(number: int) -> BThreadBody:
        yield sync(request=event("asked", data=(number, "x" * 1000)))

    @bthread
    def forbid() -> BThreadBody:
        yield sync(refuse=bp.ALL, because="not today")

    @bthread
    def hope() -> BThreadBody:
        yield sync(wait_for=event("better days"), hot=True)

    with pytest.raises(Deadlock) as deadlock:
        await Runner(BProgram(*(ask_at_length(number) for number in range(9)), forbid(), hope())).run()

    head, *lines, last = str(deadlock.value).splitlines()
    assert (head, last) == ("nothing can happen any more:", "  'hope' must not stay where it is")
    assert [line.partition("requests")[0] for line in lines] == ["  'ask_at_length' "] * 9
    assert max(map(len, lines)) < 170
    assert all(line.endswith(", held by forbid (because 'not today')") for line in lines)
    assert len(deadlock.value.waiting) == 10


async def test_resting_is_no_deadlock_unless_something_was_to_come() -> None:
    await Runner(BProgram(listen())).run()

    with pytest.raises(Deadlock, match="did not come"):
        await Runner(BProgram(listen())).run(until=Told)


async def test_after_a_cancellation_a_run_can_go_on() -> None:
    let_go = anyio.Event()

    async def wait(asked: Asked) -> Told:
        await let_go.wait()
        return Told(asked.number)

    runner = Runner(BProgram(ask_and_wait(), listen()), [effect(wait)], book := Book())
    with anyio.move_on_after(0):
        await runner.run()
    let_go.set()
    await runner.run()

    assert book.events == [Asked(0), Told(0)]


# Outcomes that come later, and effects that were under way when a recorded run ended.


async def later(_: Asked) -> Later:
    return LATER


def resumed(steps: int, *effects: Effect, heard: tuple[Event, ...] = ()) -> tuple[Runner, Book, list[Step]]:
    """A runner of a program that took so many steps before, the external ones from `heard`."""
    program, book = BProgram(ask((0, 1)), listen()), Book()
    taken: list[Step] = []
    for posted in (None, *heard):
        if posted is not None:
            program.post(posted)
        while len(taken) < steps and (step := program.step()) is not None:
            taken.append(step)
    return Runner(program, effects, book), book, taken


async def test_the_runner_rests_when_only_later_outcomes_are_under_way() -> None:
    book = Book()
    runner = Runner(BProgram(ask(), listen()), [effect(later)], book)

    await runner.run(until=Told)

    assert book.events == [Asked(0)]
    assert runner.in_flight == (Asked(0),)


async def test_other_effects_under_way_end_first() -> None:
    async def some(asked: Asked) -> Any:
        if asked.number == 0:
            return LATER
        await anyio.sleep(0.01)
        return Told(asked.number)

    book = Book()
    runner = Runner(BProgram(ask((0, 1)), listen()), [effect(some)], book)

    await runner.run()

    assert runner.in_flight == (Asked(0),)
    assert book.events == [Asked(0), Asked(1), Told(1)]


async def test_what_comes_later_can_be_cancelled() -> None:
    book = Book()
    runner = Runner(BProgram(ask(), listen()), [effect(later)], book)
    await runner.run()
    runner.post(Halt())
    await runner.run()

    assert book.events == [Asked(0), Halt(), Told(0, "cancelled")]
    assert runner.in_flight == ()


@pytest.mark.parametrize(
    ("heard", "again", "outcomes"),
    [
        ((), effect(), [Told(0), Told(1)]),
        ((Told(1),), effect(), [Told(0)]),
        ((Halt(),), effect(never), [Told(0, "cancelled"), Told(1, "cancelled")]),
        ((), effect(never, on_resume="unknown"), [Told(0, "interrupted"), Told(1, "interrupted")]),
    ],
    ids=["under way", "one has its outcome", "cancelled", "of unknown fate"],
)
async def test_a_resumed_run_takes_up_what_was_under_way(
    heard: tuple[Event, ...], again: Effect, outcomes: list[Event]
) -> None:
    runner, book, taken = resumed(2 + len(heard), again, heard=heard)

    runner.resume(taken)
    await runner.run()

    assert book.events == outcomes


async def test_the_rest_of_a_super_step_is_recorded_and_starts_its_effects() -> None:
    """A process that died in the middle of a super-step: the program goes on where the record ends."""
    runner, book, taken = resumed(1, effect())

    runner.resume(taken)
    await runner.run()

    first, *outcomes = book.events
    assert first == Asked(1)
    assert sorted(outcomes, key=str) == [Told(0), Told(1)]  # whichever is told first


# The runner and other threads: posts are heard at once, on both event loops; and a runner runs once at a time.


SOON = 100.0  # seconds; the thing itself takes milliseconds, and nothing else wakes the event loop before
A_MOMENT = 0.05  # seconds


async def beside(run: Callable[[], Coroutine[Any, Any, None]], *functions: Callable[[], object]) -> None:
    """Run, and call functions in a thread of its own when the event loop waits: a moment after nothing moves."""
    thread = Timer(A_MOMENT, lambda: [function() for function in functions])
    thread.daemon = True
    with anyio.fail_after(SOON):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await anyio.wait_all_tasks_blocked()
            thread.start()
    thread.join()


@pytest.mark.parametrize("by", ["thread", "signal"])
async def test_a_post_from_another_thread_or_a_signal_handler_is_heard_at_once(by: str) -> None:
    runner = Runner(BProgram(ask(), listen()), [effect(hang)], book := Book())
    before = signal.signal(signal.SIGUSR1, lambda *_: runner.post(Halt()))
    try:
        await beside(
            runner.run, lambda: os.kill(os.getpid(), signal.SIGUSR1) if by == "signal" else runner.post(Halt())
        )
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert book.events == [Asked(0), Halt(), Told(0, "cancelled")]


async def test_posts_of_many_threads_all_arrive_and_those_of_one_keep_their_order() -> None:
    runner = Runner(BProgram(listen()), [], book := Book())

    def post_hundred(first: int) -> None:
        for number in range(100):
            runner.post(Told(first + number))

    def post_all() -> None:
        threads = [Thread(target=post_hundred, args=[first]) for first in range(0, 400, 100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        runner.post(Halt())

    await beside(partial(runner.serve, Halt), post_all)

    *told, halt = book.events
    assert halt == Halt()
    assert sorted(told, key=lambda event: event.number // 100) == [*map(Told, range(400))]  # type: ignore[attr-defined]


async def test_a_failure_from_another_thread_ends_the_run_at_once_and_the_first_one_counts() -> None:
    runner = Runner(BProgram(ask(), listen()), [effect(hang)])

    with pytest.raises(ExceptionGroup) as group:
        await beside(runner.run, *(partial(runner.fail, ValueError(which)) for which in ("the first", "the second")))

    assert str(group.value.exceptions[0]) == "the first"
    await runner.close()


@pytest.mark.parametrize(
    ("post", "complaint"),
    [
        ((Told,), "only events can be posted"),
        (("told",), "only events can be posted"),
        ((Halt(), "later"), "use 'keep'"),
    ],
)
async def test_a_post_that_is_no_event_is_refused_where_it_is_posted(post: tuple[Any, ...], complaint: str) -> None:
    """Found: the run ended with the error of the thread that had posted it."""
    runner = Runner(BProgram(listen()))

    with pytest.raises(TypeError, match=complaint):
        runner.post(*post)

    await runner.run()


def test_a_post_after_the_end_of_the_event_loop_waits_for_the_next_run(anyio_backend: str) -> None:
    runner = Runner(BProgram(listen()), [], book := Book())

    async def wait() -> None:
        with anyio.move_on_after(0.01):
            await runner.serve()

    anyio.run(wait, backend=anyio_backend)
    runner.post(Told(1))
    anyio.run(runner.run, Told, backend=anyio_backend)

    assert book.events == [Told(1)]


async def test_an_event_that_was_set_before_is_not_waited_for() -> None:
    wakeup = Wakeup()
    wakeup.set()

    with anyio.fail_after(SOON):
        await wakeup.wait()

    with anyio.move_on_after(0) as patience:
        await wakeup.wait()
    assert patience.cancelled_caught


async def test_a_second_run_beside_the_first_is_refused() -> None:
    """Found: it hung for ever after the program had finished."""
    runner = Runner(BProgram(ask(), listen()), [effect(hang)], book := Book())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.run, Told)
        await anyio.wait_all_tasks_blocked()
        for second in (runner.run, runner.serve):
            with pytest.raises(BProgramError, match="runs already; await"):
                await second()
        runner.post(Halt())

    assert book.events == [Asked(0), Halt(), Told(0, "cancelled")]
    await runner.run()  # after the first one


async def test_posts_without_end_leave_the_event_loop_to_others() -> None:
    """Found: while posts waited the runner never gave way, so that it could not even be cancelled."""

    class Flood(Book):
        def record(self, step: Step) -> None:
            runner.post(Told(len(self.steps)))
            super().record(step)
            assert len(self.steps) < 100_000, "the event loop never had a turn"

    runner = Runner(BProgram(listen()), [], Flood())
    runner.post(Told(0))

    with anyio.move_on_after(0.05) as patience:
        await runner.serve()

    assert patience.cancelled_caught


async def test_blocked_requests_are_no_deadlock_while_a_post_may_help() -> None:
    @bthread
    def only_after_halt() -> Any:
        yield sync(wait_for=Halt, block=Asked)

    runner = Runner(BProgram(ask(), only_after_halt()), [effect()], book := Book())

    await beside(runner.serve, lambda: runner.post(Halt()))

    assert book.events == [Halt(), Asked(0)]


async def test_an_end_that_is_no_event_set_is_refused_at_once() -> None:
    runner = Runner(BProgram(listen()))
    runner.post(Told(1))

    for until in (lambda event: True, "halt", None):
        for run in (runner.run, runner.serve):
            with anyio.fail_after(SOON), pytest.raises(TypeError, match="is no event set"):
                await run(until)


async def test_serving_ends_with_the_last_b_thread() -> None:
    with anyio.fail_after(SOON):
        await Runner(BProgram(ask()), [effect()]).serve()

    with anyio.fail_after(SOON), pytest.raises(BProgramError, match="did not come"):
        await Runner(BProgram(ask()), [effect()]).serve(until=Halt)
