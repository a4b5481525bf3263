"""The cost of a turn beside its model and its tool, which do nothing and are quick; all else is the real agent."""

import json
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from time import process_time
from typing import Any

import anyio
import httpx2
from attrs import evolve

from agent import Agent, ScriptedModel, call, tool
from agent.models.openai_model import WIRES, raw_chunks
from agent.presets.shipped import preset_named
from tests.bench.measuring import Aim, Row, fastest, scaled

MILLI = 1e3
TURNS = (50, 200, 800)


@tool(category="read", quick=True)
def do_nothing() -> str:
    """Do nothing."""
    return "done"


def measure_turns(size: float = 1.0) -> Iterator[Row]:
    """Milliseconds of CPU per turn, one call each, for runs of 50, 200 and 800 turns; and the Python calls of one."""
    counts = [scaled(turns, size) for turns in TURNS]
    logged = [cheapest(turns, log=True) for turns in counts]
    silent = cheapest(counts[1], log=False)
    for turns, cost in zip(TURNS, logged, strict=True):
        yield Row(f"{turns} turns, log on: CPU", cost, "ms/turn", logged[0], f"{TURNS[0]} turns", Aim(at_most=0.4))
    flat = Aim(at_most=1.2, of="ratio")
    yield Row("flatness", logged[-1], "ms/turn", logged[0], f"{TURNS[0]} turns", flat)
    yield Row(f"{TURNS[1]} turns, log off: CPU", silent, "ms/turn", logged[1], "log on")
    yield Row("Python calls of a turn, log on", calls(20) - calls(19), "calls", aim=Aim(at_most=600))


def cheapest(turns: int, *, log: bool, rounds: int = 3) -> float:
    """Return the milliseconds of CPU that a turn takes: the least of several runs."""
    return min(run(turns, log=log) for _ in range(rounds))


def calls(turns: int) -> int:
    """Return how many Python functions a run calls, the same on every machine of one version of Python."""
    count = 0

    def see(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(see)
    try:
        run(turns, log=True)
    finally:
        sys.setprofile(None)
    return count


def run(turns: int, *, log: bool) -> float:
    """Return the milliseconds of CPU per turn of an agent that calls the tool once in each."""
    model = ScriptedModel([*[call("do_nothing")] * turns, "Done."])
    unlimited = evolve(preset_named("default"), max_iterations=None, doom_loop=None)
    with ExitStack() as resources:
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
        agent = resources.enter_context(
            Agent(model, [do_nothing], preset=unlimited, workspace=folder, log=folder / "run.jsonl" if log else None)
        )
        begin = process_time()
        ended = agent.run_sync("Go on.")
        cost = (process_time() - begin) / turns * MILLI
    assert ended.status == "completed", ended.text
    return cost


# What a streamed chunk costs on its way from bytes to an answer; the floor is parsing its JSON and nothing else


MICRO = 1e6
CHUNKS = 4_000
PIECE = 1_400  # bytes of a network packet
PER_CHUNK = Aim(at_most=50)


def measure_streaming(size: float = 1.0) -> Iterator[Row]:
    """Microseconds of CPU for each chunk of text, and of a call's arguments, in both wire formats."""
    count = scaled(CHUNKS, size)
    for api, what, chunk in kinds():
        chunks = [chunk(number) for number in range(count)]
        ours, floor = fastest(lambda: assembling(api, chunks), lambda: parsing(chunks))  # noqa: B023, used at once
        yield Row(f"{api}: {what}", ours / count * MICRO, "us/chunk", floor / count * MICRO, "json.loads", PER_CHUNK)


def kinds() -> Iterator[tuple[str, str, Callable[[int], dict[str, Any]]]]:
    """Chunks as servers send them, with all that stands beside the few characters that count."""
    yield "chat", "text", lambda number: chat({"content": f" word{number}"})
    yield "chat", "arguments", lambda number: chat({"tool_calls": [piece_of_a_call(number)]})
    yield "responses", "text", lambda number: delta("output_text", number, content_index=0, logprobs=[])
    yield "responses", "arguments", lambda number: delta("function_call_arguments", number)


def chat(said: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "delta": said, "logprobs": None, "finish_reason": None}
    facts = {"id": "chatcmpl-8f1c2d3e", "object": "chat.completion.chunk", "created": 1790000000, "model": "m"}
    return {**facts, "system_fingerprint": "fp_44709d6fcb", "choices": [choice], "usage": None}


def piece_of_a_call(number: int) -> dict[str, Any]:
    first = {"id": "call_1", "type": "function"} if number == 0 else {}
    name = {"name": "write_file"} if number == 0 else {}
    return {"index": 0, **first, "function": {**name, "arguments": f" word{number}" if number else '{"content": "'}}


def delta(kind: str, number: int, **facts: Any) -> dict[str, Any]:
    place = {"item_id": "msg_68af4030baa48193b0b43b4c2a176a1a", "output_index": 1, "sequence_number": number}
    return {"type": f"response.{kind}.delta", **place, **facts, "delta": f" word{number}", "obfuscation": "x7Gh2"}


def assembling(api: str, chunks: list[dict[str, Any]]) -> Callable[[], object]:
    """Prepare the whole way: bytes in packets, events, JSON, the answer while it grows."""
    stream = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    packets = [stream[start : start + PIECE] for start in range(0, len(stream), PIECE)]

    async def body() -> AsyncIterator[bytes]:
        for packet in packets:
            yield packet

    async def assemble() -> None:
        assembly = WIRES[api].assembly("m")
        response = httpx2.Response(200, content=body(), request=httpx2.Request("POST", "http://server"))
        async with raw_chunks(response, "") as chunks:
            async for chunk in chunks:
                assembly.feed(chunk)

    return lambda: anyio.run(assemble)


def parsing(chunks: list[dict[str, Any]]) -> Callable[[], object]:
    """Prepare the floor: the same JSON, one text for each chunk."""
    texts = [json.dumps(chunk) for chunk in chunks]
    return lambda: [json.loads(text) for text in texts]
