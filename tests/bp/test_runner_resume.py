"""Outcomes that come later, and effects that were under way when a recorded run ended."""

from typing import Any

import anyio
import pytest

from bp import BProgram, Deadlock, Event, Step
from bp.runner import LATER, Effect, Later, Runner
from tests.bp.asking import Asked, Book, Halt, Told, ask, ask_and_wait, effect, listen

pytestmark = pytest.mark.anyio


async def later(_: Asked) -> Later:
    return LATER


def resumed(steps: int, *effects: Effect, heard: tuple[Event, ...] = ()) -> tuple[Runner, Book, list[Step]]:
    """A runner of a program that took so many steps before, the external ones from `heard`."""
    program, book = BProgram(ask((0, 1)), listen()), Book()
    taken: list[Step] = []
    for event in (None, *heard):
        if event is not None:
            program.post(event)
        while len(taken) < steps and (step := program.step()) is not None:
            taken.append(step)
    return Runner(program, effects, book), book, taken


async def test_the_runner_rests_when_only_later_outcomes_are_under_way() -> None:
    book = Book()
    runner = Runner(BProgram(ask(), listen()), [effect(later)], book)

    with anyio.fail_after(5):
        await runner.run(until=Told)

    assert book.events == [Asked(0)]
    assert runner.in_flight == (Asked(0),)


async def test_what_else_is_under_way_comes_to_its_end_first() -> None:
    async def some(asked: Asked) -> Any:
        if asked.number == 0:
            return LATER
        await anyio.sleep(0.01)
        return Told(asked.number)

    book = Book()
    runner = Runner(BProgram(ask((0, 1)), listen()), [effect(some)], book)

    with anyio.fail_after(5):
        await runner.run()

    assert runner.in_flight == (Asked(0),)
    assert book.events == [Asked(0), Asked(1), Told(1)]


async def test_what_comes_later_can_be_cancelled() -> None:
    book = Book()
    runner = Runner(BProgram(ask(), listen()), [effect(later)], book)
    with anyio.fail_after(5):
        await runner.run()
        runner.post(Halt())
        await runner.run()

    assert book.events == [Asked(0), Halt(), Told(0, "cancelled")]
    assert runner.in_flight == ()


async def test_without_anything_later_a_rest_is_a_deadlock() -> None:
    runner = Runner(BProgram(ask_and_wait(), listen()), [effect()])

    with pytest.raises(Deadlock):
        await runner.run(until=Halt)


async def test_what_was_under_way_is_started_again() -> None:
    runner, book, taken = resumed(2, effect())

    runner.resume(taken)
    with anyio.fail_after(5):
        await runner.run()

    assert book.events == [Told(0), Told(1)]


async def test_what_has_its_outcome_is_not() -> None:
    runner, book, taken = resumed(3, effect(), heard=(Told(1),))

    runner.resume(taken)
    with anyio.fail_after(5):
        await runner.run()

    assert book.events == [Told(0)]


async def test_an_effect_of_unknown_fate_was_interrupted_and_is_never_started() -> None:
    started: list[Event] = []

    async def tell(asked: Asked) -> Told:
        started.append(asked)
        return Told(asked.number)

    runner, book, taken = resumed(2, effect(tell, on_resume="unknown"))

    runner.resume(taken)
    with anyio.fail_after(5):
        await runner.run()

    assert book.events == [Told(0, "interrupted"), Told(1, "interrupted")]
    assert started == []


async def test_what_had_been_cancelled_is_not_started_again() -> None:
    runner, book, taken = resumed(3, effect(), heard=(Halt(),))

    runner.resume(taken)
    with anyio.fail_after(5):
        await runner.run()

    assert book.events == [Told(0, "cancelled"), Told(1, "cancelled")]


async def test_the_rest_of_a_super_step_is_recorded_and_starts_its_effects() -> None:
    """A process that died in the middle of a super-step: the program goes on where the record ends."""
    runner, book, taken = resumed(1, effect())

    runner.resume(taken)
    with anyio.fail_after(5):
        await runner.run()

    first, *outcomes = book.events
    assert first == Asked(1)
    assert sorted(outcomes, key=str) == [Told(0), Told(1)]  # whichever is told first
