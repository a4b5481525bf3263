"""What a verification never came to is told, and is not verified."""

from functools import partial
from typing import Any

from bp import BThreadBody, Event, any_of, bthread, draw_bthread, draw_states, event, start, sync, verify, where
from bp.runner import LATER, Effect
from bp.verification.drawing import Edge, Graph, Node
from tests.bp.programs import COLD, HOT, STOP, Ping, alternate, fails_after, keeps_saying, philosophers, requests, says
from tests.tables import rows

A, B, ALARM = event("a"), event("b"), event("alarm")


def test_a_program_that_never_rests_never_hears_its_environment() -> None:
    clock = keeps_saying(sync(request=A)).named("clock")

    promised = verify(clock, fails_after(ALARM), environment=[requests(ALARM)])
    possible = verify(clock, fails_after(ALARM), possible=[ALARM])

    assert promised.holds
    assert possible.holds
    assert not promised
    assert not possible
    assert (promised.coverage.silent, promised.coverage.unreached) == (("requests",), ("fails_after",))
    assert possible.coverage.silent == ("possible= (the program never rests)",)
    assert possible.coverage.unreached == ("fails_after",)
    assert promised.coverage.never_happened == possible.coverage.never_happened == (ALARM,)
    assert str(promised).splitlines() == [
        "unreached: 1 state, 1 transition",
        "environment that never took a step: requests",
        "never reached: fails_after",
        "never happened: alarm",
        "never matched: fails_after: wait_for alarm",
    ]


@rows(
    "guard",
    [
        says(sync(block=B)),
        says(sync(refuse=B, because="no")),
        says(sync(wait_for=B)),
        says(sync(wait_for=A, interrupt=B)),
        says(sync(block=where(Ping, value=1))),
    ],
)
def test_a_rule_about_what_no_bthread_requests_is_unreached(guard: Any) -> None:
    found = verify(requests(ALARM), guard)

    assert (found.verdict, found.coverage.unreached) == ("unreached", ("says",))


def test_a_guard_is_reached_when_it_has_something_to_block() -> None:
    either = verify(requests(any_of(A, B)), says(sync(block=B)).named("guard"))
    from_outside = verify(says(sync(wait_for=A)), says(sync(block=B)).named("guard"), possible=[A, B])

    assert either
    assert from_outside
    assert either.coverage.never_advanced == ("guard",)


def test_a_guard_that_has_nothing_to_block_while_it_stands_is_unreached() -> None:
    """B is requested only when nothing blocks it any more."""
    found = verify(says(sync(request=A), sync(request=B)), keeps_saying(sync(block=B, interrupt=A)).named("guard"))
    before = verify(says(sync(request=B), sync(request=A)), says(sync(request=B, block=B)).named("never"), max_states=9)

    assert found.coverage.never_matched == ("guard: block b",)
    assert "never" in before.coverage.never_advanced + before.coverage.unreached


def test_a_guard_of_an_alternative_is_reached() -> None:
    asks = says(sync(request=A, otherwise=lambda refusals: B)).named("asks")

    found = verify(asks, keeps_saying(sync(refuse=A, because="no")), says(sync(block=B)).named("guard"))

    assert "guard" not in found.coverage.unreached


def test_an_event_from_outside_is_a_candidate_at_rest_only() -> None:
    at_rest = verify(requests(A), says(sync(block=ALARM)).named("guard"), environment=[requests(any_of(ALARM, B))])
    busy = verify(keeps_saying(sync(request=A)), says(sync(block=ALARM)).named("guard"), possible=[ALARM])

    assert at_rest
    assert busy.coverage.unreached == ("guard",)


def test_bthreads_of_one_function_are_told_apart_by_their_arguments() -> None:
    found = verify(requests(A), fails_after(ALARM), fails_after(B), says(sync(block=B)), environment=[requests(B)])

    assert found.coverage.unreached == ("fails_after(alarm)",)
    assert found.coverage.silent == ("requests(b)",)


UNTIL_B: Any = Effect(Ping, lambda _: LATER, (Ping,), lambda *_: Ping(0), until=B).until


def test_arguments_that_are_functions_are_told_by_their_names_and_lambdas_not_at_all() -> None:
    @bthread
    def answers(what: Event, *functions: Any, **others: Any) -> BThreadBody:
        yield sync(wait_for=what)

    found = verify(
        requests(A),
        answers(ALARM, lambda: A, verify, partial(lambda _: A, 1), UNTIL_B),
        answers(B, by=partial(verify), to=lambda: A),
    )

    assert found.coverage.unreached == ("answers(alarm, verify)", "answers(b, by=verify)")


def test_started_bthreads_are_covered_by_name() -> None:
    @bthread
    def starts(*what: Event) -> BThreadBody:
        yield sync(request=A)
        yield start(*[says(sync(wait_for=each)).named("child") for each in what])

    assert verify(starts(B, ALARM), says(sync(wait_for=A), sync(request=B)))
    assert verify(starts(ALARM)).coverage.unreached == ("child",)


def test_a_bthread_that_is_over_at_once_is_reached() -> None:
    assert verify(says(), requests(A))


def test_an_effect_that_is_never_asked_for_is_no_broken_promise() -> None:
    """An environment b-thread that only waits promises nothing yet."""
    answers = says(sync(wait_for=ALARM), sync(request=STOP)).named("answers")

    found = verify(requests(A), environment=[answers])

    assert found
    assert found.coverage.never_advanced == ("answers",)


def test_sets_that_never_matched_are_listed() -> None:
    found = verify(
        requests(A, 2), keeps_saying(sync(wait_for=[A, B], interrupt=STOP, block=HOT)).named("waits"), never=[B, A]
    )
    typo = verify(alternate(), requests(HOT), never=Ping)

    assert found.coverage.never_matched == ("waits: block hot", "waits: interrupt stop", "never= b")
    assert "never= Ping" in typo.coverage.never_matched


def is_large(ping: Ping) -> bool:
    return ping.value > 1


@rows("word", ["wait_for", "block", "interrupt"])
def test_a_predicate_that_accepts_nothing_is_unreached_also_in_a_union(word: str) -> None:
    says_both = says(sync(wait_for=A), sync(**{"wait_for": A, word: where(Ping, is_large) | A})).named("watches")

    small, large = (verify(says_both, possible=[A, Ping(value)]) for value in (1, 2))

    assert small.coverage.unreached == ("watches: where(Ping, is_large)",)
    assert large.coverage.unreached == ()


def test_a_predicate_is_reached_once_it_accepted_an_event_whatever_it_compares_with() -> None:
    @bthread
    def larger_each_time() -> BThreadBody:
        for least in (0, 1, 2):
            yield sync(wait_for=where(Ping, lambda ping: ping.value > least) | A)  # noqa: B023

    assert verify(larger_each_time(), possible=[A, Ping(2)])


def test_possible_and_promised_events_that_never_happened_are_listed() -> None:
    found = verify(says(sync(wait_for=A, block=B)), environment=[requests(any_of(A, B))], possible=[STOP])

    assert found.coverage.never_happened == (B,)


def test_a_promise_that_is_held_back_for_ever_is_told() -> None:
    found = verify(says(sync(block=ALARM)).named("guard"), environment=[requests(A), requests(ALARM).named("siren")])
    because = verify(says(sync(refuse=A, because="late")).named("guard"), environment=[requests(A)])

    assert found.coverage.withheld == ("alarm of 'siren', held by guard",)
    assert found.coverage.silent == ("siren",)
    assert because.coverage.withheld == ("a of 'requests', held by guard (because 'late')",)
    assert "promised and held back for ever: alarm of 'siren', held by guard" in str(found)


def test_a_reduced_search_and_random_runs_have_coverage() -> None:
    program = [requests(A, 2).named("one"), requests(B, 2).named("other"), fails_after(ALARM)]

    assert verify(*program, reduce=True).coverage == verify(*program).coverage
    assert verify(*program, samples=10).coverage == verify(*program).coverage


def test_in_run_order_a_bthread_that_is_passed_over_for_ever_is_unreached() -> None:
    found = verify(keeps_saying(sync(request=A)).at_priority(1), requests(B), order="run")

    assert found.coverage.unreached == ("requests",)
    assert found.coverage.complete is False


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
