"""A trace taken again leads to the same states, or tells the first step that differs."""

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bp
from bp import BProgram, BProgramError, BThread, BThreadBody, any_of, bthread, event, replay, start, sync, verify, where
from bp.testing import drive, show, table, trace_of
from tests.bp.programs import COLD, HOT, STOP, Ping, alternate, keeps_saying, philosophers, says

A, B = event("a"), event("b")


def taps() -> list[BThread]:
    return [alternate(), says(*[sync(request=HOT)] * 3), says(*[sync(request=COLD)] * 3)]


# Selecting a given event.


def test_an_otherwise_is_selected_with_its_refusals() -> None:
    program = BProgram(says(sync(request=A, otherwise=lambda refusals: B)), keeps_saying(sync(refuse=A, because="no")))

    step = program.select(B)

    assert step.refusals == (("keeps_saying", "no"),)


def test_an_event_that_is_held_back_is_not_selected_and_nothing_happens() -> None:
    program = BProgram(says(sync(request=A)), keeps_saying(sync(block=A)))

    with pytest.raises(BProgramError, match="keeps_saying"):
        program.select(A)

    assert program.status == "blocked"


def test_a_value_that_is_no_external_event_is_not_selected_in_a_replay() -> None:
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
    with pytest.raises(bp.ProgramEnded):
        program.select(A)


# Replay.


@pytest.mark.slow
@given(st.integers(0, 100), st.lists(st.sampled_from([STOP, Ping(1)]), max_size=4))
@settings(deadline=None)
def test_a_recorded_run_is_taken_again_to_the_same_state(seed: int, posts: list[Any]) -> None:
    bthreads = [*taps(), says(sync(request=any_of(A, B))), says(sync(wait_for=STOP), sync(request=A))]
    program = BProgram(*bthreads, strategy=bp.RandomStrategy(seed))
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

    assert replay(taps(), [HOT, COLD])
    assert not replay(taps(), [HOT, HOT])
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


def test_possible_events_come_when_the_program_rests() -> None:
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

    assert replay([], [A], environment).standing[0] == ("says", sync(request=B))
    assert replay([], [STOP], environment).error is not None
    assert replay([], [], environment=[cleans_up()])


# Violations.


def no_answer(ping: Ping) -> bool:
    raise ValueError("no answer")


@pytest.mark.parametrize(
    "bthreads",
    [
        philosophers(3),
        [says(sync(request=any_of(A, B)), sync(request=A), "nonsense")],
        [says(sync(request=A), sync(request=Ping(1))), keeps_saying(sync(block=where(Ping, no_answer)))],
        [says(sync(request=B), sync(wait_for=STOP, hot=True)).named("waits"), keeps_saying(sync(request=A))],
    ],
    ids=["deadlock", "error", "predicate", "hot cycle"],
)
def test_a_violation_is_replayed_to_where_it_shows(bthreads: list[BThread]) -> None:
    (violation,) = verify(*bthreads).violations

    again = replay(bthreads, violation.trace)
    around = replay(bthreads, (*violation.trace, *violation.cycle, *violation.cycle))

    assert again.agrees
    assert around.standing == again.standing
    assert (again.error.bthread if again.error else None) == (violation.bthread if violation.kind == "error" else None)
    assert violation.kind != "hot" or violation.bthread in again.hot
    if violation.kind == "deadlock":
        requested = {name: event for name, event, _ in violation.blockers}
        assert {name: said.requests[0] for name, said in again.standing if said.requests} == requested


# The helpers that test other people's b-threads do what they say.


C = event("c")


def test_a_bthread_is_driven_alone_by_the_events_that_concern_it() -> None:
    hot, cold = sync(wait_for=HOT, block=COLD), sync(wait_for=COLD, block=HOT)

    assert drive(alternate()) == [hot]
    assert drive(alternate(), [COLD, HOT, HOT, COLD]) == [hot, cold, hot]
    assert len(drive(says(sync(request=A), sync(request=B)), [A, B, A])) == 2
    assert len(drive(says(sync(request=A, interrupt=STOP), sync(request=B)), [STOP, A])) == 1
    assert drive(says(start(says(sync(request=A))), sync(request=B))) == [sync(request=B)]
    with pytest.raises(TypeError, match="it yielded 7"):
        drive(says(7))


def test_a_trace_of_a_program_goes_on_with_posts_to_its_end_or_its_bound() -> None:
    bthreads = [says(*[sync(request=A)] * 2), says(sync(request=B)), says(sync(request=C, block=C))]

    assert trace_of(says(sync(request=A), sync(wait_for=STOP), sync(request=B)), posts=[STOP]) == [A, STOP, B]
    assert trace_of(*bthreads, choose=lambda events: events[-1], posts=[STOP]) == [B, A, A, STOP]
    assert trace_of(keeps_saying(sync(request=A)), most=5) == [A] * 5


# A look at a program


def test_a_program_is_shown_step_by_step(capsys: pytest.CaptureFixture[str]) -> None:
    show(BProgram(alternate(), says(sync(request=HOT)).named("warm"), says(sync(request=COLD)).named("cool")))

    assert (
        capsys.readouterr().out
        == """\
b-thread   requests                  waits for  blocks
alternate                            hot        cold
warm       hot
cool       cold (held by alternate)

1. hot, from warm
b-thread   requests  waits for  blocks
alternate            cold       hot
cool       cold

2. cold, from cool
b-thread   waits for  blocks
alternate  hot        cold
"""
    )


def test_posted_events_are_shown_as_external_and_steps_up_to_a_bound(capsys: pytest.CaptureFixture[str]) -> None:
    show(BProgram(says(sync(wait_for=STOP)), keeps_saying(sync(request=A, wait_for=STOP, block=STOP))), [STOP], most=2)
    show(BProgram(says(sync(wait_for=STOP), sync(request=A))), [STOP])

    shown = [line for line in capsys.readouterr().out.splitlines() if line[:1].isdigit()]
    assert shown == ["1. a, from keeps_saying", "2. a, from keeps_saying", "1. stop, from outside", "2. a, from says"]


def test_a_table_has_every_word_of_a_statement_with_events_sets_and_reasons() -> None:
    program = BProgram(
        says(sync(request=any_of(A, Ping(1)), wait_for=Ping, interrupt=STOP, hot=True)).named("one"),
        says(sync(request=[B, C], block=where(Ping, value=1), refuse=[A, B], because="not now")).named("two"),
    )

    assert [re.split(r"\s\s+", line) for line in table(program).splitlines()] == [
        ["b-thread", "requests", "waits for", "blocks", "refuses", "interrupted by", "hot"],
        ["one", "any of a (held by two (because 'not now')), Ping(value=1) (held by two)", "Ping", "stop", "hot"],
        ["two", "b (held by two (because 'not now')), c", "where(Ping, value=1)", "(a | b)"],
    ]
    assert table(BProgram()) == ""
