"""`agent_loop`, the loop of specification S0 5.1 as one function: the scenarios once more through it."""

from pathlib import Path
from typing import Any

import anyio
import pytest

from agent import LoopConfig, ScriptedModel, agent_loop, call, tool, workspace_tools
from agent.models.model import ModelRequest
from agent.models.scripted import fail
from agent.testing import assert_calls_answered
from agent.vocabulary.errors import RunError
from agent.vocabulary.messages import AssistantMessage, Message, RequestedCall, ToolMessage, UserMessage
from tests.agent.notes import grumble, note

pytestmark = pytest.mark.anyio

TERMINAL = AssistantMessage("Stopped: maximum iteration limit reached.")


async def test_s5_1_a_text_is_appended_to_the_list_that_was_passed() -> None:
    messages: list[Message] = [UserMessage("Say hello")]
    model = ScriptedModel(["Hello."])

    returned = await agent_loop(messages, [], "Be brief.", model)

    assert returned is messages
    assert messages == [UserMessage("Say hello"), AssistantMessage("Hello.")]
    assert (model.requests[0].system_prompt, model.requests[0].tools) == ("Be brief.", ())


async def test_s5_2_to_s5_4_and_s5_6_results_and_errors_are_appended_and_told(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    model = ScriptedModel([[call("note", text="a"), call("grumble")], call("note", text="b"), "Done."])
    messages: list[Message] = [UserMessage("Go")]

    await agent_loop(messages, [note, grumble], "", model, on_event=events.append)

    assert_calls_answered(messages)
    answers = [message for message in messages if isinstance(message, ToolMessage)]
    assert answers == [
        ToolMessage("call_1", "noted a"),
        ToolMessage("call_2", "grumble", is_error=True),
        ToolMessage("call_3", "noted b"),
    ]
    assert messages[-1] == AssistantMessage("Done.")
    results = [event["toolResult"] for event in events if event["type"] == "toolResult"]
    assert results[1] == {
        "role": "toolResult",
        "toolCallId": "call_2",
        "content": [{"type": "text", "text": "grumble"}],
        "isError": True,
    }
    streamed = [event["event"] for event in events if event["type"] == "stream"]
    assert "".join(piece["text"] for piece in streamed if piece["type"] == "text") == "Done."
    assert "".join(piece["text"] for piece in streamed if piece["type"] == "arguments").startswith('{"text": "a"}')


@pytest.mark.parametrize("cancelled", ["stream", "tool"])
async def test_s5_5_and_s5_8_a_signal_reaches_stream_and_tool_and_the_list_is_returned(cancelled: str) -> None:
    signal, reached = anyio.Event(), anyio.Event()

    async def hang() -> str:
        signal.set()
        try:
            await anyio.sleep_forever()
        finally:
            reached.set()
        return ""

    @tool
    async def wait() -> str:
        """Wait for ever."""
        return await hang()

    async def stream(_: ModelRequest) -> str:
        return await hang()

    messages: list[Message] = [UserMessage("Go")]
    model = ScriptedModel([stream] if cancelled == "stream" else [[call("wait"), call("wait")]])
    with anyio.fail_after(2):
        await agent_loop(messages, [wait], "", model, signal=signal)

    assert reached.is_set()
    assert_calls_answered(messages)
    assert len(messages) == (1 if cancelled == "stream" else 4)


async def test_a_signal_that_is_set_already_asks_nothing() -> None:
    signal = anyio.Event()
    signal.set()
    model = ScriptedModel([])
    messages: list[Message] = [UserMessage("Go")]

    assert await agent_loop(messages, [], "", model, signal=signal) == [UserMessage("Go")]
    assert model.requests == []


async def test_a_signal_that_never_comes_changes_nothing() -> None:
    messages = await agent_loop([UserMessage("Go")], [], "", ScriptedModel(["Done."]), signal=anyio.Event())

    assert messages[-1] == AssistantMessage("Done.")


async def test_s5_7_the_limit_appends_a_terminal_message_and_tells() -> None:
    events: list[dict[str, Any]] = []
    model = ScriptedModel([call("note")] * 2)

    messages = await agent_loop(
        [UserMessage("Go")], [note], "", model, LoopConfig(max_iterations=2), on_event=events.append
    )

    assert messages[-1] == TERMINAL
    assert len([message for message in messages if isinstance(message, ToolMessage)]) == 2
    assert events[-1] == {"type": "error", "message": "Maximum iteration limit reached"}


async def test_the_limit_says_nothing_when_the_last_answer_was_final() -> None:
    messages = await agent_loop([UserMessage("Go")], [], "", ScriptedModel(["Done."]), LoopConfig(max_iterations=1))

    assert messages == [UserMessage("Go"), AssistantMessage("Done.")]


async def test_the_default_limit_is_twenty() -> None:
    messages = await agent_loop([UserMessage("Go")], [note], "", ScriptedModel([call("note")] * 20))

    assert messages[-1] == TERMINAL


async def test_an_earlier_conversation_is_continued() -> None:
    earlier: list[Message] = [
        UserMessage("First"),
        AssistantMessage("", (RequestedCall("a", "note", "{}"),)),
        ToolMessage("a", "noted"),
        AssistantMessage("One."),
    ]
    messages = [*earlier, UserMessage("Second")]
    model = ScriptedModel(["Two."])

    await agent_loop(messages, [note], "", model)

    assert messages == [*earlier, UserMessage("Second"), AssistantMessage("Two.")]
    assert list(model.requests[0].messages) == messages[:-1]


async def test_the_list_grows_while_the_loop_runs() -> None:
    messages: list[Message] = [UserMessage("Go")]
    lengths: list[int] = []

    def measure(_: ModelRequest) -> str:
        lengths.append(len(messages))
        return "Done."

    await agent_loop(messages, [note], "", ScriptedModel([call("note"), measure]))

    assert lengths == [3]


async def test_a_model_that_fails_is_an_error() -> None:
    messages: list[Message] = [UserMessage("Go")]

    with pytest.raises(RunError, match="no such model"):
        await agent_loop(messages, [], "", ScriptedModel([fail("no such model")]))
    assert messages == [UserMessage("Go")]


@pytest.mark.parametrize("messages", [[], [AssistantMessage("Hello.")]])
async def test_the_prompt_comes_last(messages: list[Message]) -> None:
    with pytest.raises(ValueError, match="the last message is the prompt"):
        await agent_loop(messages, [], "", ScriptedModel([]))


async def test_s6_1_the_four_tools_work_in_it(tmp_path: Path) -> None:
    model = ScriptedModel([call("write_file", path="a.txt", content="alpha"), call("read_file", path="a.txt"), "Done."])

    messages = await agent_loop([UserMessage("Go")], workspace_tools(tmp_path), "", model)

    assert messages[4] == ToolMessage("call_2", "alpha")
