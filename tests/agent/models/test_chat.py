"""A request in the chat-completions format: what a provider would refuse never goes out."""

from typing import Any

import pytest

from agent.models.model import ModelRequest
from agent.models.requests import EVERYTHING, Carrying, render_messages
from agent.tools.schemas import ToolSchema, render_tools
from agent.vocabulary.messages import AssistantMessage, Image, Message, RequestedCall, ToolMessage, UserMessage

BASH = ToolSchema("my.bash", "Run it.", {"type": "object"})


def rendered(*messages: Message, system: str = "", carrying: Carrying = EVERYTHING) -> list[dict[str, Any]]:
    return render_messages(ModelRequest(system, messages, (BASH,)), carrying)


def rendered_call(name: str = "bash", arguments: str = "{}") -> object:
    [message] = rendered(AssistantMessage(calls=(RequestedCall("a", name, arguments),)))
    assert message["content"] is None
    [call] = message["tool_calls"]
    return call


def test_a_conversation() -> None:
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


@pytest.mark.parametrize("arguments", ["{}", ' { "a" : 1 } ', '{"a": 1, "a": 2}', '{"a": "é"}'])
def test_argument_text_that_is_an_object_goes_back_as_the_model_wrote_it(arguments: str) -> None:
    assert rendered_call(arguments=arguments) == {
        "id": "a", "type": "function", "function": {"name": "bash", "arguments": arguments},
    }  # fmt: skip


@pytest.mark.parametrize("arguments", ["", "null", "{", "[1]", '"{}"', '{"a": NaN}', "[" * 100_000, "ls"])
def test_other_argument_text_goes_back_as_an_empty_object(arguments: str) -> None:
    assert rendered_call(arguments=arguments) == {
        "id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "sent"),
    [("", "unnamed"), (" ", "unnamed"), ("multi_tool.parallel", "multi_tool_parallel"), ("my.bash", "my.bash"),
     ("x" * 99, "x" * 64)],
)  # fmt: skip
def test_names_that_a_provider_refuses_are_replaced_unless_a_tool_has_them(name: str, sent: str) -> None:
    assert rendered_call(name) == {"id": "a", "type": "function", "function": {"name": sent, "arguments": "{}"}}


def test_text_that_cannot_be_encoded_is_mended() -> None:
    messages = rendered(
        UserMessage("\ud800x"), ToolMessage("a", "\udc80"), AssistantMessage("\udfff"), system="\ud83d\ude00"
    )

    assert [message["content"] for message in messages] == ["😀", "\ufffdx", "\ufffd", "\ufffd"]


PNG = Image("image/png", b"\x89PNG")
PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw=="}}


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


def test_a_model_that_takes_no_images_is_told_what_it_does_not_see() -> None:
    messages = rendered(
        UserMessage("look", (PNG,)), ToolMessage("a", "", images=(PNG,)), carrying=Carrying(images="drop")
    )

    notice = "[image/png, 4 bytes: left out, this model takes no images]"
    assert [message["content"] for message in messages] == [f"look\n{notice}", notice]


def test_reasoning_stays_unless_a_field_is_named_for_it() -> None:
    message = AssistantMessage("hi", reasoning="hm")

    assert rendered(message) == [{"role": "assistant", "content": "hi"}]
    assert rendered(message, carrying=Carrying(reasoning="reasoning_content")) == [
        {"role": "assistant", "content": "hi", "reasoning_content": "hm"}
    ]
    assert rendered(AssistantMessage("hi"), carrying=Carrying(reasoning="reasoning")) == rendered(
        AssistantMessage("hi")
    )


@pytest.mark.parametrize("wrong", [{"images": "maybe"}, {"reasoning": "yes"}])
def test_a_rule_that_does_not_exist_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="must be in"):
        Carrying(**wrong)


def test_tools() -> None:
    assert render_tools((BASH,)) == [
        {
            "type": "function",
            "function": {"name": "my.bash", "description": "Run it.", "parameters": {"type": "object"}},
        }
    ]
