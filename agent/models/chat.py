"""How a request looks in the chat-completions format."""

import re
from collections.abc import Iterator
from typing import Any

from agent.messages import AssistantMessage, Message, RequestedCall, ToolMessage, UserMessage
from agent.models.arguments import is_json_object
from agent.models.calls import UNNAMED
from agent.models.model import ModelRequest, ToolSchema
from agent.models.surrogates import mend_surrogates

__all__ = ["render_messages", "render_tools"]

LONGEST_NAME = 64
"""Characters of a tool name that providers take."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def render_messages(request: ModelRequest) -> list[dict[str, Any]]:
    """Return the `messages` of a request: the system prompt first, unless it is empty, then the conversation.

    Calls go out under the ids that they have in `request`, so the loop puts its own there (`with_ids`). Reasoning
    stays here: this format has no place for it.
    """
    known = frozenset(tool.name for tool in request.tools)
    return [*_system(request.system_prompt), *(_render(message, known) for message in request.messages)]


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


def _render(message: Message, known: frozenset[str]) -> dict[str, Any]:
    match message:
        case UserMessage():
            return {"role": "user", "content": mend_surrogates(message.text)}
        case AssistantMessage():
            return _render_assistant(message, known)
        case ToolMessage():
            return {"role": "tool", "tool_call_id": message.call_id, "content": mend_surrogates(message.text)}


def _render_assistant(message: AssistantMessage, known: frozenset[str]) -> dict[str, Any]:
    text = mend_surrogates(message.text)
    if not message.calls:
        return {"role": "assistant", "content": text}
    calls = [_render_call(call, known) for call in message.calls]
    return {"role": "assistant", "content": text if text.strip() else None, "tool_calls": calls}


def _render_call(call: RequestedCall, known: frozenset[str]) -> dict[str, Any]:
    """Render a call back to its model: what a provider would refuse to read again is replaced."""
    return {
        "id": call.id,
        "type": "function",
        "function": {
            "name": call.name if call.name in known else _acceptable(call.name),
            "arguments": call.arguments if is_json_object(call.arguments) else "{}",
        },
    }


def _acceptable(name: str) -> str:
    """Return a name that providers take; one bad name in the conversation would fail every later request."""
    return _NOT_IN_NAMES.sub("_", name.strip())[:LONGEST_NAME] or UNNAMED
