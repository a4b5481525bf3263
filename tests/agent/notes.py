"""Tools without effects, and reading the answers to calls: what several tests of runs need."""

import anyio

from agent import tool
from agent.vocabulary.messages import Message, ToolMessage


@tool(category="read")
async def note(text: str = "") -> str:
    """Take a note."""
    await anyio.lowlevel.checkpoint()
    return f"noted {text}"


@tool(category="read")
async def grumble() -> str:
    """Fail."""
    raise ValueError("grumble")


@tool(category="read")
async def hang() -> str:
    """Never come back."""
    await anyio.sleep_forever()
    return ""


def answers(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages if isinstance(message, ToolMessage)]
