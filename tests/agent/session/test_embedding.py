"""What a program that embeds agents meets first: models by name, tools as functions, and event loops."""

import pytest

from agent import Agent, ScriptedModel, tool
from agent.models.openai_model import OpenAIModel
from agent.vocabulary.errors import RunError


@tool
def price(item: str) -> str:
    """Look up a price."""
    return f"{item}: 3"


@tool
async def stock(item: str) -> str:
    """Look up the stock."""
    return f"{item}: 7"


def test_a_model_may_be_given_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")

    agent = Agent("gpt-5")

    assert isinstance(agent.model, OpenAIModel)
    assert agent.model.name == "gpt-5"


def test_a_function_in_the_place_of_a_tool_is_told_with_its_cure() -> None:
    with pytest.raises(TypeError, match="<built-in function len> is no tool; make one with @tool"):
        Agent(ScriptedModel([]), [len])  # type: ignore[list-item]


def test_a_tool_can_be_called_like_its_function() -> None:
    assert price(item="milk") == "milk: 3"
    assert price("milk") == "milk: 3"


@pytest.mark.anyio
async def test_the_call_of_an_async_tool_is_awaited() -> None:
    assert await stock("milk") == "milk: 7"


@pytest.mark.anyio
async def test_run_sync_in_an_event_loop_says_to_await() -> None:
    agent = Agent(ScriptedModel(["Hello."]))

    with pytest.raises(RunError, match=r"an event loop is running already; write `await agent.run\(...\)`"):
        agent.run_sync("Go")

    assert (await agent.run("Go")).text == "Hello."


def test_agents_and_runs_say_what_they_are() -> None:
    agent = Agent(ScriptedModel(["Done."]), preset="gated")

    run = agent.run_sync("Go")

    assert repr(agent) == "<Agent: model scripted, preset gated, tools: none>"
    assert repr(run) == "<Run: completed, answered, 6 steps>"
