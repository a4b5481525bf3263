"""Fixtures of the agent's tests: agents with real tools whose logs replay, and a model server we did not write."""

import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agent.models.scripted import ScriptedModel
from agent.session.agent import Agent
from agent.tools.collections import workspace_tools
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


@pytest.fixture
def llmock(tmp_path: Path, needs: Callable[[str], Path]) -> Iterator[Callable[..., str]]:
    """A function that starts a server that this project did not write, with fixtures, and returns its base URL."""
    program = needs("llmock")
    running: list[subprocess.Popen[bytes]] = []

    def start(*fixtures: dict[str, object]) -> str:
        folder = tmp_path / "llmock"
        folder.mkdir()
        (folder / "fixtures.json").write_text(json.dumps({"fixtures": list(fixtures)}))
        port = _free_port()
        log = (tmp_path / "llmock.log").open("wb")
        with log:
            command = [str(program), "-p", str(port), "-f", str(folder)]
            running.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL))
        _await_port(port, running[-1], tmp_path / "llmock.log")
        return f"http://127.0.0.1:{port}/v1"

    yield start
    for process in running:
        process.terminate()
        process.wait(10)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _await_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Return when the server listens; there is no event to wait for but the connection itself."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.05)
    pytest.fail(f"llmock did not start: {log.read_text()[-500:]}")
