"""Runs of which every change can be undone: when snapshots are taken, what happens where none can be, and undo."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent import Agent, ScriptedModel, answer, call, resume, tool
from agent.presets import PRESETS
from agent.presets.equipment import equip
from agent.session.subagents import SubagentStore, make_task
from agent.tools.background import Processes
from agent.tools.collections import workspace_tools
from agent.tools.snapshots.store import Snapshots
from agent.tools.snapshots.undo import undo
from agent.vocabulary.events import (
    CallAnswered,
    GateApproved,
    SnapshotFailed,
    SnapshotRequested,
    SnapshotTaken,
    ToolStarted,
)
from tests.agent.conftest import MakeAgent
from tests.agent.losses import LOSSES, REPOSITORY, digest, shell

pytestmark = pytest.mark.anyio


def kinds(run: Any, *wanted: Any) -> list[str]:
    return [event.name for event in run.events if isinstance(event, wanted)]


async def test_a_snapshot_comes_after_the_approval_and_before_the_start_of_calls_that_may_change_files(
    make_agent: MakeAgent, workspace: Path
) -> None:
    (workspace / "a").write_text("old")
    script = [call("read_file", path="a"), call("bash", command="echo new > a"), call("list_directory"), "Done."]

    run = await make_agent(*script, preset="default").run("go")

    assert kinds(run, GateApproved, SnapshotRequested, SnapshotTaken, ToolStarted) == [
        *["gate_approved", "tool_started"],
        *["gate_approved", "snapshot_requested", "snapshot_taken", "tool_started"],
        *["gate_approved", "tool_started"],
    ]


async def test_calls_that_run_together_share_a_snapshot(make_agent: MakeAgent, workspace: Path) -> None:
    @tool(parallel=True)
    async def change(name: str) -> str:
        """Write a file."""
        await anyio.Path(workspace / name).write_text("new")
        return "written"

    script = [answer("", call("change", name="a"), call("change", name="b")), "Done."]
    run = await make_agent(*script, tools=[change], preset="coding").run("go")

    assert kinds(run, SnapshotRequested, ToolStarted)[0] == "snapshot_requested"
    assert sorted(path.name for path in workspace.iterdir()) == ["a", "b"]


BLOCKED = [(None, "skipped: no person present: no snapshot could be taken"), (False, "skipped: the user said no")]


@pytest.mark.parametrize(("yes", "said"), [*BLOCKED, (True, None)])
async def test_without_a_snapshot_a_change_needs_a_yes(
    make_agent: MakeAgent, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, yes: Any, said: Any
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("BPAGENT_HOME", str(tmp_path / "file"))
    questions: list[str] = []

    def approve(asked: Any) -> Any:
        questions.append(asked.question)
        return yes

    agent = make_agent(call("bash", command="echo new > a"), "Done.", approve=approve)
    run = await agent.run("go")

    (answered,) = [event for event in run.events if isinstance(event, CallAnswered)]
    assert (run.status, (workspace / "a").exists(), answered.outcome) == (
        "completed",
        yes is True,
        "ran" if yes else "skipped",
    )
    assert said is None or answered.result.text.startswith(said)
    assert len(questions) == 1
    assert "cannot be undone" in questions[0]
    assert str(tmp_path / "file") in questions[0]


async def test_snapshots_can_be_left_out(make_agent: MakeAgent) -> None:
    run = await make_agent(call("bash", command="echo new > a"), "Done.", snapshots=False).run("go")

    assert kinds(run, SnapshotRequested, SnapshotTaken, SnapshotFailed) == []


async def test_tools_that_work_in_no_workspace_need_no_snapshot(tmp_path: Path) -> None:
    @tool
    def send(text: str) -> str:
        """Send a text."""
        return "sent"

    with Agent(ScriptedModel([call("send", text="x"), "Done."]), [send]) as agent:
        run = await agent.run("go")

    assert (kinds(run, SnapshotRequested, ToolStarted), agent.keeper) == (["tool_started"], None)


async def test_run_undo_takes_back_what_the_run_changed(make_agent: MakeAgent, workspace: Path) -> None:
    (workspace / "a").write_text("old")
    (workspace / "gone").write_text("old")
    commands = ["echo 1 > a", "rm gone; echo 2 > a; echo 2 > new"]
    run = await make_agent(*[call("bash", command=each) for each in commands], "Done.").run("go")
    steps = [step.number for step in run.steps if isinstance(step.event, SnapshotTaken)]

    assert {(each.path, each.kind) for each in run.changes if each.kind} == {
        ("a", "changed"), ("gone", "deleted"), ("new", "new"),
    }  # fmt: skip
    assert (run.snapshot(steps[0]).read("a"), run.snapshot(steps[1]).read("a")) == (b"old", b"1\n")
    assert set((await run.undo(steps[1])).restored) == {"a", "gone", "new"}
    assert ((workspace / "a").read_text(), (workspace / "gone").read_text()) == ("1\n", "old")
    await run.undo()
    assert {path.name: path.read_text() for path in workspace.iterdir()} == {"a": "old", "gone": "old"}


WAL = """
import sqlite3
with sqlite3.connect("wal.db") as database:
    database.execute("pragma journal_mode=wal")
    database.execute("create table t (n)")
    database.execute("insert into t values (1)")
database.close()
"""
REPLACED = [("data/m.csv", "x"), ("app.db", ""), ("link/a.py", "replaced"), ("empty/new", "1")]
"""Files that are written anew by the tool for that."""
REPLACING_LINK = "ln -sf /etc/passwd notes.txt"


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_every_byte_comes_back_after_each_way_to_lose_work_with_no_user_present(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell(REPOSITORY)(workspace)
    subprocess.run([sys.executable, "-c", WAL], cwd=workspace, check=True)
    monkeypatch.chdir(workspace)
    before, wrong, refused, lost = digest(workspace), [], [], 0
    losing = [call("bash", command=loss) for loss in LOSSES]
    losing += [call("read_file", path="notes.txt"), *(call("write_file", path=p, content=c) for p, c in REPLACED)]
    script = [step for each in losing for step in (each, "Done.")]

    with Agent(ScriptedModel(script), equip(PRESETS["default"], workspace)) as agent:
        for loss in losing:
            run = await agent.run("go")
            [answered] = [event for event in run.events if isinstance(event, CallAnswered)]
            lost += digest(workspace) != before
            if answered.outcome != "ran":
                refused.append(json.loads(loss.arguments)["command"])
            elif kinds(run, SnapshotTaken) and (
                (left := (await run.undo(git=True)).left) or digest(workspace) != before
            ):
                wrong.append((loss.arguments, left, sorted(digest(workspace).items() ^ before.items())[:4]))

    assert (wrong, lost > 35) == ([], True)
    assert refused == ["rm -rf lib/inner/.git", "rm -rf .git/objects", "rm -rf .git", "chmod -R 700 .", REPLACING_LINK]


@pytest.mark.slow
@pytest.mark.parametrize("snapshots", [True, False])
async def test_what_a_subagent_changed_is_undone_and_it_takes_snapshots_of_its_own(
    workspace: Path, tmp_path: Path, snapshots: bool
) -> None:
    (workspace / "a").write_text("old")
    child = ScriptedModel([call("bash", command="echo child > a"), call("bash", command="echo more > b"), "Done."])
    logs = tmp_path / "logs"
    logs.mkdir()
    store = SubagentStore(child, PRESETS["coding"], lambda: workspace_tools(workspace), logs=logs, snapshots=snapshots)
    task = call("task", description="x", prompt="x", subagent_type="general")

    with Agent(
        ScriptedModel([task, "Done."]), [*workspace_tools(workspace), make_task(store)], preset="coding",
        snapshots=snapshots,
    ) as agent:  # fmt: skip
        run = await agent.run("go")
        store.close()
        [log] = logs.iterdir()
        assert log.read_text().count('"name":"snapshot_taken"') == (2 if snapshots else 0)
        if snapshots:
            assert (await run.undo()).left == {}
    assert {path.name: path.read_text() for path in workspace.iterdir()} == (
        {"a": "old"} if snapshots else {"a": "child\n", "b": "more\n"}
    )


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_a_background_process_changes_between_and_after_calls_is_undone(
    workspace: Path, tmp_path: Path
) -> None:
    (workspace / "a").write_text("old")
    processes = Processes()
    stays = "echo 1 > a; until [ -e go ]; do sleep 0.05; done; echo 2 > a; echo 2 > b; touch done; sleep 99"
    script: list[Any] = [
        call("bash", command=stays, background=True),
        call("bash", command="touch go; until [ -e done ]; do sleep 0.05; done"),
        call("bash", command="echo 3 > c"),
        "Done.",
    ]
    with Agent(ScriptedModel(script), workspace_tools(workspace, processes=processes), preset="coding") as agent:
        run = await agent.run("go")
        assert {path.name for path in workspace.iterdir()} == {"a", "b", "c", "go", "done"}
        undone = await run.undo()

    assert (undone.left, {path.name: path.read_text() for path in workspace.iterdir()}) == ({}, {"a": "old"})


TOGETHER = """
import sys
from agent import Agent, ScriptedModel, call
from agent.tools.collections import workspace_tools
folder, name = sys.argv[1:]
commands = [f"cat shared > {name}{number}; echo {name} >> shared" for number in range(5)]
script = [*(call("bash", command=each) for each in commands), "Done."]
with Agent(ScriptedModel(script), workspace_tools(folder), preset="coding") as agent:
    run = agent.run_sync("go")
print(run.status, run.snapshot().name)
"""


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_two_processes_in_one_folder_share_a_store_and_each_run_can_be_undone(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BPAGENT_HOME", str(tmp_path / "home"))
    (workspace / "shared").write_text("old\n")
    before = digest(workspace)
    words = [sys.executable, "-c", TOGETHER, str(workspace)]
    running = [subprocess.Popen([*words, name], stdout=subprocess.PIPE, text=True) for name in ("one", "two")]
    said = [process.communicate()[0].split() for process in running]

    assert ([status for status, _ in said], len((workspace / "shared").read_text().split())) == (["completed"] * 2, 11)
    store = Snapshots(workspace, tmp_path / "home")
    assert ([*(tmp_path / "home/snapshots").iterdir()], len(store.runs())) == ([store.folder], 2)
    assert all(store.get(name).has("shared") for each in store.runs() for name in store.names(each))
    first = min((store.get(name) for _, name in said), key=lambda taken: taken.time)
    assert (undo(store, first.name, force=True).left, digest(workspace)) == ({}, before)


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_two_subagents_that_run_together_are_undone_together(workspace: Path, tmp_path: Path) -> None:
    (workspace / "a").write_text("old")
    child = ScriptedModel([call("bash", command="rm -f a; echo new > $$"), "Done."] * 2)
    store = SubagentStore(child, PRESETS["coding"], lambda: workspace_tools(workspace), logs=tmp_path / "logs")
    (tmp_path / "logs").mkdir()
    tasks = [call("task", description=name, prompt=name, subagent_type="general") for name in ("one", "two")]

    script = ScriptedModel([answer("", *tasks), "Done."])
    with Agent(script, [*workspace_tools(workspace), make_task(store)], preset="coding") as agent:
        run = await agent.run("go")
        store.close()
        assert [log.read_text().count('"name":"snapshot_taken"') for log in (tmp_path / "logs").iterdir()] == [1, 1]
        assert len([*workspace.iterdir()]) == 2
        assert (await run.undo()).left == {}
    assert {path.name: path.read_text() for path in workspace.iterdir()} == {"a": "old"}


KILLED = """
import os, sys
from pathlib import Path
from agent import Agent, ScriptedModel, call
from agent.tools.collections import workspace_tools
script = [call("bash", command="echo half > a; kill -9 $PPID; sleep 9"), "Done."]
folder, log = sys.argv[1:]
with Agent(ScriptedModel(script), workspace_tools(folder), preset="coding", log=log) as agent:
    agent.run_sync("go")
"""


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_a_killed_run_changed_is_undone_after_it_was_resumed(workspace: Path, tmp_path: Path) -> None:
    (workspace / "a").write_text("old")
    log = tmp_path / "run.jsonl"
    subprocess.run([sys.executable, "-c", KILLED, workspace, log], check=False, env={**os.environ})
    assert (workspace / "a").read_text() == "half\n"

    script = ScriptedModel([call("bash", command="echo more > b"), "Done."])
    with resume(log, script, workspace_tools(workspace)) as agent:
        run = await agent.run()
        undone = await run.undo()

    assert (undone.left, {path.name: path.read_text() for path in workspace.iterdir()}) == ({}, {"a": "old"})
