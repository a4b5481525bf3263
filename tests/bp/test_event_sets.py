import pickle
from typing import Any

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from bp import ALL, NONE, BProgram, BThreadError, Event, EventSet, EventSetError, contains, event, sync, where
from bp.events import as_event_set
from tests.bp.programs import COLD, HOT, STOP, Ping, Pong, after, says, trace


@frozen
class LoudPing(Ping):
    volume: int = 11


def is_odd(happened: Any) -> bool:
    return bool(happened.value % 2)


EVENTS = [HOT, COLD, event("hot", data=1), *map(Ping, range(3)), *map(Pong, range(3)), Pong(1, "x"), LoudPing(1)]


def members(events: Any) -> list[Event]:
    """Return the known events in a set; an index must find the same."""
    found = [happened for happened in EVENTS if contains(as_event_set(events), happened)]
    for happened in EVENTS:
        program = BProgram(says(sync(block=events)))
        trace(program)
        assert bool(program.blockers(happened)) is (happened in found)
    return found


def test_an_event_is_the_set_of_itself() -> None:
    assert members(Ping(1)) == [Ping(1)]
    assert members(HOT) == [HOT]
    assert members(event("hot", data=1)) == [event("hot", data=1)]


def test_a_kind_contains_the_events_of_kinds_below_it() -> None:
    assert members(Ping) == [Ping(0), Ping(1), Ping(2), LoudPing(1)]
    assert members(where(Ping, value=1)) == [Ping(1), LoudPing(1)]
    assert members(where(Ping, is_odd)) == [Ping(1), LoudPing(1)]
    assert members(LoudPing) == [LoudPing(1)]
    assert members(Ping(1)) == [Ping(1)]


def test_where_selects_by_fields_by_predicate_and_by_both() -> None:
    assert members(where(Pong, value=1)) == [Pong(1), Pong(1, "x")]
    assert members(where(Pong, value=1, note="x")) == [Pong(1, "x")]
    assert members(where(Pong, is_odd)) == [Pong(1), Pong(1, "x")]
    assert members(where(Pong, is_odd, note="x")) == [Pong(1, "x")]


def test_where_takes_a_tuple_of_kinds() -> None:
    assert members(where((Ping, Pong), value=1)) == [Ping(1), Pong(1), Pong(1, "x"), LoudPing(1)]
    assert members(where((Ping, LoudPing), is_odd)) == [Ping(1), LoudPing(1)]
    assert where((Ping, Pong), value=1) == where((Pong, Ping), value=1)


def test_where_without_a_condition_is_the_kind() -> None:
    assert where(Ping) is Ping
    assert where((Ping, Pong)) == Ping | Pong
    assert members(where("hot")) == [HOT, event("hot", data=1)]


def test_sets_combine_by_or_and_and_not() -> None:
    assert members(HOT | Ping) == [HOT, Ping(0), Ping(1), Ping(2), LoudPing(1)]
    assert members(Ping & where((Ping, Pong), value=1)) == [Ping(1), LoudPing(1)]
    assert members(Ping & ~Ping(1)) == [Ping(0), Ping(2), LoudPing(1)]
    assert members(~(Ping | Pong)) == [HOT, COLD, event("hot", data=1)]
    assert members(ALL) == EVENTS
    assert members(NONE) == members(~ALL) == members(HOT & COLD) == []


def test_a_list_or_tuple_of_sets_is_their_union_anywhere() -> None:
    assert members([HOT, (COLD, [Ping])]) == [HOT, COLD, Ping(0), Ping(1), Ping(2), LoudPing(1)]
    assert sync(wait_for=[HOT, Ping]) == sync(wait_for=(Ping, HOT)) == sync(wait_for=HOT | Ping)
    assert members(HOT | [COLD]) == members([COLD] | HOT) == [HOT, COLD]
    assert members([]) == []


def test_event_sets_are_values() -> None:
    """Equal by what they say, hashable, so that they can be keys, and picklable."""
    pairs: list[tuple[Any, Any]] = [
        (HOT | COLD | Ping, Ping | (COLD | HOT)),
        (Ping & where(Ping, value=1), where(Ping, value=1) & Ping),
        (where(Pong, value=1, note="x"), where(Pong, note="x", value=1)),
        (where(Ping, is_odd), where(Ping, is_odd)),
        (~HOT, ~event("hot")),
    ]

    for one, other in pairs:
        assert one == other
        assert {one: "found"}[other] == "found"
        assert pickle.loads(pickle.dumps(one)) == one
    assert where(Ping, value=1) != where(Pong, value=1)
    assert ~HOT != HOT


def test_trivial_combinations_are_simplified() -> None:
    assert HOT | HOT is HOT
    assert HOT | NONE is HOT
    assert HOT | ALL == ALL
    assert Ping & ALL is Ping
    assert Ping & NONE == NONE
    assert ~~(HOT | COLD) == HOT | COLD


def test_a_value_in_where_is_frozen_like_a_payload() -> None:
    program = BProgram(says(sync(wait_for=where("list", data=[1, {"a": [2]}]))))

    receipt = after(program, event("list", data=(1, {"a": (2,)})))[0]

    assert receipt.state == "taken"
    assert program.status == "finished"


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        (lambda: where(Ping, valu=1), "Ping has no field 'valu'; it has value"),
        (lambda: where((Ping, Pong), note="x"), "Ping has no field 'note'"),
        (lambda: where("hot", value=1), "'hot' has no field 'value'; it has data"),
        (lambda: where(Ping(1), value=1), "this is no event kind"),
        (lambda: where([Ping], value=1), "this is no event kind"),
        (
            lambda: where(Ping, 3),  # type: ignore[arg-type]
            "a predicate is a function of the event",
        ),
        (lambda: where(Ping, value=object()), "can change"),
        (lambda: HOT | "cold", "'cold' is no event set"),
        (lambda: Ping & 3, "3 is no event set"),
        (lambda: sync(wait_for="hot"), "'hot' is no event set; use an event, an event kind"),
        (lambda: sync(block={HOT}), "is no event set"),
        (lambda: sync(interrupt=[HOT, None]), "None is no event set"),
    ],
)
def test_what_is_no_event_set_is_refused_at_that_line(mistake: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        mistake()


def fails(happened: Any) -> bool:
    raise LookupError(f"no {happened.value}")


def says_yes(happened: Any) -> bool:
    return "yes"  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("predicate", "found"), [(fails, "raised LookupError: no 1"), (says_yes, r"gave 'yes' for Ping\(value=1\)")]
)
@pytest.mark.parametrize("word", ["wait_for", "block", "interrupt", "refuse"])
def test_a_predicate_that_fails_stops_the_program_before_anything_happens(
    word: str, predicate: Any, found: str
) -> None:
    notes: list[Any] = []
    words: dict[str, Any] = {word: where(Ping, predicate)} | ({"because": "no"} if word == "refuse" else {})
    program = BProgram(says(sync(request=Ping(1))), says(sync(**words)).named("guard"), listeners=[notes.append])

    with pytest.raises(EventSetError, match=f"b-thread 'guard': the predicate of where.* {found}") as caught:
        trace(program)

    assert caught.value.bthread == "guard"
    assert caught.value.event_set == where(Ping, predicate)
    assert caught.value.event == Ping(1)
    assert (notes, program.status) == ([], "failed")


def test_a_predicate_that_fails_is_a_b_thread_error_too() -> None:
    program = BProgram(says(sync(request=Ping(1), block=where(Ping, fails))))

    with pytest.raises(BThreadError):
        trace(program)


def test_a_predicate_is_asked_about_its_kinds_only() -> None:
    program = BProgram(says(sync(block=where(Ping, fails))), says(sync(request=[HOT, Pong(1)])))

    assert trace(program) == [HOT]


def event_sets() -> st.SearchStrategy[Any]:
    leaves = st.sampled_from(
        [HOT, Ping(1), Ping, Pong, ALL, NONE, where((Ping, Pong), value=1), where(Pong, note="x"), where(Ping, is_odd)]
    )
    return st.recursive(
        leaves,
        lambda parts: st.one_of(
            st.tuples(parts, parts).map(lambda pair: as_event_set(list(pair))),
            st.tuples(parts, parts).map(lambda pair: pair[0] & pair[1]),
            parts.map(lambda part: ~part),
        ),
        max_leaves=6,
    )


@given(event_sets())
def test_the_index_finds_what_a_set_contains(events: EventSet) -> None:
    members(events)


@given(event_sets(), event_sets())
def test_combinations_are_what_logic_says(one: Any, other: Any) -> None:
    for happened in EVENTS:
        inside, outside = contains(one, happened), contains(other, happened)
        assert contains(as_event_set([one, other]), happened) is (inside or outside)
        assert contains(one & other, happened) is (inside and outside)
        assert contains(~one, happened) is not inside


def test_a_set_never_contains_what_only_looks_alike() -> None:
    assert not contains(STOP, event("stop", data=1))
    assert not contains(where(Ping, value=1), Pong(1))


def test_membership_is_asked_with_in_and_of_lists_too() -> None:
    assert HOT in (HOT | Ping)
    assert Ping(1) in Ping
    assert Ping(1) not in ~Ping
    assert contains([HOT, [Ping]], Ping(1))
    assert not contains((HOT, COLD), Ping(1))


@pytest.mark.parametrize("wrong", [3, "hot", lambda happened: True, Ping])
def test_what_is_no_event_is_no_member_and_what_is_no_set_has_none(wrong: Any) -> None:
    with pytest.raises(TypeError, match="no event"):
        contains(HOT if wrong is Ping else wrong, Ping if wrong is Ping else HOT)
