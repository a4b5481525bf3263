"""What happens under a preset when calls run together, and when people speak up meanwhile."""

from collections.abc import Callable

from agent import Preset, Tool, call, tool
from agent.session.run import Run
from agent.vocabulary.events import CallAnswered, FollowUpGiven, InferenceRequested, ProposedAction, RunContinued
from tests.agent.conftest import MakeAgent
from tests.agent.presets.scenes import change, results


@tool(category="read", parallel=True)
def glance(at: int) -> str:
    """Look at something, beside others who do."""
    return f"seen {at}"


async def calls_that_may_run_together(make_agent: MakeAgent, preset: Preset) -> tuple[str, str]:
    """How calls are proposed and answered, of an answer in which one may not run with others, and of one without."""
    mixed = [call("glance", at=1), call("glance", at=2), call("change")]
    alike = [call("glance", at=3), call("glance", at=4)]

    run = await make_agent(mixed, alike, "Done.", tools=[glance, change], preset=preset).run("Go")

    order = "".join(
        {ProposedAction: "p", CallAnswered: "a", InferenceRequested: " "}.get(type(event), "") for event in run.events
    )
    first, second = order.split()
    return first, second


async def steered_in_a_batch(make_agent: MakeAgent, preset: Preset) -> list[str]:
    """What becomes of two calls when somebody steers while the first one runs."""
    run = await _interrupted(lambda run: run.steer("Go elsewhere"), make_agent, preset)

    return [result.partition(":")[0] for result in results(run)]


async def two_follow_ups(make_agent: MakeAgent, preset: Preset) -> int:
    """How often the model is asked where somebody asks for two more things meanwhile."""
    run = await _interrupted(_ask_for_more, make_agent, preset)

    return run.events.count(InferenceRequested())


async def when_follow_ups_are_heard(make_agent: MakeAgent, preset: Preset) -> list[str]:
    """In which order two follow-ups are taken and the run goes on with them."""
    run = await _interrupted(_ask_for_more, make_agent, preset)

    return [event.name for event in run.events if isinstance(event, FollowUpGiven | RunContinued)]


def _ask_for_more(run: Run) -> None:
    run.follow_up("One more thing")
    run.follow_up("And another one")


async def _interrupted(speak: Callable[[Run], None], make_agent: MakeAgent, preset: Preset) -> Run:
    """Run a model that makes two calls, during the first of which somebody speaks up."""
    running: list[Run] = []
    agent = make_agent(
        [call("look", at=1), call("look", at=2)], *["Done."] * 4, tools=[_heard(speak, running)], preset=preset
    )
    async with agent.start("Look twice") as run:
        running.append(run)
    return run


def _heard(speak: Callable[[Run], None], running: list[Run]) -> Tool:
    @tool(category="read")
    async def look(at: int) -> str:
        """Look, and have somebody speak up meanwhile."""
        if at == 1:
            speak(running[0])
        return f"seen {at}"

    return look
