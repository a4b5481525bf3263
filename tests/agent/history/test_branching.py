"""Branches of recorded runs: another log, the workspace of a step in a folder of its own, and b-threads that join."""

import os
from pathlib import Path
from typing import Any

import pytest

from agent import Agent, ScriptedModel, call, resume
from agent.effects.monitoring import laboratory
from agent.history.branching import branch
from agent.history.changes import file_history
from agent.history.playback import replay
from agent.history.rebuilding import rebuild
from agent.log.reading import LogError, read_log
from agent.models.scripted import Step
from agent.protocols.monitoring import blocking_monitor
from agent.protocols.monitors import ConstantMonitor
from agent.tools.collections import workspace_tools
from agent.tools.snapshots.trees import SnapshotError
from agent.tools.snapshots.undo import undo
from agent.vocabulary.events import CallAnswered, GateApproved
from bp import BThreadBody, bthread, sync, where

COMMANDS = ["echo 1 > a; ln -s a link; mkdir empty; chmod 700 a", "cat a", "rm a; echo 2 > b", "echo 3 > b"]
AFTER: list[dict[str, object]] = [
    {"kept": "mine\n"},
    {"kept": "mine\n", "a": "1\n", "link": "-> a", "empty": None},
    {"kept": "mine\n", "link": "-> a", "empty": None, "b": "2\n"},
    {"kept": "mine\n", "link": "-> a", "empty": None, "b": "3\n"},
]
"""The workspace before the commands, and after each that changes files."""


def files(folder: Path) -> dict[str, object]:
    return {path.name: shown(path) for path in folder.iterdir()}


def shown(path: Path) -> object:
    if path.is_symlink():
        return f"-> {os.readlink(path)}"
    return None if path.is_dir() else path.read_text()


@pytest.fixture
def log(workspace: Path, tmp_path: Path) -> Path:
    """The log of a run with four commands, of which one only reads; after it the user goes on in the workspace."""
    (workspace / "kept").write_text("mine\n")
    script: list[Step] = [call("bash", command=each) for each in COMMANDS]
    script[1] = call("read_file", path="a")
    path = tmp_path / "log.jsonl"
    with Agent(ScriptedModel([*script, "Done."]), workspace_tools(workspace), preset="coding", log=path) as agent:
        agent.run_sync("go")
    (workspace / "b").write_text("by the user\n")
    return path


def steps_of(log: Path, name: str) -> list[int]:
    return [record["step"] for record in read_log(log).records if record["name"] == name]


def test_the_workspace_of_a_step_is_what_the_calls_that_had_ended_left(log: Path, tmp_path: Path) -> None:
    first, _, second, third = steps_of(log, "tool_finished")
    started = steps_of(log, "tool_started")
    last = read_log(log).records[-1]["step"]
    wrong = []
    for step, expected in [
        *[(1, 0), (started[0], 0), (first, 1), (started[1], 1), (started[2] - 2, 1), (started[2], 1)],
        *[(second, 2), (third - 1, 2), (third, 3), (last, 3)],
    ]:
        made = branch(log, step, worktree=tmp_path / str(step))
        if files(Path(made.workspace)) != AFTER[expected]:
            wrong.append((step, files(Path(made.workspace))))

    assert wrong == []
    assert (tmp_path / str(first) / "a").stat().st_mode & 0o777 == 0o700


def test_a_branch_goes_on_in_its_own_folder_and_is_undone_there(log: Path, workspace: Path, tmp_path: Path) -> None:
    before, step = files(workspace), steps_of(log, "tool_finished")[0]
    made = branch(log, step, worktree=tmp_path / "copy")

    model = ScriptedModel([call("bash", command="pwd; rm link; echo other > c"), "Done."])
    with resume(made.log, model, workspace_tools(made.workspace)) as agent:
        run = agent.run_sync()
        assert str(tmp_path / "copy") in agent.system_prompt

    assert f"{tmp_path}/copy\n" in [event.result.text for event in run.events if isinstance(event, CallAnswered)]
    assert files(tmp_path / "copy") == {"kept": "mine\n", "a": "1\n", "empty": None, "c": "other\n"}
    assert files(workspace) == before
    recorded = read_log(made.log)
    assert replay(recorded, rebuild(recorded)).difference is None
    history = file_history(recorded)
    assert history.snapshots.get(history.before(0)).read("a") == b"1\n"
    branch(made.log, recorded.records[-1]["step"], worktree=tmp_path / "again")
    assert files(tmp_path / "again") == files(tmp_path / "copy")
    with pytest.raises(SnapshotError, match=f"step {step - 1} was in another workspace: until step {step}"):
        branch(made.log, step - 1, worktree=tmp_path / "early")


def test_a_branch_in_the_same_folder_shares_snapshots_so_that_an_undo_takes_back_what_both_runs_changed(
    log: Path, workspace: Path
) -> None:
    made = branch(log, steps_of(log, "tool_finished")[0])
    with resume(
        made.log, ScriptedModel([call("bash", command="echo 9 > c"), "Done."]), workspace_tools(workspace)
    ) as it:
        assert it.run_sync().status == "completed"
    names = [name.rpartition("/")[0] for path in (log, made.log) for _, name in file_history(read_log(path)).names]
    assert len(set(names)) == 1
    assert {*files(workspace)} == {"kept", "b", "c", "link", "empty"}

    for path in (made.log, log):
        kept = file_history(read_log(path))
        assert [*undo(kept.snapshots, kept.before(1)).left] == ["b"]
        assert files(workspace) == {"kept": "mine\n", "b": "by the user\n"}


def test_what_cannot_be_branched_is_refused_and_leaves_nothing_behind(
    log: Path, workspace: Path, tmp_path: Path
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    step = steps_of(log, "tool_finished")[0]
    empty = tmp_path / "empty.jsonl"
    with Agent(ScriptedModel(["Done."]), workspace_tools(workspace), log=empty) as agent:
        agent.run_sync("go")
    there = sorted(tmp_path.iterdir())
    with pytest.raises(LogError, match="exists already"):
        branch(log, step, worktree=tmp_path / "new", output=log)
    wrong = []
    for options, error, said in [
        ((log, step, tmp_path / "full"), SnapshotError, "full is not empty; name a new folder"),
        ((log, step, workspace / "inner"), SnapshotError, "name a folder outside of it"),
        ((log, step, log), SnapshotError, "is not empty"),
        ((log, 999, tmp_path / "new"), LogError, "has no step 999"),
        ((empty, 1, tmp_path / "new"), SnapshotError, "the workspace was not kept at step 1"),
    ]:
        path, at, folder = options
        with pytest.raises(error) as refused:
            branch(path, at, worktree=folder, output=tmp_path / "new.jsonl")
        if said not in str(refused.value) or sorted(tmp_path.iterdir()) != there:
            wrong.append((said, str(refused.value)))

    assert wrong == []


@bthread
def never_again(command: str = "") -> BThreadBody:
    yield sync(refuse=where(GateApproved, lambda approved: command in str(approved.call.arguments)), because="no more")


def test_the_same_beginning_goes_on_under_other_protocols(log: Path, tmp_path: Path) -> None:
    turn = steps_of(log, "inference_requested")[2]
    ends: dict[str, Any] = {}
    for name, threads, effects in [
        ("without", [], ()),
        ("own", [never_again("echo 2")], ()),
        ("monitored", [blocking_monitor("watcher", threshold=0.5)], laboratory({"watcher": ConstantMonitor(0.9)})),
    ]:
        made = branch(log, turn - 1, worktree=tmp_path / name, threads=threads)
        model = ScriptedModel([call("bash", command=COMMANDS[2]), "Done."])
        own = [each for each in threads if each.name == "never_again"]
        tools = workspace_tools(made.workspace)
        with resume(made.log, model, tools, threads=own, effects=effects) as agent:
            run = agent.run_sync()
        recorded = read_log(made.log)
        same = replay(recorded, rebuild(recorded, own)).difference is None
        outcomes = [event.outcome for event in run.events if isinstance(event, CallAnswered)]
        ends[name] = (files(tmp_path / name) == AFTER[1 if threads else 2], outcomes[2:], same)

    assert ends == {
        "without": (True, ["ran"], True),
        "own": (True, ["rejected"], True),
        "monitored": (True, ["rejected"], True),
    }
