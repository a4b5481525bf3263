"""The runner: first written down, then started, in order; and how it ends when something is wrong."""

import anyio
import pytest

from bp import BProgram, BThreadBody, BThreadError, Deadlock, Event, Step, bthread, event, sync, where
from bp.runner import Runner
from tests.bp.asking import Asked, Book, Told, ask, ask_and_wait, effect, listen, outcomes_of

pytestmark = pytest.mark.anyio


# Order


NUMBERS = (7, 3, 1, 9, 4, 8, 2, 6, 5, 0)


async def test_effects_start_in_the_order_of_selection() -> None:
    begun: list[int] = []

    async def begin(asked: Asked) -> Told:
        begun.append(asked.number)
        return Told(asked.number)

    runner = Runner(BProgram(ask(NUMBERS), listen()), [effect(begin)])
    await runner.run()

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


async def test_an_observer_can_end_a_run_with_an_error() -> None:
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
    program = BProgram(ask_and_wait())

    await Runner(program, [effect()]).run()

    assert program.status == "finished"


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
