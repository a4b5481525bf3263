"""Approval that comes later: the run rests, and goes on when a user has decided, here or in another process."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent import Agent, ScriptedModel, answer, call, resume
from agent.effects.approval import UndecidableError
from agent.history.playback import replay
from agent.log.reading import read_log
from agent.tools.collections import workspace_tools
from agent.tools.definition import Tool
from agent.vocabulary.errors import RunError
from agent.vocabulary.messages import ToolMessage
from bp import BProgram
from bp.runner import LATER

MakeAgent = Callable[..., Agent]
RISKY = "git reset --hard; touch ran.txt"
ASKING = answer("May I?", call("bash", command=RISKY).with_id("risky"))

pytestmark = pytest.mark.anyio


@pytest.fixture
def tools(workspace: Path) -> tuple[Tool, ...]:
    return workspace_tools(workspace, timeout=20)


def results(agent: Agent) -> list[str]:
    return [message.text for message in agent.messages if isinstance(message, ToolMessage)]


async def resting(make_agent: MakeAgent) -> Path:
    """The log of a run that rests until a user decides about the call `risky`."""
    agent = make_agent(ASKING, "Done.", approve="later", sound=False)
    await agent.run("Go")
    agent.close()
    assert agent.log_path is not None
    return agent.log_path


async def test_the_run_rests_when_a_person_has_to_decide(make_agent: MakeAgent, workspace: Path) -> None:
    agent = make_agent(ASKING, "Done.", approve="later")

    run = await agent.run("Go")

    assert (run.status, run.reason, run.ended) == ("waiting", "", None)
    assert [asked.call.id for asked in run.waiting_for] == ["risky"]
    assert not (workspace / "ran.txt").exists()

    agent.decide("risky", True)
    run = await agent.run()

    assert (run.status, run.text, run.waiting_for) == ("completed", "Done.", ())
    assert (workspace / "ran.txt").exists()


@pytest.mark.parametrize("yes", [True, False])
async def test_another_process_goes_on_with_the_decision(
    make_agent: MakeAgent, tools: tuple[Tool, ...], workspace: Path, yes: bool
) -> None:
    log = await resting(make_agent)
    at_rest = log.read_bytes()

    with resume(log, ScriptedModel(["Done."]), tools) as resumed:
        resumed.decide("risky", yes, "" if yes else "not on a Friday")
        run = await resumed.run()

        assert run.status == "completed"
        assert (workspace / "ran.txt").exists() is yes
        assert yes or "the user said no (not on a Friday)" in results(resumed)[0]
        assert replay(read_log(log), BProgram(*resumed.bthreads)).difference is None
        assert log.read_bytes().startswith(at_rest)


async def test_other_calls_go_on_meanwhile(make_agent: MakeAgent) -> None:
    """With calls in parallel, only those that wait are held up."""
    from attrs import evolve

    from agent.presets.shipped import preset_named

    preset = evolve(preset_named("default"), sequential=False)
    both = [call("bash", command=RISKY).with_id("risky"), call("bash", command="echo safe").with_id("safe")]
    agent = make_agent(both, "Done.", approve="later", preset=preset, sound=False)

    run = await agent.run("Go")

    assert run.status == "waiting"
    assert [step.event.name for step in run.steps].count("tool_finished") == 1
    agent.decide("risky", False)
    assert (await agent.run()).status == "completed"
    assert results(agent)[1].startswith("safe")


@pytest.mark.parametrize("verb", ["stop", "abort"])
async def test_a_run_that_rests_can_be_ended(make_agent: MakeAgent, verb: str) -> None:
    agent = make_agent(ASKING, "Done.", approve="later")
    await agent.run("Go")

    async with agent.start() as run:
        getattr(run, verb)()

    assert run.status == {"stop": "stopped", "abort": "aborted"}[verb]


@pytest.mark.parametrize(
    ("call_id", "why"),
    [
        ("nosuch", "there is no call 'nosuch' in this run; waiting: risky"),
        ("safe", "the call 'safe' was answered already; waiting: risky"),
        ("denied", "the call 'denied' was answered already; waiting: risky"),
    ],
)
async def test_a_decision_about_no_open_question_is_an_error(make_agent: MakeAgent, call_id: str, why: str) -> None:
    first = [call("bash", command="ls").with_id("safe"), call("bash", command="rm -rf /").with_id("denied")]
    agent = make_agent(first, ASKING, "Done.", approve="later", sound=False)
    await agent.run("Go")

    with pytest.raises(UndecidableError) as raised:
        agent.decide(call_id, True)
    assert str(raised.value) == why


async def test_a_call_is_decided_once(make_agent: MakeAgent) -> None:
    agent = make_agent(ASKING, "Done.", approve="later")
    await agent.run("Go")
    agent.decide("risky", False)

    with pytest.raises(UndecidableError, match="'risky' has been decided already"):
        agent.decide("risky", True)

    await agent.run()
    with pytest.raises(UndecidableError, match="there is no call"):
        agent.decide("risky", True)


async def test_a_prompt_has_to_wait_for_the_run_that_rests(make_agent: MakeAgent) -> None:
    agent = make_agent(ASKING, "Done.", approve="later")
    await agent.run("Go")

    with pytest.raises(RunError, match="a run rests already"):
        await agent.run("And this")

    agent.decide("risky", False)
    assert (await agent.run()).status == "completed"


async def test_a_callback_may_say_later(make_agent: MakeAgent) -> None:
    said: list[Any] = [LATER, True]
    agent = make_agent(ASKING, "Done.", approve=lambda asked: said.pop(0))

    assert (await agent.run("Go")).status == "waiting"
    assert (await agent.run()).status == "completed"
