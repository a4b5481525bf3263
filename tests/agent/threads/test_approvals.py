"""A call from its proposal to its answer: the gate, the question about it, its rights, and its snapshot."""

from typing import Any

import pytest
from attrs import evolve

from agent.threads.core import CORE, carry_out, gate
from agent.threads.endings import stop_on_request
from agent.threads.judging import Judge, by_constitution, objection, question, rights_beyond
from agent.threads.snapshots import snapshot_before_change
from agent.threads.steering import skip_when_steered
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    ActionChanged,
    ActionDescribed,
    ApprovalAnswered,
    ApprovalAsked,
    CallAnswered,
    FactsConfirmed,
    FactsRequested,
    FollowUpGiven,
    GateApproved,
    GateRejected,
    PromptGiven,
    ProposedAction,
    RunEnded,
    SandboxLifted,
    SnapshotFailed,
    SnapshotRequested,
    SnapshotTaken,
    SteeringGiven,
    StopAsked,
    ToolStarted,
)
from agent.vocabulary.messages import ToolResult
from bp import BThread, BThreadBody, Event, Refusals, bthread, sync, where
from constitution import NO_RULES, POLICIES, Action, Level, Policy, Verdict
from tests.agent.threads.loops import A, B, Loop, action, described, drafted, finished
from tests.tables import rows

ASK = Verdict(Level.ask, "any_rule", explanation="May it?")
YES, NO = ApprovalAnswered(A, yes=True), ApprovalAnswered(A, yes=False)
CONFINED = Action("note", "write", "/w", sandbox="bubblewrap", rights=("network",))
DONE, OVER = RunEnded("completed", "answered", "Done."), RunEnded("failed", "over")
CHANGED = ActionChanged(A, action(A), changes=("a link",))


def asking(*others: BThread, facts: Action | None = None) -> Loop:
    """A loop in which the user is asked about the call A."""
    loop = Loop(*CORE, by_constitution(lambda _: ASK), *others)
    loop.hear(PromptGiven("Go"), drafted("", A, B), ActionDescribed(A, facts or action(A)))
    return loop


def test_while_a_question_is_open_its_call_is_not_approved_nor_asked_about_again_and_the_run_does_not_end() -> None:
    loop = asking()
    assert loop.story[-1] == "approval_asked:a"
    held = [GateApproved(A, action(A)), ApprovalAsked(A, "again"), DONE, OVER]
    assert not any(map(loop.can, held))
    assert all(map(loop.can, [GateApproved(B, action(B)), ApprovalAsked(B, "May it?")]))

    loop.hear(evolve(NO, call=B))  # an answer about another call
    assert not loop.can(held[0])


def test_a_no_is_the_reason_of_the_rejection_until_the_call_is_decided() -> None:
    loop = asking()
    assert loop.hear(evolve(NO, text="not now")) == ["approval_answered:a", "gate_rejected:a", "call_answered:a"]
    [rejection] = [event for event in loop.events if isinstance(event, GateRejected)]
    assert [str(each.because) for each in rejection.refusals] == ["the user said no (not now): ask: any_rule: May it?"]
    assert loop.can(GateApproved(A, action(A)))


def test_after_a_yes_the_facts_are_confirmed_before_anything_else_happens_to_the_call() -> None:
    loop = asking(facts=CONFINED)
    assert loop.hear(YES)[-1] == "facts_requested:a"
    held: list[Event] = [ApprovalAsked(A, "again"), SandboxLifted(A, ("network",)), GateApproved(A, CONFINED)]
    assert not any(map(loop.can, [*held, GateRejected(A, Refusals())]))
    loop.hear(FactsConfirmed(B))
    assert not loop.can(held[1])
    after = loop.hear(FactsConfirmed(A))
    assert after == ["facts_confirmed:a", "sandbox_lifted:a", "gate_approved:a", "tool_started:a"]
    assert loop.events[-1] == ToolStarted(A, ("network",))


def test_a_yes_to_facts_that_have_changed_is_void_and_so_are_the_rights() -> None:
    loop = asking(facts=CONFINED)
    loop.hear(YES)
    assert loop.hear(evolve(CHANGED, facts=CONFINED)) == ["action_changed:a", "approval_asked:a"]
    asked = [event.question for event in loop.events if isinstance(event, ApprovalAsked)]
    assert ["changed since your yes: a link" in each for each in asked] == [False, True]
    requested = [event.times for event in loop.events if isinstance(event, FactsRequested)]
    loop.hear(YES)
    requested = [event.times for event in loop.events if isinstance(event, FactsRequested)]
    assert requested == [0, 1]


def test_facts_that_change_again_and_again_end_in_a_no() -> None:
    loop = asking()
    for times in (0, 1):
        assert loop.hear(YES)[-1] == "facts_requested:a"
        loop.hear(evolve(CHANGED, times=times))
    assert loop.hear(YES) == ["approval_answered:a", "gate_rejected:a", "call_answered:a"]
    [rejection] = [event for event in loop.events if isinstance(event, GateRejected)]
    assert "changes again and again" in str(rejection.refusals)


def test_while_the_lookup_of_a_call_is_held_it_keeps_its_sandbox_and_ends_with_its_rejection() -> None:
    loop = Loop(hold(FactsRequested), gate(), objection(described(A), ASK), never(StopAsked))
    loop.hear(described(A), YES)
    questions = [ApprovalAsked(call, "again") for call in (A, B)]
    assert [loop.can(event) for event in questions] == [False, True]
    assert [loop.can(SandboxLifted(call, ("network",))) for call in (A, B)] == [False, True]
    loop.hear(GateRejected(B, Refusals()))
    assert not loop.can(questions[0])
    loop.hear(GateRejected(A, Refusals()))
    assert loop.can(questions[0])
    assert loop.hear(FollowUpGiven("let go")) == ["follow_up_given"]


def test_only_the_lookup_of_the_same_call_is_refused_when_its_facts_change_again_and_again() -> None:
    loop = Loop(gate(), objection(described(A), ASK), hold(FactsRequested))
    loop.hear(described(A), YES)
    often = [FactsRequested(call, action(call), 2) for call in (A, B)]
    assert [len(loop.reasons(event)) for event in often] == [2, 1]  # one of them holds both


@bthread
def lifts_at_once() -> BThreadBody:
    """Lift the sandbox of A without asking, and take it back when its facts have changed."""
    yield sync(request=SandboxLifted(A, ("unconfined",)), wait_for=RunEnded)


def test_rights_do_not_outlive_the_facts_for_which_they_were_granted() -> None:
    loop = Loop(carry_out(A), lifts_at_once())
    assert loop.story == ["proposed_action:a", "sandbox_lifted:a"]
    loop.hear(CHANGED)
    assert loop.hear(GateApproved(A, action(A)))[-1] == "tool_started:a"
    assert loop.events[-1] == ToolStarted(A, ())


def test_a_call_hears_only_of_itself() -> None:
    loop = Loop(carry_out(A))
    others: list[Event] = [SandboxLifted(B, ("network",)), GateRejected(B, Refusals()), GateApproved(B, action(B))]
    for event in others:
        assert loop.hear(event) == [f"{event.name}:b"]
    assert loop.hear(GateApproved(A, action(A)))[-1] == "tool_started:a"
    assert loop.hear(finished(B)) == ["tool_finished:b"]
    assert loop.hear(finished(A)) == ["tool_finished:a", "call_answered:a"]


@bthread
def hold(events: Any) -> BThreadBody:
    yield sync(block=events, wait_for=FollowUpGiven)


def test_a_call_that_another_b_thread_has_answered_does_not_start() -> None:
    loop = Loop(hold(ToolStarted), carry_out(A), never(StopAsked))
    loop.hear(GateApproved(A, action(A)), CallAnswered("b", ToolResult("")), CallAnswered("a", ToolResult("no")))
    assert loop.hear(FollowUpGiven("let go"), finished(A)) == ["follow_up_given", "tool_finished:a"]
    loop = Loop(hold(ToolStarted), carry_out(A))
    loop.hear(GateApproved(A, action(A)), CallAnswered("b", ToolResult("")))
    assert loop.hear(FollowUpGiven("let go")) == ["follow_up_given", "tool_started:a"]


def test_the_gate_ends_with_a_rejection_by_another_b_thread_and_hears_of_its_call_only() -> None:
    loop = Loop(hold(GateApproved), gate())
    loop.hear(described(A), GateRejected(B, Refusals()), evolve(YES, call=B), NO)
    assert "facts_requested:a" not in loop.story
    loop.hear(GateRejected(A, Refusals()))
    assert loop.hear(FollowUpGiven("let go")) == ["follow_up_given"]


@bthread
def never(events: Any) -> BThreadBody:
    yield sync(refuse=events, because="never")


@pytest.mark.parametrize("refused", [ApprovalAsked, FactsRequested, SandboxLifted])
def test_what_may_not_be_asked_or_lifted_rejects_the_call(refused: type[Event]) -> None:
    loop = asking(never(refused), facts=CONFINED)
    loop.hear(*[YES] * (refused is not ApprovalAsked), *[FactsConfirmed(A)] * (refused is SandboxLifted))
    assert loop.story[-2:] == ["gate_rejected:a", "call_answered:a"]
    assert "tool_started:a" not in loop.story


def test_an_objection_that_was_held_ends_when_its_call_is_decided() -> None:
    for decided in (GateRejected(A, Refusals()), CHANGED):
        loop = Loop(hold(ApprovalAsked), objection(described(A), ASK))
        loop.hear(evolve(decided, call=B))
        assert not loop.can(GateApproved(A, action(A)))
        loop.hear(decided)
        assert loop.can(GateApproved(A, action(A)))
        assert loop.hear(FollowUpGiven("let go")) == ["follow_up_given"]


def test_a_denial_holds_for_this_call_until_it_is_decided() -> None:
    deny = Verdict(Level.deny, "some_rule")
    for decided in (GateRejected(A, Refusals()), CHANGED):
        loop = Loop(objection(described(A), deny))
        loop.hear(evolve(decided, call=B))
        assert [loop.can(GateApproved(call, action(call))) for call in (A, B)] == [False, True]
        assert loop.reasons(GateApproved(A, action(A))) == [str(deny)]
        loop.hear(decided)
        assert loop.can(GateApproved(A, action(A)))


def test_a_call_whose_question_was_withdrawn_is_not_asked_about_again() -> None:
    loop = Loop(objection(described(A), ASK))
    loop.hear(GateRejected(A, Refusals()))
    assert [loop.can(ApprovalAsked(call, "again")) for call in (A, B)] == [False, True]
    loop.hear(NO)
    assert loop.can(ApprovalAsked(A, "again"))


LOOKING, WRITING = Action("look", "read", "/w"), Action("note", "write", "/w")


@rows(
    ("policy", "undoable", "facts", "rule"),
    [
        (NO_RULES, True, WRITING, "nothing_objects"),
        (NO_RULES, False, WRITING, "no_snapshots"),
        (NO_RULES, False, LOOKING, "nothing_objects"),
        (POLICIES["default"], False, Action("bash", "write", "/w", command="rm -rf /"), "delete_tree"),
    ],
)
def test_without_snapshots_the_user_is_asked_about_what_is_allowed_and_may_change_files(
    policy: Policy, undoable: bool, facts: Action, rule: str
) -> None:
    judge = Judge(policy, undoable)
    assert (judge(facts).rule, str(judge)) == (rule, f"policy {policy.name}")


def test_a_withdrawn_question_holds_the_answer_of_its_call_until_it_has_come_back() -> None:
    loop = asking(skip_when_steered())
    loop.hear(SteeringGiven("rather this"))
    assert [loop.can(CallAnswered(id, ToolResult(""))) for id in "ab"] == [False, True]
    assert not loop.can(ApprovalAsked(A, "again"))
    assert "call_answered:a" in loop.hear(NO)


def test_a_right_that_is_held_holds_the_approval_and_is_forgotten_with_the_call() -> None:
    for decided in (GateRejected(A, Refusals()), CHANGED):
        loop = Loop(hold(SandboxLifted), objection(ActionDescribed(A, CONFINED), ASK, ("network",)))
        loop.hear(YES, evolve(decided, call=B))
        assert [loop.can(GateApproved(call, CONFINED)) for call in (A, B)] == [False, True]
        loop.hear(decided)
        assert loop.can(GateApproved(A, CONFINED))
        assert loop.hear(FollowUpGiven("let go")) == ["follow_up_given"]


def test_a_question_has_its_reasons_what_changed_and_what_a_yes_gives() -> None:
    assert question(ASK) == "May it?"
    several = evolve(ASK, reasons=("First.", "Second."))
    assert question(several, (), ("x",)) == "First.\nSecond.\nchanged since your yes: x"
    rights = ("network", "write /write /x", "network network.org")
    lets = "a yes lets this one call reach the network, change /write /x, reach network.org"
    assert question(ASK, rights) == f"May it?\n{lets}"


def test_a_named_host_stands_for_the_network_that_is_needed() -> None:
    assert rights_beyond(evolve(CONFINED, rights=(), needs=("network", "write /x"))) == ("network", "write /x")
    named = evolve(CONFINED, rights=("network a.org",), needs=("network", "write /x"))
    assert rights_beyond(named) == ("network a.org", "write /x")
    assert rights_beyond(evolve(named, sandbox="")) == ()


def test_a_call_that_could_not_be_described_is_denied_and_gets_no_rights() -> None:
    loop = Loop(*CORE, by_constitution(lambda _: Verdict.allow()))
    loop.hear(PromptGiven("Go"), drafted("", A), ActionDescribed(A, CONFINED, problem="no such folder"))
    [rejection] = [event for event in loop.events if isinstance(event, GateRejected)]
    assert "could not be found: no such folder" in str(rejection.refusals)
    assert "sandbox_lifted:a" not in loop.story


def test_what_the_constitution_allows_gets_no_rights_unasked() -> None:
    loop = Loop(*CORE, by_constitution(lambda _: Verdict.allow()))
    loop.hear(PromptGiven("Go"), drafted("", A), ActionDescribed(A, CONFINED))
    assert loop.events[-1] == ToolStarted(A, ())


# snapshot_before_change

LOOK = ToolCall("l", "look", category="read")
KEPT, FULL, LARGE = SnapshotTaken("x/1"), SnapshotFailed("the disk is full"), SnapshotFailed("too large", ("./data",))
STARTS = tuple(ToolStarted(call) for call in (A, B, LOOK))


def approved(*calls: ToolCall) -> list[Event]:
    return [GateApproved(call, action(call)) for call in calls]


def changing(*events: Event, others: tuple[BThread, ...] = ()) -> Loop:
    loop = Loop(snapshot_before_change(), *others)
    loop.hear(ProposedAction(LOOK), ProposedAction(A), ProposedAction(B), *events)
    return loop


def test_calls_that_may_change_files_wait_for_one_snapshot_after_the_last_decision() -> None:
    for last in (approved(B), [GateRejected(B, Refusals())]):
        loop = changing(*approved(A, LOOK))
        assert [loop.can(start) for start in STARTS] == [False, False, True]
        assert not loop.can(SnapshotRequested(("./data",)))
        assert loop.hear(*last)[1:] == ["snapshot_requested"]
        assert not loop.can(CallAnswered("a", ToolResult("")))
        assert loop.can(CallAnswered("l", ToolResult("")))
        loop.hear(KEPT)
        assert all(map(loop.can, STARTS))
        assert loop.can(CallAnswered("a", ToolResult("")))


def test_a_call_that_is_approved_while_a_snapshot_is_taken_gets_one_of_its_own() -> None:
    again = ToolCall("c", "note")
    loop = changing(*approved(A, B), ProposedAction(again), *approved(again))
    assert not loop.can(ToolStarted(again))
    assert loop.hear(KEPT) == ["snapshot_taken", "snapshot_requested"]
    assert [loop.can(ToolStarted(call)) for call in (A, again)] == [True, False]
    loop.hear(KEPT)
    assert loop.can(ToolStarted(again))


def test_a_call_that_was_answered_needs_no_snapshot() -> None:
    loop = changing(*approved(A), CallAnswered("a", ToolResult("skipped")), GateRejected(B, Refusals()))
    assert "snapshot_requested" not in loop.story


def test_without_a_snapshot_each_call_of_it_is_asked_about_and_a_no_refuses_its_start() -> None:
    loop = changing(*approved(A, B))
    assert loop.hear(FULL) == ["snapshot_failed", "approval_asked:a", "approval_asked:b"]
    asked = [event.question for event in loop.events if isinstance(event, ApprovalAsked)]
    assert asked == ["the disk is full\nwithout a snapshot, what this call changes cannot be undone"] * 2
    held = [ToolStarted(A), CallAnswered("a", ToolResult("")), DONE]
    assert not any(map(loop.can, held))
    loop.hear(evolve(NO, text="wait"), evolve(YES, call=B), CallAnswered("other", ToolResult("")))
    assert loop.reasons(ToolStarted(A)) == ["the user said no (wait): no snapshot could be taken, the disk is full"]
    assert all(map(loop.can, [ToolStarted(B), *held[1:]]))
    loop.hear(CallAnswered("b", ToolResult("")), CallAnswered("a", ToolResult("")))
    assert loop.can(ToolStarted(A))


def test_a_no_tells_whether_a_person_said_it() -> None:
    loop = changing(*approved(A), GateRejected(B, Refusals()), FULL, evolve(NO, present=False))
    assert loop.reasons(ToolStarted(A)) == ["no person present: no snapshot could be taken, the disk is full"]
    loop = Loop(objection(described(A), ASK))
    loop.hear(evolve(NO, present=False))
    assert loop.reasons(GateApproved(A, action(A))) == ["no person present: ask: any_rule: May it?"]


def test_a_yes_whose_call_was_answered_before_its_snapshot_leaves_nothing_out() -> None:
    loop = changing(*approved(A, B), LARGE, others=(hold(SnapshotRequested(("./data",))),))
    assert loop.hear(YES, CallAnswered("b", ToolResult(""))) == ["approval_answered:a", "call_answered:b"]
    loop.hear(CallAnswered("a", ToolResult("")), FollowUpGiven("let go"), ProposedAction(B), *approved(B))
    assert [event for event in loop.events if isinstance(event, SnapshotRequested)] == [SnapshotRequested()] * 2


def test_where_nothing_may_be_asked_the_calls_are_answered_as_skipped() -> None:
    for others in ((never(ApprovalAsked),), (never(SnapshotRequested),)):
        loop = changing(*approved(A, B), *[FULL] * (others[0].args == (ApprovalAsked,)), others=others)
        assert loop.story[-2:] == ["call_answered:a", "call_answered:b"]


def test_the_user_is_asked_once_what_a_snapshot_leaves_out() -> None:
    loop = changing(*approved(A, B))
    assert loop.hear(LARGE) == ["snapshot_failed", "approval_asked:a"]
    held = [*STARTS[:2], SnapshotRequested(), SnapshotRequested(("./data",)), CallAnswered("a", ToolResult("")), DONE]
    assert not any(map(loop.can, held))
    assert loop.hear(YES) == ["approval_answered:a", "snapshot_requested"]
    assert loop.events[-1] == SnapshotRequested(("./data",))
    loop.hear(KEPT)
    assert all(map(loop.can, STARTS))


def test_after_a_no_nothing_changes_in_this_run() -> None:
    loop = changing(*approved(A, B), LARGE, evolve(NO, present=False))
    assert "no person present: no snapshot could be taken, too large" in loop.reasons(STARTS[0])
    assert [loop.can(start) for start in STARTS] == [False, False, True]
    assert loop.hear(CallAnswered("a", ToolResult("")), CallAnswered("b", ToolResult("")))[-1] == "call_answered:b"
    assert loop.hear(OVER, ProposedAction(A), *approved(A))[-1] == "snapshot_requested"


def test_a_question_that_was_skipped_is_asked_with_the_next_call() -> None:
    loop = changing(*approved(A, B), others=(hold(ApprovalAsked),))
    loop.hear(LARGE, CallAnswered("a", ToolResult("")))
    assert loop.story[-1] == "snapshot_requested"
    assert loop.hear(FollowUpGiven("let go"), LARGE)[-1] == "approval_asked:b"


def test_a_stop_answers_what_waits_for_its_snapshot() -> None:
    loop = Loop(snapshot_before_change(), stop_on_request(), hold(where(SnapshotRequested)), carry_out(A))
    loop.hear(*approved(A))
    assert loop.hear(StopAsked()) == ["stop_asked", "call_answered:a"]
