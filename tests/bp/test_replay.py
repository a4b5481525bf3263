"""A trace taken again leads to the same states, or tells the first step that differs."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bp import (
    BProgram,
    BProgramError,
    BThread,
    BThreadBody,
    BThreadError,
    ProgramEnded,
    RandomStrategy,
    any_of,
    bthread,
    event,
    replay,
    start,
    state_at,
    sync,
    verify,
    where,
)
from tests.bp.philosophers import philosophers
from tests.bp.programs import COLD, HOT, STOP, Ping, alternate, keeps_saying, says

A, B = event("a"), event("b")


def taps() -> list[BThread]:
    return [alternate(), says(*[sync(request=HOT)] * 3), says(*[sync(request=COLD)] * 3)]


# Selecting a given event.


def test_a_given_event_is_selected_whatever_the_strategy_would_choose() -> None:
    program = BProgram(says(sync(request=A)).named("one"), says(sync(request=B)).named("other"))

    step = program.select(B)

    assert (step.number, step.event, step.bthread, step.super_step) == (1, B, "other", 0)
    assert [candidate.event for candidate in program.candidates] == [A]


def test_an_event_that_no_b_thread_requests_comes_from_outside() -> None:
    program = BProgram(says(sync(wait_for=A), sync(wait_for=B)))

    step = program.select(A)

    assert (step.bthread, step.super_step) == (None, 1)
    assert program.standing == (("says", sync(wait_for=B)),)


def test_an_otherwise_is_selected_with_its_refusals() -> None:
    program = BProgram(says(sync(request=A, otherwise=lambda refusals: B)), keeps_saying(sync(refuse=A, because="no")))

    step = program.select(B)

    assert step.refusals == (("keeps_saying", "no"),)


def test_an_event_that_is_held_back_is_not_selected_and_nothing_happens() -> None:
    program = BProgram(says(sync(request=A)), keeps_saying(sync(block=A)))

    with pytest.raises(BProgramError, match="keeps_saying"):
        program.select(A)

    assert program.status == "blocked"


def test_what_is_no_event_or_comes_from_inside_or_too_late_is_not_selected() -> None:
    def meddles() -> Any:
        return program.select(B)

    @bthread
    def does() -> BThreadBody:
        yield sync(request=A)
        with pytest.raises(BProgramError, match="outside"):
            meddles()
        with pytest.raises(BProgramError, match="outside"):
            _ = program.candidates

    program = BProgram(does())
    with pytest.raises(TypeError, match="only events"):
        program.select(Ping)  # type: ignore[arg-type]
    program.select(A)
    program.close()
    with pytest.raises(ProgramEnded):
        program.select(A)


def test_a_bthread_that_fails_on_a_selected_event_fails_the_program() -> None:
    program = BProgram(says(sync(request=A), "nonsense"))

    with pytest.raises(BThreadError):
        program.select(A)

    assert program.status == "failed"


# Replay.


@given(st.integers(0, 100), st.lists(st.sampled_from([STOP, Ping(1)]), max_size=4))
@settings(deadline=None)
def test_a_recorded_run_is_taken_again_to_the_same_state(seed: int, posts: list[Any]) -> None:
    bthreads = [*taps(), says(sync(request=any_of(A, B))), says(sync(wait_for=STOP), sync(request=A))]
    program = BProgram(*bthreads, strategy=RandomStrategy(seed))
    steps = list(program.run())
    for post in posts:
        program.post(post)
        steps += program.run()

    again = replay(bthreads, steps)

    assert again.agrees
    assert again.steps == tuple(steps)
    assert again.standing == program.standing


def test_the_first_divergence_is_told_with_both_sides() -> None:
    steps = tuple(BProgram(*taps()).run())

    held = replay(taps(), [HOT, HOT, COLD]).divergence
    changed = replay([says(sync(request=HOT)).named("another"), *taps()], steps).divergence
    unasked = replay(taps(), [HOT, A]).divergence

    assert held is not None
    assert (held.number, held.recorded, held.possible, held.blockers) == (2, HOT, (COLD,), ("alternate",))
    assert str(held) == (
        "step 2: recorded is event('hot'): held back by alternate; the program would go on with: event('cold')"
    )
    assert changed is not None
    assert (changed.number, changed.recorded) == (1, steps[0])
    assert "then it was requested by says, now by another" in str(changed)
    assert unasked is not None
    assert "no b-thread requests it" in unasked.reason


def test_a_program_that_fails_earlier_than_recorded_diverges() -> None:
    again = replay([says(sync(request=A), "nonsense"), keeps_saying(sync(request=B))], [A, B])

    assert again.divergence is not None
    assert "failed" in again.divergence.reason
    assert again.error is not None


def test_what_is_possible_outside_comes_when_nothing_internal_can() -> None:
    bthreads = [says(sync(wait_for=STOP), sync(request=A))]

    assert replay(bthreads, [STOP, A, STOP]).agrees
    assert not replay(bthreads, [STOP, STOP]).agrees


def test_promised_events_do_not_keep_possible_ones_back() -> None:
    assert replay([], [STOP, A], environment=[says(sync(request=A))]).agrees


def test_an_environment_may_share_names_with_the_program_and_start_bthreads() -> None:
    @bthread
    def answers() -> BThreadBody:
        yield sync(wait_for=A)
        yield start(says(sync(request=B)), says(sync(request=B)).named("child"))

    shared = [says(sync(wait_for=STOP), sync(request=HOT))]
    found = verify(*shared, environment=[says(sync(request=COLD))], possible=[STOP], never=HOT)
    started = verify(says(sync(wait_for=STOP)), environment=[answers()], possible=[A, STOP], never=STOP)

    assert found.violations[0].trace == (STOP, HOT)
    assert replay(shared, (STOP, HOT, COLD), environment=[says(sync(request=COLD))])
    assert not replay(shared, (STOP, STOP, HOT), environment=[says(sync(request=COLD))])
    assert replay([says(sync(wait_for=STOP))], (A, *started.violations[0].trace, B), environment=[answers()])


def test_an_environment_stands_as_without_a_replay() -> None:
    @bthread
    def cleans_up() -> BThreadBody:
        with pytest.raises(GeneratorExit):
            yield sync(wait_for=STOP)
        raise ValueError("at its end")

    environment = [says(sync(request=A), sync(request=B)), says(sync(request=STOP), "nonsense").named("fails")]

    assert state_at([], [A], 1, environment)[0] == ("says", sync(request=B))
    assert replay([], [STOP], environment).error is not None
    assert replay([], [], environment=[cleans_up()])


def test_a_replay_is_true_when_it_agrees() -> None:
    assert replay(taps(), [HOT, COLD])
    assert not replay(taps(), [HOT, HOT])


def test_state_at_a_step_is_where_every_bthread_stands() -> None:
    trace = [step.event for step in BProgram(*taps()).run()]

    assert state_at(taps(), trace, 0)[0] == ("alternate", sync(wait_for=HOT, block=COLD))
    assert state_at(taps(), trace, 1)[0] == ("alternate", sync(wait_for=COLD, block=HOT))
    assert [name for name, _ in state_at(taps(), trace, 6)] == ["alternate"]
    with pytest.raises(ValueError, match="6 steps"):
        state_at(taps(), trace, 7)
    with pytest.raises(BProgramError, match="held back by alternate"):
        state_at(taps(), [COLD], 1)
    with pytest.raises(BThreadError):
        state_at([says(sync(request=A), "nonsense")], [A], 1)


# Violations.


def test_a_deadlock_is_replayed_to_where_every_b_thread_is_blocked() -> None:
    (deadlock,) = verify(*philosophers(3)).violations

    again = replay(philosophers(3), deadlock.trace)

    assert again.agrees
    requested = {name: event for name, event, _ in deadlock.blockers}
    assert {name: said.requests[0] for name, said in again.standing if said.requests} == requested


def test_an_error_is_replayed_to_the_bthread_that_raises() -> None:
    bthreads = [says(sync(request=any_of(A, B)), sync(request=A), "nonsense")]
    (violation,) = verify(*bthreads).violations

    again = replay(bthreads, violation.trace)

    assert again.agrees
    assert again.error is not None
    assert again.error.bthread == violation.bthread


def test_a_predicate_that_fails_is_replayed_to_where_it_is_asked() -> None:
    def no_answer(ping: Ping) -> bool:
        raise ValueError("no answer")

    bthreads = [says(sync(request=A), sync(request=Ping(1))), keeps_saying(sync(block=where(Ping, no_answer)))]
    (violation,) = verify(*bthreads).violations

    again = replay(bthreads, violation.trace)

    assert again.agrees
    assert again.error is not None
    assert again.error.bthread == violation.bthread == "keeps_saying"


def test_a_hot_cycle_is_replayed_around_to_where_it_began() -> None:
    bthreads = [says(sync(request=B), sync(wait_for=STOP, hot=True)).named("waits"), keeps_saying(sync(request=A))]
    (violation,) = verify(*bthreads).violations

    once = replay(bthreads, violation.trace)
    twice = replay(bthreads, (*violation.trace, *violation.cycle, *violation.cycle))

    assert once.standing == twice.standing
    assert violation.bthread in twice.hot
