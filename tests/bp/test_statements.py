import pickle
from functools import partial
from typing import Any

import pytest

import bp
from bp import (
    BProgram,
    BThreadBody,
    Event,
    Refusal,
    Refusals,
    any_of,
    bthread,
    draw_bthread,
    event,
    start,
    sync,
    verify,
    where,
)
from bp.runner import Runner, timer
from bp.testing import drive, show
from tests.bp.programs import COLD, HOT, Ping, check_refused, says, trace
from tests.tables import rows

INSTEAD = event("instead")


def instead(refusals: Refusals) -> Event:
    return INSTEAD


# What may be said.


def test_a_wrong_statement_is_a_type_error_at_that_line() -> None:
    check_refused(
        (lambda: sync(HOT), "positional"),  # type: ignore[call-arg]
        (lambda: sync(waitfor=HOT), "unexpected keyword argument 'waitfor'"),  # type: ignore[call-arg]
        (lambda: sync(request=Ping), "a set cannot be requested; request an event of it"),
        (lambda: sync(request=where(Ping, value=1)), "a set cannot be requested"),
        (lambda: sync(request=[HOT, Ping]), "a set cannot be requested"),
        (lambda: sync(request=[[HOT]]), "do not nest"),
        (lambda: sync(request=[any_of(HOT, COLD)]), "do not nest"),
        (lambda: any_of([HOT, COLD]), "do not nest"),  # type: ignore[arg-type]
        (lambda: any_of(Ping), "a set cannot be requested"),  # type: ignore[arg-type]
        (lambda: sync(request="hot"), "request an event, a list of events, or any_of"),
        (lambda: sync(request={HOT, COLD}), "request an event, a list of events, or any_of"),
        (lambda: sync(refuse=HOT), "refuse= and because= go together"),
        (lambda: sync(because="no"), "refuse= and because= go together"),
        (lambda: sync(refuse=HOT, because=object()), "because=: object .* can change"),
        (lambda: sync(otherwise=instead), "otherwise= without request="),
        (lambda: sync(request=[], otherwise=instead), "otherwise= without request="),
        (lambda: sync(request=HOT, otherwise=COLD), "give a function"),  # type: ignore[arg-type]
        (lambda: sync(wait_for=HOT, hot="yes"), "hot='yes': give True or False"),  # type: ignore[arg-type]
        (lambda: start(says), r"start takes called b-threads, for example guard\(\)"),  # type: ignore[arg-type]
        (lambda: start([says()]), r"start takes called b-threads, one by one: unpack a list with \*"),  # type: ignore[arg-type]
        (lambda: repeats(HOT, time=2), "unexpected keyword argument 'time'"),  # type: ignore[call-arg]
        (lambda: repeats(), "missing 1 required positional argument"),  # type: ignore[call-arg]
        (lambda: bthread(priority="high"), "a priority is an integer"),  # type: ignore[call-overload]
        (lambda: bthread(priority=True), "a priority is an integer"),
        (lambda: bthread(3), "decorate a generator function"),  # type: ignore[call-overload]
        (lambda: repeats(HOT).at_priority("5"), "a priority is an integer"),  # type: ignore[arg-type]
    )


def test_a_b_thread_that_was_not_called_and_a_program_for_a_list_are_refused_wherever_b_threads_are_given() -> None:
    given: Any = says  # as people write who do not use mypy
    program: Any = BProgram(says(HOT))
    check_refused(
        (lambda: drive(given), r"drive takes called b-threads, for example guard\(\); found"),
        (lambda: draw_bthread(given), r"draw_bthread takes called b-threads, for example guard\(\); found"),
        (lambda: bp.replay(program, []), r"bthreads=<BProgram: .*>: give a list, bthreads=\[\.\.\.\]"),
        (lambda: show([says(HOT)]), r"give a program, for example BProgram\(guard\(\)\)"),  # type: ignore[arg-type]
        (lambda: Runner(given), r"give a program, for example BProgram\(guard\(\)\)"),
        (lambda: Runner(program, timer(on=Ping, outcome=Ping, seconds=1)), "give a list, effects="),  # type: ignore[arg-type]
    )


def test_a_b_thread_that_is_async_is_told_to_be_none() -> None:
    @bthread
    async def waits() -> Any:
        yield sync(request=HOT)

    with pytest.raises(bp.BThreadError, match="'waits': a b-thread is not async; have an effect wait"):
        trace(BProgram(waits()))


def test_a_word_that_sync_does_not_know_is_told_with_the_one_that_is_meant() -> None:
    def said(*positional: Event, **words: Any) -> str:
        named = tuple(words.items())

        @bthread
        def guard() -> BThreadBody:
            yield sync(*positional, **dict(named))

        with pytest.raises(bp.BThreadError) as caught:
            trace(BProgram(guard()))
        found = verify(guard()).violations[0]
        assert "test_statements.py" in found.where
        assert found.message.partition("TypeError: ")[2] == str(caught.value).partition("TypeError: ")[2]
        return str(caught.value).rpartition("; ")[2]

    assert said(request=HOT, waitFor=COLD) == "did you mean wait_for=?"
    assert said(priority=3).startswith("its words are request=, wait_for=, block=")
    assert said(HOT).startswith("its words are request=, wait_for=, block=")


def test_statements_are_equal_by_what_they_say() -> None:
    assert sync(request=[HOT], block=[COLD]) == sync(request=HOT, block=COLD)
    assert hash(sync(request=HOT)) == hash(sync(request=(HOT,)))
    assert sync(request=[HOT, COLD]) != sync(request=any_of(HOT, COLD))
    assert sync(wait_for=[]) == sync(wait_for=bp.NONE) == sync()


def test_because_is_frozen() -> None:
    reasons = ["a secret was read"]

    said = sync(refuse=HOT, because=reasons)
    reasons.append("later")

    assert said.because == ("a secret was read",)


# Requests.


# Refusals.


def test_refusals_are_equal_whatever_their_order() -> None:
    one, other = Refusal("a", "no"), Refusal("b", "never")

    assert Refusals([one, other]) == Refusals([other, one, other])
    assert hash(Refusals([one, other])) == hash(Refusals([other, one]))
    assert Refusals([one]) != Refusals([other])
    assert (Refusals([one]) != Refusals([one])) is False
    assert pickle.loads(pickle.dumps(Refusals([one, other]))) == Refusals([one, other])


@rows(
    ("otherwise", "message"),
    [
        (lambda _: 1 / 0, "raised ZeroDivisionError"),
        (lambda _: Ping, "it must give an event"),
        (lambda _: None, "it must give an event"),
        (lambda _: event("ping"), "'ping' is the name of an event kind and of a plain event"),
    ],
)
def test_an_otherwise_that_fails_stops_the_program_before_anything_happens(otherwise: Any, message: str) -> None:
    records: list[Any] = []
    program = BProgram(
        says(sync(request=Ping(1), otherwise=otherwise)).named("gate"),
        says(sync(refuse=Ping, because="no")),
        listeners=[records.append],
    )

    with pytest.raises(bp.EventSetError, match=f"b-thread 'gate': its otherwise <lambda> .*{message}") as caught:
        trace(program)

    assert (caught.value.bthread, caught.value.event_set) == ("gate", otherwise)
    assert (records, program.status) == ([], "failed")


# Interrupts, blocks.


@bthread
def repeats(what: Any, times: int = 1) -> BThreadBody:
    """Request something some times."""
    for _ in range(times):
        yield sync(request=what)


def test_a_called_b_thread_is_a_value_that_runs_nothing() -> None:
    assert repeats(HOT, times=2) == repeats(HOT, times=2)
    assert hash(repeats(HOT, times=2)) == hash(repeats(HOT, times=2))
    assert repeats(HOT) != repeats(COLD)


def test_a_b_thread_is_named_by_its_function_or_by_its_decorator() -> None:
    @bthread(name="guard of the gate")
    def guard() -> BThreadBody:
        yield sync(block=HOT)

    assert repeats(HOT).name == "repeats"
    assert guard().name == "guard of the gate"
    assert guard().named("other").name == "other"


def test_priority_stands_in_the_decorator_or_with_the_value() -> None:
    @bthread(priority=5)
    def urgent() -> BThreadBody:
        yield sync(request=HOT)

    assert trace(BProgram(repeats(COLD), urgent())) == [HOT, COLD]
    assert trace(BProgram(repeats(COLD).at_priority(6), urgent())) == [COLD, HOT]


def test_a_function_that_yields_nothing_is_blamed_by_name_when_it_starts() -> None:
    @bthread
    def forgets() -> BThreadBody:  # type: ignore[empty-body]
        """Never yield."""

    with pytest.raises(bp.BThreadError, match="'forgets': its function returned None; it must yield sync") as caught:
        trace(BProgram(forgets()))

    assert (caught.value.bthread, caught.value.event, caught.value.step) == ("forgets", None, 0)


def test_a_helper_that_returns_a_generator_is_a_b_thread_too() -> None:
    @bthread
    def helper() -> BThreadBody:
        return says(sync(request=HOT)).begin()

    assert trace(BProgram(helper())) == [HOT]


def test_a_partial_function_is_named_by_what_it_calls() -> None:
    once = bthread(partial(repeats.function, HOT))

    assert isinstance(once(), bp.BThread)
    assert once().name == "repeats"


class Junction:
    """An object with b-threads as methods."""

    def __init__(self, name: str) -> None:
        self.name = name

    @bthread
    def passes(self, times: int) -> BThreadBody:
        for _ in range(times):
            yield sync(request=event(self.name))


def test_a_b_thread_can_be_a_method() -> None:
    north, south = Junction("north"), Junction("south")

    assert trace(BProgram(north.passes(2), south.passes(1))) == [event("north"), event("north"), event("south")]
    assert north.passes(2) == north.passes(2) != south.passes(2)
    assert Junction.passes.__name__ == "passes"


def test_b_threads_of_module_level_functions_can_be_pickled() -> None:
    guard = repeats(HOT, 2).named("guard").at_priority(3)

    again = pickle.loads(pickle.dumps(guard))

    assert again == guard
    assert trace(BProgram(again)) == [HOT, HOT]
    assert pickle.loads(pickle.dumps(repeats)) is repeats


def test_a_b_thread_of_an_inner_function_cannot_be_pickled_and_is_named() -> None:
    @bthread
    def inner() -> BThreadBody:
        yield sync(request=HOT)

    with pytest.raises((pickle.PicklingError, AttributeError), match="inner"):
        pickle.dumps(inner())
