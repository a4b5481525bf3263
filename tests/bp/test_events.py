import copy
import dataclasses
import gc
import pickle
from typing import Any

import attrs
import pytest
from attrs import define, frozen

from bp import BProgram, BThreadError, Event, event, sync, where
from tests.bp.programs import COLD, HOT, Ping, Pong, says, trace


@frozen
class LoudPing(Ping):
    volume: int = 11


def test_a_kind_is_named_by_its_class_in_snake_case() -> None:
    @frozen
    class HTTPAnswerGiven(Event):
        pass

    assert (Ping.name, LoudPing.name, HTTPAnswerGiven.name) == ("ping", "loud_ping", "http_answer_given")
    assert Ping(1).name == "ping"


def test_events_are_equal_by_kind_and_data() -> None:
    assert Ping(1) == Ping(1)
    assert hash(Ping(1)) == hash(Ping(1))
    assert Ping(1) != Ping(2)
    others: list[Event] = [Pong(1), LoudPing(1), event("ping", data=1)]
    assert Ping(1) not in others


def test_equality_is_that_of_python_so_true_and_one_are_one_event() -> None:
    program = BProgram(says(sync(request=Ping(1))), says(sync(request=Ping(True))))

    happened = trace(program)

    assert happened == [Ping(1)]
    assert program.status == "finished"


def test_a_plain_event_is_one_object_for_each_name() -> None:
    assert event("hot") is HOT
    assert copy.deepcopy(HOT) is HOT
    assert pickle.loads(pickle.dumps(HOT)) is HOT


def test_plain_events_without_a_reference_are_forgotten() -> None:
    from bp.events import _NAMED

    event("met only once")
    gc.collect()

    assert "met only once" not in _NAMED


def test_a_plain_event_may_carry_data() -> None:
    warm = event("temperature", data={"celsius": [21, 22]})

    assert warm == event("temperature", data={"celsius": (21, 22)})
    assert warm != event("temperature")
    assert warm.data["celsius"] == (21, 22)
    assert warm.name == "temperature"
    assert hash(warm) == hash(pickle.loads(pickle.dumps(warm)))
    assert repr(event("temperature", data=21)) == "event('temperature', data=21)"


def test_a_plain_event_with_data_is_found_by_its_name_and_its_data() -> None:
    program = BProgram(
        says(sync(wait_for=where("temperature", data=21), block=where("temperature", data=20))),
        says(sync(request=[event("temperature", data=20), event("temperature", data=21)])),
    )

    assert trace(program) == [event("temperature", data=21)]


def test_events_survive_pickling() -> None:
    for happened in (HOT, event("temperature", data=(1, 2)), Ping(1), LoudPing(1)):
        assert pickle.loads(pickle.dumps(happened)) == happened
    assert pickle.loads(pickle.dumps(Ping)) is Ping


def test_events_cannot_be_changed() -> None:
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Ping(1).value = 2  # type: ignore[misc]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        HOT.name = "cold"


def test_a_field_may_not_be_called_name() -> None:
    with pytest.raises(TypeError, match="Named may not have a field called 'name'"):

        class Named(Event):
            name: str  # type: ignore[misc]

    with pytest.raises(TypeError, match="called 'name'"):
        frozen(type("Named", (Event,), {"name": attrs.field()}))


def test_a_dataclass_is_no_event_kind() -> None:
    with pytest.raises(TypeError, match="event kind Measured: put attrs' @frozen on the class, not @dataclass"):

        @dataclasses.dataclass(frozen=True)
        class Measured(Event):
            value: int


def test_a_kind_must_be_frozen_and_says_so_when_its_first_event_is_made() -> None:
    class Plain(Event):
        pass

    @define
    class Mutable(Event):
        value: int

    class Inherits(Ping):
        pass

    for make in (Plain, lambda: Mutable(1), lambda: Inherits(1)):
        with pytest.raises(TypeError, match="is not frozen; put attrs' @frozen on the class"):
            make()


def test_a_kind_must_be_hashable_by_value() -> None:
    @frozen(eq=False)
    class ByIdentity(Event):
        value: int

    @frozen(unsafe_hash=False)
    class Unhashable(Event):
        value: int

    for make in (lambda: ByIdentity(1), lambda: Unhashable(1)):
        with pytest.raises(TypeError, match="not hashable values; leave eq and hash to @frozen"):
            make()


def test_every_field_of_a_kind_counts_in_its_equality() -> None:
    """Two equal events are one occurrence; a block of one of them could not be told from a block of the other."""

    @frozen
    class Annotated(Event):
        note: str = attrs.field(eq=False)

    with pytest.raises(TypeError, match="field 'note' must count"):
        Annotated("x")


def test_a_kind_leaves_freezing_to_the_engine() -> None:
    with pytest.raises(TypeError, match="may not define __attrs_post_init__"):

        class Hooked(Event):
            def __attrs_post_init__(self) -> None: ...


@pytest.mark.parametrize("name", ["", None, 3, HOT])
def test_a_plain_event_needs_a_name(name: Any) -> None:
    with pytest.raises(TypeError, match="the name of an event is a text"):
        event(name)


def test_a_kind_and_a_plain_event_of_one_name_are_an_error() -> None:
    clashes = [
        says(sync(request=Ping(1)), sync(request=event("ping"))),
        says(sync(wait_for=Ping, block=event("ping"))),
        says(sync(wait_for=where(Ping, value=1) | where("ping", data=1))),
    ]

    for clash in clashes:
        with pytest.raises(BThreadError, match="'ping' is the name of an event kind and of a plain event"):
            trace(BProgram(clash))


def test_the_base_of_all_kinds_has_no_events() -> None:
    with pytest.raises(TypeError):
        Event()
    with pytest.raises(BThreadError, match="use ALL"):
        trace(BProgram(says(sync(wait_for=Event))))


def test_plain_events_show_how_they_are_made() -> None:
    assert repr(COLD) == "event('cold')"
