"""Models, tools and people are foreign code: whatever they give or raise is an outcome, and never a yes."""

import math
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from attrs import evolve, frozen

from agent import Agent, answer, call, tool
from agent.log.reading import LogError
from agent.models.model import Answer, ModelRequest
from agent.models.scripted import fail
from agent.presets import PRESETS
from agent.projections.state import Totals
from agent.vocabulary.errors import RunError
from agent.vocabulary.events import ActionDescribed, CallAnswered, ToolFinished, ToolStarted
from agent.vocabulary.messages import AssistantMessage, RequestedCall, ToolResult, Usage, UserMessage
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
from tests.agent.conftest import MakeAgent, answers, grumble, hang, note
from tests.agent.soundness import broken_off, recorded
from tests.conftest import anyio_backend as anyio_backend
from tests.tables import rows

pytestmark = pytest.mark.anyio

# Models


@frozen
class Garbage:
    """A model that gives anything."""

    given: Any
    name: str = "garbage"

    async def answer(self, request: ModelRequest, on_delta: Callable[[Any], None]) -> Any:
        return self.given


GARBAGE: tuple[Any, ...] = (
    None,
    "text",
    {"text": "Hello."},
    AssistantMessage("Hello."),
    Answer("Hello."),  # type: ignore[arg-type]
    Answer(AssistantMessage(None)),  # type: ignore[arg-type]
    Answer(AssistantMessage("", (5,))),  # type: ignore[arg-type]
    Answer(AssistantMessage("", (RequestedCall("a", "note", {"text": "a"}),))),  # type: ignore[arg-type]
    Answer(AssistantMessage("", (RequestedCall(None, "note", "{}"),))),  # type: ignore[arg-type]
    Answer(AssistantMessage("Hello."), "tired"),  # type: ignore[arg-type]
    Answer(AssistantMessage("Hello."), usage=Usage(1.5, 2)),  # type: ignore[arg-type]
)
RAISED = (ValueError("no"), SystemExit("no"), ExceptionGroup("no", [KeyError("no")]))


@rows(("given", "raised"), [*((given, None) for given in GARBAGE), *((None, error) for error in RAISED)])
async def test_a_model_that_gives_garbage_or_raises_has_failed(make_agent: MakeAgent, given: Any, raised: Any) -> None:
    agent = make_agent(raised, tools=[note])
    if raised is None:
        agent.model = Garbage(given)

    run = await agent.run("Go")

    assert (run.status, run.reason) == ("failed", "inference_failed")
    assert ("no" if raised else "the model raised ") in run.text
    assert run.messages == (UserMessage("Go"),)


# Tools


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_tool_that_awaits_a_cancelled_task_has_failed(make_agent: MakeAgent, anyio_backend: str) -> None:
    """Found: the run waited forever, since the tool seemed to have been cancelled."""
    import asyncio

    @tool
    async def await_cancelled() -> str:
        """Await what will not come."""
        task = asyncio.ensure_future(asyncio.sleep(10))
        task.cancel()
        await task
        return ""

    with anyio.fail_after(100):
        run = await make_agent(call("await_cancelled"), "I see.", tools=[await_cancelled]).run("Go")

    assert run.status == "completed"
    assert "CancelledError" in answers(run.messages)[0]


# Approvers


QUESTIONABLE = call("bash", command="touch .git/config")


def raises(*_: object) -> Any:
    raise ValueError("no terminal")


NOT_YES: tuple[object, ...] = (None, 1, "yes", "no", bytearray(), 0.5, [], "no person present")


@rows(("said", "told"), [*((said, "") for said in NOT_YES), (raises, "asking failed: no terminal")])
async def test_only_true_from_an_approver_approves(make_agent: MakeAgent, said: Any, told: str) -> None:
    approve = said if callable(said) else lambda _: said
    run = await make_agent(QUESTIONABLE, "Well.", approve=approve).run("Go")

    assert not any(isinstance(event, ToolStarted) for event in run.events)
    assert run.status == "completed"
    assert told in answers(run.messages)[0]


@pytest.mark.parametrize(("verb", "status"), [("stop", "stopped"), ("abort", "aborted")])
async def test_an_open_question_is_withdrawn_when_the_run_ends(make_agent: MakeAgent, verb: str, status: str) -> None:
    asked = anyio.Event()

    async def approve(_: object) -> bool:
        asked.set()
        await anyio.sleep_forever()
        return True

    with anyio.fail_after(100):
        async with make_agent([QUESTIONABLE, QUESTIONABLE], approve=approve).start("Go") as run:
            await asked.wait()
            getattr(run, verb)()

    assert run.status == status
    assert len(answers(run.messages)) == 2
    assert not any(isinstance(event, ToolStarted) for event in run.events)


# Foreign code that hangs or raises, at each point where the loop calls it: an abort ends the run within a second


DEFAULT = PRESETS["default"]
NEARLY_FULL = evolve(DEFAULT, context_tokens=440, compaction="summary", system_prompt="")


class Trap:
    """A place that is never left by itself: `entered` is set on the way in, and a deaf one hears no cancellation."""

    def __init__(self, *, deaf: bool) -> None:
        self.entered, self.let_go = anyio.Event(), anyio.Event()
        self.deaf = deaf

    async def hold(self, *_: object) -> Any:
        with anyio.CancelScope(shield=self.deaf):
            self.entered.set()
            await self.let_go.wait()


Place = Callable[[Trap], dict[str, Any]]


def in_the_model(trap: Trap) -> dict[str, Any]:
    return {"steps": [trap.hold]}


def in_a_summary(trap: Trap) -> dict[str, Any]:
    notes = [call("note", text=f"{number}" * 400) for number in range(2)]
    return {"steps": [*notes, trap.hold], "preset": NEARLY_FULL}


def in_a_question(trap: Trap) -> dict[str, Any]:
    return {"steps": [call("bash", command="chmod 777 nothing")], "tools": None, "approve": trap.hold}


def in_a_tool(trap: Trap) -> dict[str, Any]:
    @tool
    async def hold() -> str:
        """Hold."""
        await trap.hold()
        return "late"

    return {"steps": [[call("hold"), call("note")]], "tools": [hold, note]}


PLACES: dict[Place, str] = {
    in_the_model: "inference_requested",
    in_a_summary: "summary_requested",
    in_a_question: "approval_asked",
    in_a_tool: "tool_started",
}
"""Where something hangs, and the event that led there."""


@pytest.mark.slow
@pytest.mark.parametrize("deaf", [False, True], ids=["hears", "deaf"])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
async def test_an_abort_ends_what_hangs(make_agent: MakeAgent, place: Place, deaf: bool) -> None:
    trap = Trap(deaf=deaf)
    options = {"tools": [note], **place(trap)}
    agent = make_agent(*options.pop("steps"), **options)

    with anyio.fail_after(100):
        async with agent.start("Go") as run:
            await trap.entered.wait()
            led_there, begin = run.events[-1].name, anyio.current_time()
            run.abort()
    seconds = anyio.current_time() - begin
    trap.let_go.set()
    await anyio.wait_all_tasks_blocked()

    assert led_there == PLACES[place]
    assert run.status == "aborted"
    assert seconds < 10  # 0.9 for what does not listen, the rest for a busy machine
    assert [event.name for event in run.events].index("run_ended") == len(run.events) - 1


NOT_DESCRIBED = "rejected: by_constitution: deny: not_described: what it would touch could not be found: no terminal"


@rows(("function", "told"), [("cwd", NOT_DESCRIBED), ("argv", "not executed: invalid arguments: no terminal")])
async def test_a_tool_that_cannot_say_what_it_would_do_does_not_run(
    make_agent: MakeAgent, function: str, told: str
) -> None:
    """Found: where `argv` raised, the model was blamed, and the run failed."""
    functions: dict[str, Any] = {function: raises}
    agent = make_agent(call("note"), "Done.", tools=[evolve(note, **functions)])

    run = await agent.run("Go")

    assert answers(run.messages) == [told]
    assert run.text == "Done."


# Whatever fails around the loop ends the run within a second, with an error or a failed run, and nothing goes on


@bthread
def stumble(on: type[Event]) -> BThreadBody:
    yield sync(wait_for=on)
    raise ValueError("stumbled")


@pytest.mark.slow
@rows("on", [ActionDescribed, ToolStarted, ToolFinished, CallAnswered])
async def test_a_protocol_that_raises_ends_the_run(make_agent: MakeAgent, on: type[Event]) -> None:
    """A guard that dies never lifts its block: the program has failed, and nothing of that step starts."""
    agent = make_agent([call("note", text="a"), call("note", text="b")], tools=[note], threads=[stumble(on)])
    error = await broken_off(agent, BThreadError)

    assert "'stumble'" in str(error)
    assert len(answers(agent.messages)) == 2
    records = recorded(agent).records
    with pytest.raises(ProgramEnded):
        await agent.run("Again")
    assert recorded(agent).records == records


async def test_a_guard_that_holds_for_ever_is_named_as_a_deadlock(make_agent: MakeAgent) -> None:
    @bthread
    def hold() -> BThreadBody:
        yield sync(block=ToolStarted)

    error = await broken_off(make_agent(call("note"), tools=[note], threads=[hold()]), Deadlock)

    assert "'carry_out' requests ToolStarted" in str(error)
    assert "held by hold" in str(error)


async def test_a_projection_that_raises_ends_the_run(make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = make_agent(call("note"), tools=[note])

    def fail(_: Totals, event: Event) -> None:
        raise ValueError("cannot fold")

    monkeypatch.setattr(Totals, "FOLDS", {ToolStarted: fail})
    error = await broken_off(agent, RunError)

    assert str(error).startswith("a projection failed at step ")


@rows("name", ["prompt_given", "tool_started", "flush"])
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


async def test_calls_that_are_open_when_a_run_breaks_off_are_answered_with_what_is_known(make_agent: MakeAgent) -> None:
    """Found: calls whose turn had not come stayed without an answer, and results that were there were lost."""

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
        yield sync(wait_for=where(ToolFinished, result=ToolResult("noted b")))
        raise ValueError("stumbled")

    agent = make_agent(
        [call("hang"), call("note", text="b")],
        tools=[hang, note],
        preset=evolve(DEFAULT, sequential=False),
        threads=[stumble_beside()],
    )
    await broken_off(agent, BThreadError)

    assert answers(agent.messages) == ["outcome unknown: the run broke off while the tool ran"] * 2


# Listeners


@rows("name", ["prompt_given", "inference_finished", "tool_started", "tool_finished", "call_answered"])
async def test_a_listener_that_raises_ends_the_run(make_agent: MakeAgent, name: str) -> None:
    def look(step: Step) -> None:
        if step.event.name == name:
            raise ValueError("cannot look")

    error = await broken_off(make_agent(call("note"), "Done.", tools=[note], on_step=look), RunError)

    assert str(error).startswith("on_step failed at step ")
    assert "cannot look" in str(error)
    assert isinstance(error.__cause__, ValueError)


@rows("wait", [raises, lambda _: "soon", lambda _: math.inf, lambda _: None])
async def test_a_wait_that_raises_or_gives_no_time_ends_the_run(make_agent: MakeAgent, wait: Any) -> None:
    """It was taken for no wait at all."""
    error = await broken_off(make_agent(fail("busy", retryable=True), "Done.", wait=wait), RunError)

    assert str(error).startswith("wait failed: ")


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
    with anyio.fail_after(100), pytest.raises(KeyError, match="mine"):
        await leave(agent)

    assert recorded(agent).records[-1]["data"]["status"] == "aborted"
    assert answers(agent.messages) == ["aborted"]
