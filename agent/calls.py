"""A tool call as the loop carries it, and the one result that answers it."""

from collections.abc import Mapping
from typing import Any, Literal

from attrs import field, frozen

from bp.payload import FrozenMapping

__all__ = ["Category", "ToolCall", "ToolResult"]

Category = Literal["read", "write", "admin"]

_NOTHING: FrozenMapping[str, Any] = FrozenMapping()


def _frozen(items: Mapping[str, Any]) -> Mapping[str, Any]:
    return items if isinstance(items, FrozenMapping) else FrozenMapping(items)


@frozen(cache_hash=True)  # in most events of a turn, and so hashed many times
class ToolCall:
    """One call that the model asks for: which tool, with which arguments.

    `flaw` is None for a whole call. Otherwise the call came cut off or unreadable, `arguments` is empty, and the
    text says what is wrong; such a call is answered and never run.
    """

    id: str
    tool: str
    arguments: Mapping[str, Any] = field(default=_NOTHING, converter=_frozen)
    category: Category = "write"
    flaw: str | None = None


@frozen
class ToolResult:
    """What a tool gives back: text for the model, and details for programs.

    Errors are content (S0 5.2): `is_error` tells the model and the loop that the call did not do what it should.
    """

    text: str
    is_error: bool = False
    details: Mapping[str, Any] = field(default=_NOTHING, converter=_frozen)
