"""The runner: each start has exactly one outcome, written down before it is started, on both event loops."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import anyio
import pytest
from attrs import frozen

from bp import ALL, BProgram, BThreadBody, BThreadError, Deadlock, EffectError, Event, Step, bthread, event, sync, where
from bp.runner import GRACE, Broken, Effect, Runner

pytestmark = pytest.mark.anyio


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
        yield sync(wait_for=ALL)


async def tell(asked: Asked) -> Told:
    return Told(asked.number)


def say_how(asked: Asked, broken: Broken) -> Told:
    return Told(asked.number, f"{broken.how}: {broken.error}" if broken.error else broken.how)


def effect(run: Callable[[Any], Awaitable[Any]] = tell, **options: Any) -> Effect:
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
    """What happens when one event starts one effect; `meanwhile` goes on beside it."""
    book = Book()
    runner = Runner(BProgram(ask(), listen()), effects, book)
    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            if meanwhile is not None:
                tasks.start_soon(meanwhile, runner)
            await runner.run()
    return book


# One outcome for each start


async def test_what_an_effect_returns_is_its_outcome() -> None:
    book = await outcomes_of(effect())

    assert book.events == [Asked(0), Told(0)]
    assert [step.bthread for step in book.steps] == ["ask", None]


async def test_an_effect_that_raises_has_an_outcome_that_says_so() -> None:
    async def fail(_: Asked) -> Told:
        raise ValueError("no")

    book = await outcomes_of(effect(fail))

    assert book.events == [Asked(0), Told(0, "failed: no")]


async def test_an_effect_that_gives_another_kind_has_failed() -> None:
    async def give_another(_: Asked) -> Event:
        return Halt()

    book = await outcomes_of(effect(give_another))

    assert book.events == [
        Asked(0),
        Told(0, "failed: the effect of asked gave Halt(); it must give told"),
    ]


async def test_an_effect_that_exits_has_failed() -> None:
    async def leave(_: Asked) -> Told:
        raise SystemExit("gone")

    book = await outcomes_of(effect(leave))

    assert book.events == [Asked(0), Told(0, "failed: gone")]


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


async def test_a_cancelled_effect_has_an_outcome_that_says_so() -> None:
    async def hang(_: Asked) -> Told:
        await anyio.sleep_forever()
        raise AssertionError("unreachable")

    async def halt(runner: Runner) -> None:
        await anyio.wait_all_tasks_blocked()
        runner.post(Halt())

    book = await outcomes_of(effect(hang), meanwhile=halt)

    assert book.events == [Asked(0), Halt(), Told(0, "cancelled")]


async def test_an_effect_that_answers_its_cancellation_keeps_its_own_outcome() -> None:
    """No answer that exists is lost."""

    async def finish_anyway(_: Asked) -> Told:
        try:
            await anyio.sleep_forever()
        finally:
            return Told(0, "just in time")  # noqa: B012, RUF100

    async def halt(runner: Runner) -> None:
        await anyio.wait_all_tasks_blocked()
        runner.post(Halt())

    book = await outcomes_of(effect(finish_anyway), meanwhile=halt)

    assert book.events == [Asked(0), Halt(), Told(0, "just in time")]


async def test_an_effect_that_ignores_its_cancellation_is_abandoned_within_a_second() -> None:
    """Its own outcome, when it comes at last, is discarded and counted."""
    let_go = anyio.Event()
    runner = Runner(BProgram(ask(), listen()), [effect(ignore_cancellation_until(let_go))], book := Book())

    async def halt() -> None:
        await anyio.wait_all_tasks_blocked()
        runner.post(Halt())

    begin = anyio.current_time()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(halt)
        await runner.run()
    seconds = anyio.current_time() - begin
    discarded_before = runner.discarded
    let_go.set()
    await anyio.wait_all_tasks_blocked()

    assert book.events == [Asked(0), Halt(), Told(0, "abandoned")]
    assert GRACE <= seconds < 1.0
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
    ran: list[Asked] = []

    async def note(asked: Asked) -> Told:
        ran.append(asked)
        return Told(0)

    runner = Runner(BProgram(halt_at_once(), ask(), listen()), [effect(note)], book := Book())
    await runner.run()

    assert book.events == [Asked(0), Halt(), Told(0, "cancelled")]
    assert ran == []


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


@pytest.mark.parametrize("broken", [lambda asked, _: None, lambda asked, _: 1 / 0], ids=["wrong kind", "raises"])
async def test_an_effect_that_cannot_say_how_it_broke_ends_the_run_with_an_error(
    broken: Callable[[Asked, Broken], Any],
) -> None:
    async def fail(_: Asked) -> Told:
        raise ValueError("no")

    runner = Runner(BProgram(ask(), listen()), [effect(fail, broken=broken)])

    with anyio.fail_after(2), pytest.raises(EffectError, match="asked has no outcome") as error:
        await runner.run()
    assert error.value.started == Asked(0)


# Order


async def test_effects_start_in_the_order_of_selection() -> None:
    begun: list[int] = []

    async def begin(asked: Asked) -> Told:
        begun.append(asked.number)
        return Told(asked.number)

    runner = Runner(BProgram(ask((3, 1, 2)), listen()), [effect(begin)])
    await runner.run()

    assert begun == [3, 1, 2]


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


# Errors


async def test_a_b_thread_that_raises_starts_no_effect_of_its_super_step() -> None:
    @bthread
    def stumble() -> BThreadBody:
        yield sync(wait_for=Asked)
        raise ValueError("stumbled")

    ran: list[Asked] = []

    async def note(asked: Asked) -> Told:
        ran.append(asked)
        return Told(0)

    with pytest.raises(BThreadError, match="'stumble'"):
        await Runner(BProgram(ask(), stumble()), [effect(note)]).run()
    await anyio.wait_all_tasks_blocked()
    assert ran == []


async def test_a_journal_that_raises_ends_the_run_before_any_effect() -> None:
    class Full(Book):
        def record(self, step: Step) -> None:
            raise OSError("disk full")

    ran: list[Asked] = []

    async def note(asked: Asked) -> Told:
        ran.append(asked)
        return Told(0)

    with pytest.raises(OSError, match="disk full"):
        await Runner(BProgram(ask()), [effect(note)], Full()).run()
    assert ran == []


async def test_whoever_looks_on_can_end_a_run_with_an_error() -> None:
    async def hang(_: Asked) -> Told:
        await anyio.sleep_forever()
        raise AssertionError("unreachable")

    async def give_up(runner: Runner) -> None:
        await anyio.wait_all_tasks_blocked()
        runner.fail(ValueError("the first"))
        runner.fail(ValueError("the second"))

    with pytest.raises(ExceptionGroup) as group:
        await outcomes_of(effect(hang), meanwhile=give_up)
    assert str(group.value.exceptions[0]) == "the first"


async def test_a_deadlock_says_who_waits_for_what_and_who_holds_it() -> None:
    @bthread
    def forbid() -> BThreadBody:
        yield sync(refuse=Asked, because="not today", block=event("never"))

    @bthread
    def hope() -> BThreadBody:
        yield sync(wait_for=event("better days"), hot=True)

    with pytest.raises(Deadlock) as deadlock:
        await Runner(BProgram(ask(), forbid(), hope())).run()

    assert "'ask' requests Asked(number=0), held by forbid (not today)" in str(deadlock.value)
    assert "'hope' must not stay where it is" in str(deadlock.value)
    assert len(deadlock.value.waiting) == 2


async def test_waiting_for_an_effect_is_no_deadlock() -> None:
    await Runner(BProgram(ask_and_wait()), [effect()]).run()


async def test_resting_is_no_deadlock_unless_something_was_to_come() -> None:
    await Runner(BProgram(listen())).run()

    with pytest.raises(Deadlock, match="did not come"):
        await Runner(BProgram(listen())).run(until=Told)


async def test_two_effects_of_one_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="make them one effect"):
        Runner(BProgram(ask()), [effect(), effect()])


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
