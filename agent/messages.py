"""The conversation as values: what the user, the model and the tools said, in no provider's format."""

from typing import Literal

from attrs import frozen

__all__ = ["AssistantMessage", "Message", "RequestedCall", "StopReason", "ToolMessage", "Usage", "UserMessage"]


@frozen
class Usage:
    """Tokens that one inference took, as the provider counted them; 0 where it said nothing."""

    input_tokens: int = 0
    output_tokens: int = 0


@frozen
class RequestedCall:
    """A call exactly as the model wrote it: its own id and name, and its arguments as text, whole or cut."""

    id: str
    name: str
    arguments: str = ""


@frozen
class UserMessage:
    """What a person said."""

    text: str


@frozen
class AssistantMessage:
    """What the model said, and the calls that it asked for, in its order."""

    text: str = ""
    calls: tuple[RequestedCall, ...] = ()
    reasoning: str = ""


@frozen
class ToolMessage:
    """The answer to one call."""

    call_id: str
    text: str
    is_error: bool = False


Message = UserMessage | AssistantMessage | ToolMessage
StopReason = Literal["stop", "tool_calls", "length", "content_filter"]
