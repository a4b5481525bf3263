"""The policies that the documents show, after AgentSpec's and Agent-C's examples: runs that keep and break them."""

from pathlib import Path
from typing import Any

import pytest

from agent import call
from agent.protocols.policies import read_policies
from agent.tools.definition import Tool, tool
from agent.verification.counterexample import tell
from agent.verification.environment import FEW_EXAMPLES
from agent.verification.loop import verify_loop
from agent.vocabulary.events import CallAnswered
from tests.agent.conftest import MakeAgent
from tests.agent.protocols.protocol_programs import rules_named

FOLDER = Path(__file__).parent.parent.parent.parent / "docs" / "policies"
FILES = ("retail", "airline", "agentspec")


def made(name: str) -> Tool:
    """A tool that takes what these policies ask about, and says that it is done."""

    def act(amount: int = 0, cabin: str = "") -> str:
        return "done"

    act.__name__ = name
    act.__doc__ = f"Do {name}."
    return tool(act)


TOOLS = {
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
    tools = [made(name) for name in TOOLS[file].split()]
    agent = make_agent(
        *calls, "Done.", "Done.", tools=tools, threads=read_policies(FOLDER / f"{file}.yaml"), preset="passthrough"
    )
    run = agent.run_sync("Serve")
    return [event for event in run.events if isinstance(event, CallAnswered)]


@pytest.mark.parametrize(("file", "steps"), KEPT)
def test_a_run_that_keeps_the_policies_is_not_disturbed(
    make_agent: MakeAgent, file: str, steps: tuple[Any, ...]
) -> None:
    assert [answered.outcome for answered in answers(make_agent, file, steps)] == ["ran"] * len(steps)


@pytest.mark.parametrize(("file", "steps", "reason"), BROKEN)
def test_a_run_that_breaks_a_policy_is_refused_there_and_told_why(
    make_agent: MakeAgent, file: str, steps: tuple[Any, ...], reason: str
) -> None:
    *before, last = answers(make_agent, file, steps)

    assert [answered.outcome for answered in before] == ["ran"] * (len(steps) - 1)
    assert last.outcome == "rejected"
    assert reason in last.result


def test_what_is_owed_keeps_the_run_from_ending(make_agent: MakeAgent) -> None:
    tools = [made(name) for name in TOOLS["agentspec"].split()]
    policies = read_policies(FOLDER / "agentspec.yaml")
    agent = make_agent(
        call("turn_on"), "Done.", call("turn_off"), "Off.", tools=tools, threads=policies, preset="passthrough"
    )

    run = agent.run_sync("Cook")

    assert run.text == "Off."
    assert "after turn_on there has to be turn_off, which is missing" in [message.text for message in run.messages]


@pytest.mark.parametrize("file", FILES)
def test_the_policies_of_a_file_let_no_run_hang(file: str) -> None:
    policies = read_policies(FOLDER / f"{file}.yaml")

    result = verify_loop(rules_named("abort_on_request"), policies, examples=FEW_EXAMPLES)

    assert result.holds, "\n".join(map(tell, result.violations))
