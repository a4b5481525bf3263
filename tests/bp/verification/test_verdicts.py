"""What `verify` finds in small programs: each kind of violation where it is, and none where it is not.

That it finds the same as a naive exploration of random programs is tested in the `law` of each part.
"""

from itertools import permutations
from typing import Any, NamedTuple

import pytest

from bp import ALL, BThread, BThreadBody, Event, Violation, any_of, bthread, event, start, sync, verify, where
from tests.bp.programs import STOP, Ping, Pong, fails_after, keeps_saying, requests, says

A, B, C = event("a"), event("b"), event("c")
Found = tuple[Any, ...]  # kind, name of the b-thread, trace, and the cycle if there is one


class Case(NamedTuple):
    """A program with its environment, and what is wrong with it."""

    program: tuple[BThread, ...]
    found: list[Found] = []  # noqa: RUF012 - never changed
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed


def blocks(*events: Any) -> BThread:
    return keeps_saying(sync(block=list(events))).named("blocks")


def refuses(*events: Any) -> BThread:
    return keeps_saying(sync(refuse=list(events), because="no")).named("refuses")


def no_answer(asked: Any) -> Any:
    raise ValueError("no answer")


def waits(what: Any) -> BThreadBody:
    yield sync(wait_for=what)
    yield sync(wait_for=what)


def below() -> BThreadBody:
    yield from waits(A)
    yield sync(wait_for=B)


@bthread
def two_generators_below() -> BThreadBody:
    yield from below()
    raise AssertionError


@bthread
def for_over_equal_elements() -> BThreadBody:
    for _ in ("x", "x", "x"):
        yield sync(wait_for=A)
    raise AssertionError


@bthread
def cleans_up() -> BThreadBody:
    try:
        yield sync(wait_for=B, interrupt=A)
    finally:
        raise ValueError


@bthread
def starts_itself() -> BThreadBody:
    yield start(starts_itself())


@bthread
def starts_for_ever() -> BThreadBody:
    while True:
        yield start(requests(A))


@bthread
def remembers_its_choice() -> BThreadBody:
    said = yield sync(request=any_of(A, B))
    yield sync(request=C, wait_for=said)


@bthread
def hears_otherwise() -> BThreadBody:
    said = yield sync(request=A, otherwise=lambda refusals: Ping(len(refusals)))
    assert said == A


@bthread
def starter(first: Any, second: Any, waits_for: Any) -> BThreadBody:
    yield sync(wait_for=waits_for)
    yield start(requests(first), requests(second))


@bthread
def closes_over() -> BThreadBody:
    """What its predicate looks at would be empty if its generator were closed."""
    closed = [1]
    try:
        yield sync(block=where(Ping, lambda ping: ping.value in closed))
    finally:
        closed.clear()


ERRORS = {
    "two places where a monitor waits for one event look alike, and are not": Case(
        (requests(A, 2), requests(B), fails_after(A, A, B)), [("error", "fails_after", (A, A, B))]
    ),
    "the place of a monitor may be two generators below": Case(
        (requests(A, 2), requests(B), two_generators_below()), [("error", "two_generators_below", (A, A, B))]
    ),
    "the place of a monitor may be only in a for": Case(
        (requests(A, 3), for_over_equal_elements()), [("error", "for_over_equal_elements", (A, A, A))]
    ),
    "a started b-thread fails": Case(
        (requests(A), requests(B), says(sync(wait_for=A), start(fails_after(B)))), [("error", "fails_after", (A, B))]
    ),
    "b-threads fail at their start": Case(
        (fails_after(), fails_after().named("other"), requests(A)),
        [("error", "fails_after", ()), ("error", "other", ())],
    ),
    "each failing b-thread is told once, with a shortest trace": Case(
        (requests(A, 3), requests(B, 3), fails_after(A).named("one"), fails_after(A, B)), [("error", "one", (A,))]
    ),
    "b-threads that fail on one event are all told": Case(
        (requests(A), fails_after(A).named("one"), fails_after(A).named("other")),
        [("error", "one", (A,)), ("error", "other", (A,))],
    ),
    "a statement that is none": Case((says(sync(request=A), None),), [("error", "says", (A,))]),
    "a predicate that fails": Case(
        (requests(Ping(1)), keeps_saying(sync(block=where(Ping, no_answer)))), [("error", "keeps_saying", ())]
    ),
    "a predicate that need not be asked, while the first choice can be had": Case(
        (requests((Ping(1), Pong(1))), keeps_saying(sync(block=where(Pong, no_answer))))
    ),
    "an otherwise that fails": Case((says(sync(request=A, otherwise=no_answer)), refuses(A)), [("error", "says", ())]),
    "a finally that fails on an interrupt": Case((cleans_up(), requests(A)), [("error", "cleans_up", (A,))]),
    "a finally that fails when the search is over": Case((cleans_up(), requests(C))),
    "starts without end": Case((starts_itself(),), [("error", "starts_itself", ())]),
    "starts of others without end": Case((starts_for_ever(),), [("error", "starts_for_ever", ())]),
    "an event that must never happen, requested": Case((requests(A),), [("never", None, (A,))], {"never": A}),
    "promised": Case((), [("never", None, (A,))], {"never": A, "environment": [requests(A)]}),
    "possible": Case((), [("never", None, (A,))], {"never": [A], "possible": [A]}),
    "an otherwise": Case(
        (says(sync(request=B, otherwise=lambda refusals: A)), refuses(B)), [("never", None, (A,))], {"never": A}
    ),
    "an otherwise that was blocked when it was met": Case(
        (says(sync(request=A, otherwise=lambda refusals: B)), refuses(A), says(sync(wait_for=C, block=B))),
        [("never", None, (C, B))],
        {"never": B, "environment": [requests(C)]},
    ),
    "each set of a list is a violation of its own": Case(
        (requests(A), requests(Ping(1))),
        [("never", None, (A,)), ("never", None, (A,)), ("never", None, (Ping(1),))],
        {"never": [A, where(Ping, value=2), Ping, ALL]},
    ),
}

ENDS = {
    "a blocked request": Case((requests(A), blocks(A)), [("deadlock", None, ())]),
    "a cold wait": Case((requests(A), says(sync(wait_for=B)))),
    "a hot wait": Case((requests(A), says(sync(wait_for=B, hot=True))), [("hot", "says", (A,))]),
    "one deadlock state, from two": Case(
        (says(sync(request=any_of(A, B)), sync(request=C)), blocks(C)), [("deadlock", None, (A,))]
    ),
    "two deadlock states": Case(
        (remembers_its_choice(), blocks(C)), [("deadlock", None, (A,)), ("deadlock", None, (B,))]
    ),
    "a request that the environment frees": Case(
        (requests(A), says(sync(block=A, wait_for=B))), [], {"environment": [requests(B)]}
    ),
    "a request that only a possible event frees": Case(
        (requests(A), says(sync(block=A, wait_for=B))), [("deadlock", None, ())], {"possible": [B]}
    ),
    "a blocked environment": Case((blocks(A),), [], {"environment": [requests(A)]}),
    "b-threads that the environment starts are environment": Case(
        (blocks(B),), [], {"environment": [says(sync(request=A), start(requests(B)))]}
    ),
    "external events come only when no internal event can": Case(
        (requests(A), fails_after(B, A)), [], {"environment": [requests(B)], "possible": [B]}
    ),
    "promised events come in any order": Case(
        (fails_after(A, B).named("one"), fails_after(B, A).named("other")),
        [("error", "one", (A, B)), ("error", "other", (B, A))],
        {"environment": [requests(A), requests(B)], "order": "run"},
    ),
    "possible events come as often as they like, or never": Case(
        (fails_after(STOP, STOP), says(sync(wait_for=STOP, hot=True))),
        [("hot", "says", ()), ("error", "fails_after", (STOP, STOP))],
        {"possible": [STOP]},
    ),
    "possible events that are blocked do not come": Case((fails_after(STOP), blocks(STOP)), [], {"possible": [STOP]}),
    "a request is answered by its otherwise when it is refused": Case(
        (hears_otherwise(), refuses(A), blocks(A)), [("error", "hears_otherwise", (Ping(1),))]
    ),
    "one that is held is not answered": Case((hears_otherwise(), blocks(A)), [("deadlock", None, ())]),
    "one that is free is not answered": Case((hears_otherwise(),)),
    "otherwise does not stand in while one event is only held": Case(
        (says(sync(request=[A, B], otherwise=lambda refusals: C)), refuses(A), blocks(B)), [("deadlock", None, ())]
    ),
    "otherwise stands in when all is refused": Case(
        (says(sync(request=[A, B], otherwise=lambda refusals: C)), refuses(A, B)), [("never", None, (C,))], {"never": C}
    ),
    "who takes an event as otherwise advances once": Case(
        (
            says(sync(request=A, otherwise=lambda refusals: B), sync(wait_for=STOP, hot=True)),
            *(requests(B), refuses(A), fails_after(B, B)),
        ),
        [("hot", "says", (B,))],
    ),
    "an interrupted b-thread is over": Case(
        (requests(A), says(sync(request=B, block=C, interrupt=A)), requests(C), blocks(B))
    ),
    "every order of priorities is tried": Case(
        (requests(A).at_priority(5), requests(B), fails_after(B, A)), [("error", "fails_after", (B, A))]
    ),
    "in run order only that of the scheduler": Case(
        (requests(A).at_priority(5), requests(B), fails_after(B, A)), [], {"order": "run"}
    ),
    "alternatives are tried": Case(
        (requests(any_of(A, B)),), [("never", None, (A,)), ("never", None, (B,))], {"never": [A, B]}
    ),
    "in run order the first": Case(
        (requests(any_of(A, B)),), [("never", None, (A,))], {"never": [A, B], "order": "run"}
    ),
    "in run order the age of started b-threads is state": Case(
        (starter(A, B, Ping(1)), starter(B, A, Ping(2)), fails_after(B, A)),
        [("error", "fails_after", (Ping(2), B, A))],
        {"order": "run", "environment": [requests(any_of(Ping(1), Ping(2)))]},
    ),
    "the generator of a statement is kept": Case((closes_over(), requests(Ping(1))), [("deadlock", None, ())]),
}


@bthread
def lasso(to_p: Event, to_q: Event, back: Event) -> BThreadBody:
    """Hot in w and q, cold in p: around by p it is cold now and then, around by w and q never."""
    while True:
        said = yield sync(request=any_of(to_p, to_q), hot=True)  # w
        if said == to_p:
            yield sync(request=to_q)  # p
        yield sync(request=back, hot=True)  # q


@bthread
def goes_around(*statements: Any) -> BThreadBody:
    while True:
        for statement in statements:  # noqa: UP028 (what is sent must be taken; a tuple cannot)
            yield statement


@bthread
def goes_around_by_one(*events: Event) -> BThreadBody:
    said = yield sync(request=any_of(*events))
    while True:
        yield sync(request=said)


@bthread
def hot_around_a_possible_event() -> BThreadBody:
    """Hot for ever only if STOP comes again and again."""
    while True:
        yield sync(wait_for=A, hot=True)
        if (yield sync(wait_for=[A, STOP], hot=True)) == A:
            yield sync(wait_for=A)


def hot_wait(what: Any) -> BThread:
    return says(sync(wait_for=what, hot=True))


CYCLES = {
    **{
        f"a hot cycle within a cold one, {names}": Case(
            (lasso(*map(event, names)),), [("hot", "lasso", (), tuple(map(event, names[1:])))]
        )
        for names in permutations("abc")
    },
    "cold now and then": Case((goes_around(sync(request=A, hot=True), sync(request=B)),)),
    "around without cooling": Case((keeps_saying(sync(request=A, hot=True)),), [("hot", "keeps_saying", (), (A,))]),
    "not fair to one who could always go on": Case((says(sync(request=B, hot=True)), keeps_saying(sync(request=A)))),
    "fair to one who can go on only now and then": Case(
        (says(sync(request=B, hot=True)), goes_around(sync(request=A, block=B), sync(request=C))),
        [("hot", "says", (), (A, C))],
    ),
    "one waits while others go around": Case((hot_wait(B), keeps_saying(sync(request=A))), [("hot", "says", (), (A,))]),
    "possible events promise nothing": Case(
        (hot_wait(A), keeps_saying(sync(wait_for=STOP))), [], {"environment": [requests(A)], "possible": [STOP]}
    ),
    "possible events keep no b-thread hot around a cycle": Case(
        (hot_around_a_possible_event(),), [], {"environment": [keeps_saying(sync(request=A))], "possible": [STOP]}
    ),
    "each promise is owed": Case(
        (hot_wait(B),), [], {"environment": [keeps_saying(sync(request=A)).named("one"), requests(B)]}
    ),
    "an alternative is owed nothing": Case(
        (hot_wait(B), keeps_saying(sync(request=any_of(A, B)))), [("hot", "says", (), (A,))]
    ),
    "in run order the scheduler owes nothing to one that it passes over": Case(
        (says(sync(request=B, hot=True)), keeps_saying(sync(request=A)).at_priority(1)),
        [("hot", "says", (), (A,))],
        {"order": "run"},
    ),
    "a started b-thread stays hot": Case(
        (says(sync(request=A), start(hot_wait(C).named("child"))), keeps_saying(sync(request=B))),
        [("hot", "child", (A,), (B,))],
    ),
    "loops of internal events are fine": Case(
        (says(sync(wait_for=STOP), *[sync(request=A)] * 2), keeps_saying(sync(request=B))), [], {"possible": [STOP]}
    ),
    "and reported when they are asked for": Case(
        (says(sync(wait_for=STOP), start(goes_around(sync(request=A), sync(request=B)))),),
        [("endless", None, (STOP,), (A, B))],
        {"possible": [STOP], "endless": True},
    ),
    "loops by way of an external event are not endless": Case(
        (goes_around(sync(wait_for=STOP), sync(request=A)),),
        [],
        {"environment": [keeps_saying(sync(request=STOP))], "possible": [STOP], "endless": True},
    ),
    "each endless component is a violation": Case(
        (goes_around_by_one(A, B),),
        [("endless", None, (A,), (A,)), ("endless", None, (B,), (B,))],
        {"endless": True},
    ),
}


def told(violation: Violation) -> Found:
    cycle = (violation.cycle,) if violation.cycle else ()
    return (violation.kind, violation.bthread, violation.trace, *cycle)


@pytest.mark.slow
def test_exactly_the_violations_of_each_program_are_found() -> None:
    wrong = {}
    for name, case in (ERRORS | ENDS | CYCLES).items():
        found = [told(violation) for violation in verify(*case.program, **case.options).violations]
        if sorted(found, key=repr) != sorted(case.found, key=repr):
            wrong[name] = found

    assert wrong == {}
