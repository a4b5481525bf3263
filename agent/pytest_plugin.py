"""Fixtures for tests of agents, for projects with `pytest_plugins = ["agent.pytest_plugin"]` in a `conftest.py`.

- `scripted_model("Hello.", call("bash", command="ls"), ...)` makes a model that gives these answers in order
- `scratch_workspace` is an empty folder; `scratch_tools` are the four tools that work in it
- `make_agent("Hello.", ..., preset="workspace")` makes an agent of these, and closes it after the test

Assertions on runs are in `agent.testing`.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.models.scripted import ScriptedModel, Step
from agent.session.agent import Agent
from agent.tools.collections import workspace_tools
from agent.tools.definition import Tool


@pytest.fixture
def scripted_model() -> Callable[..., ScriptedModel]:
    """Make scripted models: `scripted_model(step, step, ...)`."""
    return lambda *steps: ScriptedModel(steps)


@pytest.fixture
def scratch_workspace(tmp_path: Path) -> Path:
    """An empty folder for an agent to work in."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.fixture
def scratch_tools(scratch_workspace: Path) -> tuple[Tool, ...]:
    """The tools `bash`, `read_file`, `write_file` and `list_directory`, in the scratch workspace."""
    return workspace_tools(scratch_workspace)


@pytest.fixture
def make_agent(scratch_workspace: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., Agent]]:
    """Make agents with scripted models: `make_agent(step, step, ..., preset=..., threads=[...])`.

    Takes the options of `Agent`. Default `tools`: those of the scratch workspace. A failed inference is retried at
    once, and nothing is asked for want of snapshots.
    """
    made: list[Agent] = []

    def make(*steps: Step, **options: Any) -> Agent:
        if "tools" not in options:
            options["tools"] = request.getfixturevalue("scratch_tools")
        usual = {"workspace": scratch_workspace, "wait": lambda _: 0.0, "snapshots": None}
        agent = Agent(ScriptedModel(steps), **{**usual, **options})
        made.append(agent)
        return agent

    yield make
    for agent in made:
        agent.close()
