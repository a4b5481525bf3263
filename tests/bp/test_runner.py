"""The runner: each start has exactly one outcome, written down before it is started, on both event loops."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

import anyio
import pytest

from bp import BProgram, BThreadBody, EffectError, Event, bthread, sync
from bp.runner import GRACE, Broken, Runner
from tests.bp.asking import Asked, Book, Halt, Told, ask, effect, listen, outcomes_of

pytestmark = pytest.mark.anyio


# One outcome for each start


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_loop_that_another_thread_is_importing_is_not_the_one_that_runs(
    anyio_backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model's library imports trio in a thread: for a moment it is there, and has nothing."""
    for name in ("trio", "trio.lowlevel"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))

    book = await outcomes_of(effect())

    assert book.events == [Asked(0), Told(0)]


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


async def test_an_effect_that_ignores_its_cancellation_is_abandoned_when_its_grace_is_over() -> None:
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
