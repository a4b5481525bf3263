"""A request in both formats, chat completions and responses: what a provider would refuse never goes out."""

import json
from typing import Any

import pytest

from agent import call, tool
from agent.log.reading import Decoder, read_log
from agent.models.chat import render_messages
from agent.models.model import ModelRequest
from agent.models.responses import render_input, responses_body
from agent.tools.schemas import ToolSchema
from agent.vocabulary.calls import ToolResult
from agent.vocabulary.events import PromptGiven
from agent.vocabulary.messages import (
    AssistantMessage,
    Image,
    Message,
    ReasoningItem,
    RequestedCall,
    ToolMessage,
    UserMessage,
)
from tests.agent.conftest import MakeAgent
from tests.tables import rows

pytestmark = pytest.mark.anyio

BASH = ToolSchema("my.bash", "Run it.", {"type": "object"})


def rendered(*messages: Message, system: str = "", reasoning_field: str = "") -> list[dict[str, Any]]:
    return render_messages(ModelRequest(system, messages, (BASH,)), reasoning_field)


def rendered_call(name: str = "bash", arguments: str = "{}") -> object:
    [message] = rendered(AssistantMessage(calls=(RequestedCall("a", name, arguments),)))
    assert message["content"] is None
    [call] = message["tool_calls"]
    return call


def test_a_conversation_is_rendered_for_chat_completions() -> None:
    call = RequestedCall("a", "bash", '{"command": "ls"}')

    messages = rendered(
        UserMessage("go"), AssistantMessage("I look.", (call,), "hm"), ToolMessage("a", "x"), AssistantMessage("Done."),
        system="Be brief.",
    )  # fmt: skip

    assert messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "I look.", "tool_calls": [
            {"id": "a", "type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}},
        ]},
        {"role": "tool", "tool_call_id": "a", "content": "x"},
        {"role": "assistant", "content": "Done."},
    ]  # fmt: skip


@rows(
    ("arguments", "sent"),
    [
        *((text, text) for text in ("{}", ' { "a" : 1 } ', '{"a": 1, "a": 2}', '{"a": "é"}')),
        *((text, "{}") for text in ("", "null", "{", "[1]", '"{}"', '{"a": NaN}', "[" * 100_000, "ls")),
    ],
)
def test_argument_text_goes_back_as_the_model_wrote_it_or_as_an_empty_object(arguments: str, sent: str) -> None:
    assert rendered_call(arguments=arguments) == {
        "id": "a", "type": "function", "function": {"name": "bash", "arguments": sent},
    }  # fmt: skip


@rows(
    ("name", "sent"),
    [("", "unnamed"), (" ", "unnamed"), ("multi_tool.parallel", "multi_tool_parallel"), ("my.bash", "my.bash"),
     ("x" * 99, "x" * 64)],
)  # fmt: skip
def test_names_that_a_provider_refuses_are_replaced_unless_a_tool_has_them(name: str, sent: str) -> None:
    assert rendered_call(name) == {"id": "a", "type": "function", "function": {"name": sent, "arguments": "{}"}}


def test_a_response_input_holds_nothing_that_a_provider_would_refuse() -> None:
    items = items_of(AssistantMessage("\ud800", (RequestedCall("a", "", "{"), RequestedCall("b", "my.bash", "[1]"))))

    assert items[0]["content"] == "\ufffd"
    assert [(item["name"], item["arguments"]) for item in items[1:]] == [("unnamed", "{}"), ("my.bash", "{}")]


def test_text_that_cannot_be_encoded_is_mended() -> None:
    messages = rendered(
        UserMessage("\ud800x"), ToolMessage("a", "\udc80"), AssistantMessage("\udfff"), system="\ud83d\ude00"
    )

    assert [message["content"] for message in messages] == ["😀", "\ufffdx", "\ufffd", "\ufffd"]


PNG = Image("image/png", b"\x89PNG")
PART: dict[str, Any] = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}


def test_images_of_a_person_are_parts_of_the_message() -> None:
    assert rendered(UserMessage("look", (PNG, PNG)), UserMessage("", (PNG,))) == [
        {"role": "user", "content": [{"type": "text", "text": "look"}, PART, PART]},
        {"role": "user", "content": [PART]},
    ]


def test_images_of_tools_come_after_the_last_result_of_the_batch() -> None:
    """A message in between would part a call from its answer, and providers refuse that."""
    calls = tuple(RequestedCall(id, "my.bash") for id in ("a", "b"))

    messages = rendered(
        AssistantMessage(calls=calls), ToolMessage("a", "x", images=(PNG,)), ToolMessage("b", "y"), UserMessage("go on")
    )

    assert [message["role"] for message in messages] == ["assistant", "tool", "tool", "user", "user"]
    assert messages[1]["content"] == "x\n[image/png, 4 bytes: shown in the next message]"
    assert messages[3]["content"] == [{"type": "text", "text": "Shown by the call a:"}, PART]
    assert rendered(ToolMessage("a", "x", images=(PNG,)))[-1]["role"] == "user"


def test_reasoning_stays_unless_a_field_is_named_for_it() -> None:
    message = AssistantMessage("hi", reasoning="hm")

    assert rendered(message) == [{"role": "assistant", "content": "hi"}]
    assert rendered(message, reasoning_field="reasoning_content") == [
        {"role": "assistant", "content": "hi", "reasoning_content": "hm"}
    ]
    assert rendered(AssistantMessage("hi"), reasoning_field="reasoning") == rendered(AssistantMessage("hi"))


# The format of the responses API


def items_of(*messages: Message, model: str = "m") -> list[dict[str, Any]]:
    return render_input(model, ModelRequest("", messages, (BASH,)))


def thought(id: str, before_call: int | None = None, model: str = "m") -> ReasoningItem:
    return ReasoningItem(json.dumps({"type": "reasoning", "id": id}), model, before_call)


def test_a_conversation_is_rendered_as_items() -> None:
    call = RequestedCall("a", "bash", '{"command": "ls"}')

    items = items_of(
        UserMessage("go"), AssistantMessage("I look.", (call,), "hm"), ToolMessage("a", "x"), AssistantMessage("Done.")
    )

    assert items == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "a", "name": "bash", "arguments": '{"command": "ls"}'},
        {"type": "function_call_output", "call_id": "a", "output": "x"},
        {"role": "assistant", "content": "Done."},
    ]


def test_a_request_is_rendered_for_the_responses_api() -> None:
    assert responses_body("gpt-5-mini", ModelRequest("Be brief.", (UserMessage("go"),), (BASH,))) == {
        "model": "gpt-5-mini",
        "instructions": "Be brief.",
        "input": [{"role": "user", "content": "go"}],
        "tools": [
            {"type": "function", "name": "my.bash", "description": "Run it.", "parameters": {"type": "object"},
             "strict": False},
        ],
        "include": ["reasoning.encrypted_content"],
        "store": False,
        "stream": True,
    }  # fmt: skip


@rows(
    ("model", "asked"),
    [
        ("o4-mini", True),
        ("qwen/qwen3", True),
        ("gpt-4o", False),
        ("openai/gpt-4.1", False),
        ("gpt-5-chat-latest", False),
    ],
)
def test_encrypted_reasoning_is_asked_for_where_a_model_has_it(model: str, asked: bool) -> None:
    assert ("include" in responses_body(model, ModelRequest("", ()))) is asked


def test_reasoning_stands_right_before_what_it_led_to_for_the_model_that_wrote_it() -> None:
    """A provider refuses a record of reasoning that nothing follows."""
    calls = tuple(RequestedCall(id, "bash", "{}") for id in ("a", "b"))
    thoughts = (thought("t"), thought("u", 0), thought("v", 1))

    def sent(text: str, model: str = "m") -> list[str]:
        items = items_of(AssistantMessage(text, calls, "hm", thoughts), model=model)
        return [item.get("id") or item.get("call_id") or item["role"] for item in items]

    assert sent("I look.") == ["t", "assistant", "u", "a", "v", "b"]
    assert sent("") == ["u", "a", "v", "b"]
    assert sent("I look.", model="other") == ["assistant", "a", "b"]


def test_images_are_parts_of_what_people_say_and_of_what_tools_answer() -> None:
    part = {"type": "input_image", "image_url": PART["image_url"]["url"], "detail": "auto"}

    items = items_of(UserMessage("look", (PNG,)), ToolMessage("a", "", images=(PNG,)))

    assert items == [
        {"role": "user", "content": [{"type": "input_text", "text": "look"}, part]},
        {"type": "function_call_output", "call_id": "a", "output": [part]},
    ]


# Images and reasoning stay in the conversation: in the log, in its replay, and in what goes out next.


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
    assert run.messages[2] == ToolMessage("call_1", "800 x 600", images=(PICTURE,))
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
    assert answered.is_error
