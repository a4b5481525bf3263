"""Temporal properties are monitors: what they forbid raises, what they demand is hot."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bp import BProgram, BThread, BThreadError, Event, event, sync, verify, where
from bp.verification.properties import absence, bounded_existence, existence, precedence, response
from tests.bp.programs import Ping, keeps_saying, kinds, says

P, S, Q, R = event("p"), event("s"), event("q"), event("r")

PATTERNS = ("absence", "bounded", "precedence", "existence", "response")
SCOPES: tuple[dict[str, Event], ...] = (
    {},
    {"after": Q},
    {"before": R},
    {"until": R},
    {"after": Q, "before": R},
    {"after": Q, "until": R},
)


def parts(trace: list[Event], scope: dict[str, Event]) -> Iterator[list[Event]]:
    """Yield the parts of a trace in which a scope is open and its property is demanded."""
    after, before = scope.get("after"), scope.get("before")
    closing = before or scope.get("until")
    part: list[Event] | None = [] if after is None else None
    for happened in trace:
        if part is not None and happened == closing:
            yield part
            part = None
            if after is None:
                return
        elif part is not None:
            part.append(happened)
        elif happened == after:
            part = []
    if part is not None and before is None:
        yield part


def keeps(name: str, part: list[Event]) -> bool:
    """Tell whether a part of a trace has a property, by its definition."""
    match name:
        case "absence":
            return P not in part
        case "bounded":
            return part.count(P) <= 2
        case "precedence":
            return P not in part or S in part[: part.index(P)]
        case "existence":
            return P in part
        case _:
            return all(S in part[at:] for at, happened in enumerate(part) if happened == P)


def monitor(name: str, scope: dict[str, Event]) -> BThread:
    match name:
        case "absence":
            return absence(P, **scope)
        case "bounded":
            return bounded_existence(P, 2, **scope)
        case "precedence":
            return precedence(S, P, **scope)
        case "existence":
            return existence(P, **scope)
        case _:
            return response(P, S, **scope)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PATTERNS), st.sampled_from(SCOPES), st.lists(st.sampled_from([P, S, Q, R]), max_size=8))
def test_a_monitor_finds_exactly_the_traces_that_break_its_property(
    name: str, scope: dict[str, Event], trace: list[Event]
) -> None:
    found = verify(says(*[sync(request=happened) for happened in trace]), monitor(name, scope))

    assert found.holds == all(keeps(name, part) for part in parts(trace, scope))


def test_a_broken_property_says_what_happened_and_where() -> None:
    forbidden = verify(says(sync(request=Q), sync(request=P)), absence(P, after=Q)).violations
    owed = verify(says(sync(request=P)), response(P, S)).violations

    assert "'absence of p': AssertionError: p happens after q" in forbidden[0].message
    assert [(violation.kind, violation.bthread) for violation in owed] == [("hot", "s after p")]


def test_a_response_that_is_put_off_for_ever_around_a_cycle_is_found() -> None:
    found = verify(says(sync(request=P)), keeps_saying(sync(request=Q)), response(P, S))

    assert kinds(found) == [("hot", "s after p")]
    assert found.violations[0].cycle == (Q,)


def test_properties_take_event_sets_and_lists_of_them() -> None:
    found = verify(says(sync(request=Ping(3))), precedence([S, Q], where(Ping, value=3)), absence([P, Ping], before=R))

    assert kinds(found) == [("error", "[s, q] before where(Ping, value=3)")]


def test_a_property_watches_a_run_too() -> None:
    with pytest.raises(BThreadError, match="p happens more than 1 times"):
        list(BProgram(says(sync(request=P), sync(request=P)), bounded_existence(P, 1)).run())


def test_a_property_of_what_never_comes_is_unreached() -> None:
    found = verify(says(sync(request=P)), absence(R, after=Q))

    assert found.holds
    assert not found
    assert found.coverage.unreached == ("absence of r",)
