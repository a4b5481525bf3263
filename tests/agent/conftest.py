"""Fixtures of the agent's tests: agents with real tools whose logs replay, and a model server we did not write."""

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent import tool
from agent.models.scripted import ScriptedModel
from agent.session.agent import Agent
from agent.tools.collections import workspace_tools
from agent.vocabulary.messages import Message, ToolMessage
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
        tools = workspace_tools(workspace, timeout=100) if tools is None else tools
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


@pytest.fixture
def llmock(tmp_path: Path, needs: Callable[[str], Path], popen: Callable[..., Any]) -> Callable[..., str]:
    """A function that starts a server that this project did not write, with fixtures, and returns its base URL."""
    program = needs("llmock")

    def start(*fixtures: dict[str, object]) -> str:
        folder, log = tmp_path / "llmock", tmp_path / "llmock.log"
        folder.mkdir()
        (folder / "fixtures.json").write_text(json.dumps({"fixtures": list(fixtures)}))
        with log.open("wb") as file:
            command = [str(program), "-p", "0", "-f", str(folder)]
            running = popen(command, stdout=file, stderr=file, stdin=subprocess.DEVNULL)
        while (found := re.search(r"listening on (http://\S+)\n", log.read_text())) is None:
            assert running.poll() is None, log.read_text()
            time.sleep(0.05)
        return f"{found[1]}/v1"

    return start


# Tools without effects, and the answers to calls: what several tests of runs need


@tool(category="read")
async def note(text: str = "") -> str:
    """Take a note."""
    await anyio.lowlevel.checkpoint()
    return f"noted {text}"


@tool(category="read")
async def grumble() -> str:
    """Fail."""
    raise ValueError("grumble")


@tool(category="read")
async def hang() -> str:
    """Never come back."""
    await anyio.sleep_forever()
    return ""


def answers(messages: tuple[Message, ...]) -> list[str]:
    return [message.text for message in messages if isinstance(message, ToolMessage)]
