import pickle
import pydoc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bp
from bp import BProgram, BThreadBody, BThreadError, Event, any_of, bthread, event, sync, where
from bp.strategies import Candidate, Chooser
from tests.bp.programs import (
    COLD,
    HOT,
    STOP,
    Ping,
    alternate,
    check_refused,
    does,
    keeps_saying,
    looping,
    says,
    trace,
)
from tests.tables import rows


def test_a_wrong_argument_of_a_program_is_refused_where_it_is_given() -> None:
    check_refused(
        (lambda: BProgram(alternate), r"takes called b-threads, for example guard\(\)"),  # type: ignore[arg-type]
        (lambda: BProgram([alternate()]), r"takes called b-threads, one by one: unpack a list with \*"),  # type: ignore[arg-type]
        (lambda: BProgram(strategies=None), "unexpected keyword argument 'strategies'"),  # type: ignore[call-arg]
        (lambda: BProgram(strategy=bp.RandomStrategy), r"for example RandomStrategy\(\)"),  # type: ignore[arg-type]
        (lambda: BProgram(max_steps=0), "give a positive integer"),
        (lambda: BProgram(max_steps=True), "give a positive integer"),
        (lambda: BProgram().post(Ping), "only events can be posted"),  # type: ignore[arg-type]
        (lambda: BProgram().post(HOT, "wait"), "when_blocked='wait': use 'keep', 'drop'"),  # type: ignore[arg-type]
    )


def test_a_listener_that_raises_fails_the_program() -> None:
    def broken(record: bp.program.Record) -> None:
        raise OSError("disk full")

    program = BProgram(says(sync(request=HOT), sync(request=HOT)), listeners=[broken])

    with pytest.raises(OSError, match="disk full"):
        trace(program)
    assert program.status == "failed"


# The end.


def ended(how: str) -> BProgram:
    program = BProgram(says(sync(request=HOT), None if how == "failed" else sync()))
    if how == "failed":
        with pytest.raises(BThreadError):
            trace(program)
    elif how == "closed between steps":
        next(program.run())
    program.close()
    return program


@rows("how", ["failed", "closed", "closed between steps"])
@rows("use", [BProgram.run, BProgram.step, lambda program: program.post(HOT)])
def test_a_program_that_ended_takes_no_steps_and_no_posts(how: str, use: Any) -> None:
    program = ended(how)

    with pytest.raises(bp.ProgramEnded, match="make a new BProgram"):
        use(program)
    program.close()

    assert (program.status, program.standing) == (how.split()[0], ())


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


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["None", "RandomStrategy(5)", "RoundRobinStrategy()"])
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


def test_errors_travel_between_processes_with_all_they_know() -> None:
    """An error that cannot be unpickled breaks a process pool."""
    failed = BProgram(says(sync(request=HOT), None), says(sync(wait_for=HOT), None).named("other"))
    endless = BProgram(keeps_saying(sync(request=HOT)), max_steps=2)
    unanswered = BProgram(says(sync(request=Ping(1), block=where(Ping, hash))))  # type: ignore[arg-type]

    for program, kind in ((failed, BThreadError), (endless, bp.EndlessLoop), (unanswered, bp.EventSetError)):
        with pytest.raises(kind) as caught:
            trace(program)
        travelled = pickle.loads(pickle.dumps(caught.value))

        assert (type(travelled), str(travelled)) == (kind, str(caught.value))
        assert vars(travelled) == vars(caught.value)


def test_a_super_step_that_never_ends_is_an_error_with_its_last_events_and_b_threads() -> None:
    program = BProgram(keeps_saying(sync(request=HOT)).named("one"), keeps_saying(sync(request=COLD)), max_steps=30)

    with pytest.raises(bp.EndlessLoop, match=r"went past 30 events and starts; .* raise max_steps") as caught:
        trace(program)

    assert str(caught.value).endswith("the last were, again and again: 'one' hot")
    assert caught.value.events == (HOT,) * 10
    assert caught.value.bthreads == ("one",) * 10
    assert program.status == "failed"


def test_an_endless_loop_is_told_once_and_not_ten_times() -> None:
    def told(*said: Any) -> str:
        with pytest.raises(bp.EndlessLoop) as caught:
            trace(BProgram(looping(*said).named("one"), max_steps=30))
        return str(caught.value)

    assert told(sync(request=COLD), sync(request=HOT)).endswith("again and again:\n  'one' cold\n  'one' hot")
    assert told(*[sync(request=Ping(number)) for number in range(6)]).count("Ping") == 10


def test_a_post_while_a_listener_gets_a_step_is_queued() -> None:
    heard: list[Event] = []

    def answer(record: bp.program.Record) -> None:
        heard.append(record.step.event)
        if record.step.event == HOT:
            receipts.append(program.post(COLD))

    receipts: list[Any] = []
    program = BProgram(says(sync(request=HOT), sync(request=STOP), sync(wait_for=COLD)), listeners=[answer])

    assert trace(program) == heard == [HOT, STOP, COLD]
    assert receipts[0].state == "taken"


def test_a_post_with_the_name_of_another_sort_of_event_changes_nothing() -> None:
    program = BProgram(says(sync(wait_for=Ping)))
    trace(program)

    with pytest.raises(TypeError, match="'ping' is the name of an event kind and of a plain event"):
        program.post(event("ping"))

    assert (program.status, trace(program)) == ("idle", [])


A, B, C = event("a"), event("b"), event("c")


def first_events(strategy: bp.strategies.Strategy | None, *bthreads: bp.BThread, steps: int) -> list[Event]:
    program = BProgram(*bthreads, strategy=strategy)
    return [step.event for step in (program.step() for _ in range(steps)) if step]


def test_a_strategy_is_a_value_that_serves_many_programs() -> None:
    strategy = bp.RandomStrategy(7)
    bthreads = [keeps_saying(sync(request=any_of(A, B, C)))]

    traces = [first_events(strategy, *bthreads, steps=20) for _ in range(2)]

    assert traces[0] == traces[1]
    assert bp.RandomStrategy(7) == strategy
    with pytest.raises(TypeError):
        bp.RandomStrategy("seed")  # type: ignore[arg-type]


def test_round_robin_gives_the_b_threads_their_turns_by_age_whatever_their_priority() -> None:
    bthreads = [keeps_saying(sync(request=what)) for what in (A, B, C)]

    events = first_events(bp.RoundRobinStrategy(), bthreads[0], bthreads[1].at_priority(9), bthreads[2], steps=7)

    assert events == [A, B, C, A, B, C, A]


def test_a_strategy_that_chooses_no_candidate_is_an_error() -> None:
    class Wrong:
        def chooser(self) -> Chooser:
            return lambda candidates: Candidate(COLD, "nobody", 0, 0)

    program = BProgram(says(sync(request=HOT)), strategy=Wrong())

    with pytest.raises(bp.BProgramError, match="which is no candidate"):
        trace(program)
    assert program.status == "failed"


# Failures, and what only the outside may do.


@bthread
def fails_on(event: Any, error: BaseException) -> BThreadBody:
    yield sync(wait_for=event)
    raise error


def test_an_exception_names_b_thread_event_and_step_and_fails_the_program() -> None:
    program = BProgram(
        says(sync(request=COLD), sync(request=HOT)),
        fails_on(HOT, ValueError("one")).named("first"),
        says(sync(wait_for=HOT), "nonsense").named("second"),
        fails_on(HOT, KeyError("three")).named("third").at_priority(-1),
    )

    with pytest.raises(BThreadError, match=r"'first' failed on hot \(step 2\): ValueError: one") as caught:
        trace(program)

    assert (caught.value.bthread, caught.value.event, caught.value.step) == ("first", HOT, 2)
    assert isinstance(caught.value.__cause__, ValueError)
    assert ["second" in note or "third" in note for note in caught.value.__notes__] == [True, True]
    assert program.status == "failed"


def test_of_many_failures_in_a_step_some_are_told_and_the_others_counted() -> None:
    program = BProgram(says(sync(request=HOT)), *(fails_on(HOT, ValueError("no")) for _ in range(300)))

    with pytest.raises(BThreadError) as caught:
        trace(program)

    assert len(caught.value.__notes__) == 11
    assert caught.value.__notes__[-1] == "and 289 other b-threads failed in this step"


@rows("wrong", [None, HOT, [sync(wait_for=HOT)]])
def test_a_b_thread_that_yields_the_wrong_thing_is_named_with_the_cure(wrong: Any) -> None:
    with pytest.raises(BThreadError, match=r"'confused' failed .*it yielded .*; yield sync\(\.\.\.\) instead"):
        trace(BProgram(says(sync(request=HOT), wrong).named("confused")))
    with pytest.raises(BThreadError, match="'confused' failed at its start: TypeError: it yielded") as caught:
        trace(BProgram(says(wrong).named("confused")))

    assert (caught.value.event, caught.value.step) == (None, 0)


def test_keyboard_interrupt_passes_through_and_ends_the_program() -> None:
    closed: list[str] = []

    @bthread
    def other() -> BThreadBody:
        try:
            yield sync()
        finally:
            closed.append("other")

    program = BProgram(says(sync(request=HOT)), fails_on(HOT, KeyboardInterrupt()), other())

    with pytest.raises(KeyboardInterrupt):
        trace(program)

    assert (program.status, closed) == ("failed", ["other"])


def test_an_endless_program_inside_a_b_thread_is_that_b_threads_failure() -> None:
    inner = BProgram(says(*[sync(request=HOT)] * 9), max_steps=2)

    with pytest.raises(BThreadError) as caught:
        trace(BProgram(says(sync(request=HOT)), does(lambda: trace(inner)).named("outer")))

    assert caught.value.bthread == "outer"


MEDDLING: dict[str, Any] = {
    r"yield sync\(request=\.\.\.\)": lambda program: program.post(COLD),
    "run it from outside": trace,
    "close it from outside": BProgram.close,
}


@rows("cure", MEDDLING)
def test_a_b_thread_cannot_post_to_run_or_close_its_own_program(cure: str) -> None:
    programs: list[BProgram] = []
    meddler = does(lambda: MEDDLING[cure](programs[0])).named("meddler")
    programs.append(BProgram(meddler, says(sync(request=HOT), sync(wait_for=COLD))))

    with pytest.raises(BThreadError, match=f"'meddler' failed .*{cure}") as caught:
        trace(programs[0])

    assert isinstance(caught.value.__cause__, bp.BProgramError)
    assert programs[0].status == "failed"


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

    assert isinstance(caught.value.__cause__, bp.ProgramEnded)
