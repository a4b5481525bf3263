"""Agents against servers that shape their streams in every known way, over real HTTP, in both wire formats.

In every case each call has one answer, the next request is valid, and nothing that was cut off is executed.
"""

from contextlib import closing
from pathlib import Path
from typing import get_args

import pytest

from agent import Agent, tool
from agent.models.openai_model import WIRES, Api, OpenAIModel
from agent.tools.definition import Tool
from agent.vocabulary.events import BackoffStarted, CallAnswered, InferenceFailed
from tests.agent.models.hostile_server import Server
from tests.agent.models.shapes import SHAPES, Shape, words
from tests.agent.wires import assert_valid_chat, assert_valid_items
from tests.tables import rows

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

CASES = [(api, name) for api in get_args(Api) for name in SHAPES[api]]


def recording(ran: list[str]) -> list[Tool]:
    """Two tools that write down what they did."""

    @tool
    async def note(text: str) -> str:
        """Write something down."""
        ran.append(f"noted {text}")
        return f"noted {text}"

    @tool
    async def ping() -> str:
        """Answer."""
        ran.append("pong")
        return "pong"

    return [note, ping]


@rows(("api", "name"), CASES)
async def test_every_call_has_one_answer_and_what_was_cut_off_never_runs(tmp_path: Path, api: Api, name: str) -> None:
    with closing(Server()) as server:
        await check(server, tmp_path, api, SHAPES[api][name])


async def check(server: Server, tmp_path: Path, api: Api, shape: Shape) -> None:
    ran: list[str] = []
    server.stream(*shape.events, done=shape.done)
    server.stream(*words(api, "All done."))
    model = OpenAIModel("m", api=api, base_url=server.url)

    with Agent(model, recording(ran), workspace=tmp_path, wait=lambda _: 0.0) as agent:
        run = await agent.run("go")

    assert (run.status, run.text) == ("completed", "All done.")
    answers = [event.result for event in run.events if isinstance(event, CallAnswered)]
    assert len(answers) == len(shape.answers)
    assert all(answer.startswith(start) for answer, start in zip(answers, shape.answers, strict=True)), answers
    assert ran == shape.ran
    assert [type(event) for event in run.events if isinstance(event, InferenceFailed | BackoffStarted)] == (
        [InferenceFailed, BackoffStarted] if shape.broken else []
    )
    assert [line for line, _, _ in server.requests] == [f"POST /v1{WIRES[api].path} HTTP/1.1"] * 2
    for _, _, body in server.requests:
        if api == "chat":
            assert_valid_chat(body["messages"])
        else:
            assert_valid_items(body["input"])
