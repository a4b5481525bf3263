"""Shapes in which servers send an answer: the events of a stream, and what they mean. Each wire has a table of them.

Every row is read from bytes, and played to an agent over HTTP.
"""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx2
import pytest
from attrs import frozen
from hypothesis import strategies as st

from agent import Agent, tool
from agent.models.model import Answer, ModelError
from agent.models.openai_model import DONE as END_MARKER
from agent.models.openai_model import WIRES, Api, OpenAIModel, raw_chunks
from agent.tools.definition import Tool
from agent.vocabulary.events import BackoffStarted, CallAnswered, InferenceFailed
from agent.vocabulary.messages import CUT_OFF, AssistantMessage
from tests.agent.models.conftest import DONE, Server, frame
from tests.agent.soundness import assert_valid_chat, assert_valid_items

Event = dict[str, Any]
Call = tuple[str, str, str]
"""Id, name and arguments, as the model wrote them."""

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
    """The events of a stream, and what they mean.

    broken: the stream is none: nothing of it may be used, and the inference is asked again. done: `[DONE]` follows.
    """

    events: tuple[Event, ...]
    calls: Sequence[Call] = ()
    stop: str = "tool_calls"
    text: str = ""
    broken: bool = False
    done: bool = True


A, B = '{"text": "a"}', '{"text": "b"}'
TWO: list[Call] = [("a", "note", A), ("b", "read", B)]


async def chunks_of(*pieces: bytes) -> list[object]:
    """The chunks of a body that comes in these pieces, without a server in between."""

    async def body() -> AsyncIterator[bytes]:
        for part in pieces:
            yield part

    response = httpx2.Response(200, content=body(), request=httpx2.Request("POST", "http://server"))
    async with raw_chunks(response, "http://server") as chunks:
        return [chunk async for chunk in chunks if chunk is not END_MARKER]


async def assembled(api: Api, pieces: Iterable[bytes]) -> Answer:
    assembly = WIRES[api].assembly("m")
    for chunk in await chunks_of(*pieces):
        assembly.feed(chunk)
    return assembly.answer()


async def assert_read(api: Api, shape: Shape) -> None:
    """Fail unless the bytes of a shape are read as it says."""
    pieces = [*map(frame, shape.events), *([DONE] if shape.done else [])]
    if shape.broken:
        with pytest.raises(ModelError) as caught:
            await assembled(api, pieces)
        assert caught.value.retryable
        return
    answer = await assembled(api, pieces)
    calls = [(call.id, call.name, call.arguments) for call in answer.message.calls]
    assert (calls, answer.stop_reason, answer.message.text) == ([*shape.calls], shape.stop, shape.text)


def recording(ran: list[str]) -> list[Tool]:
    """Tools that write down what they did."""

    def noting(name: str) -> Tool:
        @tool(name=name)
        async def note(text: str) -> str:
            """Write something down."""
            ran.append(text)
            return text

        return note

    @tool
    async def ping(at: str = "nothing") -> str:
        """Answer."""
        ran.append(at)
        return at

    return [noting("note"), noting("read"), ping]


def whole_calls(shape: Shape) -> list[str]:
    """What the tools are asked to write down by the calls that may run."""
    asked = []
    for _, name, text in shape.calls if shape.stop not in CUT_OFF else ():
        try:
            arguments = json.loads(text or "null") or {}
        except ValueError:
            continue
        if name == "ping":
            asked.append(arguments.get("at", "nothing"))
        elif name in ("note", "read") and isinstance(arguments, dict) and arguments.keys() == {"text"}:
            asked.append(arguments["text"])
    return asked


async def assert_carried_out(api: Api, shape: Shape, folder: Path) -> None:
    """Fail unless an agent runs the whole calls of a shape and no others, answers each, and asks validly for more."""
    ran: list[str] = []
    with closing(Server()) as server:
        server.stream(*shape.events, done=shape.done)
        server.stream(*words(api, "All done."))
        model = OpenAIModel("m", api=api, base_url=server.url)
        with Agent(model, recording(ran), workspace=folder, wait=lambda _: 0.0) as agent:
            run = await agent.run("go")
    assert (run.status, run.text) == ("completed", "All done.")
    assert ran == whole_calls(shape)
    answered = [event.call for event in run.events if isinstance(event, CallAnswered)]
    asked = [call.id for message in run.messages if isinstance(message, AssistantMessage) for call in message.calls]
    assert (answered, len(answered)) == (asked, len(shape.calls))
    assert [type(event) for event in run.events if isinstance(event, InferenceFailed | BackoffStarted)] == (
        [InferenceFailed, BackoffStarted] if shape.broken else []
    )
    assert [line for line, _, _ in server.requests] == [f"POST /v1{WIRES[api].path} HTTP/1.1"] * 2
    for _, _, body in server.requests:
        if api == "chat":
            assert_valid_chat(body["messages"])
        else:
            assert_valid_items(body["input"])


# Chat completions


def delta(finish: str | None = None, **said: Any) -> Event:
    return {"choices": [{"index": 0, "delta": said, "finish_reason": finish}]}


def call(arguments: object = None, **said: Any) -> Event:
    """A chunk with one piece of a call: index, id and name where given."""
    return delta(tool_calls=[call_piece(arguments, **said)])


def call_piece(arguments: object = None, **said: Any) -> Event:
    """A piece of a call: index, id and name where given, arguments where not None."""
    function = {"name": said.pop("name", None), "arguments": arguments}
    function = {key: value for key, value in function.items() if value is not None}
    return {**said, **({"function": function} if function else {})}


# Responses


def added(id: str = "", index: int | None = None, **item: Any) -> Event:
    return _about("response.output_item.added", index, item={"type": "function_call", "id": id, **item})


def piece(delta: str, id: str = "", index: int | None = None) -> Event:
    event = _about("response.function_call_arguments.delta", index, delta=delta)
    return {**event, "item_id": id} if id else event


def arguments_done(arguments: object, id: str = "", index: int | None = None) -> Event:
    return _about("response.function_call_arguments.done", index, arguments=arguments, item_id=id)


def whole(id: str = "", index: int | None = None, **item: Any) -> Event:
    return _about("response.output_item.done", index, item={"type": "function_call", "id": id, **item})


def ended(status: str = "completed", **response: Any) -> Event:
    return {"type": f"response.{status}", "response": {"status": status, "output": [], **response}}


def _about(type: str, index: int | None, **said: Any) -> Event:
    return {"type": type, **said, **({} if index is None else {"output_index": index})}


def streamed(id: str, index: int | None, facts: dict[str, Any], text: str) -> tuple[Event, ...]:
    """A call as it should stream: announced, in two pieces, whole."""
    pieces = (piece(text[:6], id, index), piece(text[6:], id, index))
    return (added(id, index, **facts, arguments=""), *pieces, whole(id, index, **facts, arguments=text))


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
