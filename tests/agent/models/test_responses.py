"""A request in the format of the responses API."""

import json
from typing import Any

from agent.models.model import ModelRequest
from agent.models.requests import render_input, responses_body
from agent.tools.schemas import ToolSchema
from agent.vocabulary.messages import (
    AssistantMessage,
    Image,
    Message,
    ReasoningItem,
    RequestedCall,
    ToolMessage,
    UserMessage,
)
from tests.tables import rows

BASH = ToolSchema("my.bash", "Run it.", {"type": "object"})
PNG = Image("image/png", b"\x89PNG")
URL = "data:image/png;base64,iVBORw=="


def rendered(*messages: Message, model: str = "m") -> list[dict[str, Any]]:
    return render_input(model, ModelRequest("", messages, (BASH,)))


def thought(id: str, before_call: int | None = None, model: str = "m") -> ReasoningItem:
    return ReasoningItem(json.dumps({"type": "reasoning", "id": id}), model, before_call)


def test_a_conversation() -> None:
    call = RequestedCall("a", "bash", '{"command": "ls"}')

    items = rendered(
        UserMessage("go"), AssistantMessage("I look.", (call,), "hm"), ToolMessage("a", "x"), AssistantMessage("Done.")
    )

    assert items == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "a", "name": "bash", "arguments": '{"command": "ls"}'},
        {"type": "function_call_output", "call_id": "a", "output": "x"},
        {"role": "assistant", "content": "Done."},
    ]


def test_a_body() -> None:
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


def test_reasoning_stands_right_before_what_it_led_to() -> None:
    calls = tuple(RequestedCall(id, "bash", "{}") for id in ("a", "b"))
    message = AssistantMessage("I look.", calls, "hm", (thought("t"), thought("u", 0), thought("v", 1)))

    items = rendered(message)

    assert [item.get("id") or item.get("call_id") or item.get("role") for item in items] == [
        "t", "assistant", "u", "a", "v", "b",
    ]  # fmt: skip


def test_reasoning_goes_to_the_model_that_wrote_it_and_to_no_other() -> None:
    message = AssistantMessage("hi", reasoning_items=(thought("t"),))

    assert len(rendered(message)) == 2
    assert len(rendered(message, model="other")) == 1


def test_reasoning_that_led_to_nothing_is_left_out() -> None:
    """A provider refuses a record of reasoning that nothing follows."""
    call = RequestedCall("a", "bash", "{}")

    assert [item["type"] for item in rendered(AssistantMessage("", (call,), "", (thought("t"),)))] == ["function_call"]


def test_images_are_parts_of_what_people_say_and_of_what_tools_answer() -> None:
    part = {"type": "input_image", "image_url": URL, "detail": "auto"}

    items = rendered(UserMessage("look", (PNG,)), ToolMessage("a", "", images=(PNG,)))

    assert items == [
        {"role": "user", "content": [{"type": "input_text", "text": "look"}, part]},
        {"type": "function_call_output", "call_id": "a", "output": [part]},
    ]


def test_a_request_that_a_provider_would_refuse_is_not_sent() -> None:
    items = rendered(AssistantMessage("\ud800", (RequestedCall("a", "", "{"), RequestedCall("b", "my.bash", "[1]"))))

    assert items[0]["content"] == "\ufffd"
    assert [(item["name"], item["arguments"]) for item in items[1:]] == [("unnamed", "{}"), ("my.bash", "{}")]
