"""Agents and the client against servers that send strange bytes, over real HTTP: the same answer comes out, or none."""

import json
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from itertools import repeat
from typing import Any, get_args

import anyio
import pytest

from agent import Agent
from agent.effects.loop import seconds_before
from agent.models import chat, openai_model
from agent.models.model import Answer, ModelError, ModelRequest
from agent.models.openai_model import Api, OpenAIModel
from agent.session.agent import Run
from agent.vocabulary.events import BackoffElapsed, BackoffStarted
from agent.vocabulary.messages import UserMessage
from tests.agent.models.conftest import DONE, STREAM, Piece, Server, Then, byte_by_byte, frame
from tests.agent.models.shapes import added, assembled, call, chunks_of, delta, ended, piece, streamed, whole, words
from tests.tables import rows

pytestmark = pytest.mark.slow

GO = ModelRequest("", (UserMessage("go"),))
APIS = get_args(Api)
TEXT = '{"text": "ż😀"}'
CALLING = {
    "chat": (delta(content="é€"), call(TEXT, index=0, id="a", name="note"), delta("tool_calls")),
    "responses": (*words("responses", "é€")[:3], *streamed("x", 1, {"call_id": "a", "name": "note"}, TEXT), ended()),
}


def stream_of(api: Api, line_end: str = "\n") -> bytes:
    return b"".join(frame(event, line_end) for event in CALLING[api])


async def ask(server: Server, api: Api, timeout: float = 20) -> Answer:
    return await OpenAIModel("m", api=api, base_url=server.url, timeout=timeout).answer(GO, lambda _: None)


def is_right(answer: Answer) -> bool:
    [asked] = answer.message.calls
    return (answer.message.text, asked.id, asked.name, asked.arguments) == ("é€", "a", "note", TEXT)


@rows("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.anyio
async def test_a_stream_may_be_cut_in_two_anywhere(line_end: str) -> None:
    content = in_several_lines(stream_of("chat", line_end), line_end)

    for at in range(len(content) + 1):
        assert is_right(await assembled("chat", [content[:at], content[at:]])), content[at - 10 : at]


def in_several_lines(content: bytes, line_end: str = "\n") -> bytes:
    """The same events, each with its JSON over several data lines."""
    return content.replace(b", ", f",{line_end}data: ".encode())


DRESSED: dict[str, Callable[[bytes], bytes]] = {
    "byte order mark": lambda content: b"\xef\xbb\xbf" + content,
    "comments": lambda content: b": hello\n\n" + content.replace(b"\n\n", b"\n: keep-alive\n\n: again\n"),
    "several data lines": in_several_lines,
    "other fields": lambda content: content.replace(b"data: ", b"event: delta\nid: 7\nretry: 3\ndata: "),
    "no space after the colon": lambda content: content.replace(b"data: ", b"data:"),
    "blank lines": lambda content: b"\n\n\n" + content.replace(b"\n\n", b"\n\n\n\n\n"),
    "giant comments": lambda content: b": " + b"x" * 2_000_000 + b"\n" + content,
    "no last line end": lambda content: content.rstrip(b"\n"),
    "something after the end marker": lambda content: content + DONE + b"data: rubbish\n\n",
}


@rows("dress", DRESSED)
@pytest.mark.anyio
async def test_text_between_the_events_of_a_stream_does_not_matter(server: Server, dress: str) -> None:
    content = DRESSED[dress](stream_of("chat"))
    server.reply(STREAM, content)

    assert is_right(await ask(server, "chat"))
    assert is_right(await assembled("chat", byte_by_byte(content) if len(content) < 9_999 else [content]))


@rows("kind", ["text/plain", "application/octet-stream", "application/json", "", "text/event-stream; charset=latin-1"])
@pytest.mark.anyio
async def test_a_wrong_content_type_does_not_matter(server: Server, kind: str) -> None:
    server.reply(STREAM.replace(b"text/event-stream", kind.encode()), stream_of("chat"))

    assert is_right(await ask(server, "chat"))


BROKEN: dict[str, tuple[bytes | Then, ...]] = {
    "JSON that is none": (b'data: {"type": \n\n',),
    "no UTF-8": (b"data: \xff\xfe\n\n",),
    "no UTF-8 within a text": (b'data: {"type": "\xff"}\n\n',),
    "half a character at the end": ('data: {"type": "ż'.encode()[:-1],),
    "half an event at the end": (b'data: {"choices": [{"index": 0',),
    "a giant event": (b'data: "' + b"x" * 9_000_000 + b'"\n\n',),
    "reset": (Then.RESET,),
    "reset within a frame": (b'data: {"choices": [', Then.RESET),
}


@rows("how", BROKEN)
@pytest.mark.anyio
async def test_a_stream_that_breaks_is_no_answer(server: Server, how: str) -> None:
    whole_call = CALLING["chat"][1:2]
    server.reply(STREAM, *(frame(event) for event in whole_call), *BROKEN[how])

    with pytest.raises(ModelError) as caught:
        await ask(server, "chat")

    assert caught.value.retryable is (how != "a giant event")  # asked again, the giant comes again
    assert len(str(caught.value)) < 400


@rows("api", APIS)
@pytest.mark.anyio
async def test_a_broken_stream_after_the_whole_answer_loses_nothing(server: Server, api: Api) -> None:
    server.reply(STREAM, stream_of(api), b'data: {"choi', Then.REST, Then.RESET)

    assert is_right(await ask(server, api))


@rows("field", [b'error: {"code": 400, "message": "nope"}', b'event: error\ndata: {"code": "400", "message": "nope"}'])
@pytest.mark.anyio
async def test_an_error_among_the_events_is_told_in_the_words_of_the_server(server: Server, field: bytes) -> None:
    server.reply(STREAM, frame(CALLING["chat"][0]), field + b"\n\n")

    with pytest.raises(ModelError, match="nope") as caught:
        await ask(server, "chat")

    assert not caught.value.retryable


@pytest.mark.anyio
async def test_a_server_that_keeps_the_connection_is_left_after_the_last_event(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can come after it, so that nothing is waited for."""
    monkeypatch.setattr(openai_model, "GRACE", 600.0)
    server.reply(STREAM, stream_of("responses"), Then.WAIT)

    with anyio.fail_after(100):
        answer = await ask(server, "responses", timeout=600)

    assert is_right(answer)
    assert await anyio.to_thread.run_sync(server.gone.wait, 5)


LINE = b"data: " + b"x" * 100
FLOODS: dict[str, tuple[bytes, ...]] = {
    "no line end": (b"", b"x" * 100),
    "long lines": (b"", LINE + b"\n"),
    "data among comments": (b"", LINE + b"\n: keep-alive\n"),
    "line ends that are cut in two": (b"", LINE + b"\r", b"\n"),
    "a comment that does not end": (b": ", b"x" * 100),
    "JSON": (b"{", b" " * 100),
    "JSON with blank lines": (b"{", b"\n" * 100),
}


@rows("flood", FLOODS)
@pytest.mark.anyio
async def test_an_endless_event_is_an_error(monkeypatch: pytest.MonkeyPatch, flood: str) -> None:
    monkeypatch.setattr(openai_model, "LONGEST_EVENT", 8000)
    first, *rest = FLOODS[flood]

    with pytest.raises(ModelError, match="more than 8,000 bytes in one event"):
        await chunks_of(first, *rest * (16_000 // len(b"".join(rest))))


@rows("waiting", [b": keep-alive\n\n", b": keep-alive\r\n", b": \r", b"\n", b"event: ping\n\n"])
@pytest.mark.anyio
async def test_keep_alive_lines_of_a_server_are_no_events(monkeypatch: pytest.MonkeyPatch, waiting: bytes) -> None:
    monkeypatch.setattr(openai_model, "LONGEST_EVENT", 1000)
    pieces = [waiting * 50] * 50

    assert await chunks_of(*pieces, b"data: 1\n\n") == [1]
    assert await chunks_of(b"data: 1\n\n", *pieces, b"data: 2\n\n") == [1, 2]
    if waiting.isspace():
        assert await chunks_of(*pieces, b'{"a": 1}') == [{"a": 1}]


# What is asked again, after how long, what is not, and how much memory it takes


async def run_against(server: Server, waits: list[float] | None = None) -> Run:
    """An agent that asks once more and once more; what it would have waited is in `waits`."""

    def wait(started: BackoffStarted) -> float:
        if waits is not None:
            waits.append(seconds_before(started))
        return 0.0

    with Agent(OpenAIModel("m", base_url=server.url, timeout=100), wait=wait) as agent:
        return await agent.run("go")


UNREAD = '{"error": {"message": "Failed to call a function.", "code": "tool_use_failed"}}'
NO_STREAM_OPTIONS = '{"detail": [{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]}'
FAILURES: dict[str, Callable[[Server], None]] = {
    "429": lambda server: server.answer_status("429 Too Many Requests", "{}"),
    "502 with a web page": lambda server: server.answer_status("502 Bad Gateway", "<html>oh</html>", kind="text/html"),
    "no answer": lambda server: server.reply(),
    "reset": lambda server: server.reply(Then.RESET),
    "a stream that breaks": lambda server: server.reply(STREAM, b'data: {"choices": [', Then.RESET),
    "a stream without an end": lambda server: server.stream(),
    "a call that the server could not read": lambda server: server.answer_status("400 Bad Request", UNREAD),
    "the same in the stream": lambda server: server.stream({"error": json.loads(UNREAD)["error"]}),
    "stream_options": lambda server: server.answer_status("422 Unprocessable Entity", NO_STREAM_OPTIONS),
}


@rows("failure", FAILURES)
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_a_passing_failure_is_asked_again(server: Server, failure: str, anyio_backend: str) -> None:
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
    anyio.run(replied, server, "chat", [STREAM, *map(frame, words("chat", "hi"))])  # so that imports do not count
    tracemalloc.start()

    with pytest.raises(ModelError, match="ask for less at once") as caught:
        anyio.run(replied, server, api, forever(event))

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 5_000_000
    assert not caught.value.retryable


async def replied(server: Server, api: Api, reply: Iterable[Piece]) -> None:
    server.reply_with(reply)
    await ask(server, api)
