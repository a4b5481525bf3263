"""How a request looks in the chat-completions format."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from agent.models.arguments import is_json_object
from agent.models.calls import UNNAMED
from agent.models.carrying import EVERYTHING, LEFT_OUT, Carrying, data_url, with_notices
from agent.models.model import ModelRequest, ToolSchema
from agent.models.surrogates import mend_surrogates
from agent.vocabulary.messages import AssistantMessage, Message, RequestedCall, ToolMessage, UserMessage

__all__ = ["chat_body", "render_messages", "render_tools", "sendable_arguments", "sendable_name"]

LONGEST_NAME = 64
"""Characters of a tool name that providers take."""

SHOWN_LATER = "shown in the next message"

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def chat_body(model: str, request: ModelRequest, carrying: Carrying = EVERYTHING) -> dict[str, Any]:
    """Return the body of a request to the model with this name, without settings."""
    tools = {"tools": render_tools(request.tools)} if request.tools else {}
    messages = render_messages(request, carrying)
    return {"model": model, "messages": messages, **tools, "stream": True, "stream_options": {"include_usage": True}}


def render_messages(request: ModelRequest, carrying: Carrying = EVERYTHING) -> list[dict[str, Any]]:
    """Return the `messages` of a request: the system prompt first, unless it is empty, then the conversation.

    Calls go out under the ids that they have in `request`, so the loop puts its own there (`with_ids`).
    """
    return [*_system(request.system_prompt), *_conversation(request, carrying)]


def render_tools(tools: tuple[ToolSchema, ...]) -> list[dict[str, Any]]:
    """Return the `tools` of a request."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]


def _system(prompt: str) -> Iterator[dict[str, Any]]:
    if prompt:
        yield {"role": "system", "content": mend_surrogates(prompt)}


def _conversation(request: ModelRequest, carrying: Carrying) -> Iterator[dict[str, Any]]:
    """Render each message; what tools show comes after the last result of a batch, where any message may stand."""
    known = frozenset(tool.name for tool in request.tools)
    showing: list[ToolMessage] = []
    for message in request.messages:
        if showing and not isinstance(message, ToolMessage):
            yield _what_tools_show(showing)
            showing = []
        yield _render(message, known, carrying)
        if isinstance(message, ToolMessage) and message.images and carrying.images == "send":
            showing.append(message)
    if showing:
        yield _what_tools_show(showing)


def _render(message: Message, known: frozenset[str], carrying: Carrying) -> dict[str, Any]:
    match message:
        case UserMessage():
            return _render_user(message, carrying)
        case AssistantMessage():
            return _render_assistant(message, known, carrying)
        case ToolMessage():
            why = SHOWN_LATER if carrying.images == "send" else LEFT_OUT
            text = with_notices(mend_surrogates(message.text), message.images, why)
            return {"role": "tool", "tool_call_id": message.call_id, "content": text}


def _render_user(message: UserMessage, carrying: Carrying) -> dict[str, Any]:
    text = mend_surrogates(message.text)
    if not message.images:
        return {"role": "user", "content": text}
    if carrying.images == "drop":
        return {"role": "user", "content": with_notices(text, message.images, LEFT_OUT)}
    said = [{"type": "text", "text": text}] if text else []
    return {"role": "user", "content": [*said, *map(_image_part, message.images)]}


def _what_tools_show(results: Sequence[ToolMessage]) -> dict[str, Any]:
    """Return the user message with the images of `results`; a tool message of this format holds text alone."""
    parts: list[dict[str, Any]] = []
    for result in results:
        parts.append({"type": "text", "text": f"Shown by the call {result.call_id}:"})
        parts += map(_image_part, result.images)
    return {"role": "user", "content": parts}


def _image_part(image: Any) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": data_url(image)}}


def _render_assistant(message: AssistantMessage, known: frozenset[str], carrying: Carrying) -> dict[str, Any]:
    text = mend_surrogates(message.text)
    field = carrying.reasoning_field
    reasoning = {field: mend_surrogates(message.reasoning)} if field and message.reasoning else {}
    if not message.calls:
        return {"role": "assistant", "content": text, **reasoning}
    calls = [_render_call(call, known) for call in message.calls]
    return {"role": "assistant", "content": text if text.strip() else None, **reasoning, "tool_calls": calls}


def _render_call(call: RequestedCall, known: frozenset[str]) -> dict[str, Any]:
    function = {"name": sendable_name(call.name, known), "arguments": sendable_arguments(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def sendable_arguments(arguments: str) -> str:
    """Return argument text as the model wrote it, or `{}` where a provider would refuse to read it again."""
    return arguments if is_json_object(arguments) else "{}"


def sendable_name(name: str, known: frozenset[str]) -> str:
    """Return a name that providers take; one bad name in the conversation would fail every later request."""
    return name if name in known else _NOT_IN_NAMES.sub("_", name.strip())[:LONGEST_NAME] or UNNAMED
