"""Whatever fails around the loop ends the run within a second, with an error or a failed run, and nothing goes on."""

import math
from typing import Any

import anyio
import pytest
from attrs import evolve

from agent import Agent, answer, call, tool
from agent.log.reading import LogError
from agent.models.scripted import fail
from agent.presets.shipped import PRESETS
from agent.projections.state import Totals
from agent.vocabulary.errors import RunError
from agent.vocabulary.events import ActionDescribed, CallAnswered, ToolFinished, ToolStarted
from bp import (
    BThreadBody,
    BThreadError,
    Deadlock,
    Event,
    ProgramEnded,
    Step,
    bthread,
    sync,
    where,
)
from tests.agent.breaking_off import broken_off
from tests.agent.conftest import MakeAgent
from tests.agent.notes import answers, grumble, hang, note
from tests.agent.soundness import recorded
from tests.conftest import anyio_backend as anyio_backend

pytestmark = pytest.mark.anyio

DEFAULT = PRESETS["default"]


# B-threads


@bthread
def stumble(on: type[Event]) -> BThreadBody:
    yield sync(wait_for=on)
    raise ValueError("stumbled")


@pytest.mark.slow
@pytest.mark.parametrize("on", [ActionDescribed, ToolStarted, ToolFinished, CallAnswered])
async def test_a_protocol_that_raises_ends_the_run(make_agent: MakeAgent, on: type[Event]) -> None:
    """A guard that dies never lifts its block: the program has failed, and nothing of that step starts."""
    agent = make_agent([call("note", text="a"), call("note", text="b")], tools=[note], threads=[stumble(on)])
    error = await broken_off(agent, BThreadError)

    assert "'stumble'" in str(error)
    assert len(answers(agent.messages)) == 2


async def test_calls_that_are_open_when_a_run_breaks_off_are_answered_with_what_is_known(make_agent: MakeAgent) -> None:
    """Found: calls whose turn had not come stayed without an answer, and results that were there were lost."""

    @bthread
    def stumble_late() -> BThreadBody:
        yield sync(wait_for=where(ToolFinished, result="noted b"))
        yield sync(wait_for=CallAnswered)
        raise ValueError("stumbled")

    def b_is_done(step: Step) -> None:
        if step.event.name == "tool_finished":
            raise ValueError("seen enough")

    script = answer("Look.", call("note", text="a"), call("grumble"), call("unheard_of"))
    agent = make_agent(script, tools=[note, grumble], on_step=b_is_done)
    await broken_off(agent, RunError)

    assert answers(agent.messages) == ["noted a", *["not executed: the run broke off"] * 2]


async def test_a_call_that_was_running_when_a_run_broke_off_has_an_unknown_outcome(make_agent: MakeAgent) -> None:
    @bthread
    def stumble_beside() -> BThreadBody:
        yield sync(wait_for=where(ToolFinished, result="noted b"))
        raise ValueError("stumbled")

    agent = make_agent(
        [call("hang"), call("note", text="b")],
        tools=[hang, note],
        preset=evolve(DEFAULT, sequential=False),
        threads=[stumble_beside()],
    )
    await broken_off(agent, BThreadError)

    assert answers(agent.messages) == ["outcome unknown: the run broke off while the tool ran"] * 2


async def test_a_guard_that_holds_for_ever_is_named_as_a_deadlock(make_agent: MakeAgent) -> None:
    @bthread
    def hold() -> BThreadBody:
        yield sync(block=ToolStarted)

    error = await broken_off(make_agent(call("note"), tools=[note], threads=[hold()]), Deadlock)

    assert "'carry_out' requests ToolStarted" in str(error)
    assert "held by hold" in str(error)


async def test_an_agent_that_broke_off_takes_no_further_run(make_agent: MakeAgent) -> None:
    agent = make_agent(call("note"), tools=[note], threads=[stumble(ToolStarted)])
    await broken_off(agent, BThreadError)
    records = recorded(agent).records

    with pytest.raises(ProgramEnded):
        await agent.run("Again")

    assert recorded(agent).records == records


# Listeners


@pytest.mark.parametrize(
    "name", ["prompt_given", "inference_finished", "tool_started", "tool_finished", "call_answered"]
)
async def test_a_listener_that_raises_ends_the_run(make_agent: MakeAgent, name: str) -> None:
    def look(step: Step) -> None:
        if step.event.name == name:
            raise ValueError("cannot look")

    error = await broken_off(make_agent(call("note"), "Done.", tools=[note], on_step=look), RunError)

    assert str(error).startswith("on_step failed at step ")
    assert "cannot look" in str(error)
    assert isinstance(error.__cause__, ValueError)


def raises(_: object) -> float:
    raise ValueError("cannot wait")


@pytest.mark.parametrize("wait", [raises, lambda _: "soon", lambda _: math.inf, lambda _: None])
async def test_a_wait_that_raises_or_gives_no_time_ends_the_run(make_agent: MakeAgent, wait: Any) -> None:
    """It was taken for no wait at all."""
    error = await broken_off(make_agent(fail("busy", retryable=True), "Done.", wait=wait), RunError)

    assert str(error).startswith("wait failed: ")


async def test_a_projection_that_raises_ends_the_run(make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = make_agent(call("note"), tools=[note])

    def fail(_: Totals, event: Event) -> None:
        raise ValueError("cannot fold")

    monkeypatch.setattr(Totals, "FOLDS", {ToolStarted: fail})
    error = await broken_off(agent, RunError)

    assert str(error).startswith("a projection failed at step ")


@pytest.mark.parametrize("name", ["prompt_given", "tool_started", "flush"])
async def test_a_log_that_cannot_be_written_ends_the_run_before_anything_starts(
    make_agent: MakeAgent, name: str
) -> None:
    started: list[str] = []

    @tool
    async def act() -> str:
        """Act."""
        started.append("act")
        return ""

    class FullLog:
        def record(self, step: Step) -> None:
            if step.event.name == name:
                raise OSError("disk full")

        def append(self, record: object) -> None:
            raise OSError("disk full")

        def flush(self) -> None:
            if name == "flush":
                raise LogError("disk full")

        def close(self) -> None:
            pass

    agent = make_agent(call("act"), tools=[act], log=None, sound=False)
    agent.journal._log = FullLog()  # type: ignore[assignment]
    with pytest.raises(RunError, match="disk full"):
        await agent.run("Go")

    assert started == []
    assert agent.program.status == "closed"


async def test_an_error_during_a_run_that_was_started_comes_as_itself(make_agent: MakeAgent) -> None:
    """Found: it came as a group of one, which no `except BThreadError` catches."""
    agent = make_agent(call("note"), tools=[note], threads=[stumble(ToolStarted)])

    with pytest.raises(BThreadError, match="'stumble'"):
        async with agent.start("Go") as run:
            steps = [step.event.name async for step in run]

    assert steps[-1] == "gate_approved"
    assert run.status == "failed"


async def test_an_error_of_the_one_who_started_a_run_aborts_it(make_agent: MakeAgent) -> None:
    async def leave(agent: Agent) -> None:
        async with agent.start("Go") as run:
            async for step in run:
                if isinstance(step.event, ToolStarted):
                    raise KeyError("mine")

    agent = make_agent(call("hang"), tools=[hang])
    with anyio.fail_after(20), pytest.raises(KeyError, match="mine"):
        await leave(agent)

    assert recorded(agent).records[-1]["data"]["status"] == "aborted"
    assert answers(agent.messages) == ["aborted"]
