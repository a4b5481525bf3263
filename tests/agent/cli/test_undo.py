"""`bpagent undo` and `diff`: what a run changed comes back, is shown, and is named at the end of the run."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agent import Agent, ScriptedModel, call
from agent.models.scripted import Step
from agent.tools.collections import create_all_tools
from tests.agent.cli.sessions import Command, RunOf, Script

pytestmark = pytest.mark.slow


@pytest.fixture
def log(workspace: Path, tmp_path: Path, home: Path) -> Path:
    """The log of two runs that changed files of a workspace, in which the user has changed one since."""
    for name in ("edited", "gone", "mine"):
        (workspace / name).write_text("old\n")
    one: list[Step] = [call("bash", command="echo first > edited"), "Done."]
    two: list[Step] = [
        call("bash", command=each) for each in ("echo 2 > edited; rm gone", "echo 2 > new; echo 2 > mine")
    ]
    path = tmp_path / "log.jsonl"
    tools = list(create_all_tools(workspace).values())
    with Agent(ScriptedModel([*one, *two, "Done."]), tools, preset="coding", log=path) as agent:
        for prompt in ("one", "two"):
            agent.run_sync(prompt)
    (workspace / "mine").write_text("by the user\n")
    return path


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_undo_goes_back_to_before_the_last_prompt_and_leaves_what_the_user_changed(
    log: Path, workspace: Path, command: Command
) -> None:
    after = contents(workspace)

    undone = command("undo", log)

    mine = "left: mine (was changed by something else than this run)"
    assert (undone.code, {*undone.out.splitlines()} >= {"as before: edited", "as before: new", mine}) == (1, True)
    assert contents(workspace) == {"edited": "first\n", "gone": "old\n", "mine": "by the user\n"}
    again = command("undo", log, "--redo")
    assert (again.code, contents(workspace)) == (0, after)
    assert command("undo", log, "edited").out.startswith("as before: edited\n")
    assert contents(workspace) == {**after, "edited": "first\n"}
    assert command("undo", log, "--to", 1, "--force").code == 0
    assert contents(workspace) == {"edited": "old\n", "gone": "old\n", "mine": "old\n"}


def test_what_cannot_be_undone_is_told_in_a_sentence(log: Path, workspace: Path, command: Command) -> None:
    wrong = []
    for words, said in (
        ([log, "--to", 999], "no call that may change files came after step 999"),
        ([log, "/etc/passwd"], "/etc/passwd is not in the workspace"),
        ([log, "--redo"], "nothing was undone in this run"),
        ([log, "edited", "editde"], f"there is no editde in {workspace}, and there was none"),
    ):
        told = command("undo", *words)
        if told.code != 2 or said not in told.err:
            wrong.append((words, told))
    assert wrong == []
    assert "removed the snapshots of 1 folders" in command("runs", "--prune").err
    assert "there is no snapshot 'log-" in command("undo", log).err


def test_what_was_moved_to_tmp_of_the_sandbox_stays_until_the_run_is_deleted(
    command: Command, process: Command, run_of: RunOf, workspace: Path, home: Path, needs: Callable[[str], Path]
) -> None:
    needs("bwrap")  # with Landlock alone /tmp is that of the machine
    (workspace / "notes").write_text("mine")
    kept, logs = home / ".bpagent", home / ".bpagent/runs"
    for _ in range(2):
        moving = {"call": {"tool": "bash", "arguments": {"command": "mv notes /tmp/x; chmod 0 /tmp/x"}}}
        assert process(*run_of(moving, "Done."), "--preset", "default").code == 0
        assert not (workspace / "notes").exists()
        assert command("undo").code == 0
        assert (workspace / "notes").read_text() == "mine"
    scratches = sorted(kept.glob("scratch/*/*/tmp/x"))
    assert [path.read_text() for path in scratches] == ["mine"] * 2
    first, second = sorted(logs.glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    steps = [json.loads(line).get("step") for line in first.read_text().splitlines()]
    assert command("fork", first, steps[-1]).code == 0
    snapshots = sorted(kept.glob("snapshots/*/refs/snapshots/*"))

    for log, left in ((second, 1), (first, 1)):  # of the first one the fork has the snapshots
        assert command("runs", "--delete", log).code == 0
        assert (log.exists(), len([*kept.glob("snapshots/*/refs/snapshots/*")])) == (False, left)
    assert (len(snapshots), [*kept.glob("scratch/*/*/tmp/x")]) == (2, [])
    assert command("runs", "--delete", first).code == 2
    assert command("runs", "--prune").code == 0
    assert [*kept.glob("scratch/*"), *kept.glob("snapshots/*")] == []


def test_diff_shows_what_changed_and_who_did(log: Path, command: Command) -> None:
    shown = command("diff", log).out

    assert "changed edited (echo 2 > edited; rm gone)" in shown
    assert "-old\n+2\n" in shown
    assert "deleted gone (echo 2 > edited; rm gone)" in shown
    assert "new new (echo 2 > new; echo 2 > mine)" in shown
    assert shown.endswith("4 files changed, 1 new, 1 deleted\n")
    steps = [json.loads(line)["step"] for line in log.read_text().splitlines() if '"snapshot_taken"' in line]
    assert command("diff", log, steps[0]).out.endswith("-old\n+first\n1 file changed\n")
    assert command("diff", log, steps[1], steps[2]).out.endswith("2 files changed, 1 deleted\n")


def test_the_end_of_a_run_says_what_changed_and_how_to_take_it_back(
    command: Command, script: Script, workspace: Path, tmp_path: Path
) -> None:
    write, recipe = (
        {"call": {"tool": "write_file", "arguments": {"path": path, "content": "hers\n"}}} for path in ("a", "Makefile")
    )

    told = command(
        "run", "go", "--model", script(write, recipe, "Done."), "--workspace", workspace, "--log", tmp_path / "x.jsonl"
    )

    assert "2 files changed, 2 new; look at what runs later: Makefile; bpagent undo" in told.err
    assert command("undo", tmp_path / "x.jsonl").code == 0
    assert not (workspace / "a").exists()


def test_what_is_left_out_of_snapshots_is_told_once(
    command: Command, script: Script, workspace: Path, tmp_path: Path
) -> None:
    os.mkfifo(workspace / "pipe")
    writes = [{"call": {"tool": "bash", "arguments": {"command": f"echo {n} > a"}}} for n in range(2)]

    told = command(
        "run", "go", "--model", script(*writes, "Done."), "--workspace", workspace, "--log", tmp_path / "x.jsonl"
    )

    assert told.err.count("not kept: pipe: is no file, folder or link") == 1
