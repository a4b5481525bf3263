"""Images in the conversation: in the log, in its replay, in what goes out next, and after a server refused them."""

import pytest

from agent import call, tool
from agent.log.reading import Decoder, read_log
from agent.vocabulary.events import PromptGiven
from agent.vocabulary.messages import AssistantMessage, Image, ReasoningItem, ToolMessage, ToolResult, UserMessage
from tests.agent.conftest import MakeAgent
from tests.tables import rows

pytestmark = pytest.mark.anyio

PICTURE = Image("image/png", b"\x89PNG\xff\x00")


@tool(category="read")
async def screenshot() -> ToolResult:
    """Show the screen."""
    return ToolResult("800 x 600", images=[PICTURE])


async def test_images_of_people_and_tools_are_in_the_conversation_and_in_the_log(make_agent: MakeAgent) -> None:
    """After the test, `make_agent` replays the log and compares every record."""
    agent = make_agent(call("screenshot"), "I see.", tools=[screenshot])

    run = await agent.run(UserMessage("look", (PICTURE,)))

    assert run.messages[0] == UserMessage("look", (PICTURE,))
    assert run.messages[2] == ToolMessage("call_1", ToolResult("800 x 600", images=(PICTURE,)))
    log = read_log(agent.log_path or "")
    prompt = next(record for record in log.records if record["name"] == "prompt_given")
    assert prompt["data"]["images"] == [{"media_type": "image/png", "content": "iVBOR/8A"}]
    assert Decoder().event(prompt) == PromptGiven("look", (PICTURE,))


async def test_an_earlier_conversation_keeps_what_was_shown_and_thought(make_agent: MakeAgent) -> None:
    """After the test, `make_agent` reads the history back from the log."""
    thought = AssistantMessage("hi", reasoning="hm", reasoning_items=(ReasoningItem('{"id": "r"}', "m", 0),))
    history = (UserMessage("look", (PICTURE,)), thought)

    run = await make_agent("Done.", history=history).run("go")

    assert run.messages[:2] == history


@rows("wrong", [("text/plain", b"x"), ("image/png", b""), ("image/png; x", b"x"), ("", b"x")])
def test_a_file_that_is_no_image_is_refused(wrong: tuple[str, bytes]) -> None:
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
    assert answered.result.is_error
