"""The rules of a step, each with a small program: what happens, and how the program stands at its end.

That the engine does the same as an independent reference on random programs is tested in `test_against_reference`.
"""

from typing import Any, NamedTuple

from bp import BProgram, BThread, BThreadBody, Event, Refusal, Refusals, any_of, bthread, event, start, sync, where
from tests.bp.programs import COLD, HOT, STOP, Ping, Pong, alternate, requests, says, trace

INSTEAD = event("instead")


def instead(refusals: Refusals) -> Event:
    return INSTEAD


def counts(refusals: Refusals) -> Event:
    return Pong(len(refusals))


def tells(refusals: Refusals) -> Event:
    return event("no", data=refusals)


class Case(NamedTuple):
    """A program; the posts that it gets whenever it rests, one by one; what happens; its status at the end."""

    bthreads: tuple[BThread, ...]
    happens: list[Event]
    status: str = "finished"
    posts: tuple[Event, ...] = ()


def blocks(*events: Any) -> BThread:
    return says(sync(block=list(events)))


def refuses(*events: Any, because: str = "no") -> BThread:
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
        [event("no", data=(Refusal("guard", "too late"),)), heard(event("no", data=(Refusal("guard", "too late"),)))],
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
        [event("no", data=(Refusal("guard", 0),)), event("no", data=(Refusal("guard", 1),))],
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
