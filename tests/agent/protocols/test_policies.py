"""Temporal policies: what they refuse and why, in runs that keep and break them, in YAML, and model-checked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent import call
from agent.effects.approval import Approver
from agent.presets import PRESETS
from agent.protocols.policies import (
    CONVERSATION,
    PolicyError,
    Scope,
    action,
    between,
    eventually,
    never,
    no_more_than,
    only_after,
    read_policies,
    since,
)
from agent.session.agent import Run
from agent.threads.judging import by_constitution
from agent.tools.definition import Tool, tool
from agent.verification import verify_loop
from agent.verification.environment import FEW_EXAMPLES, any_verdict
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallAnswered,
    GateApproved,
    GateRejected,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    RunContinued,
    RunEnded,
    ToolFinished,
    ToolStarted,
)
from bp import BThread, BThreadBody, bthread, sync, where
from bp.verification.properties import absence, bounded_existence
from constitution import Action
from tests.agent.conftest import MakeAgent
from tests.agent.faults import Fault, is_found, told
from tests.agent.protocols.protocol_programs import rules_named
from tests.tables import rows


def made(name: str) -> Tool:
    """A tool that takes what policies ask about, and says that it is done; a user who is nobody is an error."""

    def act(amount: int = 0, cabin: str = "", user: str = "", to: str = "") -> str:
        if user == "nobody":
            raise ValueError("unknown user")
        return "done"

    act.__name__ = name
    act.__doc__ = f"Do {name}."
    return tool(act)


TOOLS = tuple(map(made, ("authenticate", "read_customer", "refund", "send_email", "confirm")))
KNOWN, UNKNOWN = call("authenticate", user="ada"), call("authenticate", user="nobody")
READ, SEND, PAY, CONFIRM = call("read_customer"), call("send_email"), call("refund", amount=1), call("confirm")


def run_with(
    make_agent: MakeAgent, policies: Sequence[BThread], *turns: object, approve: Approver | None = None
) -> Run:
    agent = make_agent(*turns, "Done.", tools=TOOLS, threads=policies, preset="passthrough", approve=approve)
    return agent.run_sync("Serve")


def answered(run: Run) -> list[CallAnswered]:
    return [event for event in run.events if isinstance(event, CallAnswered)]


def results(run: Run) -> list[str]:
    return [event.result.text for event in answered(run)]


AUTHENTICATED = only_after("read_customer", "authenticate")
UNKNOWN_FIRST = "rejected: only_after: read_customer is allowed only after authenticate, which is missing"
UNREAD = "rejected: only_after: refund is allowed only after read_customer, which is missing"
OWED = "rejected: eventually: after read_customer there has to be confirm, which is missing"
UNSENT, UNSENT_AFTER = "rejected: never: send_email is not allowed", "send_email is not allowed after read_customer"
SERVICE = between("authenticate", "refund")
SCOPED = eventually("confirm", after="read_customer", within=SERVICE)
REOPENED = never("send_email", within=since("read_customer", until="confirm"))

OUTCOMES: tuple[tuple[BThread, tuple[Any, ...], list[str]], ...] = (
    # An action before its precondition is refused; one that failed, or runs beside it, permits nothing.
    (AUTHENTICATED, (KNOWN, READ), ["ran", "ran"]),
    (AUTHENTICATED, (READ, KNOWN, READ), [UNKNOWN_FIRST, "ran", "ran"]),
    (AUTHENTICATED, (UNKNOWN, READ), ["ran", UNKNOWN_FIRST]),
    (AUTHENTICATED, ([READ, KNOWN],), [UNKNOWN_FIRST, "ran"]),
    # What is forbidden after another action is refused once that has begun.
    (
        never("send_email", after="read_customer"),
        (SEND, READ, SEND),
        ["ran", "ran", f"rejected: never: {UNSENT_AFTER}"],
    ),
    # In a scope between two actions, what has to follow is owed before the second one.
    (SCOPED, (KNOWN, READ, CONFIRM, PAY), ["ran"] * 4),
    (SCOPED, (KNOWN, READ, PAY), ["ran", "ran", OWED]),
    (SCOPED, (READ, PAY), ["ran", "ran"]),
    # Of several actions each counts, in their order; what has to follow is owed anew each time.
    (only_after("refund", "authenticate", "read_customer"), (KNOWN, PAY, READ, PAY), ["ran", UNREAD, "ran", "ran"]),
    (
        eventually("confirm", "send_email", after="read_customer", within=SERVICE),
        (KNOWN, READ, CONFIRM, READ, SEND, PAY),
        ["ran"] * 5 + [OWED],
    ),
    (eventually("confirm", after=("read_customer", "send_email"), within=SERVICE), (KNOWN, READ, PAY), ["ran"] * 3),
    # A scope opens and closes again.
    (REOPENED, (SEND, READ), ["ran", "ran"]),
    (REOPENED, (READ, SEND, CONFIRM, SEND), ["ran", UNSENT, "ran", "ran"]),
    (REOPENED, (READ, CONFIRM, READ, SEND), ["ran", "ran", "ran", UNSENT]),
)


@rows(("policy", "turns", "outcome"), OUTCOMES)
def test_a_pattern_refuses_what_is_against_it_in_its_scope_and_says_why(
    make_agent: MakeAgent, policy: BThread, turns: tuple[Any, ...], outcome: list[str]
) -> None:
    answers = answered(run_with(make_agent, [policy], *turns))

    assert [event.result.text if event.outcome == "rejected" else event.outcome for event in answers] == outcome


def test_a_missing_expected_action_keeps_the_run_from_ending_and_the_model_is_told(make_agent: MakeAgent) -> None:
    run = run_with(make_agent, [eventually("send_email", after="refund")], PAY, "Not done.", SEND)

    assert (run.status, run.text) == ("completed", "Done.")
    assert sum(isinstance(event, RunContinued) for event in run.events) == 1
    assert "after refund there has to be send_email, which is missing" in [message.text for message in run.messages]


@rows("within, outcome", [(Scope("run"), "rejected"), (CONVERSATION, "ran")])
def test_a_policy_of_a_run_begins_anew_with_the_next_one_and_that_of_a_conversation_does_not(
    make_agent: MakeAgent, within: Scope, outcome: str
) -> None:
    policy = only_after("read_customer", "authenticate", within=within)
    agent = make_agent(KNOWN, "Hello.", READ, "Done.", tools=TOOLS, threads=[policy], preset="passthrough")
    agent.run_sync("I am Ada")

    [event] = answered(agent.run_sync("What do you know of me?"))
    assert event.outcome == outcome


def test_actions_are_meant_by_what_they_would_do(make_agent: MakeAgent, workspace: Path) -> None:
    (workspace / ".env").write_text("KEY=1")
    policy = never(action(effect="network upload"), after=action(effect="read", zone="private"))
    commands = [call("bash", command=text) for text in ("head -c 1 .env", "curl -s http://example.invalid/")]
    agent = make_agent(*commands, "Done.", threads=[policy], preset="passthrough")

    assert results(agent.run_sync("Work"))[1] == "rejected: never: network or send is not allowed after read in private"


@rows(
    ("condition", "holds", "fails"),
    [
        ({"is": 3}, 3, 4),
        (3, 3, 4),
        ({"is_not": 3}, 4, 3),
        ({"above": 3}, 3.5, 3),
        ({"above": 3}, "4", "a lot"),
        ({"below": 3}, 2, None),
        ({"at_least": 3}, 3, 2),
        ({"at_most": 3}, 3, True),
        ({"contains": "rm"}, "rm -rf", 3),
        ({"matches": "^a.c$"}, "abc", "abcd"),
        ({"one_of": ["a", "b"]}, "b", "c"),
    ],
)
def test_arguments_are_compared(condition: object, holds: object, fails: object) -> None:
    match = action("refund", amount=condition)

    def approved(value: object) -> GateApproved:
        return GateApproved(ToolCall("c1", "refund", {"amount": value}), Action("refund", "write", "/"))

    assert match(approved(holds))
    assert not match(approved(fails))


@rows("wrong", [{"more": 3}, {}, {"above": 1, "below": 3}, {"matches": "("}])
def test_an_unknown_condition_is_reported(wrong: object) -> None:
    with pytest.raises(ValueError, match="amount: "):
        action("refund", amount=wrong)


# A person decides, with `otherwise="ask"`; the run ends, with `otherwise="stop"`.

ASKING = only_after("read_customer", "authenticate", otherwise="ask")


def test_a_person_may_allow_what_a_policy_forbids_and_is_told_why_they_are_asked(make_agent: MakeAgent) -> None:
    run = run_with(make_agent, [ASKING], READ, approve=lambda _: True)

    assert results(run) == ["done"]
    assert [event.question for event in run.events if isinstance(event, ApprovalAsked)] == [
        "read_customer is allowed only after authenticate, which is missing"
    ]


def test_a_no_and_an_absent_user_are_refusals_with_different_reasons(make_agent: MakeAgent) -> None:
    missing = "ask: policy: read_customer is allowed only after authenticate, which is missing"

    no, nobody = (run_with(make_agent, [ASKING], READ, approve=how) for how in (lambda _: False, None))

    assert results(no) == [f"rejected: only_after: the user said no: {missing}"]
    assert results(nobody) == [f"denied: no person present (only_after: no person present: {missing})"]


def test_a_yes_is_for_exactly_that_call(make_agent: MakeAgent) -> None:
    answers = iter([True, False])
    policy = never("send_email", after="read_customer", otherwise="ask")

    run = run_with(make_agent, [policy], READ, SEND, call("send_email", to="y"), approve=lambda _: next(answers))

    assert results(run)[1] == "done"
    assert results(run)[2].startswith("rejected: never: the user said no")


def test_calls_side_by_side_are_asked_about_one_by_one(make_agent: MakeAgent) -> None:
    """The first `refund` is what forbids the others, which were described before it was approved."""
    asked: list[int] = []
    policy = no_more_than(1, "refund", otherwise="ask")
    several = [call("refund", amount=number) for number in range(3)]

    def one_says_no(question: ApprovalAsked) -> bool:
        asked.append(question.call.arguments["amount"])
        return len(asked) > 1

    preset = evolve(PRESETS["passthrough"], sequential=False)
    agent = make_agent(several, "Done.", tools=TOOLS, threads=[policy], preset=preset, approve=one_says_no)
    texts = results(agent.run_sync("Serve"))

    assert len(set(asked)) == len(asked) == 2
    assert texts.count("done") == 2
    assert sum(text.startswith("rejected: no_more_than: the user said no") for text in texts) == 1


def test_a_call_that_violates_a_stopping_policy_ends_the_run(make_agent: MakeAgent) -> None:
    policy = never("send_email", after="read_customer", otherwise="stop")

    run = run_with(make_agent, [policy], READ, SEND, KNOWN)

    assert (run.status, run.reason, run.text) == ("stopped", "policy", f"Stopped by a policy: {UNSENT_AFTER}.")
    assert results(run) == ["done", f"rejected: never: {UNSENT_AFTER}"]


def test_a_missing_expected_action_ends_the_run_as_stopped(make_agent: MakeAgent) -> None:
    policy = eventually("confirm", after="read_customer", otherwise="stop")

    kept, broken = (run_with(make_agent, [policy], *turns) for turns in ([READ, CONFIRM], [READ]))

    assert kept.status == "completed"
    assert (broken.status, broken.reason) == ("stopped", "policy")
    assert "after read_customer there has to be confirm" in broken.text


def test_a_policy_about_the_end_of_a_run_cannot_ask() -> None:
    with pytest.raises(ValueError, match="is about actions"):
        eventually("confirm", after="refund", otherwise="ask")  # type: ignore[arg-type]


# In YAML


def test_yaml_says_the_same_as_python(tmp_path: Path) -> None:
    (tmp_path / "policies.yaml").write_text("""
policies:
  - require: read_customer
    after: authenticate
    otherwise: ask
    name: who is it
  - forbid: {effect: upload network}
    after: [authenticate, read_customer]
    within: conversation
    otherwise: stop
  - allow: {tool: [refund, pay], arguments: {amount: {above: 100}}}
    at_most: 1
    within: {from: authenticate, until: confirm}
  - expect: [run_tests, commit]
    after: edit_file
    within: {between: [begin, finish]}
    name: work is tested
""")
    forbidden, chain = action(effect="upload network"), ("authenticate", "read_customer")
    large = action("refund", "pay", amount={"above": 100})

    assert read_policies(tmp_path / "policies.yaml") == (
        only_after("read_customer", "authenticate", otherwise="ask", name="who is it"),
        never(forbidden, after=chain, within=CONVERSATION, otherwise="stop"),
        no_more_than(1, large, within=since("authenticate", "confirm")),
        eventually("run_tests", "commit", after="edit_file", within=between("begin", "finish")).named("work is tested"),
    )


@rows(
    ("policy", "problem"),
    [
        ("{require: a}", "the key 'after' is missing"),
        ("{require: a, forbid: b}", "a policy says one of require, forbid, allow, expect"),
        ("{after: a}", "a policy says one of require, forbid, allow, expect"),
        ("{requires: a, after: b}", "unknown key 'requires'; did you mean 'require'?"),
        ("{allow: a}", "`allow` says how often with `at_most`, and nothing else does"),
        ("{forbid: a, at_most: 2}", "`allow` says how often with `at_most`, and nothing else does"),
        ("{allow: a, at_most: 1, after: b}", "`allow` counts from the beginning of its scope"),
        ("{forbid: {effect: netwrok}}", "there is no effect 'netwrok'; did you mean 'network'?"),
        ("{forbid: {tool: a, arguments: {x: {above: 1, below: 2}}}}", "x: "),
        ("{require: a, after: []}", "name at least one action"),
        ("{forbid: a, within: week}", "week"),
        ("{forbid: a, within: {between: [a]}}", "a scope is between two actions, or from one until another"),
        ("{forbid: a, within: {until: a}}", "the key 'from' is missing"),
        ("{forbid: send_email, otherwise: warn}", "2:37: expected one of 'refuse', 'ask', 'stop', found 'warn'"),
        ("{expect: a, after: b, otherwise: ask}", "2:38: `expect` is about the end, and no person is"),
    ],
)
def test_a_mistake_in_yaml_is_told_with_its_place(tmp_path: Path, policy: str, problem: str) -> None:
    file = tmp_path / "policies.yaml"
    file.write_text(f"policies:\n  - {policy}\n")

    with pytest.raises(PolicyError) as caught:
        read_policies(file)

    assert f"{file}:2:" in str(caught.value)
    assert problem in str(caught.value)


# The policies that the documents show, after AgentSpec's and Agent-C's examples: runs that keep and break them.


FOLDER = Path(__file__).parents[3] / "docs" / "policies"
EMAIL, ORDER, MODIFY = "find_user_id_by_email", "get_order_details", "modify_pending_order_items"
USER, RESERVATION, UPDATE = "get_user_details", "get_reservation_details", "update_reservation_flights"
PERSON, CANCEL, CERTIFICATE = "transfer_to_human_agents", "cancel_reservation", "send_certificate"
LARGE, BASIC = ("transfer", {"amount": 900}), (UPDATE, {"cabin": "basic_economy"})

SHOWN: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    ("retail", (EMAIL, ORDER, MODIFY), ""),
    ("retail", ("find_user_id_by_name_zip", USER, ORDER, "cancel_pending_order", PERSON), ""),
    ("airline", (USER, "book_reservation"), ""),
    ("airline", (USER, RESERVATION, UPDATE, "charge_difference", (CERTIFICATE, {"amount": 100})), ""),
    ("agentspec", (("transfer", {"amount": 20}), "verify_recipient", LARGE), ""),
    ("agentspec", ("pour", "turn_on", "turn_off", "pour"), ""),
    ("retail", (ORDER,), "authenticate first: get_user_details or get_order_details is allowed only after find"),
    ("retail", (EMAIL, MODIFY), "is allowed only after get_order_details, which is missing"),
    ("retail", (EMAIL, ORDER, MODIFY, MODIFY), "items are changed once: "),
    ("retail", (PERSON, EMAIL), "any action is not allowed after transfer_to_human_agents"),
    ("airline", ("book_reservation",), "know the user: "),
    ("airline", (USER, CANCEL), "is allowed only after get_reservation_details, which is missing"),
    ("airline", (USER, RESERVATION, BASIC), "basic economy stays as it was booked: "),
    ("airline", (USER, CERTIFICATE, CERTIFICATE), "one certificate: "),
    ("agentspec", (LARGE,), "is allowed only after verify_recipient, which is missing"),
    ("agentspec", ("turn_on", "pour"), "nothing is poured between turning on and off: "),
)
"""The file, the calls, and why the last one is refused; a run that keeps the policies is not disturbed."""


@pytest.mark.slow
@pytest.mark.usefixtures("few_runs")
@rows(("file", "steps", "reason"), SHOWN)
def test_a_run_that_breaks_a_policy_is_refused_there_and_told_why(
    make_agent: MakeAgent, file: str, steps: tuple[Any, ...], reason: str
) -> None:
    calls = [call(step) if isinstance(step, str) else call(step[0], **step[1]) for step in steps]
    tools = [made(name) for name in sorted({step.tool for step in calls})]
    policies = read_policies(FOLDER / f"{file}.yaml")
    agent = make_agent(*calls, "Done.", "Done.", tools=tools, threads=policies, preset="passthrough")
    *before, last = answered(agent.run_sync("Serve"))

    assert [event.outcome for event in before] == ["ran"] * (len(steps) - 1)
    assert last.outcome == ("rejected" if reason else "ran")
    assert reason in last.result.text


@pytest.mark.slow
@pytest.mark.usefixtures("few_runs")
@rows("file", ("retail", "airline", "agentspec"))
def test_the_policies_of_a_file_let_no_run_hang(file: str) -> None:
    result = verify_loop(ABORTED, read_policies(FOLDER / f"{file}.yaml"), examples=FEW_EXAMPLES)

    assert result.holds, told(result)


# Model-checked: each keeps what it says, whatever happens, and lets no run hang.


@bthread
def nothing_unasked_before(what: str, first: str) -> BThreadBody:
    """No `what` starts before `first` has ended well in the run, unless a person said yes to exactly that call."""
    done, allowed = False, frozenset[ToolCall]()
    while True:
        said = yield sync(wait_for=GateApproved | ToolFinished | ApprovalAnswered | ProposedAction | RunEnded)
        if isinstance(said, GateApproved):
            has_yes = said.call in allowed  # pytest shows the parts of an assertion, and a set has no order to show
            assert done or said.call.tool != what or has_yes, f"{what} starts without a yes"
        elif isinstance(said, ApprovalAnswered):
            allowed = allowed | {said.call} if said.yes else allowed - {said.call}
        elif isinstance(said, ProposedAction):
            allowed -= {said.call}
        else:
            done = isinstance(said, ToolFinished) and (done or (said.call.tool == first and not said.result.is_error))


@bthread
def nothing_goes_on_after(what: str, after: str) -> BThreadBody:
    """Once `what` was put up after `after`, no model is asked, nothing starts, and the run does not complete."""
    begun = broken = False
    while True:
        said = yield sync(wait_for=GateApproved | GateRejected | InferenceRequested | ToolStarted | RunEnded)
        if broken:
            goes_on = isinstance(said, InferenceRequested | ToolStarted | GateApproved)
            assert not goes_on, f"on after {what}: {said.name}"
            assert not isinstance(said, RunEnded) or said.status != "completed", "completed all the same"
        if isinstance(said, GateApproved):
            assert not (begun and said.call.tool == what), f"{what} after {after}"
            begun = begun or said.call.tool == after
        elif isinstance(said, GateRejected):
            broken = broken or (begun and said.call.tool == what)
        elif isinstance(said, RunEnded):
            begun = broken = False


FIRST, SECOND = (where(GateApproved, action(tool)) for tool in ("first", "second"))
SECOND_DONE = where(ToolFinished, lambda finished: finished.call.tool == "second" and not finished.result.is_error)
GIVEN_UP = where(RunEnded, lambda ended: ended.status != "completed")

UNASKED = nothing_unasked_before("second", "first")
NO_END = absence(where(RunEnded, status="completed"), after=FIRST, until=SECOND_DONE | GIVEN_UP)
KEPT = (
    (only_after("second", "first"), UNASKED),
    (only_after("second", "first", otherwise="ask"), UNASKED),
    (never("second", after="first"), absence(SECOND, after=FIRST, until=RunEnded)),
    (never("second", after="first", otherwise="stop"), nothing_goes_on_after("second", "first")),
    (no_more_than(1, "first"), bounded_existence(FIRST, 1, after=PromptGiven, until=RunEnded)),
    (eventually("second", after="first"), NO_END),
    (eventually("second", after="first", otherwise="stop"), NO_END),
)
ABORTED, STOPPED = rules_named("abort_on_request"), rules_named("abort_on_request", "stop_on_request")


@pytest.mark.slow
@pytest.mark.usefixtures("few_runs")
@rows(("policy", "kept"), KEPT)
def test_each_pattern_keeps_what_it_says_and_lets_no_run_hang(policy: BThread, kept: BThread) -> None:
    result = verify_loop(STOPPED, [policy], invariants=[kept])

    assert result.holds, told(result)


@pytest.mark.slow
@pytest.mark.usefixtures("few_runs")
@rows("kept", dict.fromkeys(kept for _, kept in KEPT))
def test_without_the_policy_its_invariant_breaks(kept: BThread) -> None:
    result = verify_loop(ABORTED, invariants=[kept], first=True)

    assert {violation.bthread for violation in result.violations} == {kept.name}


@pytest.mark.slow
@pytest.mark.usefixtures("few_runs")
@rows("within", [between("first", "second"), since("first", "second"), since("first")])
def test_policies_of_a_scope_let_no_run_hang(within: Scope) -> None:
    policies = [no_more_than(1, "first", within=within), eventually("other", after="first", within=within)]

    result = verify_loop(ABORTED, policies)

    assert result.holds, told(result)


@pytest.mark.slow
@pytest.mark.usefixtures("few_runs")
def test_a_policy_and_a_constitution_that_ask_do_so_one_after_the_other() -> None:
    policies = [only_after("second", "first", otherwise="ask"), by_constitution(any_verdict)]

    result = verify_loop(ABORTED, policies, invariants=[UNASKED], max_states=2_000)

    assert not result.violations, told(result)


FAULTS = (
    Fault("takes_an_attempt_for_a_success", "only_after", UNASKED.name,
          "memory.after(said), None if",
          'memory.after(evolve(said, result=ToolResult("")) if isinstance(said, ToolFinished) else said), None if'),
    Fault("refuses_the_call_alone", "never", KEPT[3][1].name,
          "ending = stopped(because) if broken and ending is None else ending",
          "ending = None"),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("few_runs")
@rows("fault", FAULTS)
def test_a_planted_fault_is_found(fault: Fault) -> None:
    policy, kept = next(each for each in KEPT if each[0].name == fault.bthread and each[1].name == fault.culprit)

    result = verify_loop((), [fault.planted_in(policy)], invariants=[kept], max_states=20_000)

    assert is_found(fault, result), told(result)
