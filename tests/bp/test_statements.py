import pickle
from functools import partial
from typing import Any

import pytest

from bp import (
    NONE,
    BProgram,
    BThread,
    BThreadBody,
    BThreadError,
    Event,
    EventSetError,
    Refusal,
    Refusals,
    any_of,
    bthread,
    event,
    start,
    sync,
    where,
)
from tests.bp.programs import COLD, HOT, STOP, Ping, Pong, hears, keeps_saying, says, trace

INSTEAD = event("instead")


def instead(refusals: Refusals) -> Event:
    return INSTEAD


# What may be said.


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
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
        (lambda: start(says), r"start takes called b-threads, for example start\(guard\(\)\)"),  # type: ignore[arg-type]
        (lambda: start([says()]), "start takes called b-threads"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_statement_is_a_type_error_at_that_line(mistake: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        mistake()


def test_statements_are_equal_by_what_they_say() -> None:
    assert sync(request=[HOT], block=[COLD]) == sync(request=HOT, block=COLD)
    assert hash(sync(request=HOT)) == hash(sync(request=(HOT,)))
    assert sync(request=[HOT, COLD]) != sync(request=any_of(HOT, COLD))
    assert sync(wait_for=[]) == sync(wait_for=NONE) == sync()


def test_because_is_frozen() -> None:
    reasons = ["a secret was read"]

    said = sync(refuse=HOT, because=reasons)
    reasons.append("later")

    assert said.because == ("a secret was read",)


# Requests.


def test_an_empty_request_is_no_request() -> None:
    program = BProgram(says(sync(request=[])), says(sync(request=any_of())))

    assert trace(program) == []
    assert program.status == "idle"


def test_a_list_is_an_order_of_preference_of_which_the_first_selectable_is_offered() -> None:
    wants = says(sync(request=[HOT, COLD, STOP]))

    assert trace(BProgram(wants)) == [HOT]
    assert trace(BProgram(wants, says(sync(block=HOT)))) == [COLD]
    assert trace(BProgram(wants, says(sync(refuse=HOT, because="no"), sync(block=COLD)))) == [COLD]


def test_a_request_advances_on_any_of_its_events_whichever_b_thread_offers_it() -> None:
    heard: list[Any] = []
    program = BProgram(hears(heard, sync(request=[HOT, COLD])), says(sync(request=COLD)).at_priority(1))

    assert trace(program) == [COLD]
    assert heard == [COLD]


def test_any_of_takes_the_first_selectable_as_written_under_the_priority_strategy() -> None:
    assert trace(BProgram(says(sync(request=any_of(HOT, COLD))))) == [HOT]
    assert trace(BProgram(says(sync(request=any_of(HOT, COLD), block=HOT)))) == [COLD]


def test_equal_requests_are_one_occurrence_and_all_advance() -> None:
    program = BProgram(*[says(sync(request=Ping(1))) for _ in range(3)])

    assert trace(program) == [Ping(1)]
    assert program.status == "finished"


def test_a_b_thread_that_requests_and_waits_for_an_event_advances_once() -> None:
    heard: list[Any] = []
    program = BProgram(hears(heard, sync(request=HOT, wait_for=[HOT, Ping]), sync(wait_for=HOT)))

    assert trace(program) == [HOT]
    assert heard == [HOT]


def test_the_selected_event_itself_is_sent_into_the_b_thread() -> None:
    heard: list[Any] = []
    happened = Ping(1)

    trace(BProgram(hears(heard, sync(wait_for=Ping)), says(sync(request=happened))))

    assert heard[0] is happened


# Refusals.


def test_a_refused_request_is_answered_by_its_otherwise() -> None:
    heard: list[Any] = []
    gate = hears(heard, sync(request=HOT, otherwise=lambda refusals: event("rejected", data=refusals)))
    program = BProgram(gate, says(sync(refuse=HOT, because="too late")).named("clock"))

    happened = trace(program)

    assert happened == [event("rejected", data=(Refusal("clock", "too late"),))]
    assert heard == happened


def test_without_otherwise_a_refusal_is_a_block() -> None:
    program = BProgram(says(sync(request=HOT)), says(sync(refuse=HOT, because="too late")))

    assert trace(program) == []
    assert program.status == "blocked"


def test_a_request_that_is_both_held_and_refused_counts_as_refused() -> None:
    program = BProgram(
        says(sync(request=HOT, otherwise=instead)), says(sync(block=HOT)), says(sync(refuse=HOT, because="no"))
    )

    assert trace(program) == [INSTEAD]


def test_otherwise_is_offered_only_when_every_event_of_the_request_is_refused() -> None:
    wants = says(sync(request=[HOT, COLD], otherwise=instead))
    refuses_hot = says(sync(refuse=HOT, because="no"))

    assert trace(BProgram(wants, refuses_hot)) == [COLD]
    assert trace(BProgram(wants, refuses_hot, says(sync(block=COLD)))) == []
    assert trace(BProgram(wants, refuses_hot, says(sync(refuse=COLD, because="no")))) == [INSTEAD]


def test_otherwise_hears_each_refuser_of_any_event_once_its_own_b_thread_included() -> None:
    asked: list[Refusals] = []

    def remember(refusals: Refusals) -> Event:
        asked.append(refusals)
        return INSTEAD

    program = BProgram(
        says(sync(request=[HOT, COLD], otherwise=remember, refuse=COLD, because="own")).named("self"),
        says(sync(refuse=[HOT, COLD], because="both")).named("both"),
        says(sync(refuse=HOT, because="urgent")).named("first").at_priority(1),
        says(sync(block=HOT)).named("silent"),
        says(sync(refuse=Ping, because="other")).named("other"),
    )

    trace(program)

    assert list(asked[0]) == [("first", "urgent"), ("self", "own"), ("both", "both")]


def test_refusals_are_equal_whatever_their_order() -> None:
    one, other = Refusal("a", "no"), Refusal("b", "never")

    assert Refusals([one, other]) == Refusals([other, one, other])
    assert hash(Refusals([one, other])) == hash(Refusals([other, one]))
    assert Refusals([one]) != Refusals([other])
    assert (Refusals([one]) != Refusals([one])) is False
    assert pickle.loads(pickle.dumps(Refusals([one, other]))) == Refusals([one, other])


def test_a_refusal_is_a_level_decided_anew_at_each_selection() -> None:
    """When the refusal goes, the request is back."""
    refuser = says(sync(request=COLD, refuse=HOT, because="not yet"), sync(wait_for=STOP)).at_priority(1)

    assert trace(BProgram(says(sync(request=HOT, otherwise=instead)), refuser)) == [COLD, HOT]


def test_the_otherwise_event_can_itself_be_held_or_refused_and_has_no_second_otherwise() -> None:
    for held in (sync(block=INSTEAD), sync(refuse=INSTEAD, because="no")):
        program = BProgram(
            says(sync(request=HOT, otherwise=instead)), says(sync(refuse=HOT, because="no")), says(held).named("guard")
        )

        assert trace(program) == []
        assert program.status == "blocked"
        assert [blocker.bthread for blocker in program.blockers(INSTEAD)] == ["guard"]


def test_otherwise_is_asked_again_when_the_refusals_change() -> None:
    program = BProgram(
        says(sync(request=HOT, otherwise=lambda refusals: Pong(len(refusals)), block=Pong(1))),
        says(sync(refuse=HOT, because="no")),
        says(sync(wait_for=COLD), sync(refuse=HOT, because="never")),
    )
    assert trace(program) == []
    program.post(COLD)

    assert trace(program) == [COLD, Pong(2)]


def test_a_changed_because_changes_what_otherwise_hears() -> None:
    program = BProgram(
        keeps_saying(sync(request=HOT, otherwise=lambda refusals: event("no", data=refusals[0].because))),
        says(*[sync(refuse=HOT, because=number, wait_for=where("no")) for number in range(3)]),
    )

    happened = [program.step() for _ in range(3)]

    assert [step.event.data for step in happened if step] == [0, 1, 2]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
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

    with pytest.raises(EventSetError, match=f"b-thread 'gate': its otherwise <lambda> .*{message}") as caught:
        trace(program)

    assert (caught.value.bthread, caught.value.event_set) == ("gate", otherwise)
    assert (records, program.status) == ([], "failed")


def test_a_step_tells_the_refusals_that_its_event_answers() -> None:
    program = BProgram(
        says(sync(request=HOT, otherwise=instead), sync(request=COLD)),
        says(sync(refuse=HOT, because="no")).named("guard"),
    )

    first, second = program.run()

    assert first.refusals == (Refusal("guard", "no"),)
    assert second.refusals is None


# Interrupts, blocks.


def test_an_interrupt_closes_the_b_thread_and_runs_its_finally() -> None:
    closed: list[str] = []

    @bthread
    def guard() -> BThreadBody:
        try:
            yield sync(interrupt=HOT)
        finally:
            closed.append("closed")

    program = BProgram(guard(), says(sync(request=HOT)))

    trace(program)

    assert closed == ["closed"]
    assert program.status == "finished"


def test_an_interrupt_wins_over_advancing() -> None:
    heard: list[Any] = []

    program = BProgram(hears(heard, sync(request=HOT, wait_for=HOT, interrupt=HOT)))

    assert trace(program) == [HOT]
    assert (heard, program.status) == ([], "finished")


def test_a_b_thread_may_block_what_it_requests_itself() -> None:
    program = BProgram(says(sync(request=HOT, block=HOT)))

    assert trace(program) == []
    assert program.status == "blocked"


def test_a_blocked_event_is_never_selected_whatever_its_priority() -> None:
    program = BProgram(
        says(sync(request=HOT)).at_priority(100), says(sync(request=COLD)), says(sync(block=HOT)).at_priority(-100)
    )

    assert trace(program) == [COLD]


@bthread
def repeats(what: Any, times: int = 1) -> BThreadBody:
    """Request something some times."""
    for _ in range(times):
        yield sync(request=what)


def test_a_called_b_thread_is_a_value_that_runs_nothing() -> None:
    assert repeats(HOT, times=2) == repeats(HOT, times=2)
    assert hash(repeats(HOT, times=2)) == hash(repeats(HOT, times=2))
    assert repeats(HOT) != repeats(COLD)


def test_a_b_thread_can_be_started_again_and_again() -> None:
    twice = repeats(HOT, times=2)

    assert trace(BProgram(twice)) == trace(BProgram(twice)) == [HOT, HOT]


def test_a_b_thread_is_named_by_its_function_or_by_its_decorator() -> None:
    @bthread(name="guard of the gate")
    def guard() -> BThreadBody:
        yield sync(block=HOT)

    assert repeats(HOT).name == "repeats"
    assert guard().name == "guard of the gate"
    assert guard().named("other").name == "other"


def test_names_need_not_be_unique() -> None:
    program = BProgram(repeats(HOT), repeats(COLD))

    assert [step.bthread for step in program.run()] == ["repeats", "repeats"]


def test_a_b_thread_keeps_the_docstring_of_its_function() -> None:
    assert repeats.__doc__ == "Request something some times."


def test_priority_stands_in_the_decorator_or_with_the_value() -> None:
    @bthread(priority=5)
    def urgent() -> BThreadBody:
        yield sync(request=HOT)

    assert trace(BProgram(repeats(COLD), urgent())) == [HOT, COLD]
    assert trace(BProgram(repeats(COLD).at_priority(6), urgent())) == [COLD, HOT]


def test_wrong_arguments_are_a_type_error_at_that_line() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'time'"):
        repeats(HOT, time=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        repeats()  # type: ignore[call-arg]


@pytest.mark.parametrize("priority", ["high", 1.5, True])
def test_a_priority_is_an_integer(priority: Any) -> None:
    with pytest.raises(TypeError, match="a priority is an integer"):
        bthread(priority=priority)


def test_only_functions_are_decorated() -> None:
    with pytest.raises(TypeError, match="decorate a generator function"):
        bthread(3)  # type: ignore[call-overload]


def test_a_function_that_yields_nothing_is_blamed_by_name_when_it_starts() -> None:
    @bthread
    def forgets() -> BThreadBody:  # type: ignore[empty-body]
        """Never yield."""

    with pytest.raises(BThreadError, match="'forgets': its function returned None; it must yield sync") as caught:
        trace(BProgram(forgets()))

    assert (caught.value.bthread, caught.value.event, caught.value.step) == ("forgets", None, 0)


def test_a_helper_that_returns_a_generator_is_a_b_thread_too() -> None:
    @bthread
    def helper() -> BThreadBody:
        return says(sync(request=HOT)).begin()

    assert trace(BProgram(helper())) == [HOT]


def test_statements_may_sit_in_helpers_reached_by_yield_from() -> None:
    def inner() -> BThreadBody:
        return (yield sync(request=HOT))

    @bthread
    def outer() -> BThreadBody:
        said = yield from inner()
        yield sync(request=COLD, wait_for=said)

    assert trace(BProgram(outer())) == [HOT, COLD]


def test_a_partial_function_is_named_by_what_it_calls() -> None:
    once = bthread(partial(repeats.function, HOT))

    assert isinstance(once(), BThread)
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
