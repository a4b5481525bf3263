"""The same command again and again is the same call, whatever the tool is called and whatever its timeout (S4)."""

from pathlib import Path

import pytest

from agent import Run, call, tool
from agent.tools.shell import make_shell_tool
from agent.vocabulary.events import ToolStarted
from tests.agent.conftest import MakeAgent


@tool
def edit(command: str, path: str) -> str:
    """Change a file; its `command` is none of a shell."""
    return f"{command} {path}"


def run_with(make_agent: MakeAgent, folder: Path, *calls: object) -> Run:
    tools = [make_shell_tool(str(folder)), make_shell_tool(str(folder), name="run_command"), edit]
    return make_agent(*calls, "Done.", tools=tools, preset="passthrough").run_sync("Go")


def started(run: Run) -> int:
    return sum(isinstance(event, ToolStarted) for event in run.events)


@pytest.mark.parametrize(
    "calls",
    [
        [call(name, command="echo 1") for name in ("bash", "run_command", "bash", "run_command")],
        [call("bash", command="echo 1", timeout=seconds) for seconds in (10, 11, 12, 13)],
    ],
)
def test_the_third_identical_command_ends_the_run(make_agent: MakeAgent, tmp_path: Path, calls: list[object]) -> None:
    run = run_with(make_agent, tmp_path, *calls)

    assert (run.status, started(run)) == ("doom_loop", 2)


def test_an_argument_that_is_only_called_command_is_one_of_several(make_agent: MakeAgent, tmp_path: Path) -> None:
    calls = [call("edit", command="view", path=path) for path in "abcd"]

    assert run_with(make_agent, tmp_path, *calls).status == "completed"
