"""The scenarios of specification S0 through the running agent: a scripted model, real tools, on both event loops."""

import json
import os
from pathlib import Path

import anyio
import pytest
from attrs import evolve

from agent import Preset, answer, call, tool
from agent.models.model import ModelRequest
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


async def test_s5_3_all_results_of_one_turn_are_sent(make_agent: MakeAgent, workspace: Path) -> None:
    agent = make_agent(
        [
            call("write_file", path="a.txt", content="1"),
            call("list_directory", path="."),
            call("bash", command="cat a.txt"),
        ],
        "Done.",
    )

    run = await agent.run("Go")

    assert [message.call_id for message in tool_answers(run.messages)] == ["call_1", "call_2", "call_3"]
    assert [message.text for message in tool_answers(run.messages)][1:] == ["a.txt", "1"]
    assert run.events.count(InferenceRequested()) == 2


async def test_s5_4_what_a_tool_raises_is_an_error_for_the_model(make_agent: MakeAgent) -> None:
    @tool
    def explode() -> str:
        """Fail."""
        raise RuntimeError("boom")

    run = await make_agent(call("explode"), "I saw that it failed.", tools=[explode]).run("Go")

    assert tool_answers(run.messages) == [ToolMessage("call_1", "boom", is_error=True)]
    assert run.status == "completed"


async def test_s5_6_tool_and_model_take_turns_until_a_text_comes_alone(make_agent: MakeAgent, workspace: Path) -> None:
    agent = make_agent(
        call("write_file", path="n.txt", content="1"),
        answer("Next.", call("bash", command="echo 2 >> n.txt")),
        call("read_file", path="n.txt"),
        "There are two lines.",
    )

    run = await agent.run("Count")

    assert run.status == "completed"
    assert (workspace / "n.txt").read_text() == "12\n"
    assert [type(message).__name__ for message in run.messages[1:]] == ["AssistantMessage", "ToolMessage"] * 3 + [
        "AssistantMessage"
    ]


async def test_s5_7_beyond_the_limit_the_run_ends_with_a_terminal_message(make_agent: MakeAgent) -> None:
    agent = make_agent(*[call("bash", command=f"echo {n}") for n in range(3)], preset=evolve(DEFAULT, max_iterations=2))

    run = await agent.run("Go on for ever")

    assert (run.status, run.reason) == ("limit", "max_iterations")
    assert run.messages[-1] == AssistantMessage("Stopped: maximum iteration limit reached.")
    assert [message.text.strip() for message in tool_answers(run.messages)] == ["0", "1"]
    assert run.events.count(InferenceRequested()) == 2


@pytest.mark.parametrize("cancelled", ["stream", "tool"])
async def test_s5_8_an_abort_reaches_stream_and_tool(make_agent: MakeAgent, cancelled: str) -> None:
    reached = {"stream": False, "tool": False}
    under_way = anyio.Event()

    async def hang(what: str) -> None:
        under_way.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            reached[what] = True
            raise

    @tool
    async def wait() -> str:
        """Wait for ever."""
        await hang("tool")
        return ""

    async def stream(_: ModelRequest) -> str:
        await hang("stream")
        return ""

    agent = make_agent(stream if cancelled == "stream" else call("wait"), tools=[wait])
    with anyio.fail_after(5):
        async with agent.start("Go") as run:
            await under_way.wait()
            run.abort()

    assert run.status == "aborted"
    assert reached == {"stream": cancelled == "stream", "tool": cancelled == "tool"}


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
