import gc
import pydoc
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

import bp
from bp import (
    BProgram,
    BThread,
    BThreadBody,
    BThreadError,
    Candidate,
    Event,
    ProgramEnded,
    Record,
    bthread,
    event,
    start,
    sync,
    where,
)
from tests.bp.programs import COLD, HOT, STOP, Ping, alternate, hears, keeps_saying, says, trace


def test_hot_and_cold_alternate() -> None:
    program = BProgram(alternate(), says(*[sync(request=HOT)] * 3), says(*[sync(request=COLD)] * 3))

    assert trace(program) == [HOT, COLD] * 3
    assert program.status == "idle"


# Steps.


def test_a_step_tells_its_number_event_super_step_and_requester() -> None:
    program = BProgram(says(sync(request=HOT), sync(request=COLD)).named("tap"))

    steps = [(step.number, step.event, step.super_step, step.bthread) for step in program.run()]

    assert steps == [(1, HOT, 0, "tap"), (2, COLD, 0, "tap")]


def test_steps_are_numbered_on_over_runs() -> None:
    program = BProgram(keeps_saying(sync(wait_for=HOT)))

    numbers = []
    for _ in range(3):
        program.post(HOT)
        numbers += [step.number for step in program.run()]

    assert numbers == [1, 2, 3]


def test_a_run_can_be_left_and_taken_up_again() -> None:
    program = BProgram(says(*[sync(request=Ping(value)) for value in range(4)]))

    first = next(program.run()).event
    second = program.step()

    assert second is not None
    assert [first, second.event, *trace(program)] == [Ping(0), Ping(1), Ping(2), Ping(3)]


def test_a_program_without_b_threads_is_finished_at_once() -> None:
    program = BProgram()

    assert trace(program) == []
    assert program.status == "finished"


@pytest.mark.parametrize("wrong", [alternate, HOT, [alternate()], None, lambda: None])
def test_a_program_takes_called_b_threads(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"takes called b-threads, for example guard\(\)"):
        BProgram(wrong)


def test_an_unknown_keyword_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'strategies'"):
        BProgram(alternate(), strategies=None)  # type: ignore[call-arg]


# Statuses.


def test_the_status_is_ready_until_the_first_step_and_while_something_is_selectable() -> None:
    program = BProgram(says(sync(request=HOT), sync(request=COLD)))

    statuses = [program.status]
    while program.step():
        statuses.append(program.status)

    assert statuses == ["ready", "ready", "finished"]


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        (sync(wait_for=HOT), "idle"),
        (sync(request=HOT, block=HOT), "blocked"),
        (sync(request=HOT, refuse=HOT, because="no"), "blocked"),
        (sync(), "idle"),
    ],
)
def test_at_rest_a_program_is_idle_with_waiters_only_and_blocked_with_requests(statement: Any, status: str) -> None:
    program = BProgram(says(statement))

    trace(program)

    assert program.status == status


def test_resting_ends_nothing() -> None:
    program = BProgram(says(sync(wait_for=HOT), sync(request=COLD)))
    assert trace(program) == []
    program.post(HOT)

    assert trace(program) == [HOT, COLD]


def test_a_kept_post_alone_makes_a_program_neither_ready_nor_blocked() -> None:
    program = BProgram(says(sync(block=HOT)))
    trace(program)
    program.post(HOT)

    assert program.status == "idle"


def test_hot_b_threads_are_told_by_age() -> None:
    program = BProgram(says(sync(wait_for=HOT)), says(sync(wait_for=HOT, hot=True)).named("waits"))

    trace(program)

    assert program.hot == ("waits",)


def test_standing_tells_every_living_b_thread_with_its_statement() -> None:
    program = BProgram(says(sync(request=HOT), sync(wait_for=COLD)).named("a"), says(sync(request=HOT)).named("b"))

    trace(program)

    assert program.standing == (("a", sync(wait_for=COLD)),)


def test_blockers_tell_who_blocks_or_refuses_and_why_by_priority_and_age() -> None:
    program = BProgram(
        says(sync(block=Ping)).named("silent"),
        says(sync(refuse=where(Ping, value=1), because="one")).named("talks"),
        says(sync(block=~HOT, refuse=Ping(1), because="both")).named("both").at_priority(1),
    )
    assert program.blockers(Ping(1)) == ()

    trace(program)

    assert program.blockers(Ping(1)) == (("both", "both"), ("silent", None), ("talks", "one"))
    assert program.blockers(Ping(2)) == (("both", None), ("silent", None))
    assert program.blockers(HOT) == ()


# Records.


def test_listeners_get_a_record_of_each_step() -> None:
    records: list[Record] = []
    program = BProgram(
        says(sync(request=HOT)).named("a"),
        says(sync(request=COLD, wait_for=HOT)).named("b"),
        says(sync(interrupt=HOT)).named("c"),
        listeners=[records.append],
    )

    steps = list(program.run())

    assert [record.step for record in records] == steps
    assert records[0].candidates == (Candidate(HOT, "a", 0, 0), Candidate(COLD, "b", 0, 1))
    assert (records[0].resumed, records[0].interrupted, records[0].error) == (("a", "b"), ("c",), None)


def test_a_failed_step_is_recorded_with_its_error_and_not_yielded() -> None:
    records: list[Record] = []
    program = BProgram(says(sync(request=HOT), sync(request=COLD), None), listeners=[records.append])
    steps = program.run()
    assert next(steps).event == HOT

    with pytest.raises(BThreadError) as caught:
        next(steps)

    assert [(record.step.event, record.error) for record in records] == [(HOT, None), (COLD, caught.value)]


def test_a_listener_that_raises_fails_the_program() -> None:
    def broken(record: Record) -> None:
        raise OSError("disk full")

    program = BProgram(says(sync(request=HOT), sync(request=HOT)), listeners=[broken])

    with pytest.raises(OSError, match="disk full"):
        trace(program)
    assert program.status == "failed"


def test_listeners_change_nothing() -> None:
    bthreads = [alternate(), *[says(*[sync(request=what)] * 3) for what in (HOT, COLD)]]

    assert trace(BProgram(*bthreads, listeners=[lambda record: None])) == trace(BProgram(*bthreads))


# The end.


def ended(how: str) -> BProgram:
    program = BProgram(says(sync(request=HOT), None if how == "failed" else sync()))
    if how == "failed":
        with pytest.raises(BThreadError):
            trace(program)
    else:
        with program:
            trace(program)
    return program


@pytest.mark.parametrize("how", ["failed", "closed"])
@pytest.mark.parametrize("use", [BProgram.run, BProgram.step, lambda program: program.post(HOT)])
def test_a_program_that_ended_takes_no_steps_and_no_posts(how: str, use: Any) -> None:
    program = ended(how)

    with pytest.raises(ProgramEnded, match="make a new BProgram"):
        use(program)

    assert (program.status, program.standing) == (how, ())


def test_closing_again_changes_nothing() -> None:
    for how in ("failed", "closed"):
        program = ended(how)

        program.close()

        assert program.status == how


def test_a_program_that_never_began_can_be_closed() -> None:
    program = BProgram(says(sync(request=HOT)))

    program.close()

    assert program.status == "closed"


def test_a_program_closed_between_steps_goes_no_further() -> None:
    program = BProgram(keeps_saying(sync(request=HOT)))

    steps = program.run()
    next(steps)
    program.close()

    with pytest.raises(ProgramEnded):
        next(steps)


def test_a_program_closed_by_a_listener_goes_no_further() -> None:
    program = BProgram(keeps_saying(sync(request=HOT)), listeners=[lambda record: program.close()])

    assert program.step() is not None
    with pytest.raises(ProgramEnded):
        program.step()


# Reproducible, and in bounded memory.


PROGRAM = """
from bp import *
A = [event(f"a{n}") for n in range(8)]

@bthread
def asks(events, others):
    for _ in range(6):
        yield sync(request=any_of(*events), wait_for=where("done", data=frozenset("xyz")) | others)
        yield sync(request=event("done", data=frozenset("xyz")), otherwise=lambda refusals: event("no", data=refusals))

@bthread
def refuses(events, rest):
    while True:
        yield sync(refuse=events | where("done"), because=frozenset("abc"), wait_for=ALL)
        for _ in range(rest):
            yield sync(wait_for=ALL)

program = BProgram(
    *[asks(A[n:] + A[:n], A[n] | A[n - 1] | A[n - 2]) for n in range(8)], refuses(A[0] | A[3], 1), refuses(A[1], 2),
    strategy=STRATEGY,
)
print([(step.event.name, step.bthread, step.refusals is None) for step in program.run()])
"""


@pytest.mark.parametrize("strategy", ["PriorityStrategy()", "RandomStrategy(5)", "RoundRobinStrategy()"])
def test_the_trace_is_the_same_under_any_hash_seed(strategy: str) -> None:
    script = PROGRAM.replace("STRATEGY", strategy)
    root = Path(__file__).parents[2]

    traces = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, cwd=root, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }

    assert len(traces) == 1
    assert b"'no', 'asks', False" in traces.pop()


def test_long_super_steps_take_constant_memory() -> None:
    @bthread
    def counts() -> BThreadBody:
        number = 0
        while True:
            number += 1
            yield sync(request=event("counted", data=number % 7), block=Ping(number % 5))
            yield start(says(sync(wait_for=where("counted"), block=Ping(number % 3))))

    program = BProgram(counts(), keeps_saying(sync(wait_for=where("counted"))))

    def grown(steps: int) -> int:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(steps):
            program.step()
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before

    tracemalloc.start()
    try:
        grown(500)
        assert grown(2000) < 1_000
    finally:
        tracemalloc.stop()


def test_a_b_thread_is_tested_alone_by_driving_its_generator() -> None:
    body = alternate().begin()

    assert next(body) == sync(wait_for=HOT, block=COLD)
    assert body.send(HOT) == sync(wait_for=COLD, block=HOT)


def test_the_same_program_value_gives_the_same_trace() -> None:
    heard: list[Any] = []
    bthreads: list[BThread] = [hears(heard, sync(wait_for=STOP)), says(sync(request=[COLD, STOP], block=COLD))]

    traces: list[list[Event]] = [trace(BProgram(*bthreads)) for _ in range(2)]

    assert traces == [[STOP], [STOP]]
    assert heard == [STOP, STOP]


def test_a_program_shows_how_many_b_threads_it_has_and_how_far_it_is() -> None:
    program = BProgram(says(sync(request=HOT)), says(sync(wait_for=STOP)))

    assert repr(program) == "<BProgram: 2 b-threads, new>"
    trace(program)
    assert repr(program) == "<BProgram: 1 b-thread, step 1>"
    program.close()
    assert repr(program) == "<BProgram: 0 b-threads, closed>"


def test_every_public_name_is_shown_by_dir_and_help() -> None:
    assert set(bp.__all__) <= set(dir(bp))
    shown = pydoc.render_doc(bp, renderer=pydoc.plaintext)  # type: ignore[attr-defined]

    assert [name for name in bp.__all__ if name not in shown] == []
    assert shown.index("BProgram(add(HOT, 3), add(COLD, 3), alternate())") < shown.index("PACKAGE CONTENTS")
