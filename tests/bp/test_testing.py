"""The helpers that test other people's b-threads do what they say."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bp import BProgram, Event, any_of, event, start, sync, where
from bp.testing import check_trace, drive, show, table, trace_of
from tests.bp.programs import COLD, HOT, STOP, Ping, alternate, keeps_saying, says

A, B, C = event("a"), event("b"), event("c")


def test_a_bthread_is_driven_alone() -> None:
    hot, cold = sync(wait_for=HOT, block=COLD), sync(wait_for=COLD, block=HOT)

    assert drive(alternate()) == [hot]
    assert drive(alternate(), [HOT, COLD]) == [hot, cold, hot]


def test_events_that_do_not_concern_it_are_passed_over() -> None:
    assert len(drive(alternate(), [COLD, COLD, HOT, HOT])) == 2


def test_a_driven_bthread_takes_its_requests_and_ends() -> None:
    assert len(drive(says(sync(request=A), sync(request=B)), [A, B, A])) == 2
    assert len(drive(says(sync(request=A, interrupt=STOP), sync(request=B)), [STOP, A])) == 1


def test_what_a_driven_bthread_starts_does_not_run() -> None:
    assert drive(says(start(says(sync(request=A))), sync(request=B))) == [sync(request=B)]


def test_a_driven_bthread_that_says_nonsense_is_named() -> None:
    with pytest.raises(TypeError, match="it yielded 7"):
        drive(says(7))


def test_a_trace_of_a_program_goes_on_with_posts() -> None:
    assert trace_of(says(sync(request=A), sync(wait_for=STOP), sync(request=B)), posts=[STOP]) == [A, STOP, B]


def test_a_trace_is_checked_with_sets_and_gaps() -> None:
    trace = [A, Ping(1), B, B, C]

    check_trace(trace, [A, Ping, B, B, C])
    check_trace(trace, [A, ..., C])
    check_trace(trace, [..., B, ..., A | C])
    check_trace(trace, [...])
    check_trace([], [...])
    check_trace([], [])


@pytest.mark.parametrize(
    ("trace", "expected", "message"),
    [
        ([A, B], [A, C], r"event 2 is event\('b'\); expected event\('c'\); before it came \[event\('a'\)\]"),
        ([A], [A, B], r"ends after 1 events; expected event\('b'\)"),
        ([A, B], [A], r"event 2 is event\('b'\); expected its end"),
        ([A, B], [..., C], r"ends after 2 events; expected event\('c'\)"),
        ([A, B, C], [A, ..., B], r"ends after 3 events; expected event\('b'\)"),
    ],
)
def test_a_trace_that_is_not_as_expected_says_how_far_it_agrees(
    trace: list[Event], expected: list[Event], message: str
) -> None:
    with pytest.raises(AssertionError, match=message):
        check_trace(trace, expected)


@given(st.data())
@settings(deadline=None)
def test_hypothesis_may_choose_the_schedule(data: st.DataObject) -> None:
    bthreads = [alternate(), says(*[sync(request=HOT)] * 3), says(*[sync(request=COLD)] * 3)]

    trace = trace_of(*bthreads, choose=lambda events: data.draw(st.sampled_from(events)))

    assert trace == [HOT, COLD] * 3


def test_a_choice_is_among_the_selectable_events() -> None:
    bthreads = [says(*[sync(request=A)] * 2), says(sync(request=B)), says(sync(request=C, block=C))]

    assert trace_of(*bthreads, choose=lambda events: events[-1]) == [B, A, A]
    assert trace_of(*bthreads, choose=lambda events: events[-1], posts=[STOP]) == [B, A, A, STOP]


def test_a_trace_ends_at_its_bound() -> None:
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


def test_what_is_posted_is_shown_as_from_outside(capsys: pytest.CaptureFixture[str]) -> None:
    show(BProgram(says(sync(wait_for=STOP), sync(request=A))), [STOP])

    assert [line for line in capsys.readouterr().out.splitlines() if line[:1].isdigit()] == [
        "1. stop, from outside",
        "2. a, from says",
    ]


def test_a_program_that_runs_for_ever_is_shown_up_to_its_bound(capsys: pytest.CaptureFixture[str]) -> None:
    show(BProgram(keeps_saying(sync(request=A))), most=3)

    assert "3. a" in capsys.readouterr().out


def test_a_table_has_every_word_of_a_statement_with_events_sets_and_reasons() -> None:
    program = BProgram(
        says(sync(request=any_of(A, Ping(1)), wait_for=Ping, interrupt=STOP, hot=True)).named("one"),
        says(sync(request=[B, C], block=where(Ping, value=1), refuse=[A, B], because="not now")).named("two"),
    )

    assert [re.split(r"\s\s+", line) for line in table(program).splitlines()] == [
        ["b-thread", "requests", "waits for", "blocks", "refuses", "interrupted by", "hot"],
        ["one", "any of a (held by two: not now), Ping(value=1) (held by two)", "Ping", "stop", "hot"],
        ["two", "b (held by two: not now), c", "where(Ping, value=1)", "(a | b)"],
    ]


def test_a_program_without_b_threads_has_an_empty_table() -> None:
    assert table(BProgram()) == ""
