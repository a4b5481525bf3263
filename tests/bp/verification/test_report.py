"""What a verification never came to is told, and is not verified."""

import json
from functools import partial
from typing import Any, NamedTuple
from xml.etree import ElementTree

import bp
from bp import BThread, BThreadBody, any_of, bthread, draw_bthread, event, start, sync, verify, where
from bp.runner import LATER, Effect
from bp.verification.drawing import Edge, Graph, Node
from tests.bp.programs import COLD, HOT, STOP, Ping, alternate, fails_after, keeps_saying, requests, says

A, B, ALARM = event("a"), event("b"), event("alarm")


class Case(NamedTuple):
    """A program, the options of `verify`, and what of its coverage must be as told; `whole`: it is a verdict."""

    program: tuple[BThread, ...]
    options: dict[str, Any]
    covered: dict[str, tuple[Any, ...]]
    whole: bool = False


def guard(*statements: Any) -> BThread:
    return says(*statements).named("guard")


@bthread
def answers(what: bp.Event, *functions: Any, **others: Any) -> BThreadBody:
    yield sync(wait_for=what)


@bthread
def starts(*what: bp.Event) -> BThreadBody:
    yield sync(request=A)
    yield start(*[says(sync(wait_for=each)).named("child") for each in what])


@bthread
def larger_each_time() -> BThreadBody:
    for least in (0, 1, 2):
        yield sync(wait_for=where(Ping, lambda ping: ping.value > least) | A)  # noqa: B023


def is_large(ping: Ping) -> bool:
    return ping.value > 1


def watches(word: str) -> BThread:
    return says(sync(wait_for=A), sync(**{"wait_for": A, word: where(Ping, is_large) | A})).named("watches")


REQUESTS_EITHER = requests(any_of(A, B))
REFUSED = says(sync(request=A, otherwise=lambda refusals: B)), keeps_saying(sync(refuse=A, because="no"))
UNTIL_B: Any = Effect(Ping, lambda _: LATER, (Ping,), lambda *_: Ping(0), until=B).until
CLOCK = keeps_saying(sync(request=A)).named("clock"), fails_after(ALARM)
COVERED: dict[str, Case] = {
    "a program that never rests never hears its environment": Case(
        CLOCK,
        {"environment": [requests(ALARM)]},
        {"silent": ("requests",), "unreached": ("fails_after",)},
    ),
    "nor what is possible": Case(
        CLOCK,
        {"possible": [ALARM]},
        {"silent": ("possible= (the program never rests)",), "unreached": ("fails_after",)},
    ),
    **{
        f"a rule about what no b-thread requests is unreached: {rule}": Case(
            (requests(ALARM), guard(rule)), {}, {"unreached": ("guard",)}
        )
        for rule in (
            *(sync(block=B), sync(refuse=B, because="no"), sync(wait_for=B), sync(wait_for=A, interrupt=B)),
            sync(block=where(Ping, value=1)),
        )
    },
    "a guard is reached when it has something to block": Case(
        (REQUESTS_EITHER, guard(sync(block=B))), {}, {}, whole=True
    ),
    "also from outside": Case((says(sync(wait_for=A)), guard(sync(block=B))), {"possible": [A, B]}, {}, whole=True),
    "a guard of an alternative is reached": Case((*REFUSED, guard(sync(block=B))), {}, {"unreached": ("says",)}),
    "an event from outside is a candidate at rest": Case(
        (requests(A), guard(sync(block=ALARM))), {"environment": [requests(any_of(ALARM, B))]}, {}, whole=True
    ),
    "and only there": Case(
        (keeps_saying(sync(request=A)), guard(sync(block=ALARM))), {"possible": [ALARM]}, {"unreached": ("guard",)}
    ),
    "b-threads of one function are told apart by their arguments": Case(
        (requests(A), fails_after(ALARM), fails_after(B), says(sync(block=B))),
        {"environment": [requests(B)]},
        {"unreached": ("fails_after(alarm)",), "silent": ("requests(b)",)},
    ),
    "arguments that are functions are told by their names, and lambdas not at all": Case(
        (
            requests(A),
            answers(ALARM, lambda: A, verify, partial(lambda _: A, 1), UNTIL_B),
            answers(B, by=partial(verify), to=lambda: A),
        ),
        {},
        {"unreached": ("answers(alarm, verify)", "answers(b, by=verify)")},
    ),
    "started b-threads are covered by name": Case((starts(ALARM),), {}, {"unreached": ("child",)}),
    "one of a name is enough": Case((starts(B, ALARM), says(sync(wait_for=A), sync(request=B))), {}, {}, whole=True),
    "a b-thread that is over at once is reached": Case((says(), requests(A)), {}, {}, whole=True),
    "an environment b-thread that only waits promises nothing yet": Case(
        (requests(A),),
        {"environment": [says(sync(wait_for=ALARM), sync(request=STOP)).named("answers")]},
        {},
        whole=True,
    ),
    **{
        f"a predicate that accepts nothing is unreached, also in a union: {word}": Case(
            (watches(word),), {"possible": [A, Ping(1)]}, {"unreached": ("watches: where(Ping, is_large)",)}
        )
        for word in ("wait_for", "block", "interrupt")
    },
    **{
        f"once it accepted an event it is reached: {word}": Case(
            (watches(word),), {"possible": [A, Ping(2)]}, {"unreached": ()}
        )
        for word in ("wait_for", "block", "interrupt")
    },
    "whatever it compares with": Case((larger_each_time(),), {"possible": [A, Ping(2)]}, {}, whole=True),
    "a b-thread that is passed over for ever is unreached": Case(
        (keeps_saying(sync(request=A)).at_priority(1), requests(B)), {"free": []}, {"unreached": ("requests",)}
    ),
}


def test_what_was_never_reached_is_told() -> None:
    wrong = {}
    for name, case in COVERED.items():
        found = verify(*case.program, **case.options)
        told = {field: getattr(found.coverage, field) for field in case.covered}
        if told != case.covered or case.whole > bool(found) or found.coverage.complete < case.whole:
            wrong[name] = (told, str(found))

    assert wrong == {}


def test_what_was_never_reached_is_told_in_words() -> None:
    clock = verify(*CLOCK, environment=[requests(ALARM)])

    assert str(clock).splitlines() == [
        "unreached: 1 state, 1 transition",
        str(clock.agreed),
        "environment that never took a step: requests",
        "never reached: fails_after",
    ]
    assert (clock.holds, bool(clock)) == (True, False)


# Drawings.


def test_a_bthread_is_drawn_by_its_synchronization_points() -> None:
    graph = draw_bthread(alternate(), [HOT, COLD])

    assert graph == Graph(
        (Node("wait for hot\nblock cold"), Node("wait for cold\nblock hot")), (Edge(0, 1, "hot"), Edge(1, 0, "cold"))
    )


def test_a_bthread_that_ends_is_drawn_with_its_end() -> None:
    graph = draw_bthread(says(sync(request=A), sync(request=Ping(1), interrupt=STOP, hot=True)), [STOP])

    assert [node.label for node in graph.nodes] == ["request a", "request Ping(value=1)\ninterrupt stop\nhot", "over"]
    assert set(graph.edges) == {Edge(0, 1, "a"), Edge(1, 2, "Ping(value=1)"), Edge(1, 2, "stop")}
    assert graph.nodes[-1].end


def test_where_a_bthread_fails_is_drawn() -> None:
    graph = draw_bthread(says(sync(wait_for=A), "nonsense"), [A])
    at_once = draw_bthread(says("nonsense"))

    assert [node.bad for node in graph.nodes] == [False, True]
    assert graph.edges == (Edge(0, 1, "a"),)
    assert [node.bad for node in at_once.nodes] == [True]


def test_a_bthread_without_end_is_drawn_in_part() -> None:
    @bthread
    def counts() -> BThreadBody:
        count = 0
        while True:
            yield sync(request=A)
            count += 1

    graph = draw_bthread(counts(), max_nodes=10)

    assert not graph.complete
    assert len(graph.nodes) == 11


def test_a_graph_is_told_to_mermaid() -> None:
    graph = Graph((Node('say "hi"\nor <b>'), Node("over", end=True), Node("x", bad=True)), (Edge(0, 1, "a"),))

    assert graph.mermaid() == (
        "flowchart LR\n"
        '  n0("say #quot;hi#quot;<br/>or &lt;b>")\n'
        '  n1[["over"]]\n'
        '  n2("x"):::bad\n'
        '  n0 -->|"a"| n1\n'
        "  classDef bad stroke:#c00\n"
    )


def test_a_graph_is_told_as_dot_json_and_svg_which_notebooks_show() -> None:
    graph = draw_bthread(alternate(), [HOT, COLD])

    assert '  n0 -> n1 [label="hot"]' in graph.dot().splitlines()
    assert json.loads(graph.json())["edges"][0] == {"source": 0, "target": 1, "label": "hot"}
    texts = [element.text for element in ElementTree.fromstring(graph._repr_svg_()).iter() if element.text]
    assert {"wait for hot", "block cold", "hot", "cold"} <= set(texts)
    assert "<svg" in draw_bthread(says()).svg()


def test_an_event_set_is_drawn_by_its_name() -> None:
    def labels(**words: Any) -> list[str]:
        return [node.label for node in draw_bthread(says(sync(**words))).nodes]

    assert labels(wait_for=Ping) == ["wait for Ping"]
    assert labels(refuse=A, because="no") == ["refuse a"]
    assert labels() == ["(nothing)"]
