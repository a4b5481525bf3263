"""What happens under a preset when a run goes on and on: repetition, budgets, deadlines, objectives, the context."""

from typing import Any

import anyio
from attrs import evolve

from agent import Preset, answer, call, tool
from agent.models.model import ModelRequest
from agent.models.scripted import ScriptedAnswer
from agent.presets.preset import OptionError
from agent.session.agent import Run
from agent.vocabulary.events import SummaryFinished
from agent.vocabulary.messages import Image, Usage, UserMessage
from tests.agent.conftest import MakeAgent
from tests.agent.presets.scenes import ended, look, results, scene

SPENT = Usage(input_tokens=100, output_tokens=10)
PRICE = ("scripted=1/1",)
SHORT: dict[str, Any] = {"system_prompt": "Look.", "complete_tool": False, "objective_tool": False}
"""So that the context has room for the conversation."""


three_times_the_same = scene(
    lambda run: (*ended(run), results(run).count("seen 1")), *[call("look", at=1)] * 3, tools=(look,)
)
"""How a run ends whose model makes the same call three times, and how often it ran."""


TURNS = [answer("", call("look", at=n), usage=SPENT) for n in range(3)]

three_turns_of_a_hundred_tokens = scene(ended, *TURNS)
"""How a run ends in which each inference takes 110 tokens."""


three_turns_at_a_price = scene(ended, *TURNS, prices=PRICE)
"""The same with a model whose price is known."""


async def a_limit_on_cost(make_agent: MakeAgent, preset: Preset) -> Any:
    """The same with a limit on the cost; or what is said when the price is not known."""
    try:
        return await three_turns_of_a_hundred_tokens(make_agent, evolve(preset, max_cost=1.0))
    except OptionError as error:
        return "refused", str(error).partition(";")[0]


@tool(category="read")
async def wait() -> str:
    """Wait a moment."""
    await anyio.sleep(0.3)
    return "waited"


a_slow_tool = scene(ended, call("wait"), tools=(wait,))
"""How a run ends in which a tool takes a moment."""


COMPLETED = call("complete", result="All done.", status="success")


def last_words(run: Run) -> tuple[str, str, str]:
    return *ended(run), run.text


a_text_before_complete = scene(last_words, "Nearly.", COMPLETED, "Unheard.", tools=(look,), objective_tool=False)
"""How a run ends whose model says something and only then calls `complete`."""


PURSUED = call("pursue_objective", user_prompt="Go", objective="Be done")

an_objective = scene(last_words, PURSUED, "Nearly.", COMPLETED, "Unheard.", tools=(look,), complete_tool=False)
"""How a run ends whose model takes an objective, says something, and only then calls `complete`."""


async def a_long_conversation(make_agent: MakeAgent, preset: Preset) -> int:
    """How many messages the model is shown after ten turns."""
    preset = evolve(preset, **SHORT)
    turns = [answer("word " * 100, call("look", at=n)) for n in range(10)]
    agent = make_agent(*turns, "Done.", tools=[look], preset=preset)

    await agent.run("Look")

    return len(agent.model.requests[-1].messages)  # type: ignore[attr-defined]


a_full_context = scene(
    lambda run: [event.text for event in run.events if isinstance(event, SummaryFinished)],
    *[answer("word " * 100, call("look", at=n), usage=Usage(200 * n, 100)) for n in (1, 2)],
    "In short.",
    tools=(look,),
    context_tokens=300,
    **SHORT,
)
"""Which summaries are made where the context is full."""


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
