"""What a streamed chunk costs on its way from bytes to an answer; the floor is parsing its JSON and nothing else."""

import json
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import anyio
import httpx2

from agent.models.openai_model import WIRES, RawChunks
from tests.bench.rows import Aim, Row
from tests.bench.timing import fastest, scaled

__all__ = ["measure"]

MICRO = 1e6
CHUNKS = 4_000
PIECE = 1_400  # bytes of a network packet
PER_CHUNK = Aim(at_most=50)


def measure(size: float = 1.0) -> Iterator[Row]:
    """Microseconds of CPU for each chunk of text, and of a call's arguments, in both wire formats."""
    count = scaled(CHUNKS, size)
    for api, what, chunk in kinds():
        chunks = [chunk(number) for number in range(count)]
        ours, floor = fastest(lambda: assembling(api, chunks), lambda: parsing(chunks))  # noqa: B023, used at once
        yield Row(f"{api}: {what}", ours / count * MICRO, "us/chunk", floor / count * MICRO, "json.loads", PER_CHUNK)


def kinds() -> Iterator[tuple[str, str, Callable[[int], dict[str, Any]]]]:
    """Chunks as servers send them, with all that stands beside the few characters that count."""
    yield "chat", "text", lambda number: chat({"content": f" word{number}"})
    yield "chat", "arguments", lambda number: chat({"tool_calls": [call(number)]})
    yield "responses", "text", lambda number: delta("output_text", number, content_index=0, logprobs=[])
    yield "responses", "arguments", lambda number: delta("function_call_arguments", number)


def chat(said: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "delta": said, "logprobs": None, "finish_reason": None}
    facts = {"id": "chatcmpl-8f1c2d3e", "object": "chat.completion.chunk", "created": 1790000000, "model": "m"}
    return {**facts, "system_fingerprint": "fp_44709d6fcb", "choices": [choice], "usage": None}


def call(number: int) -> dict[str, Any]:
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
        async with RawChunks(response, "") as chunks:
            async for chunk in chunks:
                assembly.feed(chunk)

    return lambda: anyio.run(assemble)


def parsing(chunks: list[dict[str, Any]]) -> Callable[[], object]:
    """Prepare the floor: the same JSON, one text for each chunk."""
    texts = [json.dumps(chunk) for chunk in chunks]
    return lambda: [json.loads(text) for text in texts]
