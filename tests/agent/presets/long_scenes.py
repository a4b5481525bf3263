"""What happens under a preset when a run goes on and on: repetition, budgets, deadlines, objectives, the context."""

from typing import Any

import anyio
from attrs import evolve

from agent import Preset, answer, call, tool
from agent.models.model import ModelRequest
from agent.models.scripted import ScriptedAnswer
from agent.presets.preset import OptionError
from agent.vocabulary.events import SummaryFinished
from agent.vocabulary.messages import Image, Usage, UserMessage
from tests.agent.conftest import MakeAgent
from tests.agent.presets.scenes import look, results

SPENT = Usage(input_tokens=100, output_tokens=10)
PRICE = ("scripted=1/1",)
SHORT: dict[str, Any] = {"system_prompt": "Look.", "complete_tool": False, "objective_tool": False}
"""So that the context has room for the conversation."""


async def three_times_the_same(make_agent: MakeAgent, preset: Preset) -> tuple[str, str, int]:
    """How a run ends whose model makes the same call three times, and how often it ran."""
    run = await make_agent(*[call("look", at=1)] * 3, "Done.", tools=[look], preset=preset).run("Look")

    return run.status, run.reason, results(run).count("seen 1")


async def three_turns_of_a_hundred_tokens(make_agent: MakeAgent, preset: Preset) -> tuple[str, str]:
    """How a run ends in which each inference takes 110 tokens."""
    turns = [answer("", call("look", at=n), usage=SPENT) for n in range(3)]

    run = await make_agent(*turns, "Done.", tools=[look], preset=preset).run("Look")

    return run.status, run.reason


async def three_turns_at_a_price(make_agent: MakeAgent, preset: Preset) -> tuple[str, str]:
    """The same with a model whose price is known."""
    return await three_turns_of_a_hundred_tokens(make_agent, evolve(preset, prices=PRICE))


async def a_limit_on_cost(make_agent: MakeAgent, preset: Preset) -> tuple[str, str]:
    """The same with a limit on the cost; or what is said when the price is not known."""
    try:
        return await three_turns_of_a_hundred_tokens(make_agent, evolve(preset, max_cost=1.0))
    except OptionError as error:
        return "refused", str(error).partition(";")[0]


async def a_slow_tool(make_agent: MakeAgent, preset: Preset) -> tuple[str, str]:
    """How a run ends in which a tool takes a moment."""

    @tool(category="read")
    async def wait() -> str:
        """Wait a moment."""
        await anyio.sleep(0.3)
        return "waited"

    run = await make_agent(call("wait"), "Done.", tools=[wait], preset=preset).run("Wait")

    return run.status, run.reason


COMPLETED = call("complete", result="All done.", status="success")


async def a_text_before_complete(make_agent: MakeAgent, preset: Preset) -> tuple[str, str, str]:
    """How a run ends whose model says something and only then calls `complete`."""
    preset = evolve(preset, objective_tool=False)

    run = await make_agent("Nearly.", COMPLETED, "Unheard.", tools=[look], preset=preset).run("Go")

    return run.status, run.reason, run.text


async def an_objective(make_agent: MakeAgent, preset: Preset) -> tuple[str, str, str]:
    """How a run ends whose model takes an objective, says something, and only then calls `complete`."""
    preset = evolve(preset, complete_tool=False)
    pursue = call("pursue_objective", user_prompt="Go", objective="Be done")

    run = await make_agent(pursue, "Nearly.", COMPLETED, "Unheard.", tools=[look], preset=preset).run("Go")

    return run.status, run.reason, run.text


async def a_long_conversation(make_agent: MakeAgent, preset: Preset) -> int:
    """How many messages the model is shown after ten turns."""
    preset = evolve(preset, **SHORT)
    turns = [answer("word " * 100, call("look", at=n)) for n in range(10)]
    agent = make_agent(*turns, "Done.", tools=[look], preset=preset)

    await agent.run("Look")

    return len(agent.model.requests[-1].messages)  # type: ignore[attr-defined]


async def a_full_context(make_agent: MakeAgent, preset: Preset) -> list[str]:
    """Which summaries are made where the context is full."""
    preset = evolve(preset, context_tokens=300, **SHORT)
    turns = [answer("word " * 100, call("look", at=n), usage=Usage(200 * n, 100)) for n in (1, 2)]

    run = await make_agent(*turns, "In short.", "Done.", tools=[look], preset=preset).run("Look")

    return [event.text for event in run.events if isinstance(event, SummaryFinished)]


async def what_the_model_is_shown_again(make_agent: MakeAgent, preset: Preset) -> tuple[int, str]:
    """How many images, and which reasoning, stand in the second request of a conversation."""
    shown: list[Any] = []

    def look_at(request: ModelRequest) -> ScriptedAnswer:
        shown[:] = request.messages
        return answer("Done.")

    thought = ScriptedAnswer("A picture.", calls=(call("look", at=1),), reasoning="I see.")
    picture = UserMessage("What is it?", (Image("image/png", b"..."),))
    await make_agent(thought, look_at, tools=[look], preset=preset).run(picture)

    images = [image for message in shown for image in getattr(message, "images", ())]
    return len(images), "".join(getattr(message, "reasoning", "") for message in shown)
