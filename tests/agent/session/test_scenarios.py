"""The scenarios of specification S0 through the running agent: a scripted model, real tools, on both event loops."""

import json
import os
from pathlib import Path

import pytest

from agent import Preset, call, tool
from agent.presets.shipped import PRESETS
from agent.vocabulary.events import InferenceRequested, ToolStarted
from agent.vocabulary.messages import AssistantMessage, ToolMessage, UserMessage
from tests.agent.conftest import MakeAgent

pytestmark = pytest.mark.anyio

DEFAULT = PRESETS["default"]


def tool_answers(agent_messages: tuple[object, ...]) -> list[ToolMessage]:
    return [message for message in agent_messages if isinstance(message, ToolMessage)]


# S5: the loop


async def test_s5_1_without_tools_a_text_ends_the_run_after_one_iteration(make_agent: MakeAgent) -> None:
    agent = make_agent("Hello.", tools=())

    run = await agent.run("Say hello")

    assert (run.status, run.reason, run.text) == ("completed", "answered", "Hello.")
    assert run.messages == (UserMessage("Say hello"), AssistantMessage("Hello."))
    assert run.events.count(InferenceRequested()) == 1


async def test_s5_2_a_tool_result_is_appended_before_the_final_answer(make_agent: MakeAgent, workspace: Path) -> None:
    (workspace / "a.txt").write_text("alpha")
    agent = make_agent(call("read_file", path="a.txt"), "It says alpha.")

    run = await agent.run("What does a.txt say?")

    asked, said, answered, final = run.messages
    assert isinstance(said, AssistantMessage)
    assert [requested.name for requested in said.calls] == ["read_file"]
    assert answered == ToolMessage("call_1", "alpha")
    assert final == AssistantMessage("It says alpha.")
    assert agent.model.requests[1].messages == (asked, said, answered)  # type: ignore[attr-defined]


# S6: the tools


@pytest.mark.parametrize(
    ("arguments", "finding"),
    [
        ({}, "command"),
        ({"command": 5}, "command"),
        ({"command": "ls", "colour": "red"}, "colour"),
        ('{"command": "ls", "command": "pwd"}', "command"),
        ('"{\\"command\\": \\"ls\\"}"', "quoting"),
    ],
)
async def test_s6_2_invalid_parameters_are_an_error_for_the_model(
    make_agent: MakeAgent, arguments: dict[str, object] | str, finding: str
) -> None:
    run = await make_agent(call("bash", arguments), "Sorry.").run("Go")

    [answered] = tool_answers(run.messages)
    assert answered.is_error
    assert finding in answered.text
    assert not any(isinstance(event, ToolStarted) for event in run.events)


async def test_s6_5_deleting_everything_is_rejected_with_a_reason(make_agent: MakeAgent) -> None:
    run = await make_agent(call("bash", command="rm -rf /"), "I will not.").run("Clean up")

    [answered] = tool_answers(run.messages)
    assert answered.is_error
    assert answered.text.startswith("rejected: by_constitution: deny: ")
    assert not any(isinstance(event, ToolStarted) for event in run.events)


PERMISSIVE = Preset("permissive", policy=None)
"""Nothing is judged: what is refused here is refused by the tools themselves."""


@pytest.mark.parametrize("preset", [DEFAULT, PERMISSIVE], ids=lambda preset: preset.name)
async def test_s6_12_a_link_that_points_outside_is_rejected(
    make_agent: MakeAgent, tmp_path: Path, workspace: Path, preset: Preset
) -> None:
    (tmp_path / "outside.txt").write_text("secret")
    os.symlink(tmp_path / "outside.txt", workspace / "link.txt")

    run = await make_agent(call("read_file", path="link.txt"), "No.", preset=preset).run("Go")

    [answered] = tool_answers(run.messages)
    assert answered.is_error
    assert "secret" not in answered.text


# The order of writing things down and doing them


async def test_a_tool_finds_its_own_start_in_the_log(make_agent: MakeAgent, tmp_path: Path) -> None:
    log = tmp_path / "own.jsonl"

    @tool(category="read")
    def last_record() -> str:
        """Read the last line of the log."""
        return log.read_text().splitlines()[-1]

    run = await make_agent(call("last_record"), "Done.", tools=[last_record], log=log).run("Go")

    [answered] = tool_answers(run.messages)
    assert json.loads(answered.text)["name"] == "tool_started"
