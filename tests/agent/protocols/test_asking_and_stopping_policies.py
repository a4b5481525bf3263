"""Policies that ask a person instead of refusing, or end the run: in runs, in YAML, and model-checked."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import evolve

from agent import call
from agent.effects.approval import Approver
from agent.presets.shipped import PRESETS
from agent.protocols.policies import (
    PolicyError,
    eventually,
    never,
    no_more_than,
    only_after,
    read_policies,
)
from agent.session.run import Run
from agent.vocabulary.events import (
    ApprovalAsked,
    CallAnswered,
)
from bp import BThread
from tests.agent.conftest import MakeAgent
from tests.agent.protocols.protocol_programs import rules_named
from tests.agent.protocols.test_policies import KNOWN, READ, SEND, TOOLS
from tests.tables import rows

pytestmark = pytest.mark.slow

ABORTED, STOPPED = rules_named("abort_on_request"), rules_named("abort_on_request", "stop_on_request")


def run_with(
    make_agent: MakeAgent,
    policies: Sequence[BThread],
    *turns: object,
    approve: Approver | None,
) -> Run:
    agent = make_agent(*turns, "Done.", tools=TOOLS, threads=policies, preset="passthrough", approve=approve)
    return agent.run_sync("Serve")


def results(run: Run) -> list[str]:
    return [event.result for event in run.events if isinstance(event, CallAnswered)]


# A person decides.

ASKING = only_after("read_customer", "authenticate", otherwise="ask")


def test_a_person_may_allow_what_a_policy_forbids_and_is_told_why_they_are_asked(make_agent: MakeAgent) -> None:
    run = run_with(make_agent, [ASKING], READ, approve=lambda _: True)

    assert results(run) == ["Ada, Paris"]
    assert [event.question for event in run.events if isinstance(event, ApprovalAsked)] == [
        "read_customer is allowed only after authenticate, which is missing"
    ]


def test_a_no_and_an_empty_chair_are_refusals_and_each_says_which_it_was(make_agent: MakeAgent) -> None:
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


# The run ends.


def test_whoever_comes_up_against_a_policy_that_stops_ends_the_run(make_agent: MakeAgent) -> None:
    policy = never("send_email", after="read_customer", otherwise="stop")

    run = run_with(make_agent, [policy], READ, SEND, KNOWN, approve=None)

    assert (run.status, run.reason) == ("stopped", "policy")
    assert run.text == "Stopped by a policy: send_email is not allowed after read_customer."
    assert results(run) == ["Ada, Paris", "rejected: never: send_email is not allowed after read_customer"]


def test_what_is_owed_at_the_end_ends_the_run_as_stopped(make_agent: MakeAgent) -> None:
    policy = eventually("confirm", after="read_customer", otherwise="stop")

    kept, broken = (run_with(make_agent, [policy], *turns, approve=None) for turns in ([READ, call("confirm")], [READ]))

    assert kept.status == "completed"
    assert (broken.status, broken.reason) == ("stopped", "policy")
    assert "after read_customer there has to be confirm" in broken.text


# As YAML.


def written(folder: Path, text: str) -> Path:
    path = folder / "policies.yaml"
    path.write_text(f"policies:\n{text}")
    return path


def test_the_same_in_yaml(make_agent: MakeAgent, tmp_path: Path) -> None:
    stops = written(tmp_path, "  - {forbid: send_email, otherwise: stop, name: no mail}\n")
    run = run_with(make_agent, read_policies(stops), SEND, approve=None)
    asks = written(tmp_path, "  - {require: read_customer, after: authenticate, otherwise: ask, name: who is it}\n")
    asked = run_with(make_agent, read_policies(asks), READ, approve=lambda _: False)

    assert (run.status, results(run)) == ("stopped", ["rejected: no mail: send_email is not allowed"])
    assert results(asked)[0].startswith("rejected: who is it: the user said no")


@rows(
    ("text", "told"),
    [
        ("  - {forbid: send_email, otherwise: warn}", "2:37: expected one of 'refuse', 'ask', 'stop', found 'warn'"),
        ("  - {expect: a, after: b, otherwise: ask}", "2:38: `expect` is about the end, and no person is"),
        ("  - {forbid: a, otherwize: ask}", "unknown key 'otherwize'; did you mean 'otherwise'?"),
    ],
)
def test_what_else_is_said_is_told_where_it_is(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(PolicyError) as caught:
        read_policies(written(tmp_path, text))

    assert told in str(caught.value)


def test_nobody_can_be_asked_about_an_end() -> None:
    with pytest.raises(ValueError, match="a person is asked about actions"):
        eventually("confirm", after="refund", otherwise="ask")  # type: ignore[arg-type]
