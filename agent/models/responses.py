"""How a request looks in the format of the responses API: a list of items, of which a message may need several.

Nothing is kept on the server (`store` is false): the whole conversation goes out each time, and with it, encrypted, the
reasoning of the model's earlier answers, each record right before what it led to.
"""

import json
from collections.abc import Iterator
from typing import Any

from agent.models.carrying import EVERYTHING, LEFT_OUT, Carrying, data_url, with_notices
from agent.models.chat import sendable_arguments, sendable_name
from agent.models.model import ModelRequest, ToolSchema
from agent.models.surrogates import mend_surrogates
from agent.vocabulary.messages import AssistantMessage, Image, Message, ReasoningItem, ToolMessage, UserMessage

__all__ = ["render_input", "responses_body"]

WITHOUT_REASONING = ("gpt-3", "gpt-4", "chatgpt-")
"""How the names of those models begin whose provider answers 400 when asked for encrypted reasoning."""

ENCRYPTED_REASONING = "reasoning.encrypted_content"


def responses_body(model: str, request: ModelRequest, carrying: Carrying = EVERYTHING) -> dict[str, Any]:
    """Return the body of a request to the model with this name, without settings."""
    system = {"instructions": mend_surrogates(request.system_prompt)} if request.system_prompt else {}
    tools = {"tools": [_render_tool(tool) for tool in request.tools]} if request.tools else {}
    include = {"include": [ENCRYPTED_REASONING]} if _asks_for_reasoning(model, carrying) else {}
    sent = render_input(model, request, carrying)
    return {"model": model, **system, "input": sent, **tools, **include, "store": False, "stream": True}


def render_input(model: str, request: ModelRequest, carrying: Carrying = EVERYTHING) -> list[dict[str, Any]]:
    """Return the `input` of a request to `model`: the conversation as items."""
    known = frozenset(tool.name for tool in request.tools)
    return [item for message in request.messages for item in _render(message, model, known, carrying)]


def _asks_for_reasoning(model: str, carrying: Carrying) -> bool:
    name = model.rpartition("/")[2]
    return carrying.reasoning == "items" and not (name.startswith(WITHOUT_REASONING) or "-chat" in name)


def _render_tool(tool: ToolSchema) -> dict[str, Any]:
    """Render a tool; without `strict` being false, optional parameters would be an error."""
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
        "strict": False,
    }


def _render(message: Message, model: str, known: frozenset[str], carrying: Carrying) -> Iterator[dict[str, Any]]:
    match message:
        case UserMessage():
            yield {"role": "user", "content": _content(message.text, message.images, carrying)}
        case AssistantMessage():
            yield from _render_assistant(message, model, known, carrying)
        case ToolMessage():
            output = _content(message.text, message.images, carrying)
            yield {"type": "function_call_output", "call_id": message.call_id, "output": output}


def _content(text: str, images: tuple[Image, ...], carrying: Carrying) -> str | list[dict[str, Any]]:
    text = mend_surrogates(text)
    if not images or carrying.images == "drop":
        return with_notices(text, images, LEFT_OUT)
    said = [{"type": "input_text", "text": text}] if text else []
    shown = [{"type": "input_image", "image_url": data_url(image), "detail": "auto"} for image in images]
    return [*said, *shown]


def _render_assistant(
    message: AssistantMessage, model: str, known: frozenset[str], carrying: Carrying
) -> Iterator[dict[str, Any]]:
    """Render text, then calls; reasoning right before what it led to, as the provider demands."""
    items = [item for item in message.reasoning_items if item.model == model] if carrying.reasoning == "items" else []
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
