"""Temporal policies: what they refuse and why, in runs that keep and break them, and model-checked."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent import call
from agent.effects.approval import Approver
from agent.presets.shipped import PRESETS
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
from agent.tools.definition import Tool, tool
from agent.verification import verify_loop
from agent.verification.counterexample import tell
from agent.verification.environment import FEW_EXAMPLES
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ApprovalAsked, CallAnswered, GateApproved, RunContinued
from bp import BThread
from constitution import Action
from tests.agent.conftest import MakeAgent
from tests.agent.protocols.protocol_programs import rules_named
from tests.tables import rows


@tool
def authenticate(user: str) -> str:
    """Check who a user is. An unknown one is an error."""
    if user == "nobody":
        raise ValueError("unknown user")
    return "ok"


@tool
def read_customer(id: str = "1") -> str:
    """Read a customer's data."""
    return "Ada, Paris"


@tool
def refund(amount: int) -> str:
    """Pay money back."""
    return f"paid {amount}"


@tool
def send_email(to: str = "x") -> str:
    """Send an email."""
    return "sent"


@tool
def confirm(what: str = "it") -> str:
    """Ask the customer."""
    return "yes"


TOOLS = (authenticate, read_customer, refund, send_email, confirm)
KNOWN, UNKNOWN = call("authenticate", user="ada"), call("authenticate", user="nobody")
READ, SEND = call("read_customer"), call("send_email")


def run_with(
    make_agent: MakeAgent, policies: Sequence[BThread], *turns: object, approve: Approver | None = None
) -> Run:
    agent = make_agent(*turns, "Done.", tools=TOOLS, threads=policies, preset="passthrough", approve=approve)
    return agent.run_sync("Serve")


def results(run: Run) -> list[str]:
    return [event.result for event in run.events if isinstance(event, CallAnswered)]


AUTHENTICATED = only_after("read_customer", "authenticate")


PAY, CONFIRM = call("refund", amount=1), call("confirm")
UNKNOWN_FIRST = "rejected: only_after: read_customer is allowed only after authenticate, which is missing"
OWED = "rejected: eventually: after read_customer there has to be confirm, which is missing"
SCOPED = eventually("confirm", after="read_customer", within=between("authenticate", "refund"))
BOTH_OWED = eventually("confirm", "send_email", after="read_customer", within=between("authenticate", "refund"))
OWED_AFTER_BOTH = eventually("confirm", after=("read_customer", "send_email"), within=between("authenticate", "refund"))
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
        ["ran", "ran", "rejected: never: send_email is not allowed after read_customer"],
    ),
    # In a scope between two actions, what has to follow is owed before the second one.
    (SCOPED, (KNOWN, READ, CONFIRM, PAY), ["ran"] * 4),
    (SCOPED, (KNOWN, READ, PAY), ["ran", "ran", OWED]),
    (SCOPED, (READ, PAY), ["ran", "ran"]),
    # Of several actions each counts, in their order; what has to follow is owed anew each time.
    (
        only_after("refund", "authenticate", "read_customer"),
        (KNOWN, PAY, READ, PAY),
        ["ran", "rejected: only_after: refund is allowed only after read_customer, which is missing", "ran", "ran"],
    ),
    (BOTH_OWED, (KNOWN, READ, CONFIRM, READ, SEND, PAY), ["ran"] * 5 + [OWED]),
    (OWED_AFTER_BOTH, (KNOWN, READ, PAY), ["ran"] * 3),
    # A scope opens and closes again.
    (REOPENED, (SEND, READ), ["ran", "ran"]),
    (REOPENED, (READ, SEND, CONFIRM, SEND), ["ran", "rejected: never: send_email is not allowed", "ran", "ran"]),
    (REOPENED, (READ, CONFIRM, READ, SEND), ["ran", "ran", "ran", "rejected: never: send_email is not allowed"]),
)


@rows(("policy", "turns", "outcome"), OUTCOMES)
def test_a_pattern_refuses_what_is_against_it_in_its_scope_and_says_why(
    make_agent: MakeAgent, policy: BThread, turns: tuple[Any, ...], outcome: list[str]
) -> None:
    answers = [event for event in run_with(make_agent, [policy], *turns).events if isinstance(event, CallAnswered)]

    assert [event.result if event.outcome == "rejected" else event.outcome for event in answers] == outcome


def test_a_missing_expected_action_keeps_the_run_from_ending_and_the_model_is_told(make_agent: MakeAgent) -> None:
    policy = eventually("send_email", after="refund")
    agent = make_agent(
        call("refund", amount=1), "Done.", SEND, "Done now.", tools=TOOLS, threads=[policy], preset="passthrough"
    )

    run = agent.run_sync("Serve")

    assert (run.status, run.text) == ("completed", "Done now.")
    assert sum(isinstance(event, RunContinued) for event in run.events) == 1
    assert "after refund there has to be send_email, which is missing" in [message.text for message in run.messages]


def test_a_policy_of_a_run_begins_anew_with_the_next_one_and_that_of_a_conversation_does_not(
    make_agent: MakeAgent,
) -> None:
    def second_run(within: Scope) -> str:
        policy = only_after("read_customer", "authenticate", within=within)
        agent = make_agent(KNOWN, "Hello.", READ, "Done.", tools=TOOLS, threads=[policy], preset="passthrough")
        agent.run_sync("I am Ada")
        run = agent.run_sync("What do you know of me?")
        return next(event.outcome for event in run.events if isinstance(event, CallAnswered))

    assert second_run(Scope("run")) == "rejected"
    assert second_run(CONVERSATION) == "ran"


def test_actions_are_meant_by_what_they_would_do(make_agent: MakeAgent, workspace: Path) -> None:
    (workspace / ".env").write_text("KEY=1")
    policy = never(action(effect="network upload"), after=action(effect="read", zone="private"))
    agent = make_agent(
        call("bash", command="head -c 1 .env"),
        call("bash", command="curl -s http://example.invalid/"),
        "Done.",
        threads=[policy],
        preset="passthrough",
    )

    run = agent.run_sync("Work")

    answers = [event.result for event in run.events if isinstance(event, CallAnswered)]
    assert answers[1] == "rejected: never: network or upload is not allowed after read in private"


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


# A person decides, with `otherwise="ask"`.

ASKING = only_after("read_customer", "authenticate", otherwise="ask")


def test_a_person_may_allow_what_a_policy_forbids_and_is_told_why_they_are_asked(make_agent: MakeAgent) -> None:
    run = run_with(make_agent, [ASKING], READ, approve=lambda _: True)

    assert results(run) == ["Ada, Paris"]
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

    assert results(run)[1] == "sent"
    assert results(run)[2].startswith("rejected: never: the user said no")


def test_calls_side_by_side_are_asked_about_one_by_one(make_agent: MakeAgent) -> None:
    """The first `read_customer` is what forbids the others, which were described before it was approved."""
    asked: list[int] = []
    policy = no_more_than(1, "refund", otherwise="ask")
    several = [call("refund", amount=number) for number in range(3)]

    def one_says_no(question: ApprovalAsked) -> bool:
        amount = question.call.arguments["amount"]
        asked.append(amount)
        return bool(amount != asked[0])

    preset = evolve(PRESETS["passthrough"], sequential=False)
    agent = make_agent(several, "Done.", tools=TOOLS, threads=[policy], preset=preset, approve=one_says_no)
    run = agent.run_sync("Serve")

    assert len(asked) == 2
    assert sum(text.startswith("paid") for text in results(run)) == 2
    assert sum(text.startswith("rejected: no_more_than: the user said no") for text in results(run)) == 1


# The run ends, with `otherwise="stop"`.


def test_a_call_that_violates_a_stopping_policy_ends_the_run(make_agent: MakeAgent) -> None:
    policy = never("send_email", after="read_customer", otherwise="stop")

    run = run_with(make_agent, [policy], READ, SEND, KNOWN)

    assert (run.status, run.reason) == ("stopped", "policy")
    assert run.text == "Stopped by a policy: send_email is not allowed after read_customer."
    assert results(run) == ["Ada, Paris", "rejected: never: send_email is not allowed after read_customer"]


def test_a_missing_expected_action_ends_the_run_as_stopped(make_agent: MakeAgent) -> None:
    policy = eventually("confirm", after="read_customer", otherwise="stop")

    kept, broken = (run_with(make_agent, [policy], *turns) for turns in ([READ, call("confirm")], [READ]))

    assert kept.status == "completed"
    assert (broken.status, broken.reason) == ("stopped", "policy")
    assert "after read_customer there has to be confirm" in broken.text


def test_a_policy_about_the_end_of_a_run_cannot_ask() -> None:
    with pytest.raises(ValueError, match="is about actions"):
        eventually("confirm", after="refund", otherwise="ask")  # type: ignore[arg-type]


# In YAML


def read(tmp_path: Path, text: str) -> tuple[BThread, ...]:
    file = tmp_path / "policies.yaml"
    file.write_text(text)
    return read_policies(file)


def test_yaml_says_the_same_as_python(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """
policies:
  - require: read_customer
    after: authenticate
  - forbid: {effect: upload network}
    after: [authenticate, read_customer]
    within: conversation
  - allow: {tool: [refund, pay], arguments: {amount: {above: 100}}}
    at_most: 1
    within: {from: authenticate, until: confirm}
  - expect: [run_tests, commit]
    after: edit_file
    within: {between: [begin, finish]}
    name: work is tested
""",
    )

    assert found == (
        only_after("read_customer", "authenticate"),
        never(action(effect="upload network"), after=("authenticate", "read_customer"), within=CONVERSATION),
        no_more_than(1, action("refund", "pay", amount={"above": 100}), within=since("authenticate", "confirm")),
        eventually("run_tests", "commit", after="edit_file", within=between("begin", "finish")).named("work is tested"),
    )


def test_policies_in_yaml_act_like_policies_in_python(make_agent: MakeAgent, tmp_path: Path) -> None:
    stops = "policies:\n  - {forbid: send_email, otherwise: stop, name: no mail}\n"
    run = run_with(make_agent, read(tmp_path, stops), SEND)
    asks = "policies:\n  - {require: read_customer, after: authenticate, otherwise: ask, name: who is it}\n"
    asked = run_with(make_agent, read(tmp_path, asks), READ, approve=lambda _: False)

    assert (run.status, results(run)) == ("stopped", ["rejected: no mail: send_email is not allowed"])
    assert results(asked)[0].startswith("rejected: who is it: the user said no")


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
        ("{forbid: {effect: teleport}}", "there is no effect 'teleport'"),
        ("{forbid: {effect: uplaod}}", "there is no effect 'uplaod'; did you mean 'upload'?"),
        ("{forbid: {tool: a, arguments: {x: {above: 1, below: 2}}}}", "x: "),
        ("{require: a, after: []}", "name at least one action"),
        ("{forbid: a, within: week}", "week"),
        ("{forbid: a, within: {between: [a]}}", "a scope is between two actions, or from one until another"),
        ("{forbid: a, within: {until: a}}", "the key 'from' is missing"),
        ("{forbid: send_email, otherwise: warn}", "2:37: expected one of 'refuse', 'ask', 'stop', found 'warn'"),
        ("{expect: a, after: b, otherwise: ask}", "2:38: `expect` is about the end, and no person is"),
        ("{forbid: a, otherwize: ask}", "unknown key 'otherwize'; did you mean 'otherwise'?"),
    ],
)
def test_a_mistake_in_yaml_is_told_with_its_place(tmp_path: Path, policy: str, problem: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read(tmp_path, f"policies:\n  - {policy}\n")

    assert f"{tmp_path / 'policies.yaml'}:2:" in str(caught.value)
    assert problem in str(caught.value)


# The policies that the documents show, after AgentSpec's and Agent-C's examples: runs that keep and break them.


FOLDER = Path(__file__).parent.parent.parent.parent / "docs" / "policies"
FILES = ("retail", "airline", "agentspec")


def made(name: str) -> Tool:
    """A tool that takes what these policies ask about, and says that it is done."""

    def act(amount: int = 0, cabin: str = "") -> str:
        return "done"

    act.__name__ = name
    act.__doc__ = f"Do {name}."
    return tool(act)


TOOLS_OF = {
    "retail": "find_user_id_by_email find_user_id_by_name_zip get_user_details get_order_details cancel_pending_order "
    "modify_pending_order_items return_delivered_order_items transfer_to_human_agents",
    "airline": "get_user_details get_reservation_details book_reservation cancel_reservation charge_difference "
    "update_reservation_flights send_certificate",
    "agentspec": "transfer verify_recipient turn_on turn_off pour",
}
EMAIL, ORDER, MODIFY = "find_user_id_by_email", "get_order_details", "modify_pending_order_items"
USER, RESERVATION, UPDATE = "get_user_details", "get_reservation_details", "update_reservation_flights"
LARGE = ("transfer", {"amount": 900})

KEPT: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("retail", (EMAIL, ORDER, MODIFY)),
    ("retail", ("find_user_id_by_name_zip", USER, ORDER, "cancel_pending_order", "transfer_to_human_agents")),
    ("airline", (USER, "book_reservation")),
    ("airline", (USER, RESERVATION, UPDATE, "charge_difference", ("send_certificate", {"amount": 100}))),
    ("agentspec", (("transfer", {"amount": 20}), "verify_recipient", LARGE)),
    ("agentspec", ("pour", "turn_on", "turn_off", "pour")),
)
BROKEN: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    (
        "retail",
        (ORDER,),
        "authenticate first: get_user_details or get_order_details is allowed only after find",
    ),
    ("retail", (EMAIL, MODIFY), "is allowed only after get_order_details, which is missing"),
    ("retail", (EMAIL, ORDER, MODIFY, MODIFY), "items are changed once: "),
    ("retail", ("transfer_to_human_agents", EMAIL), "any action is not allowed after transfer_to_human_agents"),
    ("airline", ("book_reservation",), "know the user: "),
    ("airline", (USER, "cancel_reservation"), "is allowed only after get_reservation_details, which is missing"),
    ("airline", (USER, RESERVATION, (UPDATE, {"cabin": "basic_economy"})), "basic economy stays as it was booked: "),
    ("airline", (USER, "send_certificate", "send_certificate"), "one certificate: "),
    ("agentspec", (LARGE,), "is allowed only after verify_recipient, which is missing"),
    ("agentspec", ("turn_on", "pour"), "nothing is poured between turning on and off: "),
)


def answers(make_agent: MakeAgent, file: str, steps: tuple[Any, ...]) -> list[CallAnswered]:
    calls = [call(step) if isinstance(step, str) else call(step[0], **step[1]) for step in steps]
    tools = [made(name) for name in TOOLS_OF[file].split()]
    agent = make_agent(
        *calls, "Done.", "Done.", tools=tools, threads=read_policies(FOLDER / f"{file}.yaml"), preset="passthrough"
    )
    run = agent.run_sync("Serve")
    return [event for event in run.events if isinstance(event, CallAnswered)]


@pytest.mark.slow
@rows(("file", "steps"), KEPT)
def test_a_run_that_keeps_the_policies_is_not_disturbed(
    make_agent: MakeAgent, file: str, steps: tuple[Any, ...]
) -> None:
    assert [answered.outcome for answered in answers(make_agent, file, steps)] == ["ran"] * len(steps)


@pytest.mark.slow
@rows(("file", "steps", "reason"), BROKEN)
def test_a_run_that_breaks_a_policy_is_refused_there_and_told_why(
    make_agent: MakeAgent, file: str, steps: tuple[Any, ...], reason: str
) -> None:
    *before, last = answers(make_agent, file, steps)

    assert [answered.outcome for answered in before] == ["ran"] * (len(steps) - 1)
    assert last.outcome == "rejected"
    assert reason in last.result


@pytest.mark.slow
@rows("file", FILES)
def test_the_policies_of_a_file_let_no_run_hang(file: str) -> None:
    policies = read_policies(FOLDER / f"{file}.yaml")

    result = verify_loop(rules_named("abort_on_request"), policies, examples=FEW_EXAMPLES)

    assert result.holds, "\n".join(map(tell, result.violations))
