"""Agents against servers that fail: what is asked again, after how long, what is not, and how much memory it takes."""

import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import repeat
from typing import Any

import anyio
import pytest

from agent import Agent
from agent.effects.loop import seconds_before
from agent.models import chat
from agent.models.model import ModelError, ModelRequest
from agent.models.openai_model import Api, OpenAIModel
from agent.session.agent import Run
from agent.vocabulary.events import BackoffElapsed, BackoffStarted
from agent.vocabulary.messages import UserMessage
from tests.agent.models.hostile_server import STREAM, Piece, Server, Then, frame
from tests.agent.models.shapes import added, call, delta, piece, whole, words
from tests.tables import rows

pytestmark = pytest.mark.slow


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop waits for servers: each of both is tried."""
    return str(request.param)


async def run_against(server: Server, waits: list[float] | None = None) -> Run:
    """An agent that asks once more and once more; what it would have waited is in `waits`."""

    def wait(started: BackoffStarted) -> float:
        if waits is not None:
            waits.append(seconds_before(started))
        return 0.0

    with Agent(OpenAIModel("m", base_url=server.url, timeout=100), wait=wait) as agent:
        return await agent.run("go")


FAILURES: dict[str, Callable[[Server], None]] = {
    "429": lambda server: server.answer_status("429 Too Many Requests", "{}"),
    "502 with a web page": lambda server: server.answer_status("502 Bad Gateway", "<html>oh</html>", kind="text/html"),
    "no answer": lambda server: server.reply(),
    "reset": lambda server: server.reply(Then.RESET),
    "a stream that breaks": lambda server: server.reply(STREAM, b'data: {"choices": [', Then.RESET),
    "a stream without an end": lambda server: server.stream(),
}


@rows("failure", FAILURES)
@pytest.mark.anyio
async def test_a_passing_failure_is_asked_again(server: Server, failure: str) -> None:
    FAILURES[failure](server)
    server.stream(*words("chat", "Here I am."))

    run = await run_against(server)

    assert (run.status, run.text) == ("completed", "Here I am.")
    assert len(server.requests) == 2
    server.requests.clear()


@pytest.mark.anyio
async def test_four_attempts_each_after_a_longer_wait_unless_the_server_names_one(server: Server) -> None:
    in_a_minute = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    server.answer_status("500 Oh No", "{}")
    server.answer_status("429 Too Many", "{}", "Retry-After: 7")
    server.answer_status("503 Busy", "{}", f"Retry-After: {in_a_minute}")
    server.reply(Then.RESET)
    waits: list[float] = []

    run = await run_against(server, waits)

    assert (run.status, run.reason) == ("failed", "inference_failed")
    assert len(server.requests) == 4
    assert 0.375 <= waits[0] <= 0.5
    assert waits[1] == 7.0
    assert 20 < waits[2] <= 60
    started = [event for event in run.events if isinstance(event, BackoffStarted)]
    assert [event.attempt for event in started] == [1, 2, 3]
    assert sum(isinstance(event, BackoffElapsed) for event in run.events) == 3


def forever(event: Any) -> Iterator[Piece]:
    """A stream that says the same again and again."""
    yield STREAM
    yield from repeat(frame(event))


LONG = "x" * 20_000
ENDLESS: dict[str, tuple[Api, Any]] = {
    "chat text": ("chat", delta(content=LONG)),
    "chat reasoning": ("chat", delta(reasoning_content=LONG)),
    "chat arguments": ("chat", call(LONG, index=0, id="a", name="note")),
    "chat calls": ("chat", delta(tool_calls=[{"function": {"name": "note", "arguments": "{}"}}] * 20)),
    "response text": ("responses", {"type": "response.output_text.delta", "delta": LONG}),
    "response reasoning": ("responses", {"type": "response.reasoning_text.delta", "item_id": "r", "delta": LONG}),
    "response arguments": ("responses", piece(LONG, "x", 0)),
    "response items": ("responses", whole("", None, name="note", arguments=LONG)),
    "response announcements": ("responses", added("", None, name="note")),
}


@rows("what", ENDLESS)
def test_an_endless_stream_is_left_before_it_fills_the_memory(
    server: Server, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """On one backend, with a tenth of the limit: the reading is the same, and measuring memory makes it slow."""
    monkeypatch.setattr(chat, "LONGEST_ANSWER", 400_000)
    api, event = ENDLESS[what]
    anyio.run(ask, server, "chat", [STREAM, *map(frame, words("chat", "hi"))])  # so that imports do not count
    tracemalloc.start()

    with pytest.raises(ModelError, match="ask for less at once") as caught:
        anyio.run(ask, server, api, forever(event))

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000
    assert not caught.value.retryable


async def ask(server: Server, api: Api, reply: Iterable[Piece]) -> None:
    server.reply_with(reply)
    request = ModelRequest("", (UserMessage("go"),))
    await OpenAIModel("m", api=api, base_url=server.url).answer(request, lambda _: None)
