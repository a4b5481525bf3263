"""Answers are kept by what was asked, and roles keep their pace."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from agent.lab.experiments.calling import CachedModel, PacedModel
from agent.messages import Usage, UserMessage
from agent.models import Answer, Delta, Model, ModelError, ModelRequest, ScriptedModel, answer, call, fail

USAGE = Usage(10, 5)


def scripted(*texts: str) -> ScriptedModel:
    return ScriptedModel([answer(text, call("bash", command="ls"), usage=USAGE) for text in texts])


async def ask(model: Model, text: str = "Go.", role: str = "agent") -> Answer:
    return await model.answer(ModelRequest("", [UserMessage(text)], (), role), lambda _: None)


@pytest.mark.anyio
async def test_what_was_asked_before_is_not_asked_again(tmp_path: Path) -> None:
    first = CachedModel(scripted("one"), tmp_path)
    again = CachedModel(scripted(), tmp_path)

    assert await ask(first) == await ask(again)
    assert (first.actual, first.nominal) == (USAGE, USAGE)
    assert (again.actual, again.nominal) == (Usage(), USAGE)


@pytest.mark.anyio
async def test_the_same_conversation_asked_again_is_another_draft(tmp_path: Path) -> None:
    first, again = CachedModel(scripted("one", "two"), tmp_path), CachedModel(scripted(), tmp_path)

    drafts = [(await ask(first)).message.text, (await ask(first)).message.text]

    assert drafts == ["one", "two"] == [(await ask(again)).message.text, (await ask(again)).message.text]


@pytest.mark.anyio
@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (CachedModel(scripted("two"), folder, seed="other"), "Go.", "agent"),
        lambda folder: (CachedModel(scripted("two"), folder, parameters={"temperature": 1}), "Go.", "agent"),
        lambda folder: (CachedModel(scripted("two"), folder), "Go on.", "agent"),
        lambda folder: (CachedModel(scripted("two"), folder), "Go.", "trusted"),
    ],
)
async def test_whatever_else_differs_is_asked(
    change: Callable[[Path], tuple[CachedModel, str, str]], tmp_path: Path
) -> None:
    await ask(CachedModel(scripted("one"), tmp_path))

    model, text, role = change(tmp_path)

    assert (await ask(model, text, role)).message.text == "two"


@pytest.mark.anyio
async def test_what_is_broken_on_disk_and_what_failed_is_asked_again(tmp_path: Path) -> None:
    await ask(CachedModel(scripted("one"), tmp_path))
    for path in tmp_path.iterdir():
        path.write_text("{")

    assert (await ask(CachedModel(scripted("two"), tmp_path))).message.text == "two"
    failing = CachedModel(ScriptedModel([fail("no")]), tmp_path, seed="another")
    with pytest.raises(ModelError):
        await ask(failing)
    assert failing.nominal == Usage()


class Noting:
    """A model that notes when it is asked."""

    name = "noting"

    def __init__(self) -> None:
        self.times: list[float] = []

    async def answer(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        self.times.append(anyio.current_time())
        return await scripted("ok").answer(request, on_delta)


@pytest.mark.anyio
async def test_a_role_is_asked_at_most_so_often_however_many_ask() -> None:
    noting = Noting()
    paced = PacedModel(noting, per_minute=60 / 0.02)

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(ask, paced)

    begun = noting.times[0]
    assert all(time - begun >= number * 0.02 - 0.005 for number, time in enumerate(sorted(noting.times)))
