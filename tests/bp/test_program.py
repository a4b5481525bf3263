import pickle
import pydoc
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import bp
from bp import BProgram, BThreadBody, BThreadError, Event, any_of, bthread, event, start, sync, where
from bp.strategies import Candidate, Chooser
from tests.bp.programs import (
    COLD,
    HOT,
    STOP,
    Ping,
    Pong,
    alternate,
    check_refused,
    does,
    keeps_saying,
    looping,
    requests,
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


def test_standing_tells_every_living_b_thread_with_its_statement() -> None:
    program = BProgram(says(sync(request=HOT), sync(wait_for=COLD)).named("a"), says(sync(request=HOT)).named("b"))

    trace(program)

    assert program.standing == (("a", sync(wait_for=COLD)),)


# Records.


def test_a_failed_step_is_recorded_with_its_error_and_not_yielded() -> None:
    records: list[bp.program.Record] = []
    program = BProgram(says(sync(request=HOT), sync(request=COLD), None), listeners=[records.append])
    steps = program.run()
    assert next(steps).event == HOT

    with pytest.raises(BThreadError) as caught:
        next(steps)

    assert [(record.step.event, record.error) for record in records] == [(HOT, None), (COLD, caught.value)]


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


@bthread
def starts_itself() -> BThreadBody:
    yield start(starts_itself())


@bthread
def starts_nothing() -> BThreadBody:
    while True:
        yield start()


@rows("endless", [starts_itself, starts_nothing])
def test_starts_count_toward_max_steps(endless: type) -> None:
    program = BProgram(endless(), max_steps=100)

    with pytest.raises(bp.EndlessLoop) as caught:
        trace(program)

    assert caught.value.events == ()
    assert set(caught.value.bthreads) == {endless.name}  # type: ignore[attr-defined]


def test_a_step_whose_round_starts_too_many_is_recorded_as_failed() -> None:
    records: list[bp.program.Record] = []
    program = BProgram(says(sync(request=HOT), start(*[says()] * 20)), max_steps=10, listeners=[records.append])

    with pytest.raises(bp.EndlessLoop) as caught:
        trace(program)

    assert [(record.step.event, record.error) for record in records] == [(HOT, caught.value)]


def test_listeners_get_a_record_of_each_step() -> None:
    records: list[bp.program.Record] = []
    program = BProgram(
        requests(HOT).named("a"),
        says(sync(request=COLD, wait_for=HOT)).named("b"),
        says(sync(interrupt=HOT)).named("c"),
        listeners=[records.append],
    )

    steps = list(program.run())

    assert [record.step for record in records] == steps
    assert records[0].candidates == (Candidate(HOT, "a", 0, 0), Candidate(COLD, "b", 0, 1))
    assert (records[0].resumed, records[0].interrupted, records[0].error) == (("a", "b"), ("c",), None)


@rows("when_blocked, state", [("keep", "queued"), ("drop", "dropped"), ("reject", "rejected")])
def test_blocked_and_refused_posts_follow_when_blocked(when_blocked: Any, state: str) -> None:
    program = BProgram(says(sync(refuse=COLD, because="too late", block=STOP)).named("guard"))
    trace(program)

    refused, blocked = program.post(COLD, when_blocked), program.post(STOP, when_blocked)

    assert (refused.state, blocked.state) == (state, state)
    assert refused.refusals == (() if state == "queued" else (bp.Refusal("guard", "too late"),))
    assert blocked.blockers == (() if state == "queued" else (bp.board.Blocker("guard"),))


BLOCKS_COLD_AFTER_HOT = sync(request=HOT), sync(block=COLD, wait_for=STOP)
POSTS: dict[str, tuple[tuple[Any, ...], list[Any], list[str]]] = {
    "while another one can be taken none is judged": (
        BLOCKS_COLD_AFTER_HOT, ["begin", (COLD, "drop"), STOP, "step", STOP], ["queued"] * 3
    ),
    "those before the free one are judged when it is taken": (
        BLOCKS_COLD_AFTER_HOT, ["begin", (COLD, "drop"), STOP, "step", "step"], ["dropped", "taken"]
    ),
    "one that is kept has those before it judged when their turn is now": (
        (sync(request=HOT), sync(block=COLD)), ["begin", (COLD, "drop"), "step", STOP], ["dropped", "queued"]
    ),
    "an earlier post goes first, and may lift the block": (
        (sync(block=COLD, wait_for=HOT), sync(wait_for=COLD)), ["run", HOT, (COLD, "reject"), "run"], ["taken"] * 2
    ),
    "before the first step": ((sync(request=HOT), sync(block=COLD)), [(COLD, "reject")], ["queued"]),
    "after the first step": ((sync(request=HOT), sync(block=COLD)), [(COLD, "reject"), "run"], ["rejected"]),
    "one behind kept ones is judged at once": (
        (sync(block=[COLD, STOP], wait_for=HOT), sync(block=STOP)), ["run", COLD, (STOP, "drop")], ["queued", "dropped"]
    ),
    "when no b-thread is left, all are dropped": (
        (sync(request=HOT),), [COLD, "run", (COLD, "reject"), "run"], ["dropped"] * 2
    ),
}  # fmt: skip


def test_a_post_is_judged_when_its_turn_comes() -> None:
    wrong = {}
    for name, (statements, moves, states) in POSTS.items():
        program, receipts = BProgram(says(*statements)), list[bp.program.Receipt]()
        use: dict[str, Any] = {"begin": lambda: program.candidates, "step": program.step, "run": lambda: trace(program)}  # noqa: B023
        for move in moves:
            if isinstance(move, str):
                use[move]()
            else:
                receipts.append(program.post(*move) if type(move) is tuple else program.post(move))
        if [receipt.state for receipt in receipts] != states:
            wrong[name] = receipts

    assert wrong == {}


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


class Remembering:
    """A strategy of one's own: takes the last candidate, and remembers all."""

    def __init__(self) -> None:
        self.candidates: list[Sequence[Candidate]] = []

    def chooser(self) -> Chooser:
        def choose(candidates: Sequence[Candidate]) -> Candidate:
            self.candidates.append(candidates)
            return candidates[-1]

        return choose


def first_events(strategy: bp.strategies.Strategy | None, *bthreads: bp.BThread, steps: int) -> list[Event]:
    program = BProgram(*bthreads, strategy=strategy)
    return [step.event for step in (program.step() for _ in range(steps)) if step]


def test_strategies_choose_among_the_distinct_selectable_events_each_with_its_first_requester() -> None:
    strategy = Remembering()
    program = BProgram(
        says(sync(request=A)).named("old"),
        says(sync(request=any_of(B, A))).named("high").at_priority(1),
        says(sync(request=[HOT, COLD, STOP], block=HOT)).named("picky"),
        says(sync(request=C, otherwise=lambda _: STOP)).named("refused"),
        says(sync(refuse=C, because="no")),
        strategy=strategy,
    )

    step = program.step()

    assert strategy.candidates[0] == (
        Candidate(B, "high", 1, 1), Candidate(A, "high", 1, 1), Candidate(COLD, "picky", 0, 2),
        Candidate(STOP, "refused", 0, 3),
    )  # fmt: skip
    assert step is not None
    assert (step.event, step.bthread, step.refusals) == (STOP, "refused", (("says", "no"),))


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


@rows("wrong", [None, "hot", HOT, Ping, 42, start, [sync(wait_for=HOT)]])
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


# The rules of a step, each with a small program: what happens, and how the program stands at its end.

INSTEAD = event("instead")


def instead(refusals: bp.Refusals) -> Event:
    return INSTEAD


def counts(refusals: bp.Refusals) -> Event:
    return Pong(len(refusals))


def tells(refusals: bp.Refusals) -> Event:
    return event("no", data=refusals)


class Case(NamedTuple):
    """A program; the posts that it gets whenever it rests, one by one; what happens; its status at the end."""

    bthreads: tuple[bp.BThread, ...]
    happens: list[Event]
    status: str = "finished"
    posts: tuple[Event, ...] = ()


def blocks(*events: Any) -> bp.BThread:
    return says(sync(block=list(events)))


def refuses(*events: Any, because: str = "no") -> bp.BThread:
    return says(sync(refuse=list(events), because=because)).named("guard")


@bthread
def link(left: int) -> BThreadBody:
    if left:
        yield start(link(left - 1))
    else:
        yield sync(request=HOT)


@bthread
def echoes(*statements: Any) -> BThreadBody:
    """Say one statement after the other, and request what is sent back as data."""
    for statement in statements:
        said = yield statement
        yield sync(request=event("heard", data=said))


def heard(said: Any) -> Event:
    return event("heard", data=said)


REQUESTS = {
    "hot and cold alternate": Case((alternate(), requests(HOT, 2), requests(COLD, 2)), [HOT, COLD] * 2, "idle"),
    "a program without b-threads is finished at once": Case((), []),
    "waiters alone are idle": Case((says(sync(wait_for=HOT)), says(sync())), [], "idle"),
    "resting ends nothing": Case((says(sync(wait_for=HOT), sync(request=COLD)),), [HOT, COLD], posts=(HOT,)),
    "an empty request is no request": Case((requests([]), requests(any_of())), [], "idle"),
    "a list is an order of preference": Case((requests([HOT, COLD, STOP]),), [HOT]),
    "the first selectable event of a list is offered": Case((requests([HOT, COLD]), blocks(HOT)), [COLD], "idle"),
    "a refused event of a list is passed over": Case((requests([HOT, COLD]), refuses(HOT)), [COLD], "idle"),
    "a request advances on any of its events, whichever b-thread offers it": Case(
        (echoes(sync(request=[HOT, COLD])), requests(COLD).at_priority(1)), [COLD, heard(COLD)]
    ),
    "of any_of the first selectable one comes": Case((requests(any_of(HOT, COLD)), blocks(HOT)), [COLD], "idle"),
    "equal requests are one occurrence, and all advance": Case((requests(Ping(1)), requests(Ping(1))), [Ping(1)]),
    "who requests and waits for an event advances once": Case(
        (says(sync(request=HOT, wait_for=[HOT, Ping]), sync(wait_for=HOT)),), [HOT], "idle"
    ),
    "higher priority goes first, then age, then the order in a list": Case(
        (requests(HOT), requests([COLD, HOT]).at_priority(1), requests(STOP).at_priority(1)), [COLD, STOP, HOT]
    ),
    "a blocked event is never selected, whatever its priority": Case(
        (requests(HOT).at_priority(9), requests(COLD), blocks(HOT).at_priority(-9)), [COLD], "blocked"
    ),
    "a b-thread may block what it requests itself": Case((says(sync(request=HOT, block=HOT)),), [], "blocked"),
    "an interrupt wins over advancing": Case((echoes(sync(request=HOT, wait_for=HOT, interrupt=HOT)),), [HOT]),
}

REFUSALS = {
    "a refused request is answered by its otherwise": Case(
        (echoes(sync(request=HOT, otherwise=tells)), refuses(HOT, because="too late")),
        [
            event("no", data=(bp.Refusal("guard", "too late"),)),
            heard(event("no", data=(bp.Refusal("guard", "too late"),))),
        ],
        "idle",
    ),
    "without otherwise a refusal is a block": Case((requests(HOT), refuses(HOT)), [], "blocked"),
    "a request that is both held and refused counts as refused": Case(
        (says(sync(request=HOT, otherwise=instead)), blocks(HOT), refuses(HOT)), [INSTEAD], "idle"
    ),
    "otherwise is not offered while one event of the request is selectable": Case(
        (says(sync(request=[HOT, COLD], otherwise=instead)), refuses(HOT)), [COLD], "idle"
    ),
    "an event that is merely held keeps otherwise back": Case(
        (says(sync(request=[HOT, COLD], otherwise=instead)), refuses(HOT), blocks(COLD)), [], "blocked"
    ),
    "otherwise is offered when every event of the request is refused": Case(
        (says(sync(request=[HOT, COLD], otherwise=instead)), refuses(HOT), refuses(COLD)), [INSTEAD], "idle"
    ),
    "a refusal is a level: when it goes, the request is back": Case(
        (
            says(sync(request=HOT, otherwise=instead)),
            says(sync(request=COLD, refuse=HOT, because="not yet"), sync(wait_for=STOP)).at_priority(1),
        ),
        [COLD, HOT],
        "idle",
    ),
    "an otherwise can be held": Case(
        (says(sync(request=HOT, otherwise=instead)), refuses(HOT), blocks(INSTEAD)), [], "blocked"
    ),
    "an otherwise can be refused, and has no second one": Case(
        (says(sync(request=HOT, otherwise=instead)), refuses(HOT, INSTEAD)), [], "blocked"
    ),
    "otherwise is asked again when the refusals change": Case(
        (
            says(sync(request=HOT, otherwise=counts, block=Pong(1))),
            refuses(HOT),
            says(sync(wait_for=COLD), sync(refuse=HOT, because="never")),
        ),
        [COLD, Pong(2)],
        "idle",
        posts=(COLD,),
    ),
    "another because is another refusal": Case(
        (
            says(*[sync(request=HOT, otherwise=tells)] * 2),
            says(*[sync(refuse=HOT, because=n, wait_for=where("no")) for n in range(2)]).named("guard"),
        ),
        [event("no", data=(bp.Refusal("guard", 0),)), event("no", data=(bp.Refusal("guard", 1),))],
    ),
}

STARTS_AND_POSTS = {
    "started b-threads do not see the event that started them": Case(
        (says(sync(request=HOT), start(says(sync(wait_for=HOT)))),), [HOT], "idle"
    ),
    "starting returns at once, with None": Case((echoes(start(says()), start()),), [heard(None), heard(None)]),
    "the blocks of started b-threads hold at the next selection": Case(
        (says(sync(request=HOT), sync(request=COLD)), says(sync(wait_for=HOT), start(blocks(COLD)))), [HOT], "blocked"
    ),
    "started b-threads inherit their starter's priority unless they have one": Case(
        (requests(COLD), says(start(requests(HOT), requests(STOP).at_priority(0))).at_priority(1)), [HOT, COLD, STOP]
    ),
    "a chain of starts needs no recursion": Case((link(5000),), [HOT]),
    "who comes to wait for an event in its round waits for the next one": Case(
        (says(*[sync(wait_for=HOT)] * 2), says(sync(request=HOT), sync(block=COLD))), [HOT], "idle"
    ),
    "a post that no b-thread waits for is a step all the same": Case(
        (says(sync(wait_for=HOT)),), [COLD], "idle", posts=(COLD,)
    ),
    "each post is one delivery": Case((says(*[sync(wait_for=HOT)] * 2),), [HOT, HOT], posts=(HOT, HOT)),
    "a kept post comes when its block goes": Case(
        (says(sync(block=COLD, wait_for=HOT), sync(wait_for=STOP)),), [HOT, COLD], "idle", posts=(COLD, HOT)
    ),
    "a kept post alone makes a program neither ready nor blocked": Case((blocks(HOT),), [], "idle", posts=(HOT,)),
}


def test_each_program_behaves_as_its_sentence_says() -> None:
    wrong = {}
    for name, case in (REQUESTS | REFUSALS | STARTS_AND_POSTS).items():
        program = BProgram(*case.bthreads)
        happened = trace(program)
        for post in case.posts:
            program.post(post)
            happened += trace(program)
        if (happened, program.status) != (case.happens, case.status):
            wrong[name] = (happened, program.status)

    assert wrong == {}
