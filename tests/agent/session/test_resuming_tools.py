"""What tools hold is there again when a log goes on: a terminal session, a list of tasks, counts of an envelope."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agent import Agent, ScriptedModel, call, resume
from agent.session.run import Run
from agent.tools.definition import Tool
from agent.tools.shell import ShellOptions, make_shell_tool
from agent.tools.terminal import make_terminal
from agent.tools.work import make_todo_tools
from agent.vocabulary.events import CallAnswered

Tools = Callable[[], tuple[Tool, ...]]


def resumed(folder: Path, tools: Tools, before: list[Any], after: list[Any], preset: str = "passthrough") -> Run:
    """The second run of a conversation that another process has begun."""
    log = folder / "run.jsonl"
    with Agent(ScriptedModel([*before, "One."]), tools(), preset=preset, workspace=folder, log=log) as agent:
        assert agent.run_sync("First").status == "completed"
    with resume(log, ScriptedModel([*after, "Two."]), tools()) as agent:
        run = agent.run_sync("Second")
    assert run.status == "completed"
    return run


def answers(run: Run) -> list[str]:
    return [event.result for event in run.events if isinstance(event, CallAnswered)]


def in_session(command: str) -> object:
    return call("terminal", command=command, persistent=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "old.txt").touch()
    (tmp_path / "important.txt").touch()
    return tmp_path


def test_commands_of_a_session_go_on_where_it_was(folder: Path) -> None:
    def terminal() -> tuple[Tool, ...]:
        return (make_terminal(str(folder)),)

    run = resumed(folder, terminal, [in_session("cd build; X=1; export Y=2")], [in_session("rm *.txt; echo $X$Y; pwd")])

    assert (folder / "important.txt").exists()
    assert not (folder / "build" / "old.txt").exists()
    assert answers(run)[0].split() == ["12", str(folder / "build")]


def test_a_session_that_was_closed_stays_closed(folder: Path) -> None:
    before = [in_session("cd build"), call("terminal", close=True)]

    run = resumed(folder, lambda: (make_terminal(str(folder)),), before, [call("terminal", command="pwd")])

    assert answers(run)[0].split()[0] == str(folder)


def test_the_list_of_tasks_is_there_again(folder: Path) -> None:
    todo = {"content": "test it", "status": "pending", "priority": "high"}

    run = resumed(folder, make_todo_tools, [call("todowrite", todos=[todo])], [call("todoread")])

    assert json.loads(answers(run)[0]) == {"todos": [todo], "incompleteCount": 1}


def test_an_envelope_counts_on(folder: Path) -> None:
    def shell() -> tuple[Tool, ...]:
        return (make_shell_tool(str(folder), ShellOptions(form="envelope")),)

    run = resumed(folder, shell, [call("bash", command="echo 1"), call("bash", command="echo 2")],
                  [call("bash", command="echo 3")])  # fmt: skip

    session = json.loads(answers(run)[0])["session"]
    assert (session["executed_commands"], session["observations"]) == (3, 3)
