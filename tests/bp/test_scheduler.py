from typing import Any

import pytest

from bp import BProgram, BProgramError, BThread, BThreadBody, BThreadError, ProgramEnded, bthread, start, sync
from tests.bp.programs import COLD, HOT, Ping, does, says, trace

Notes = list[str]


@bthread
def notes_turns(notes: Notes, mark: str, *statements: Any) -> BThreadBody:
    """Note when it has its turns and when it is closed."""
    try:
        notes.append(f"{mark} starts")
        for statement in statements:
            said = yield statement
            notes.append(f"{mark} {said.name if said else 'goes on'}")
    except GeneratorExit:
        notes.append(f"{mark} closed")
        raise


@bthread
def fails_on(event: Any, error: BaseException) -> BThreadBody:
    yield sync(wait_for=event)
    raise error


@bthread
def fails_when_closed() -> BThreadBody:
    try:
        yield sync(wait_for=HOT, interrupt=COLD)
    finally:
        raise ValueError("cannot let go")


@bthread
def yields_when_closed() -> BThreadBody:
    try:
        yield sync(wait_for=HOT, interrupt=COLD)
    finally:
        yield sync(wait_for=HOT)


# Starting.


def test_b_threads_run_to_their_first_statement_at_the_first_step_in_the_order_given() -> None:
    notes: Notes = []
    program = BProgram(
        notes_turns(notes, "first", sync(wait_for=HOT)),
        notes_turns(notes, "second", start(notes_turns(notes, "child")), sync(wait_for=HOT)),
        notes_turns(notes, "third", sync(wait_for=HOT)).at_priority(9),
    )
    assert (notes, program.status) == ([], "ready")

    program.step()

    assert notes == ["first starts", "second starts", "second goes on", "third starts", "child starts"]


def test_started_b_threads_run_after_all_resumed_ones_in_order() -> None:
    notes: Notes = []
    child = notes_turns(notes, "child", start(notes_turns(notes, "grandchild")))
    program = BProgram(
        says(sync(request=HOT)),
        notes_turns(notes, "a", sync(wait_for=HOT), start(child, notes_turns(notes, "second child")), sync()),
        notes_turns(notes, "b", sync(wait_for=HOT), sync()),
    )

    trace(program)

    assert notes[2:] == [
        "a hot", "a goes on", "b hot", "child starts", "child goes on", "second child starts", "grandchild starts",
    ]  # fmt: skip


# Who resumes.


def test_turns_go_by_priority_then_age() -> None:
    notes: Notes = []
    program = BProgram(
        *[notes_turns(notes, mark, sync(wait_for=HOT), sync()) for mark in ("old", "young")],
        notes_turns(notes, "high", sync(wait_for=HOT), sync()).at_priority(1),
        notes_turns(notes, "low", sync(request=HOT), sync()).at_priority(-1),
    )

    trace(program)

    assert notes[4:] == ["high hot", "old hot", "young hot", "low hot"]


def test_an_interrupted_b_thread_is_closed_at_its_turn() -> None:
    notes: Notes = []
    program = BProgram(
        notes_turns(notes, "a", sync(wait_for=HOT), sync()),
        notes_turns(notes, "b", sync(wait_for=HOT, interrupt=HOT)),
        notes_turns(notes, "c", sync(request=HOT), sync()),
    )

    trace(program)

    assert notes[3:] == ["a hot", "b closed", "c hot"]


# Failures.


def test_an_exception_names_b_thread_event_and_step_and_fails_the_program() -> None:
    program = BProgram(says(sync(request=COLD), sync(request=HOT)), fails_on(HOT, ValueError("broken")).named("weak"))

    with pytest.raises(BThreadError, match=r"'weak' failed on event\('hot'\) \(step 2\): ValueError: broken") as caught:
        trace(program)

    assert (caught.value.bthread, caught.value.event, caught.value.step) == ("weak", HOT, 2)
    assert isinstance(caught.value.__cause__, ValueError)
    assert program.status == "failed"


def test_an_exception_before_the_first_statement_has_no_event_and_step_zero() -> None:
    @bthread
    def stillborn() -> BThreadBody:
        if repr(HOT):
            raise ValueError("broken")
        yield sync()

    with pytest.raises(BThreadError, match="'stillborn' failed at its start: ValueError: broken") as caught:
        trace(BProgram(stillborn()))

    assert (caught.value.event, caught.value.step) == (None, 0)


@pytest.mark.parametrize("wrong", [None, "hot", HOT, Ping, 42, start, [sync(wait_for=HOT)]])
def test_a_b_thread_that_yields_the_wrong_thing_is_named_with_the_cure(wrong: Any) -> None:
    with pytest.raises(BThreadError, match=r"'confused' failed .*it yielded .*; yield sync\(\.\.\.\) instead"):
        trace(BProgram(says(sync(request=HOT), wrong).named("confused")))


def test_the_others_of_the_round_reach_their_statements_and_the_started_ones_too() -> None:
    notes: Notes = []
    program = BProgram(
        says(sync(request=HOT)),
        fails_on(HOT, ValueError()),
        notes_turns(notes, "other", sync(wait_for=HOT), start(notes_turns(notes, "child", sync())), sync()),
    )

    with pytest.raises(BThreadError):
        trace(program)

    assert notes == ["other starts", "other hot", "other goes on", "child starts", "child closed", "other closed"]


def test_of_several_failures_in_a_round_the_first_is_named_and_the_others_are_its_notes() -> None:
    program = BProgram(
        says(sync(request=HOT)),
        fails_on(HOT, ValueError("one")).named("first"),
        says(sync(wait_for=HOT), "nonsense").named("second"),
        fails_on(HOT, KeyError("three")).named("third").at_priority(-1),
    )

    with pytest.raises(BThreadError) as caught:
        trace(program)

    assert caught.value.bthread == "first"
    assert ["second" in note or "third" in note for note in caught.value.__notes__] == [True, True]


@pytest.mark.parametrize("stubborn", [fails_when_closed, yields_when_closed])
def test_a_finally_that_raises_or_yields_on_an_interrupt_is_a_b_thread_error(stubborn: Any) -> None:
    program = BProgram(says(sync(request=COLD)), stubborn())

    with pytest.raises(BThreadError) as caught:
        trace(program)

    assert (caught.value.bthread, caught.value.event, caught.value.step) == (stubborn.name, COLD, 1)


def test_keyboard_interrupt_passes_through_and_ends_the_program() -> None:
    notes: Notes = []
    program = BProgram(says(sync(request=HOT)), fails_on(HOT, KeyboardInterrupt()), notes_turns(notes, "other", sync()))

    with pytest.raises(KeyboardInterrupt):
        trace(program)

    assert program.status == "failed"
    assert notes[-1] == "other closed"


def test_an_endless_program_inside_a_b_thread_is_that_b_threads_failure() -> None:
    inner = BProgram(says(*[sync(request=HOT)] * 9), max_steps=2)

    with pytest.raises(BThreadError) as caught:
        trace(BProgram(says(sync(request=HOT)), does(lambda: trace(inner)).named("outer")))

    assert caught.value.bthread == "outer"


# The program, from inside a b-thread.


def program_with(action: str) -> BProgram:
    """Return a program of which one b-thread, on HOT, does to the program what should be done from outside."""
    programs: list[BProgram] = []
    acts: dict[str, Any] = {
        "posts": lambda: programs[0].post(COLD),
        "runs": lambda: trace(programs[0]),
        "closes": lambda: programs[0].close(),
    }
    programs.append(BProgram(does(acts[action]).named("meddler"), says(sync(request=HOT), sync(wait_for=COLD))))
    return programs[0]


@pytest.mark.parametrize(
    ("action", "cure"),
    [
        ("posts", r"yield sync\(request=\.\.\.\)"),
        ("runs", "run it from outside"),
        ("closes", "close it from outside"),
    ],
)
def test_a_b_thread_cannot_post_to_run_or_close_its_own_program(action: str, cure: str) -> None:
    program = program_with(action)

    with pytest.raises(BThreadError, match=f"'meddler' failed .*{cure}") as caught:
        trace(program)

    assert isinstance(caught.value.__cause__, BProgramError)
    assert program.status == "failed"


def test_a_finally_that_posts_is_an_error() -> None:
    programs: list[BProgram] = []

    @bthread
    def last_words() -> BThreadBody:
        try:
            yield sync(interrupt=HOT)
        finally:
            programs[0].post(COLD)

    programs.append(BProgram(last_words()))
    trace(programs[0])

    with pytest.raises(BThreadError) as caught:
        programs[0].close()

    assert isinstance(caught.value.__cause__, ProgramEnded)


# The end.


def test_closing_goes_from_the_youngest_to_the_oldest() -> None:
    notes: Notes = []
    program = BProgram(
        notes_turns(notes, "a", start(notes_turns(notes, "child", sync())), sync()).at_priority(-5),
        notes_turns(notes, "b", sync()),
    )
    trace(program)

    program.close()

    assert notes[-3:] == ["child closed", "b closed", "a closed"]


@pytest.mark.parametrize("stubborn", [fails_when_closed, yields_when_closed])
def test_the_first_error_of_a_finally_is_raised_after_all_are_closed(stubborn: Any) -> None:
    notes: Notes = []
    weak: list[BThread] = [stubborn().named("old"), stubborn().named("young")]
    program = BProgram(notes_turns(notes, "other", sync()), *weak)
    trace(program)

    with pytest.raises(BThreadError) as caught:
        program.close()

    assert caught.value.bthread == "young"
    assert notes[-1] == "other closed"
    assert program.status == "closed"


def test_errors_of_finally_blocks_after_a_failure_are_its_notes() -> None:
    program = BProgram(says(sync(request=COLD), None).named("first"), fails_when_closed().named("second"))
    program.post(HOT)

    with pytest.raises(BThreadError) as caught:
        trace(program)

    assert caught.value.bthread in ("first", "second")
    assert len(caught.value.__notes__) == 1
