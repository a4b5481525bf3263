"""A step that is known from before is like any other, only cheaper."""

import gc
from collections.abc import Callable
from itertools import islice
from typing import Any
from weakref import ref

import pytest

from bp import (
    Blocker,
    BProgram,
    BProgramError,
    BThreadBody,
    BThreadError,
    EndlessLoop,
    ProgramEnded,
    Refusal,
    Refusals,
    Step,
    bthread,
    event,
    start,
    sync,
    where,
)
from bp.board import Board, Running
from bp.habits import BREAK, MOST_MOVERS, MOST_PATIENCE, MOST_STATEMENTS, PATIENCE, Habits
from tests.bp.programs import COLD, HOT, STOP, alternate, keeps_saying, requests, trace

MANY = 50


@bthread
def adds(what: Any) -> BThreadBody:
    while True:
        yield sync(request=what)


@bthread
def asks_in_step(number: int, question: Callable[[], Any], answers: list[Any]) -> BThreadBody:
    """Answer like anybody else, and ask something in one of the steps."""
    step = 0
    while True:
        yield sync(wait_for=[HOT, COLD])
        step += 1
        if step == number:
            answers.append(question())


def steps(program: BProgram, number: int) -> list[Step]:
    return list(islice(program.run(), number))


def counted_predicate() -> tuple[list[Any], Any]:
    asked: list[Any] = []

    def never(happened: Any) -> bool:
        asked.append(happened)
        return False

    return asked, where(("hot", "cold"), never)


def test_a_step_that_was_taken_before_asks_nobody() -> None:
    asked, never = counted_predicate()
    program = BProgram(alternate(), adds(HOT), adds(COLD), keeps_saying(sync(block=never, wait_for=never)))

    steps(program, 10)
    before = len(asked)
    taken = steps(program, MANY)

    assert before > 0
    assert len(asked) == before
    assert [step.event for step in taken] == [HOT, COLD] * (MANY // 2)
    assert [step.number for step in taken] == list(range(11, 11 + MANY))


def test_what_is_refused_and_answered_by_an_otherwise_is_so_every_time() -> None:
    cold_instead = sync(request=HOT, otherwise=lambda refusals: COLD)

    @bthread
    def refuses_now_and_then() -> BThreadBody:
        while True:
            yield sync(wait_for=HOT)
            yield sync(refuse=HOT, because="no hot water", wait_for=COLD)

    taken = steps(BProgram(keeps_saying(cold_instead), adds(event("low")), refuses_now_and_then()), MANY)

    assert [step.event for step in taken] == [HOT, COLD] * (MANY // 2)
    assert {step.refusals for step in taken[::2]} == {None}
    assert {step.refusals for step in taken[1::2]} == {Refusals((Refusal("refuses_now_and_then", "no hot water"),))}


def test_whoever_looks_between_known_steps_sees_where_everybody_stands() -> None:
    program = BProgram(alternate(), adds(HOT), adds(COLD), keeps_saying(sync(wait_for=event("never"), hot=True)))

    for turn in range(MANY):
        steps(program, 1)
        expected = COLD if turn % 2 else HOT
        assert program.standing[0][1].block == (HOT if expected is HOT else COLD)
        assert [blocker.bthread for blocker in program.blockers(expected)] == ["alternate"]
        assert program.status == "ready"
        assert [candidate.event for candidate in program.candidates] == [COLD if expected is HOT else HOT]
        assert program.hot == ("keeps_saying",)


def test_a_question_from_inside_a_b_thread_is_answered_alike_in_known_and_in_other_steps() -> None:
    def answered(at: int, **options: Any) -> list[Any]:
        answers: list[Any] = []
        asking = asks_in_step(at, lambda: look(program), answers)
        program = BProgram(alternate(), adds(HOT), counts_to(20), asking, adds(COLD), **options)
        steps(program, MANY)
        return answers

    for at in (1, 2, 18, 19, 20, 21, 38, 39, 40, 41):
        known, watched = answered(at), answered(at, listeners=[lambda record: None])
        assert len(known) == 1
        assert known == watched


@bthread
def counts_to(number: int) -> BThreadBody:
    while True:
        for _ in range(number - 1):
            yield sync(wait_for=[HOT, COLD])
        yield sync(wait_for=[HOT, COLD], block=STOP)


def look(program: BProgram) -> tuple[Any, ...]:
    return (program.blockers(HOT), program.blockers(COLD), program.standing, program.status)


@pytest.mark.parametrize(
    "misuse",
    [
        lambda program: program.post(HOT),
        lambda program: program.step(),
        lambda program: program.close(),
        lambda program: program.candidates,
        lambda program: program.select(HOT),
    ],
)
def test_a_b_thread_that_uses_its_program_in_a_known_step_fails(misuse: Callable[[BProgram], Any]) -> None:
    program = BProgram(alternate(), adds(HOT), adds(COLD), asks_in_step(40, lambda: misuse(program), []))

    with pytest.raises(BThreadError) as caught:
        steps(program, MANY)

    assert isinstance(caught.value.__cause__, BProgramError)
    assert (caught.value.bthread, caught.value.step, program.status) == ("asks_in_step", 40, "failed")


@bthread
def ends_after(number: int, ending: Callable[[], Any]) -> BThreadBody:
    for _ in range(number):
        yield sync(wait_for=[HOT, COLD])
    ending()


def test_a_b_thread_that_raises_in_a_known_step_lets_the_others_reach_their_sync() -> None:
    heard: list[Any] = []

    def fail() -> None:
        raise ValueError("enough")

    program = BProgram(adds(HOT), ends_after(40, fail), asks_in_step(40, lambda: HOT, heard))

    with pytest.raises(BThreadError, match="'ends_after' failed on event\\('hot'\\) \\(step 40\\)") as caught:
        steps(program, MANY)

    assert heard == [HOT]
    assert caught.value.__context__ is None
    with pytest.raises(ProgramEnded):
        program.step()


def test_an_interrupt_from_the_keyboard_passes_through_a_known_step() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    program = BProgram(adds(HOT), ends_after(40, interrupt))

    with pytest.raises(KeyboardInterrupt):
        steps(program, MANY)

    assert program.status == "failed"


def test_when_somebody_is_over_the_others_go_on() -> None:
    program = BProgram(alternate(), adds(HOT), adds(COLD), ends_after(20, lambda: None), requests(HOT, 20))

    assert [step.event for step in steps(program, MANY)] == [HOT, COLD] * (MANY // 2)
    assert [name for name, _ in program.standing] == ["alternate", "adds", "adds"]


def test_whom_a_known_step_starts_is_there_at_the_next_selection() -> None:
    @bthread
    def starts_late() -> BThreadBody:
        for _ in range(20):
            yield sync(wait_for=HOT)
        yield start(keeps_saying(sync(block=HOT)))
        yield sync(wait_for=HOT)

    program = BProgram(adds(HOT), starts_late())

    assert len(trace(program)) == 20
    assert program.status == "blocked"


def test_posts_come_when_known_steps_come_to_rest() -> None:
    go, done = event("go"), event("done")

    @bthread
    def works() -> BThreadBody:
        while True:
            yield sync(wait_for=go)
            yield sync(request=done)

    program = BProgram(works())
    happened = []
    for _ in range(MANY):
        program.post(go)
        happened += [(step.event, step.super_step) for step in steps(program, 2)]
        assert program.status == "idle"

    assert happened == [(kind, number) for number in range(1, MANY + 1) for kind in (go, done)]


def test_after_the_end_it_is_still_known_who_blocks_what() -> None:
    for number in (MANY, MANY + 1):
        program = BProgram(alternate(), adds(HOT), adds(COLD))
        last = steps(program, number)[-1].event

        program.close()

        assert program.blockers(last) == (Blocker("alternate"),)


@pytest.mark.parametrize("limit", [11, 12, 60])
def test_known_steps_count_toward_the_limit_of_a_super_step(limit: int) -> None:
    program = BProgram(alternate(), adds(HOT), adds(COLD), max_steps=limit)

    with pytest.raises(EndlessLoop) as caught:
        trace(program)

    assert program._steps == limit
    assert len(caught.value.events) == 10
    assert caught.value.events[-1] is (COLD if limit % 2 == 0 else HOT)


def test_a_b_thread_that_counts_unseen_leaves_a_known_circle_in_time() -> None:
    @bthread
    def sometimes(period: int) -> BThreadBody:
        while True:
            for _ in range(period):
                yield sync(wait_for=HOT)
            yield sync(request=COLD, block=HOT)

    def happened(**options: Any) -> list[Step]:
        return steps(BProgram(sometimes(7), adds(HOT), sometimes(3), **options), 400)

    assert happened() == happened(listeners=[lambda record: None])  # whoever is watched takes every step at length


def test_a_program_that_nobody_closed_ends_its_b_threads_when_it_goes() -> None:
    closed: list[str] = []

    @bthread
    def notes_its_end() -> BThreadBody:
        try:
            while True:
                yield sync(wait_for=[HOT, COLD])
        finally:
            closed.append("closed")

    program = BProgram(alternate(), adds(HOT), adds(COLD), notes_its_end(), ends_after(20, lambda: None))
    steps(program, MANY)
    gone = ref(program)
    gc.disable()
    try:
        del program

        assert closed == ["closed"]
        assert gone() is None
    finally:
        gc.enable()


# Alone


def running(number: int) -> Running:
    def body() -> Any:
        while True:
            yield sync(wait_for=HOT)

    return Running(f"thread {number}", 0, number, body())


def test_learning_that_does_not_pay_takes_a_break_then_a_longer_one() -> None:
    habits, board = Habits(Board()), Board()
    mover = running(0)
    learned = []
    for number in range(1, 6 * PATIENCE * BREAK):
        board.file(mover, sync(wait_for=event(f"unheard of {number}")))
        learned.append(habits.follow(number, [mover], 0) is not None)

    share = sum(learned) / len(learned)
    first_break = learned.index(False, 5)
    assert first_break <= PATIENCE
    assert not any(learned[first_break : first_break + PATIENCE * BREAK - 2])
    assert share < 2 / BREAK


def test_what_is_remembered_is_bounded() -> None:
    habits = Habits(Board())
    movers = [running(number) for number in range(MOST_MOVERS)]
    for mover in movers:
        mover.statement = sync(wait_for=HOT)
    number = most = 0
    for turn in range(2 * PATIENCE):
        number += MOST_PATIENCE  # so many known steps pay for it
        movers[turn % 2].statement = sync(wait_for=event(f"unheard of {turn}"))
        habits.follow(number, movers, 0)
        most = max(most, len(habits._places))

    assert MOST_STATEMENTS // (2 * MOST_MOVERS) < most < MOST_STATEMENTS // MOST_MOVERS


def test_too_many_movers_are_not_learned() -> None:
    habits = Habits(Board())
    movers = [running(number) for number in range(MOST_MOVERS + 1)]
    for mover in movers:
        mover.statement = sync(wait_for=HOT)

    habits.follow(1, movers, 0)

    assert habits.follow(2, movers, 0) is None
    assert habits._places == {}
