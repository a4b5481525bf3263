"""Images and reasoning stay in the conversation: in the log, in its replay, and in what goes out next."""

from pathlib import Path
from typing import Any

import pytest

from agent import Agent, call, tool
from agent.log.decoding import Decoder
from agent.log.reading import read_log
from agent.models.model import Answer
from agent.models.openai_model import OpenAIModel
from agent.vocabulary.calls import ToolResult
from agent.vocabulary.events import PromptGiven
from agent.vocabulary.messages import AssistantMessage, Image, ReasoningItem, ToolMessage, UserMessage
from tests.agent.conftest import MakeAgent
from tests.agent.models.hostile_server import Server
from tests.agent.models.shapes import call as chat_call
from tests.agent.models.shapes import delta, ended, streamed, words

pytestmark = pytest.mark.anyio

PNG = Image("image/png", b"\x89PNG\xff\x00")


@tool(category="read")
async def screenshot() -> ToolResult:
    """Show the screen."""
    return ToolResult("800 x 600", images=[PNG])


async def test_images_of_people_and_tools_are_in_the_conversation_and_in_the_log(make_agent: MakeAgent) -> None:
    """After the test, `make_agent` replays the log and compares every record."""
    agent = make_agent(call("screenshot"), "I see.", tools=[screenshot])

    run = await agent.run(UserMessage("look", (PNG,)))

    assert run.messages[0] == UserMessage("look", (PNG,))
    assert run.messages[2] == ToolMessage("call_1", "800 x 600", images=(PNG,))
    log = read_log(agent.log_path or "")
    prompt = next(record for record in log.records if record["name"] == "prompt_given")
    assert prompt["data"]["images"] == [{"media_type": "image/png", "content": "iVBOR/8A"}]
    assert Decoder().event(prompt) == PromptGiven("look", (PNG,))


async def test_reasoning_items_are_in_the_log(make_agent: MakeAgent) -> None:
    message = AssistantMessage("hi", reasoning="hm", reasoning_items=(ReasoningItem('{"id": "r"}', "m"),))
    agent = make_agent(Answer(message))

    run = await agent.run("go")

    assert run.messages[1] == message


async def test_an_earlier_conversation_keeps_what_was_shown_and_thought(make_agent: MakeAgent) -> None:
    """After the test, `make_agent` reads the history back from the log."""
    thought = AssistantMessage("hi", reasoning="hm", reasoning_items=(ReasoningItem('{"id": "r"}', "m", 0),))
    history = (UserMessage("look", (PNG,)), thought)

    run = await make_agent("Done.", history=history).run("go")

    assert run.messages[:2] == history


async def test_a_log_without_images_says_nothing_of_them(make_agent: MakeAgent) -> None:
    agent = make_agent(call("note", text="a"), "Done.")
    await agent.run("go")

    assert agent.log_path is not None
    records = agent.log_path.read_text().split("\n", 1)[1]  # the header has the option of that name
    assert '"images"' not in records
    assert "reasoning_items" not in records


async def test_what_a_tool_shows_goes_out_in_chat(server: Server, tmp_path: Path) -> None:
    server.stream(chat_call("{}", index=0, id="a", name="screenshot"), delta("tool_calls"))
    server.stream(*words("chat", "I see."))

    with Agent(OpenAIModel("m", base_url=server.url), [screenshot], workspace=tmp_path) as agent:
        await agent.run("look")

    messages: Any = server.requests[1][2]["messages"]
    assert [message["role"] for message in messages[1:]] == ["user", "assistant", "tool", "user"]
    assert messages[-1]["content"][1]["image_url"]["url"] == "data:image/png;base64,iVBOR/8A"


async def test_what_a_tool_shows_and_a_model_thought_goes_out_in_responses(server: Server, tmp_path: Path) -> None:
    thought = {"type": "reasoning", "id": "r", "summary": [], "encrypted_content": "secret"}
    server.stream(
        {"type": "response.output_item.done", "output_index": 0, "item": thought},
        *streamed("x", 1, {"call_id": "a", "name": "screenshot"}, "{}"),
        ended(),
    )
    server.stream(*words("responses", "I see."))
    model = OpenAIModel("m", api="responses", base_url=server.url)

    with Agent(model, [screenshot], workspace=tmp_path) as agent:
        await agent.run("look")

    _, reasoning, asked, result = server.requests[1][2]["input"]
    assert reasoning == thought
    assert asked["call_id"] == "a"
    assert result["output"][1]["image_url"] == "data:image/png;base64,iVBOR/8A"


async def test_a_conversation_of_images_that_would_fill_the_memory_is_not_sent(server: Server) -> None:
    large = Image("image/png", b"x" * 16_000_000)

    with Agent(OpenAIModel("m", base_url=server.url)) as agent:
        run = await agent.run(UserMessage("look", (large,)))

    assert "longer than 20,000,000 bytes" in run.text
    assert not server.requests


@pytest.mark.parametrize("wrong", [("text/plain", b"x"), ("image/png", b""), ("image/png; x", b"x"), ("", b"x")])
def test_what_is_no_image_is_refused(wrong: tuple[str, bytes]) -> None:
    with pytest.raises(ValueError, match=r"media_type|content"):
        Image(*wrong)


async def test_a_tool_that_shows_no_image_fails(make_agent: MakeAgent) -> None:
    @tool
    async def show() -> ToolResult:
        """Show something that is none."""
        return ToolResult("", images=[b"bytes"])  # type: ignore[list-item]

    run = await make_agent(call("show"), "Done.", tools=[show]).run("go")

    answered = run.messages[2]
    assert isinstance(answered, ToolMessage)
    assert answered.is_error
