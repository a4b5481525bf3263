"""Foreign code that hangs or raises, at each point where the loop calls it: an abort ends the run within a second."""

from collections.abc import Callable
from typing import Any

import anyio
import pytest
from attrs import evolve

from agent import call, tool
from agent.models.scripted import fail
from agent.presets.shipped import PRESETS
from tests.agent.conftest import MakeAgent
from tests.agent.notes import answers, note

pytestmark = pytest.mark.anyio

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


def in_the_second_inference(trap: Trap) -> dict[str, Any]:
    return {"steps": [call("note"), trap.hold]}


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
    in_the_second_inference: "inference_requested",
    in_a_summary: "summary_requested",
    in_a_question: "approval_asked",
    in_a_tool: "tool_started",
}
"""Where something hangs, and the event that led there."""


@pytest.mark.parametrize("deaf", [False, True], ids=["hears", "deaf"])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
async def test_an_abort_ends_what_hangs(make_agent: MakeAgent, place: Place, deaf: bool) -> None:
    trap = Trap(deaf=deaf)
    options = {"tools": [note], **place(trap)}
    agent = make_agent(*options.pop("steps"), **options)

    with anyio.fail_after(5):
        async with agent.start("Go") as run:
            await trap.entered.wait()
            led_there, begin = run.events[-1].name, anyio.current_time()
            run.abort()
    seconds = anyio.current_time() - begin
    trap.let_go.set()
    await anyio.wait_all_tasks_blocked()

    assert led_there == PLACES[place]
    assert run.status == "aborted"
    assert seconds < 1.5  # 0.9 are given to what does not listen
    assert [event.name for event in run.events].index("run_ended") == len(run.events) - 1


async def test_an_abort_ends_a_wait(make_agent: MakeAgent) -> None:
    agent = make_agent(fail("busy", retryable=True), "never", wait=lambda _: 1000.0)

    with anyio.fail_after(5):
        async with agent.start("Go") as run:
            async for step in run:
                if step.event.name == "backoff_started":
                    run.abort()

    assert run.status == "aborted"


def raises(*_: object) -> Any:
    raise ValueError("cannot look it up")


NOT_DESCRIBED = (
    "rejected: by_constitution: deny: not_described: what it would touch could not be found: cannot look it up"
)


@pytest.mark.parametrize(
    ("function", "told"),
    [("cwd", NOT_DESCRIBED), ("argv", "not executed: invalid arguments: cannot look it up")],
)
async def test_a_tool_that_cannot_say_what_it_would_do_does_not_run(
    make_agent: MakeAgent, function: str, told: str
) -> None:
    """Found: where `argv` raised, the model was blamed, and the run failed."""
    functions: dict[str, Any] = {function: raises}
    agent = make_agent(call("note"), "Done.", tools=[evolve(note, **functions)])

    run = await agent.run("Go")

    assert answers(run.messages) == [told]
    assert run.text == "Done."
