"""Answers are kept by what was asked, and roles keep their pace."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from agent.lab.episodes.real_models import CachedModel, EpisodeModels, ModelsFailed, Pace, SharedModels
from agent.lab.experiments.model_plans import ModelPlan
from agent.models.model import Answer, Delta, Model, ModelError, ModelRequest
from agent.models.scripted import ScriptedModel, Step, answer, call, fail
from agent.vocabulary.messages import Usage, UserMessage

USAGE = Usage(10, 5)


def scripted(*texts: str) -> ScriptedModel:
    return ScriptedModel([answer(text, call("bash", command="ls"), usage=USAGE) for text in texts])


async def ask(model: Model, text: str = "Go.", role: str = "agent") -> Answer:
    return await model.answer(ModelRequest("", [UserMessage(text)], (), role), lambda _: None)


@pytest.mark.anyio
async def test_a_cached_answer_is_not_requested_again(tmp_path: Path) -> None:
    first = CachedModel(scripted("one"), tmp_path)
    again = CachedModel(scripted(), tmp_path)

    assert await ask(first) == await ask(again)
    assert (first.actual, first.nominal) == (USAGE, USAGE)
    assert (again.actual, again.nominal) == (Usage(), USAGE)


@pytest.mark.anyio
async def test_a_repeated_request_in_an_episode_gets_another_draft(tmp_path: Path) -> None:
    first, again = CachedModel(scripted("one", "two"), tmp_path), CachedModel(scripted(), tmp_path)

    drafts = [(await ask(first)).message.text, (await ask(first)).message.text]

    assert drafts == ["one", "two"] == [(await ask(again)).message.text, (await ask(again)).message.text]


@pytest.mark.anyio
async def test_a_request_that_differs_is_not_answered_from_the_cache(tmp_path: Path) -> None:
    await ask(CachedModel(scripted("one"), tmp_path))

    other = CachedModel(scripted("two"), tmp_path, seed="other")
    warmer = CachedModel(scripted("two"), tmp_path, parameters={"temperature": 1})
    said = [await ask(other), await ask(warmer)]
    said += [await ask(CachedModel(scripted("two"), tmp_path), *asked) for asked in (("Go on.",), ("Go.", "trusted"))]

    assert [each.message.text for each in said] == ["two"] * 4


@pytest.mark.anyio
async def test_damaged_and_failed_answers_are_asked_for_again(tmp_path: Path) -> None:
    for number, (old, new) in enumerate((('"one"', "1"), ('"stop_reason"', '"stop"'), ("10", '"10"'), ("}", ""))):
        folder = tmp_path / str(number)
        await ask(CachedModel(scripted("one"), folder))
        for path in folder.iterdir():
            assert old in path.read_text()
            path.write_text(path.read_text().replace(old, new))

        assert (await ask(CachedModel(scripted("two"), folder))).message.text == "two"
    failing = CachedModel(ScriptedModel([fail("no"), answer("yes")]), tmp_path)
    with pytest.raises(ModelError):
        await ask(failing)
    assert (failing.nominal, len(failing.failures)) == (Usage(), 1)
    assert (await ask(failing)).message.text == "yes"
    assert (failing.asked, failing.failures) == (2, {})


@pytest.mark.anyio
async def test_equal_requests_at_the_same_time_share_one_answer(tmp_path: Path) -> None:
    models = [CachedModel(scripted(text), tmp_path) for text in ("one", "two", "three")]
    said: list[str] = []

    async def note(model: CachedModel) -> None:
        said.append((await ask(model)).message.text)

    async with anyio.create_task_group() as tasks:
        for model in models:
            tasks.start_soon(note, model)

    assert len(set(said)) == 1
    assert [model.asked for model in models].count(1) == sum(model.asked for model in models) == 1
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


@pytest.mark.anyio
async def test_a_cached_answer_names_the_folder_of_its_new_episode(tmp_path: Path) -> None:
    first = CachedModel(scripted("See /tmp/first/a."), tmp_path, here="/tmp/first")
    again = CachedModel(scripted(), tmp_path, here="/tmp/second")

    await ask(first, "Work in /tmp/first.")

    assert (await ask(again, "Work in /tmp/second.")).message.text == "See /tmp/second/a."


@pytest.mark.anyio
async def test_models_outside_the_loop_are_retried_as_long_as_that_may_help(tmp_path: Path) -> None:
    busy = fail("busy", retryable=True)

    def insisting(*steps: Step, seed: str) -> CachedModel:
        return CachedModel(ScriptedModel(steps), tmp_path, seed=seed, attempts=4, wait=lambda _: 0.0)

    model = insisting(busy, busy, answer("yes"), seed="mended")
    assert (await ask(model)).message.text == "yes"
    assert (model.asked, model.failures) == (3, {})
    for model, asked in ((insisting(*[busy] * 5, seed="busy"), 4), (insisting(fail("no"), seed="no"), 1)):
        with pytest.raises(ModelError):
            await ask(model)
        assert (model.asked, len(model.failures)) == (asked, 1)


class Noting:
    """A model that notes when it is asked."""

    name = "noting"

    def __init__(self) -> None:
        self.times: list[float] = []

    async def answer(self, request: ModelRequest, on_delta: Callable[[Delta], None]) -> Answer:
        self.times.append(anyio.current_time())
        return await scripted("ok").answer(request, on_delta)


@pytest.mark.anyio
async def test_the_rate_limit_of_a_role_holds_over_all_callers(tmp_path: Path) -> None:
    """Each has a pace of its own, as processes have; what they share is the file."""
    noting, begun = Noting(), anyio.current_time()

    async with anyio.create_task_group() as tasks:
        for text in "abcd":
            pace = Pace(tmp_path / "paces" / "agent", per_minute=60 / 0.02)
            tasks.start_soon(ask, CachedModel(noting, tmp_path / "answers", pace=pace), text)

    assert all(time - begun >= number * 0.02 - 0.005 for number, time in enumerate(sorted(noting.times)))


@pytest.mark.anyio
async def test_the_pace_of_an_earlier_run_delays_no_request(tmp_path: Path) -> None:
    path = tmp_path / "agent"
    await Pace(path, 60, now=lambda: 1e9).turn()

    with anyio.fail_after(100):
        for now in (1e9 - 1e6, 1e9):
            await Pace(path, 60, now=lambda now=now: now).turn()  # type: ignore[misc]

    assert float(path.read_text()) >= 1e9


@pytest.mark.anyio
async def test_requests_are_counted_as_the_server_counted_them_also_when_several_are_under_way(tmp_path: Path) -> None:
    """Each of three conversations fails once, all at once, and is asked again: six requests in all."""
    noted: list[int] = []
    script: list[Step] = [*([fail("overloaded", retryable=True)] * 3), *(answer(text, usage=USAGE) for text in "abc")]
    model = CachedModel(
        ScriptedModel(script), tmp_path, attempts=2, wait=lambda _: 0.01, after=lambda _: noted.append(1)
    )

    async with anyio.create_task_group() as tasks:
        for text in "abc":
            tasks.start_soon(ask, model, text)

    assert (sum(noted), model.asked, model.answers) == (6, 6, 3)


@pytest.mark.anyio
async def test_an_unreachable_server_is_not_a_failure_of_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-nobody")
    models = EpisodeModels(SharedModels(tmp_path, {}, None), "seed", "/here", "key")

    with pytest.raises(ModelError, match="connection refused"):
        await ask(models.model("agent", ModelPlan("m", url="http://127.0.0.1:9/v1")))

    with pytest.raises(ModelsFailed, match="the model of the role 'agent' could not be asked"):
        models.check()
