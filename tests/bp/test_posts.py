from typing import Any

import pytest

from bp import Blocker, BProgram, Event, Record, Refusal, event, sync
from bp.program import WhenBlocked
from tests.bp.programs import COLD, HOT, STOP, Ping, Pong, after, says, trace


def resting(*statements: Any) -> BProgram:
    """Return a program that rests at the first of `statements`, and goes on with HOT."""
    program = BProgram(says(*statements).named("guard"))
    trace(program)
    return program


def test_a_post_is_taken_when_the_program_runs() -> None:
    program = resting(sync(wait_for=HOT))

    receipt = program.post(HOT)

    assert (receipt.state, program.status) == ("queued", "ready")
    assert trace(program) == [HOT]
    assert receipt.state == "taken"


def test_a_post_that_no_b_thread_waits_for_is_a_step_all_the_same() -> None:
    program = resting(sync(wait_for=HOT))

    receipts = after(program, COLD)

    assert receipts[0].state == "taken"
    assert program.status == "idle"


def test_posts_are_taken_only_when_no_internal_event_is_selectable() -> None:
    program = BProgram(says(sync(request=HOT), sync(request=HOT)), says(sync(wait_for=COLD), sync(request=STOP)))
    program.post(COLD)
    program.post(COLD)

    assert trace(program) == [HOT, HOT, COLD, STOP]
    assert program.status == "finished"


def test_each_post_is_one_delivery() -> None:
    program = resting(*[sync(wait_for=HOT)] * 2)
    program.post(HOT)
    program.post(HOT)

    assert [step.super_step for step in program.run()] == [1, 2]


def test_posts_are_taken_in_order_among_those_that_are_not_blocked() -> None:
    program = resting(sync(block=Ping(1), wait_for=STOP), sync(wait_for=Pong))
    for happened in (Ping(1), Ping(2), Ping(3), STOP, Ping(4)):
        program.post(happened)

    assert trace(program) == [Ping(2), Ping(3), STOP, Ping(1), Ping(4)]


@pytest.mark.parametrize("word", ["block", "refuse"])
@pytest.mark.parametrize(("when_blocked", "state"), [("keep", "queued"), ("drop", "dropped"), ("reject", "rejected")])
def test_held_and_refused_posts_follow_when_blocked_alike(word: str, when_blocked: WhenBlocked, state: str) -> None:
    program = resting(sync(**{word: COLD}, because="no" if word == "refuse" else None))  # type: ignore[arg-type]

    receipt = program.post(COLD, when_blocked)

    assert receipt.state == state
    assert trace(program) == []


def test_a_rejection_returns_the_refusals_and_the_blockers_at_once() -> None:
    program = BProgram(says(sync(refuse=COLD, because="too late")).named("clock"), says(sync(block=COLD)).named("door"))
    trace(program)

    receipt = program.post(COLD, when_blocked="reject")

    assert receipt.refusals == (Refusal("clock", "too late"),)
    assert receipt.blockers == (Blocker("clock", "too late"), Blocker("door"))


def test_a_kept_post_comes_when_its_block_goes() -> None:
    program = resting(sync(block=COLD, wait_for=HOT), sync(wait_for=STOP))
    kept = program.post(COLD)
    assert (kept.state, program.status) == ("queued", "idle")
    program.post(HOT)

    assert trace(program) == [HOT, COLD]
    assert kept.state == "taken"


def test_a_post_is_not_judged_before_its_turn() -> None:
    """The earlier post goes first, and lifts the block."""
    program = resting(sync(block=COLD, wait_for=HOT), sync(wait_for=COLD))
    program.post(HOT)

    receipt = program.post(COLD, when_blocked="reject")

    assert receipt.state == "queued"
    assert trace(program) == [HOT, COLD]


def test_a_post_before_the_first_step_waits_for_its_turn() -> None:
    program = BProgram(says(sync(request=HOT), sync(block=COLD)))

    receipt = program.post(COLD, when_blocked="reject")
    states = [receipt.state]
    trace(program)
    states.append(receipt.state)

    assert states == ["queued", "rejected"]


def test_a_post_behind_kept_ones_is_judged_at_once() -> None:
    program = resting(sync(block=[COLD, STOP], wait_for=HOT), sync(block=STOP))
    kept = program.post(COLD)

    turned_away = program.post(STOP, when_blocked="drop")

    assert (kept.state, turned_away.state) == ("queued", "dropped")


def test_what_is_posted_while_a_listener_hears_a_step_is_queued() -> None:
    heard: list[Event] = []

    def answer(record: Record) -> None:
        heard.append(record.step.event)
        if record.step.event == HOT:
            receipts.append(program.post(COLD))

    receipts: list[Any] = []
    program = BProgram(says(sync(request=HOT), sync(request=STOP), sync(wait_for=COLD)), listeners=[answer])

    assert trace(program) == heard == [HOT, STOP, COLD]
    assert receipts[0].state == "taken"


def test_when_no_b_thread_is_left_what_is_queued_or_posted_is_dropped() -> None:
    program = BProgram(says(sync(request=HOT)))
    before = program.post(COLD)

    happened = trace(program)
    later = program.post(COLD, when_blocked="reject")

    assert (happened, program.status) == ([HOT], "finished")
    assert (before.state, later.state) == ("dropped", "dropped")
    assert trace(program) == []


def test_what_is_queued_when_a_program_ends_is_dropped() -> None:
    program = resting(sync(wait_for=HOT))
    receipt = program.post(COLD)

    program.close()

    assert receipt.state == "dropped"


def test_external_events_begin_super_steps_and_have_no_requester() -> None:
    program = BProgram(says(sync(request=HOT), *[sync(wait_for=COLD), sync(request=HOT)] * 2))
    program.post(COLD)
    program.post(COLD)

    steps = [(step.number, step.event, step.super_step, step.bthread) for step in program.run()]

    assert steps == [
        (1, HOT, 0, "says"), (2, COLD, 1, None), (3, HOT, 1, "says"), (4, COLD, 2, None), (5, HOT, 2, "says"),
    ]  # fmt: skip


@pytest.mark.parametrize("wrong", [Ping, "hot", None, sync(request=HOT)])
def test_only_events_can_be_posted(wrong: Any) -> None:
    with pytest.raises(TypeError, match="only events can be posted"):
        resting(sync(wait_for=HOT)).post(wrong)


def test_when_blocked_is_one_of_three_words() -> None:
    with pytest.raises(TypeError, match="when_blocked='wait': use 'keep', 'drop' or 'reject'"):
        resting(sync(wait_for=HOT)).post(HOT, when_blocked="wait")  # type: ignore[arg-type]


def test_a_post_with_the_name_of_another_sort_of_event_changes_nothing() -> None:
    program = resting(sync(wait_for=Ping))

    with pytest.raises(TypeError, match="'ping' is the name of an event kind and of a plain event"):
        program.post(event("ping"))

    assert (program.status, trace(program)) == ("idle", [])
