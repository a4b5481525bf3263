"""Fixtures of the loop's tests: agents with real tools in a scratch folder, and a log that replays at the end."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.agent import Agent
from agent.models import ScriptedModel
from agent.tools import workspace_tools
from tests.agent.soundness import assert_sound

MakeAgent = Callable[..., Agent]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def make_agent(tmp_path: Path, workspace: Path) -> Iterator[MakeAgent]:
    """Agents on a script, with the four tools and a log; after the test the log of each replays equal."""
    made: list[Agent] = []

    def make(*steps: Any, tools: Any = None, sound: bool = True, **options: Any) -> Agent:
        tools = workspace_tools(workspace, timeout=20) if tools is None else tools
        log = options.pop("log", tmp_path / f"run-{len(made) + 1}.jsonl")
        options = {"workspace": workspace, "wait": lambda _: 0.0, **options}
        agent = Agent(ScriptedModel(steps), tools, log=log, **options)
        made.append(agent)
        if not sound:
            unsound.append(agent)
        return agent

    unsound: list[Agent] = []
    yield make
    for agent in made:
        agent.close()
        if agent not in unsound:
            assert_sound(agent)
