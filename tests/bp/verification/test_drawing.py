"""Pictures say what is there, in two languages."""

from typing import Any

from bp import BThreadBody, bthread, draw_bthread, draw_states, event, sync
from bp.verification.drawing import Edge, Graph, Node
from tests.bp.programs import COLD, HOT, STOP, Ping, alternate, philosophers, says

A, B = event("a"), event("b")


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


def test_states_are_drawn_with_what_is_wrong() -> None:
    graph = draw_states(*philosophers(3))

    assert len(graph.nodes) == 35
    assert len(graph.edges) == 75
    assert [node.label.splitlines()[0] for node in graph.nodes if node.bad] == ["10: deadlock"]


def test_a_state_is_drawn_with_what_its_b_threads_ask_for_in_short() -> None:
    guards = [says(sync(block=Ping(number), wait_for=A)).named(f"guard {number}") for number in range(5)]

    nodes = draw_states(says(sync(request=A), sync(request=B, block=HOT)), *guards).nodes

    assert nodes[0].label.splitlines() == [
        "0",
        "says: request a",
        *(f"guard {number}: wait for a, block Ping(value={number})" for number in range(3)),
        "and 2 more",
    ]
    assert nodes[1].label.splitlines() == ["1", "says: request b, block hot"]


def test_an_event_on_which_a_bthread_fails_leads_to_a_node_of_its_own() -> None:
    graph = draw_states(says(sync(request=A), sync(request=B), "nonsense"), never=B)

    assert graph.nodes == (
        Node("0\nsays: request a"), Node("1\nsays: request b", end=True), Node("error", bad=True, end=True)
    )  # fmt: skip
    assert graph.edges == (Edge(0, 1, "a"), Edge(1, 2, "b"))


def test_a_large_program_is_drawn_in_part() -> None:
    graph = draw_states(*philosophers(5), max_states=20)

    assert len(graph.nodes) == 20
    assert not graph.complete


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


def test_an_event_set_is_drawn_by_its_name() -> None:
    def labels(**words: Any) -> list[str]:
        return [node.label for node in draw_bthread(says(sync(**words))).nodes]

    assert labels(wait_for=Ping) == ["wait for Ping"]
    assert labels(refuse=A, because="no") == ["refuse a"]
    assert labels() == ["(nothing)"]
