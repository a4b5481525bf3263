import pickle
from functools import partial
from typing import Any

import pytest

from bp import BProgram, BThread, BThreadBody, BThreadError, bthread, event, sync
from tests.bp.programs import COLD, HOT, says, trace


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
