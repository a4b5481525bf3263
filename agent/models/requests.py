"""Requests in the formats of chat completions and of the responses API."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agent.models.calls import UNNAMED, is_json_object, mend_surrogates
from agent.models.model import ModelRequest
from agent.tools.schemas import ToolSchema, render_tools
from agent.vocabulary.messages import (
    AssistantMessage,
    Image,
    Message,
    ReasoningItem,
    RequestedCall,
    ToolMessage,
    UserMessage,
)


def data_url(image: Image) -> str:
    """Return an image as a data URL."""
    from base64 import b64encode  # slow imports, for images only

    return f"data:{image.media_type};base64,{b64encode(image.content).decode()}"


def with_notices(text: str, images: Iterable[Image], why: str) -> str:
    """Return `text` with a line for each image that is not sent here, and why."""
    notices = (f"[{image.media_type}, {len(image.content):,} bytes: {why}]" for image in images)
    return "\n".join(part for part in (text, *notices) if part)


LONGEST_NAME = 64
"""Matches tool names that providers accept."""

SHOWN_LATER = "shown in the next message"

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def chat_body(model: str, request: ModelRequest, reasoning_field: str = "") -> dict[str, Any]:
    """Return the body of a request to the model with this name, without settings.

    reasoning_field: the message field that returns reasoning as text, for models that need it; empty: none.
    """
    tools = {"tools": render_tools(request.tools)} if request.tools else {}
    messages = render_messages(request, reasoning_field)
    return {"model": model, "messages": messages, **tools, "stream": True, "stream_options": {"include_usage": True}}


def render_messages(request: ModelRequest, reasoning_field: str = "") -> list[dict[str, Any]]:
    """Return the `messages` of a request: the system prompt first, unless it is empty, then the conversation.

    Calls are sent with their ids in `request`, where the loop puts its own (`with_ids`).
    """
    return [*_system(request.system_prompt), *_conversation(request, reasoning_field)]


def _system(prompt: str) -> Iterator[dict[str, Any]]:
    if prompt:
        yield {"role": "system", "content": mend_surrogates(prompt)}


def _conversation(request: ModelRequest, reasoning_field: str) -> Iterator[dict[str, Any]]:
    """Render each message; images of tools come after the last result of a batch, where any message is valid."""
    known = frozenset(tool.name for tool in request.tools)
    showing: list[ToolMessage] = []
    for message in request.messages:
        if showing and not isinstance(message, ToolMessage):
            yield _what_tools_show(showing)
            showing = []
        yield _render(message, known, reasoning_field)
        if isinstance(message, ToolMessage) and message.images:
            showing.append(message)
    if showing:
        yield _what_tools_show(showing)


def _render(message: Message, known: frozenset[str], reasoning_field: str) -> dict[str, Any]:
    match message:
        case UserMessage():
            return _render_user(message)
        case AssistantMessage():
            return _render_assistant(message, known, reasoning_field)
        case ToolMessage():
            text = with_notices(mend_surrogates(message.text), message.images, SHOWN_LATER)
            return {"role": "tool", "tool_call_id": message.call_id, "content": text}


def _render_user(message: UserMessage) -> dict[str, Any]:
    text = mend_surrogates(message.text)
    if not message.images:
        return {"role": "user", "content": text}
    said = [{"type": "text", "text": text}] if text else []
    return {"role": "user", "content": [*said, *map(_image_part, message.images)]}


def _what_tools_show(results: Sequence[ToolMessage]) -> dict[str, Any]:
    """Return the user message with the images of `results`; a tool message of this format has text only."""
    parts: list[dict[str, Any]] = []
    for result in results:
        parts.append({"type": "text", "text": f"Shown by the call {result.call_id}:"})
        parts += map(_image_part, result.images)
    return {"role": "user", "content": parts}


def _image_part(image: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_url(image)}}


def _render_assistant(message: AssistantMessage, known: frozenset[str], reasoning_field: str) -> dict[str, Any]:
    text = mend_surrogates(message.text)
    reasoning = {reasoning_field: mend_surrogates(message.reasoning)} if reasoning_field and message.reasoning else {}
    if not message.calls:
        return {"role": "assistant", "content": text, **reasoning}
    calls = [_render_call(call, known) for call in message.calls]
    return {"role": "assistant", "content": text if text.strip() else None, **reasoning, "tool_calls": calls}


def _render_call(call: RequestedCall, known: frozenset[str]) -> dict[str, Any]:
    function = {"name": sendable_name(call.name, known), "arguments": sendable_arguments(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def sendable_arguments(arguments: str) -> str:
    """Return argument text as the model wrote it, or `{}` if a provider would reject it."""
    return arguments if is_json_object(arguments) else "{}"


def sendable_name(name: str, known: frozenset[str]) -> str:
    """Return a name that providers accept; one invalid name in the conversation would fail every later request."""
    return name if name in known else _NOT_IN_NAMES.sub("_", name.strip())[:LONGEST_NAME] or UNNAMED


WITHOUT_REASONING = ("gpt-3", "gpt-4", "chatgpt-")
"""Prefixes of models whose provider answers 400 to a request for encrypted reasoning."""

ENCRYPTED_REASONING = "reasoning.encrypted_content"


def responses_body(model: str, request: ModelRequest) -> dict[str, Any]:
    """Return the body of a request to the model with this name, without settings."""
    system = {"instructions": mend_surrogates(request.system_prompt)} if request.system_prompt else {}
    tools = {"tools": [_render_tool(tool) for tool in request.tools]} if request.tools else {}
    include = {"include": [ENCRYPTED_REASONING]} if _asks_for_reasoning(model) else {}
    sent = render_input(model, request)
    return {"model": model, **system, "input": sent, **tools, **include, "store": False, "stream": True}


def render_input(model: str, request: ModelRequest) -> list[dict[str, Any]]:
    """Return the `input` of a request to `model`: the conversation as items."""
    known = frozenset(tool.name for tool in request.tools)
    return [item for message in request.messages for item in _items_of(message, model, known)]


def _asks_for_reasoning(model: str) -> bool:
    name = model.rpartition("/")[2]
    return not (name.startswith(WITHOUT_REASONING) or "-chat" in name)


def _render_tool(tool: ToolSchema) -> dict[str, Any]:
    """Render a tool; unless `strict` is false, optional parameters are an error."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }


def _items_of(message: Message, model: str, known: frozenset[str]) -> Iterator[dict[str, Any]]:
    match message:
        case UserMessage():
            yield {"role": "user", "content": _content(message.text, message.images)}
        case AssistantMessage():
            yield from _assistant_items(message, model, known)
        case ToolMessage():
            output = _content(message.text, message.images)
            yield {"type": "function_call_output", "call_id": message.call_id, "output": output}


def _content(text: str, images: tuple[Image, ...]) -> str | list[dict[str, Any]]:
    text = mend_surrogates(text)
    if not images:
        return text
    said = [{"type": "input_text", "text": text}] if text else []
    shown = [{"type": "input_image", "image_url": data_url(image), "detail": "auto"} for image in images]
    return [*said, *shown]


def _assistant_items(message: AssistantMessage, model: str, known: frozenset[str]) -> Iterator[dict[str, Any]]:
    """Render text, then calls, with reasoning right before the item that it led to, as the provider requires."""
    items = [item for item in message.reasoning_items if item.model == model]
    if message.text.strip() or not message.calls:
        yield from _led_to(None, items)
        yield {"role": "assistant", "content": mend_surrogates(message.text)}
    for number, call in enumerate(message.calls):
        yield from _led_to(number, items)
        yield {
            "type": "function_call",
            "call_id": call.id,
            "name": sendable_name(call.name, known),
            "arguments": sendable_arguments(call.arguments),
        }


def _led_to(call: int | None, items: list[ReasoningItem]) -> Iterator[dict[str, Any]]:
    return (json.loads(item.content) for item in items if item.before_call == call)
