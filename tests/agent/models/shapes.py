"""Shapes in which servers send an answer, in each wire format; more of them for chat are in `test_chat`.

A shape is the events of one stream, and what has to become of its calls: how each is answered, in order. `broken` says
that the stream is none: nothing of it may be used, and the inference is asked again.
"""

from typing import Any

from attrs import frozen
from hypothesis import strategies as st

Event = dict[str, Any]

ARGUMENTS = st.dictionaries(st.text(max_size=5), st.one_of(st.text(max_size=8), st.integers(), st.none()), max_size=3)
CALLS = st.lists(st.tuples(st.sampled_from(["bash", "read", "x"]), ARGUMENTS), min_size=1, max_size=4)
"""Calls for the laws that hold however their stream is cut: each a tool and its arguments."""


def interleave(streams: list[list[Event]], random: Any) -> list[Event]:
    """Mix streams; each keeps its order."""
    left = [list(stream) for stream in streams]
    merged = []
    while any(left):
        merged.append(random.choice([stream for stream in left if stream]).pop(0))
    return merged


@frozen
class Shape:
    """The events of a stream, and the beginning of the answer to each of its calls, in order."""

    events: tuple[Event, ...]
    answers: tuple[str, ...] = ()
    broken: bool = False
    done: bool = True

    @property
    def ran(self) -> list[str]:
        """The answers that only a tool gives."""
        return [answer for answer in self.answers if answer.startswith("noted") or answer == "pong"]


CUT = "not executed: truncated"
A, B = '{"text": "a"}', '{"text": "b"}'
BOTH = ("noted a", "noted b")


# Chat completions


def delta(finish: str | None = None, **said: Any) -> Event:
    return {"choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


def call(arguments: str | None = None, **said: Any) -> Event:
    """A chunk with one piece of a call: index, id and name where given."""
    function = {"name": said.pop("name", None), "arguments": arguments}
    function = {key: value for key, value in function.items() if value is not None}
    return delta(tool_calls=[{**said, **({"function": function} if function else {})}])


END = delta("tool_calls")
FIRST, SECOND = {"index": 0, "id": "a", "name": "note"}, {"index": 1, "id": "b", "name": "note"}


CHAT_SHAPES = {
    "a duplicate id": Shape((call(A, **FIRST), call(B, **{**SECOND, "id": "a"}), END), BOTH),
    "an empty name": Shape((call(A, **{**FIRST, "name": ""}), END), ("not executed: the call has no tool name",)),
    "no end marker": Shape((call(A, **FIRST), END), ("noted a",), done=False),
    "cut by length": Shape((call(A, **FIRST), call(B[:6], **SECOND), delta("length")), ("noted a", CUT)),
    "cut by the content filter": Shape((call(A[:6], **FIRST), delta("content_filter")), (CUT,)),
    "cut before the arguments": Shape((call(None, **{**FIRST, "name": "ping"}), delta("length")), (CUT,)),
    "unterminated JSON": Shape((call(A[:-1], **FIRST), call(B, **SECOND), END), (CUT, "noted b")),
    "JSON that is none": Shape((call("{text: a}", **FIRST), END), ("not executed: arguments are not valid JSON",)),
    "doubly encoded JSON": Shape((call('"{}"', **FIRST), END), ("not executed: arguments are a JSON text",)),
    "no arguments": Shape((call("", **{**FIRST, "name": "ping"}), END), ("pong",)),
    "null for arguments": Shape((call("null", **{**FIRST, "name": "ping"}), END), ("pong",)),
    "an unknown tool": Shape((call(A, **{**FIRST, "name": "nota"}), END), ("not executed: ",)),
    "no finish reason": Shape((call(A, **FIRST),), broken=True),
    "no finish reason, no end marker": Shape((call(A, **FIRST),), broken=True, done=False),
    "an error in the stream": Shape((call(A, **FIRST), {"error": {"message": "overloaded"}}), broken=True),
    "finish reason error": Shape((call(A, **FIRST), delta("error")), broken=True),
    "nothing at all": Shape((), broken=True),
}


# Responses


def added(id: str = "", index: int | None = None, **item: Any) -> Event:
    return _about("response.output_item.added", index, item={"type": "function_call", "id": id, **item})


def piece(delta: str, id: str = "", index: int | None = None) -> Event:
    event = _about("response.function_call_arguments.delta", index, delta=delta)
    return {**event, "item_id": id} if id else event


def whole(id: str = "", index: int | None = None, **item: Any) -> Event:
    return _about("response.output_item.done", index, item={"type": "function_call", "id": id, **item})


def ended(status: str = "completed", **response: Any) -> Event:
    return {"type": f"response.{status}", "response": {"status": status, "output": [], **response}}


def _about(type: str, index: int | None, **said: Any) -> Event:
    return {"type": type, **said, **({} if index is None else {"output_index": index})}


ONE: dict[str, Any] = {"call_id": "a", "name": "note"}
TWO: dict[str, Any] = {"call_id": "b", "name": "note"}


def streamed(id: str, index: int | None, facts: dict[str, Any], text: str) -> tuple[Event, ...]:
    """A call as it should stream: announced, in two pieces, whole."""
    pieces = (piece(text[:6], id, index), piece(text[6:], id, index))
    return (added(id, index, **facts, arguments=""), *pieces, whole(id, index, **facts, arguments=text))


RESPONSE_SHAPES = {
    "index gaps": Shape((*streamed("x", 3, ONE, A), *streamed("y", 7, TWO, B), ended()), BOTH),
    "the same index for two calls": Shape((*streamed("x", 0, ONE, A), *streamed("y", 0, TWO, B), ended()), BOTH),
    "the same index, interleaved": Shape(
        (added("x", 0, **ONE), added("y", 0, **TWO), piece(A, "x", 0), piece(B, "y", 0),
         whole("x", 0, **ONE, arguments=A), whole("y", 0, **TWO, arguments=B), ended()), BOTH
    ),
    "announced in every chunk": Shape(
        (added("x", 0, **ONE), piece(A[:6], "x", 0), added("x", 0, **ONE), piece(A[6:], "x", 0),
         whole("x", 0, **ONE, arguments=A), whole("x", 0, **ONE, arguments=A), ended()), ("noted a",)
    ),
    "a late id": Shape(
        (added("x", 0, name="note"), piece(A, "x", 0), whole("x", 0, **ONE, arguments=A), ended()), ("noted a",)
    ),
    "no call id": Shape(
        (*streamed("x", 0, {"name": "note"}, A), *streamed("y", 1, {"name": "note"}, B), ended()), BOTH
    ),
    "no id at all": Shape(
        (*streamed("", 0, {"name": "note"}, A), *streamed("", 1, {"name": "note"}, B), ended()), BOTH
    ),
    "a duplicate call id": Shape(
        (*streamed("x", 0, ONE, A), *streamed("y", 1, {**TWO, "call_id": "a"}, B), ended()), BOTH
    ),
    "a duplicate id": Shape((*streamed("x", 0, ONE, A), *streamed("x", 1, TWO, B), ended()), BOTH),
    "a duplicate id, interleaved": Shape(
        (added("x", 0, **ONE), added("x", 1, **TWO), piece(A, "x", 0), piece(B, "x", 1),
         whole("x", 0, **ONE, arguments=A), whole("x", 1, **TWO, arguments=B), ended()), BOTH
    ),
    "another id in every event, and no index": Shape(
        (added("x1", None, **ONE), piece(A, "x1"), added("y1", None, **TWO), piece(B, "y1"),
         whole("x3", None, **ONE, arguments=A), whole("y3", None, **TWO, arguments=B), ended()), BOTH
    ),
    "the same index, nothing announced": Shape(
        (whole("", 0, **ONE, arguments=A), whole("", 0, **TWO, arguments=B), ended()), BOTH
    ),
    "pieces after the whole call": Shape(
        (whole("", 0, **ONE, arguments=A), piece(B, "", 0), ended()), broken=True
    ),
    "nothing announced": Shape(
        (piece(A, "x", 0), whole("x", 0, **ONE, arguments=A), whole("y", 1, **TWO, arguments=B), ended()), BOTH
    ),
    "once more at the end, without arguments": Shape(
        (*streamed("x", 0, ONE, A), ended(output=[{"type": "function_call", "id": "x", **ONE}])), ("noted a",)
    ),
    "usage": Shape((*streamed("x", 0, ONE, A), ended(usage={"input_tokens": 1, "output_tokens": 2})), ("noted a",)),
    "no end marker": Shape((*streamed("x", 0, ONE, A), ended()), ("noted a",), done=False),
    "cut by length": Shape(
        (*streamed("x", 0, ONE, A), added("y", 1, **TWO), piece(B[:6], "y", 1),
         ended("incomplete", incomplete_details={"reason": "max_output_tokens"})), ("noted a", CUT)
    ),
    "cut by the content filter": Shape(
        (added("x", 0, **ONE), piece(A[:6], "x", 0),
         ended("incomplete", incomplete_details={"reason": "content_filter"})), (CUT,)
    ),
    "cut before the arguments": Shape(
        (added("x", 0, call_id="a", name="ping"), ended("incomplete", incomplete_details={})), (CUT,)
    ),
    "cut, and given as if whole": Shape(
        (added("x", 0, **ONE), whole("x", 0, **ONE, arguments=A[:6], status="incomplete"), ended("incomplete")), (CUT,)
    ),
    "a call that never got arguments": Shape((added("x", 0, call_id="a", name="ping"), ended()), broken=True),
    "no last event": Shape(streamed("x", 0, ONE, A), broken=True),
    "no last event, no end marker": Shape(streamed("x", 0, ONE, A), broken=True, done=False),
    "an error in the stream": Shape(
        (*streamed("x", 0, ONE, A), {"type": "error", "message": "overloaded"}), broken=True
    ),
    "a failed response": Shape(
        (*streamed("x", 0, ONE, A), ended("failed", error={"code": "server_error", "message": "oh"})), broken=True
    ),
    "a cancelled response": Shape((*streamed("x", 0, ONE, A), ended("cancelled")), broken=True),
    "nothing at all": Shape((), broken=True),
}  # fmt: skip


SHAPES = {"chat": CHAT_SHAPES, "responses": RESPONSE_SHAPES}


def words(api: str, text: str) -> tuple[Event, ...]:
    """A whole stream that says `text` in two pieces, and no more."""
    half = len(text) // 2
    if api == "chat":
        return (delta(content=text[:half]), delta(content=text[half:]), delta("stop"))
    pieces = [
        {"type": "response.output_text.delta", "item_id": "m", "output_index": 0, "delta": part}
        for part in (text[:half], text[half:])
    ]
    message = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": text}]}
    return (*pieces, {"type": "response.output_item.done", "output_index": 0, "item": message}, ended())
