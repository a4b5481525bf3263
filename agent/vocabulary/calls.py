"""A tool call as the loop carries it."""

import json
from collections.abc import Callable, Mapping
from itertools import filterfalse
from typing import Any, Literal, TypeVar

from attrs import field, frozen

from agent.vocabulary.messages import IF_ANY, NOTHING, frozen_mapping

Category = Literal["read", "write", "admin"]
T = TypeVar("T")


@frozen(cache_hash=True)  # in most events of a turn, and so hashed many times
class ToolCall:
    """One call that the model asks for: which tool, with which arguments.

    `flaw` is None for a whole call. Otherwise the call came cut off or unreadable, `arguments` is empty, and the
    text says what is wrong; such a call is answered and never run. The tool sets the other fields. `parallel`: the call
    may run beside other such calls. `command_in`: the argument that a shell runs, if there is one. `polls`: the call
    checks whether something has changed, and may be repeated.
    """

    id: str
    tool: str
    arguments: Mapping[str, Any] = field(default=NOTHING, converter=frozen_mapping)
    category: Category = "write"
    flaw: str | None = None
    parallel: bool = False
    command_in: str = field(default="", eq=False, metadata=IF_ANY)
    polls: bool = field(default=False, eq=False, metadata=IF_ANY)


# Functions of their own, so that the b-threads which use them capture no variable: variables of a closure count as
# state for ever, and multiplies the states that a model checker has to visit.


def without(items: tuple[T, ...], item: T) -> tuple[T, ...]:
    """Return `items` except those equal to `item`."""
    return tuple(filterfalse((item,).__contains__, items))


def still_open(calls: tuple[ToolCall, ...], answered: str) -> tuple[ToolCall, ...]:
    """Return the calls whose id is not that of the answered one."""
    return tuple(call for call in calls if call.id != answered)


def signature(call: ToolCall) -> str:
    """Return a call as one text: the command that a shell would run, else tool and arguments.

    It is equal for equal JSON: order of keys and 5.0 for 5 make no difference.
    """
    if call.command_in:
        return f"$ {call.arguments.get(call.command_in)}"
    return f"{call.tool} {json.dumps(thaw(call.arguments, _integral), sort_keys=True, separators=(',', ':'))}"


def thaw(value: Any, of_item: Callable[[Any], Any] = lambda item: item) -> Any:
    """Return frozen arguments as dicts and lists, with `of_item` applied to other values."""
    if isinstance(value, Mapping):
        return {key: thaw(item, of_item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [thaw(item, of_item) for item in value]
    return of_item(value)


def _integral(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def background_mark(arguments: Mapping[str, Any]) -> str:
    """Return the mark that users see after a background command; empty for other commands."""
    return " (in the background)" if arguments.get("background") is True else ""
