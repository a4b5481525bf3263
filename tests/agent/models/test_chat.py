"""A request in the chat-completions format: what a provider would refuse never goes out."""

from typing import Any

import pytest

from agent.messages import AssistantMessage, Message, RequestedCall, ToolMessage, UserMessage
from agent.models import ModelRequest, ToolSchema, render_messages, render_tools

BASH = ToolSchema("my.bash", "Run it.", {"type": "object"})


def rendered(*messages: Message, system: str = "") -> list[dict[str, Any]]:
    return render_messages(ModelRequest(system, messages, (BASH,)))


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


def test_tools() -> None:
    assert render_tools((BASH,)) == [
        {
            "type": "function",
            "function": {"name": "my.bash", "description": "Run it.", "parameters": {"type": "object"}},
        }
    ]
