"""Hooks and the events of S2: what a program around the loop may change, hears, and what happens when it fails."""

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent import Agent, Hooks, LoopConfig, ScriptedModel, agent_loop, answer, call, tool
from agent.models.model import Answer, Delta, ModelError, ModelRequest
from agent.models.scripted import fail
from agent.projections.narration import StreamEvent
from agent.testing import assert_calls_answered
from agent.tools.work import make_todo_tools
from agent.vocabulary.errors import RunError
from agent.vocabulary.events import FollowUpGiven, MessagesFound, SteeringGiven
from agent.vocabulary.messages import (
    NO_RESULT,
    AssistantMessage,
    Message,
    RequestedCall,
    ToolMessage,
    ToolResult,
    UserMessage,
)
from tests.agent.conftest import MakeAgent, answers, grumble, note
from tests.agent.soundness import broken_off

pytestmark = pytest.mark.anyio


def requests_of(agent: Agent) -> list[ModelRequest]:
    assert isinstance(agent.model, ScriptedModel)
    return list(agent.model.requests)


async def test_the_model_is_shown_what_the_hooks_make_of_the_conversation(make_agent: MakeAgent) -> None:
    """S2: `transformContext` prunes and adds, then `convertToLlm` makes messages for the model."""

    async def transform(messages: Sequence[Message]) -> Sequence[Message]:
        return messages[-1:]

    def convert(messages: Sequence[Message]) -> Sequence[Message]:
        return [UserMessage("Be brief."), *messages]

    agent = make_agent("One.", "Two.", hooks=Hooks(transform_context=transform, convert_to_llm=convert))
    await agent.run("First")
    run = await agent.run("Second")

    assert tuple(requests_of(agent)[1].messages) == (UserMessage("Be brief."), UserMessage("Second"))
    assert len(run.messages) == 4


async def test_a_stream_function_takes_the_place_of_the_model(make_agent: MakeAgent) -> None:
    async def stream(request: Any, on_delta: Any) -> Answer:
        return Answer(AssistantMessage(f"heard {request.messages[-1].text}"))

    run = await make_agent(hooks=Hooks(stream_fn=stream)).run("Go")

    assert run.text == "heard Go"


async def test_each_inference_gets_a_key_of_its_own(make_agent: MakeAgent) -> None:
    keys = iter(["first", None])
    agent = make_agent(call("note"), "Done.", tools=[note], hooks=Hooks(get_api_key=lambda: next(keys)))

    await agent.run("Go")

    assert [request.api_key for request in requests_of(agent)] == ["first", None]
    assert "first" not in repr(requests_of(agent)[0])


def once(*texts: str) -> Any:
    """A hook that has something to say at its second call."""
    calls = iter([(), texts])
    return lambda: next(calls, ())


async def test_steering_of_a_hook_skips_the_rest_of_the_batch(make_agent: MakeAgent) -> None:
    agent = make_agent(
        [call("note"), call("note")], "Done.", tools=[note], hooks=Hooks(get_steering_messages=once("Rather this."))
    )

    run = await agent.run("Go")

    assert answers(run.messages) == ["noted ", "skipped: Skipped due to queued user message."]
    assert run.messages[-2:] == (UserMessage("Rather this."), AssistantMessage("Done."))
    assert SteeringGiven("Rather this.") in run.events


async def test_follow_ups_of_a_hook_make_the_run_go_on(make_agent: MakeAgent) -> None:
    async def more() -> list[UserMessage]:
        return [UserMessage("And that.")] if len(requests_of(agent)) == 1 else []

    agent = make_agent("One.", "Two.", hooks=Hooks(get_follow_up_messages=more))

    run = await agent.run("Go")

    assert run.text == "Two."
    assert FollowUpGiven("And that.") in run.events
    assert sum(isinstance(event, MessagesFound) for event in run.events) == 2


HOOKS = ("convert_to_llm", "transform_context", "get_api_key", "get_steering_messages", "get_follow_up_messages")


def broken(*_: object) -> Any:
    raise ValueError("broken hook")


async def broken_later(*_: object) -> Any:
    raise ValueError("broken hook")


def nonsense(*_: object) -> Any:
    return 3.14


@pytest.mark.slow
@pytest.mark.parametrize("hook", [broken, broken_later, nonsense], ids=lambda hook: hook.__name__)
@pytest.mark.parametrize("name", HOOKS)
async def test_a_hook_that_raises_or_gives_nonsense_ends_the_run_with_an_error_that_names_it(
    make_agent: MakeAgent, name: str, hook: Any
) -> None:
    agent = make_agent("Done.", hooks=Hooks(**{name: hook}), sound=False)

    error = await broken_off(agent, RunError)

    assert str(error).startswith(f"the hook {name} failed: ")


LET_GO = threading.Event()


def hangs_in_its_thread(*_: object) -> Any:
    LET_GO.wait(1000)


async def hangs(*_: object) -> Any:
    await anyio.sleep_forever()


HANGING = [(name, hook) for name in HOOKS for hook in (hangs, hangs_in_its_thread)]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "hook"), [*HANGING, ("stream_fn", hangs)])
async def test_an_abort_ends_a_hook_that_hangs(make_agent: MakeAgent, name: str, hook: Any) -> None:
    LET_GO.clear()
    with anyio.fail_after(100):
        async with make_agent("Done.", hooks=Hooks(**{name: hook})).start("Go") as run:
            await anyio.wait_all_tasks_blocked()
            run.abort()
    LET_GO.set()

    assert run.status == "aborted"


# The events of S2


@tool(category="read")
async def speak() -> str:
    """Say something."""
    return "spoken"


async def test_a_run_is_told_as_agent_turns_messages_and_tools(make_agent: MakeAgent) -> None:
    told: list[StreamEvent] = []
    agent = make_agent(answer("Look.", call("speak")), "Done.", tools=[speak], on_event=told.append)

    run = await agent.run("Go")

    assert [event.type for event in told if event.type != "message_update"] == [
        "agent_start",
        "turn_start",
        *["message_start", "message_end"] * 2,  # the prompt, and the answer with its call
        "tool_execution_start",
        "tool_execution_end",
        *["message_start", "message_end"],
        "turn_end",
        "turn_start",
        *["message_start", "message_end"],
        "turn_end",
        "agent_end",
    ]
    pieces = [event.piece for event in told if event.piece is not None]
    assert [piece.text for piece in pieces if piece.kind == "text"] == ["Look.", "Done."]
    assert {(piece.number, piece.tool) for piece in pieces if piece.kind == "arguments"} == {(1, "speak")}
    assert told[-1].messages == run.new_messages == run.messages
    turn = next(event for event in told if event.type == "turn_end")
    assert turn.messages == (ToolMessage(run.messages[1].calls[0].id, ToolResult("spoken")),)  # type: ignore[union-attr]


async def test_an_answer_that_breaks_off_is_told_and_not_replayed_to_the_model(make_agent: MakeAgent) -> None:
    heard: list[StreamEvent] = []

    async def cut(request: Any, on_delta: Any) -> Answer:
        on_delta(Delta("Half an ans"))
        if len(heard) > 8:
            return Answer(AssistantMessage("Whole."))
        raise ModelError("broken stream", retryable=True)

    run = await make_agent(hooks=Hooks(stream_fn=cut), on_event=heard.append).run("Go")

    ended = [event for event in heard if event.type == "message_end"]
    assert ended[1].message == AssistantMessage("Half an ans")
    assert ended[1].error == "broken stream"
    assert AssistantMessage("Half an ans") not in run.messages


async def test_steering_follow_ups_and_limits_are_told_like_all_messages(make_agent: MakeAgent) -> None:
    told: list[StreamEvent] = []
    steps = [[call("note")], fail("busy", retryable=True), "", "One.", "Two."]
    async with make_agent(*steps, tools=[note, grumble], on_event=told.append).start("Go") as run:
        run.steer("Rather this.")
        run.follow_up("And then that.")

    ended = [event.message for event in told if event.type == "message_end"]
    assert tuple(message for message in ended if message is not None) == run.messages
    types = [event.type for event in told]
    assert types.count("turn_start") == types.count("turn_end")


# `agent_loop`, the loop of specification S0 5.1 as one function: the scenarios once more through it


TERMINAL = AssistantMessage("Stopped: maximum iteration limit reached.")


async def test_s5_2_to_s5_4_and_s5_6_results_and_errors_are_appended_and_told(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    model = ScriptedModel([[call("note", text="a"), call("grumble")], call("note", text="b"), "Done."])
    messages: list[Message] = [UserMessage("Go")]

    await agent_loop(messages, [note, grumble], "", model, on_event=events.append)

    assert_calls_answered(messages)
    answers = [message for message in messages if isinstance(message, ToolMessage)]
    assert answers == [
        ToolMessage("call_1", ToolResult("noted a")),
        ToolMessage("call_2", ToolResult("grumble", is_error=True)),
        ToolMessage("call_3", ToolResult("noted b")),
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
    with anyio.fail_after(100):
        await agent_loop(messages, [wait], "", model, signal=signal)

    assert reached.is_set()
    assert_calls_answered(messages)
    assert len(messages) == (1 if cancelled == "stream" else 4)


async def test_s5_7_the_limit_appends_a_terminal_message_and_tells() -> None:
    events: list[dict[str, Any]] = []
    model = ScriptedModel([call("note")] * 2)

    messages = await agent_loop(
        [UserMessage("Go")], [note], "", model, LoopConfig(max_iterations=2), on_event=events.append
    )

    assert messages[-1] == TERMINAL
    assert len([message for message in messages if isinstance(message, ToolMessage)]) == 2
    assert events[-1] == {"type": "error", "message": "Maximum iteration limit reached"}


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


async def test_open_calls_of_an_earlier_conversation_are_answered_before_the_prompt() -> None:
    open_call = AssistantMessage("", (RequestedCall("a", "note", "{}"), RequestedCall("b", "note", "{}")))
    answered = [
        open_call,
        ToolMessage("b", ToolResult("noted")),
        ToolMessage("a", ToolResult(NO_RESULT, is_error=True)),
    ]
    model = ScriptedModel(["Done."])
    run = await Agent(model, history=[open_call, ToolMessage("b", ToolResult("noted"))]).run("Go on")
    assert list(run.messages) == [*answered, UserMessage("Go on"), AssistantMessage("Done.")]
    assert list(model.requests[0].messages) == [*answered, UserMessage("Go on")]

    messages: list[Message] = [open_call, ToolMessage("b", ToolResult("noted")), UserMessage("Go on")]
    await agent_loop(messages, [], "", ScriptedModel(["Done."]))
    assert messages == list(run.messages)


async def test_what_tools_hold_stays_from_one_call_of_the_loop_to_the_next() -> None:
    tools, todo = make_todo_tools(), {"content": "Buy milk", "status": "pending", "priority": "high"}
    messages: list[Message] = [UserMessage("Note it")]
    await agent_loop(messages, tools, "", ScriptedModel([call("todowrite", todos=[todo]), "Done."]))
    messages.append(UserMessage("Read it"))
    await agent_loop(messages, tools, "", ScriptedModel([call("todoread"), "Done."]))

    assert "Buy milk" in messages[-2].text
