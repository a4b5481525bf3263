"""Scenes of people who step in, and of calls that run together."""

from agent import Preset, call, tool
from agent.events import CallAnswered, ProposedAction, RunContinued
from tests.agent.conftest import MakeAgent


@tool(category="read", parallel=True)
async def glance() -> str:
    """Look, beside others."""
    return "seen"


@tool(category="read")
async def stare() -> str:
    """Look, alone."""
    return "seen"


async def two_safe_calls_and_one_alone(make_agent: MakeAgent, preset: Preset) -> list[str]:
    """In which order they are proposed and answered."""
    return await _order([call("glance"), call("glance"), call("stare")], make_agent, preset)


async def two_safe_calls(make_agent: MakeAgent, preset: Preset) -> list[str]:
    """In which order they are proposed and answered."""
    return await _order([call("glance"), call("glance")], make_agent, preset)


async def _order(calls: list[object], make_agent: MakeAgent, preset: Preset) -> list[str]:
    run = await make_agent(calls, "Done.", tools=[glance, stare], preset=preset).run("Look")
    return [event.name for event in run.events if isinstance(event, ProposedAction | CallAnswered)]


async def steered_in_a_batch(make_agent: MakeAgent, preset: Preset) -> list[str]:
    """What becomes of two calls when the first one runs while a person steers."""

    @tool(category="read")
    async def steer() -> str:
        """Steer the run."""
        run.steer("Rather this.")
        return "steered"

    agent = make_agent([call("steer"), call("stare")], "Done.", tools=[steer, stare], preset=preset)
    async with agent.start("Go") as run:
        pass
    return [event.outcome for event in run.events if isinstance(event, CallAnswered)]


async def two_follow_ups(make_agent: MakeAgent, preset: Preset) -> tuple[int, tuple[str, ...]]:
    """How often the run goes on with them, and what is left unheard."""
    agent = make_agent("One.", "Two.", "Three.", preset=preset)
    async with agent.start("Go") as run:
        run.follow_up("And then that.")
        run.follow_up("And that.")
    return sum(isinstance(event, RunContinued) for event in run.events), run.unheard
