"""From what the model wrote to calls that the loop can carry: ids that are unique, arguments that were parsed."""

from collections.abc import Iterator, Mapping
from itertools import count

from attrs import evolve

from agent.models.arguments import ArgumentError, parse_arguments
from agent.models.model import Answer
from agent.vocabulary.calls import Category, ToolCall
from agent.vocabulary.messages import AssistantMessage, RequestedCall

__all__ = ["LONGEST_ID", "UNNAMED", "read_calls", "with_ids"]

LONGEST_ID = 64
"""Characters of a call id that providers take."""

UNNAMED = "unnamed"
"""The name of a call that came without one, in the log and on the wire."""

_CUT_OFF = ("length", "content_filter")


def read_calls(answer: Answer, categories: Mapping[str, Category], *, turn: int = 0) -> tuple[ToolCall, ...]:
    """Return the calls of `answer` in its order.

    `categories` gives the category of each known tool; a call of any other counts as "write". `turn` numbers the
    answers of a conversation: with the position it makes up the ids that are ours. A call that is cut off, unreadable
    or nameless has a `flaw`: the text that the model will read; cut-off ones begin with "truncated".
    """
    requested = answer.message.calls
    cut_off = answer.stop_reason in _CUT_OFF
    last = len(requested) - 1
    return tuple(
        _read_call(call, id, categories, cut_off=cut_off, is_last=position == last)
        for position, (call, id) in enumerate(zip(requested, _unique_ids(requested, turn), strict=True))
    )


def with_ids(message: AssistantMessage, calls: tuple[ToolCall, ...]) -> AssistantMessage:
    """Return `message` as it enters the conversation: under the ids and names that its calls have in the loop.

    `calls` are those that `read_calls` made of the same message. The argument texts stay as the model wrote them.
    """
    renamed = tuple(_renamed(requested, call) for requested, call in zip(message.calls, calls, strict=True))
    return message if renamed == message.calls else evolve(message, calls=renamed)


def _renamed(requested: RequestedCall, call: ToolCall) -> RequestedCall:
    is_so_named = requested.id == call.id and requested.name == call.tool
    return requested if is_so_named else evolve(requested, id=call.id, name=call.tool)


def _unique_ids(requested: tuple[RequestedCall, ...], turn: int) -> Iterator[str]:
    """Keep the model's id unless it is missing, too long, or used before in this turn."""
    taken = {call.id for call in requested}
    seen: set[str] = set()
    for position, call in enumerate(requested):
        usable = call.id.strip() and len(call.id) <= LONGEST_ID and call.id not in seen
        id = call.id if usable else _our_id(turn, position, taken)
        taken.add(id)
        seen.add(id)
        yield id


def _our_id(turn: int, position: int, taken: set[str]) -> str:
    """Nine letters and digits, the strictest form that a provider asks for: `c0002p001`."""
    return next(id for number in count(position) if (id := f"c{turn:04}p{number:03}") not in taken)


def _read_call(
    requested: RequestedCall, id: str, categories: Mapping[str, Category], *, cut_off: bool, is_last: bool
) -> ToolCall:
    tool = requested.name.strip() or UNNAMED
    category = categories.get(tool, "write")
    text = requested.arguments
    try:
        arguments = parse_arguments(text)
    except ArgumentError as error:
        is_truncated = error.is_unfinished or (cut_off and is_last)
        return ToolCall(id, tool, category=category, flaw=_truncated(text) if is_truncated else str(error))
    if cut_off and not text.strip():  # nobody can tell no arguments from arguments that did not come
        return ToolCall(id, tool, category=category, flaw=_truncated(text))
    if not requested.name.strip():
        return ToolCall(id, tool, category=category, flaw="the call has no tool name; name one of the tools")
    return ToolCall(id, tool, arguments, category)


def _truncated(text: str) -> str:
    return (
        f"truncated: the arguments break off after {len(text)} characters; send the whole call again, or a shorter one"
    )
