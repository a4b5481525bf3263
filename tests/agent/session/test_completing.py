"""`complete` without an objective ends the run (S1 4.1.5), and what it says is not lost."""

import pytest

from agent import Run, call, tool
from agent.vocabulary.events import ToolStarted
from tests.agent.conftest import MakeAgent


@tool
def more() -> str:
    """Do more."""
    return "done"


def completing(status: str) -> object:
    return call("complete", result="that was it", status=status)


def autonomous(make_agent: MakeAgent, *steps: object) -> Run:
    return make_agent(*steps, tools=[more], preset="autonomous").run_sync("Go")


@pytest.mark.parametrize("status", ["success", "failure"])
@pytest.mark.parametrize("after", ["Some text.", ""])
def test_complete_ends_a_run_that_has_no_objective(make_agent: MakeAgent, status: str, after: str) -> None:
    run = autonomous(make_agent, completing(status), after, after, after)

    assert (run.status, run.reason, run.text) == ("completed", status, "that was it")


def test_nothing_else_of_the_turn_is_carried_out(make_agent: MakeAgent) -> None:
    run = autonomous(make_agent, [completing("failure"), call("more")])

    assert run.reason == "failure"
    assert [event.call.tool for event in run.events if isinstance(event, ToolStarted)] == ["complete"]


def test_a_text_still_ends_a_run_without_an_objective(make_agent: MakeAgent) -> None:
    assert autonomous(make_agent, call("more"), "Done.").text == "Done."


def test_text_does_not_end_a_run_with_an_objective(make_agent: MakeAgent) -> None:
    pursue = call("pursue_objective", user_prompt="Go", objective="all")

    assert autonomous(make_agent, pursue, "Not yet.", completing("success")).text == "that was it"
