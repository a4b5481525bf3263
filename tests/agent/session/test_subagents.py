"""`task`: an agent within a call, with its own log, under the same rules, stopped and aborted with its parent (S2)."""

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve

from agent import Agent, ScriptedModel, Tool, answer, call, tool
from agent.log.reading import read_log
from agent.presets import PRESETS
from agent.session.agent import Run
from agent.session.subagents import GENERAL, SubagentStore, SubagentType, make_task
from agent.tools.collections import workspace_tools
from agent.vocabulary.events import ActionDescribed, GateApproved, GateRejected
from agent.vocabulary.messages import ToolMessage, Usage
from bp import BThreadBody, bthread, sync, where
from tests.agent.conftest import hang

pytestmark = pytest.mark.anyio
DELEGATE = {"description": "Look around", "prompt": "What is here?", "subagent_type": "general"}
READER = SubagentType("reader", "only reads", "You read.", ("look",))


@tool(category="read")
def look() -> str:
    """Look."""
    return "seen"


def store_of(*steps: Any, tools: tuple[Tool, ...] = (look,), preset: str = "default", **options: Any) -> SubagentStore:
    return SubagentStore(ScriptedModel(list(steps)), PRESETS[preset], lambda: tools, **options)


def results(run: Run) -> list[ToolMessage]:
    return [message for message in run.messages if isinstance(message, ToolMessage)]


async def test_a_subagent_works_on_its_own_and_its_last_words_are_the_result(tmp_path: Path) -> None:
    store = store_of(call("look"), "I see.", logs=tmp_path / "tasks", parent="parent.jsonl")
    agent = Agent(ScriptedModel([call("task", **DELEGATE), "Done."]), [make_task(store)], workspace=tmp_path)

    run = await agent.run("Delegate")

    (result,) = results(run)
    (log,) = (tmp_path / "tasks").iterdir()
    assert result.text == f"I see.\n[task_id: {log.stem}]"
    assert not result.result.is_error
    header = json.loads(log.read_text().splitlines()[0])
    assert header["about"]["parent"] == "parent.jsonl"
    assert header["about"]["subagent_type"] == "general"
    assert header["about"]["parent_call"]
    assert '"run_ended"' in log.read_text().splitlines()[-1]
    store.close()


async def test_the_details_are_those_of_the_specification() -> None:
    store = store_of("Done.")

    result = await make_task(store).run({**DELEGATE, "command": "/look"})

    details = dict(result.details)
    assert details.pop("taskId").startswith("task-")
    assert details.pop("usage") == {"input_tokens": 0, "output_tokens": 0}
    assert details == {
        "description": "Look around", "prompt": "What is here?", "subagentType": "general", "log": "",
        "status": "completed", "reason": "answered",
    }  # fmt: skip


async def test_a_task_is_gone_on_with_by_its_id_in_the_same_conversation() -> None:
    store = store_of("First.", "Second.")
    task = make_task(store)

    first = await task.run(DELEGATE)
    second = await task.run({**DELEGATE, "prompt": "And now?", "task_id": first.details["taskId"]})

    assert second.text == f"Second.\n[task_id: {first.details['taskId']}]"
    heard = [message.text for message in store.model.requests[1].messages]  # type: ignore[attr-defined]
    assert heard == ["What is here?", "First.", "And now?"]


async def test_a_task_of_an_earlier_program_is_gone_on_with_from_its_log(tmp_path: Path) -> None:
    about: dict[str, Any] = {"tools": (look, hang), "types": (READER,), "logs": tmp_path}
    earlier = store_of("First.", **about)
    first = await make_task(earlier).run({**DELEGATE, "subagent_type": "reader"})
    earlier.close()

    later = store_of("Second.", **about)
    more = {"prompt": "More", "subagent_type": "reader", "task_id": first.details["taskId"]}
    second = await make_task(later).run({**DELEGATE, **more})

    assert second.text.startswith("Second.")
    assert later.model.requests[0].messages[0].text == "What is here?"  # type: ignore[attr-defined]
    later.close()


async def test_a_task_that_was_cut_off_goes_on_and_then_hears_the_prompt(tmp_path: Path) -> None:
    earlier = store_of("First.", logs=tmp_path)
    first = await make_task(earlier).run(DELEGATE)
    earlier.close()
    log = tmp_path / f"{first.details['taskId']}.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:3]))

    later = store_of("First.", "Second.", logs=tmp_path)
    second = await make_task(later).run({**DELEGATE, "prompt": "More", "task_id": first.details["taskId"]})

    assert second.text.startswith("Second.")
    later.close()


@pytest.mark.parametrize("task_id", ["task-00000000", "../../etc/passwd", ""])
async def test_continuing_an_unknown_task_is_an_error(tmp_path: Path, task_id: str) -> None:
    result = await make_task(store_of("x", logs=tmp_path)).run({**DELEGATE, "task_id": task_id or "x"})

    assert result.is_error
    assert "there is no task" in result.text


async def test_types_choose_prompt_and_tools_and_are_told_to_the_model() -> None:
    store = store_of("Read.", tools=(look, *workspace_tools(".")), types=(GENERAL, READER))
    task = make_task(store)

    result = await task.run({**DELEGATE, "subagent_type": "reader"})

    request = store.model.requests[0]  # type: ignore[attr-defined]
    assert result.text.startswith("Read.")
    assert request.system_prompt == "You read."
    assert [tool.name for tool in request.tools] == ["look"]
    assert "- reader: only reads" in task.description
    unknown = await task.run({**DELEGATE, "subagent_type": "writer"})
    assert unknown.text == "there is no subagent type 'writer'; types: general, reader"


async def test_an_abort_of_the_parent_aborts_the_subagent(tmp_path: Path) -> None:
    begun = anyio.Event()

    @tool(category="read")
    async def wait() -> str:
        """Wait without an end."""
        begun.set()
        await anyio.sleep_forever()
        return ""

    store = store_of(call("wait"), "Never.", tools=(wait,), logs=tmp_path / "tasks")
    parent = Agent(ScriptedModel([call("task", **DELEGATE), "Never."]), [make_task(store)], workspace=tmp_path)
    with anyio.fail_after(100):
        async with parent.start("Delegate") as run:
            await begun.wait()
            run.abort()

    (log,) = (tmp_path / "tasks").iterdir()
    assert run.status == "aborted"
    assert json.loads(log.read_text().splitlines()[-1])["data"]["status"] == "aborted"
    store.close()


async def test_a_request_to_stop_reaches_the_subagent(tmp_path: Path) -> None:
    running: list[Run] = []

    @tool(category="read")
    async def look() -> str:
        """Look, and have a user ask to stop meanwhile."""
        running[0].stop()
        return "seen"

    store = store_of(call("look"), "Never.", tools=(look,))
    parent = Agent(ScriptedModel([call("task", **DELEGATE), "Never."]), [make_task(store)], workspace=tmp_path)
    async with parent.start("Delegate") as run:
        running.append(run)

    assert run.status == "stopped"
    assert results(run)[0].text.splitlines()[-1].startswith("[stopped: ")


@bthread
def no_look() -> BThreadBody:
    """A protocol of the parent."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        if described.call.tool == "look":
            approval = where(GateApproved, call=described.call)
            yield sync(refuse=approval, because="nobody looks", wait_for=where((GateRejected,), call=described.call))


async def test_a_protocol_of_the_parent_holds_for_its_subagents(tmp_path: Path) -> None:
    store = store_of(call("look"), "I see.", logs=tmp_path / "tasks", threads=[no_look()])
    agent = Agent(ScriptedModel([call("task", **DELEGATE), "Done."]), [make_task(store)], threads=[no_look()])

    await agent.run("Delegate")

    (log,) = (tmp_path / "tasks").iterdir()
    assert "nobody looks" in log.read_text()
    assert '"tool_started"' not in log.read_text()
    name = log.stem
    store.close()
    again = store_of(call("look"), "I see.", logs=tmp_path / "tasks", threads=[no_look()])
    await make_task(again).run({**DELEGATE, "task_id": name})
    assert '"tool_started"' not in log.read_text()


async def test_a_subagent_is_judged_as_its_parent_is(tmp_path: Path) -> None:
    store = store_of(call("bash", command="rm -rf /"), "It was refused.", tools=workspace_tools(tmp_path))

    result = await make_task(store).run(DELEGATE)

    assert result.text.startswith("It was refused.")
    last = store.model.requests[1].messages[-1]  # type: ignore[attr-defined]
    assert last.text.startswith("rejected: by_constitution")


async def test_a_subagent_without_an_approver_is_told_no_at_once(tmp_path: Path) -> None:
    tools = workspace_tools(tmp_path)
    store = store_of(call("bash", command="git push"), "I could not.", tools=tools, logs=tmp_path / "tasks")
    agent = Agent(ScriptedModel([call("task", **DELEGATE), "Done."]), [make_task(store)], workspace=tmp_path)

    with anyio.fail_after(100):
        async with agent.start("Delegate") as run:
            async for _ in run:
                pass

    assert results(run)[0].text.startswith("I could not.")
    [log] = (tmp_path / "tasks").iterdir()
    records = read_log(log).records
    answers = [record["data"] for record in records if record["name"] == "approval_answered"]
    assert [(answered["yes"], answered["present"]) for answered in answers] == [(False, False)]
    assert not any(record["name"] == "tool_started" for record in records)


async def test_tokens_of_a_subagent_count_against_the_limit_of_its_parent() -> None:
    usage = Usage(400, 300)
    store = SubagentStore(ScriptedModel([answer("I see.", usage=usage)]), PRESETS["default"], lambda: ())
    preset = evolve(PRESETS["default"], max_tokens=1000)
    steps: list[Any] = [answer("", call("task", **DELEGATE), usage=Usage(200, 200)), "Too much."]
    agent = Agent(ScriptedModel(steps), [make_task(store)], preset=preset)

    run = await agent.run("Delegate")

    assert (run.status, run.reason) == ("limit", "max_tokens")
    assert run.usage.tokens == 1100


async def test_a_subagent_has_no_more_than_its_parent_has_left() -> None:
    preset = evolve(PRESETS["default"], max_tokens=1000)
    store = SubagentStore(ScriptedModel([answer("", usage=Usage(90, 20)), "More."]), preset, lambda: ())
    steps: list[Any] = [answer("", call("task", **DELEGATE), usage=Usage(500, 400)), "Done."]
    agent = Agent(ScriptedModel(steps), [make_task(store)], preset=preset)

    run = await agent.run("Delegate")

    (result,) = results(run)
    assert result.text.splitlines()[-1].startswith("[limit: max_tokens")
