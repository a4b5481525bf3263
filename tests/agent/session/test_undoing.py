"""Runs of which every change can be undone: when snapshots are taken, what happens where none can be, and undo."""

import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve

from agent import Agent, ScriptedModel, answer, call, resume, tool
from agent.presets import PRESETS
from agent.presets.equipment import equip
from agent.session.subagents import SubagentStore, make_task
from agent.threads.judging import objection
from agent.tools.background import Processes
from agent.tools.collections import workspace_tools
from agent.tools.snapshots.store import Snapshots
from agent.tools.snapshots.undo import undo
from agent.vocabulary.events import (
    ActionDescribed,
    ApprovalAsked,
    CallAnswered,
    GateApproved,
    GateRejected,
    SnapshotFailed,
    SnapshotRequested,
    SnapshotTaken,
    ToolStarted,
)
from bp import BThreadBody, bthread, start, sync
from constitution import Level, Verdict
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


async def test_calls_that_are_approved_one_after_the_other_share_the_snapshot_after_the_last_approval(
    make_agent: MakeAgent,
) -> None:
    @tool(parallel=True)
    async def change(name: str) -> str:
        """Write a file."""
        return "written"

    async def approve(asked: Any) -> bool:
        await anyio.wait_all_tasks_blocked()
        return "b" in str(asked.call.arguments)

    @bthread
    def asked_about_all_but_the_first() -> BThreadBody:
        while True:
            described = yield sync(wait_for=ActionDescribed)
            if "a" not in str(described.call.arguments["name"]):
                yield start(objection(described, Verdict(Level.ask, "some_rule")))

    script = [answer("", *(call("change", name=name) for name in "abc")), "Done."]
    threads = [asked_about_all_but_the_first()]
    preset = evolve(PRESETS["coding"], together="neighbours")
    run = await make_agent(*script, tools=[change], preset=preset, approve=approve, threads=threads).run("go")

    decided = (GateApproved, GateRejected, SnapshotRequested, ToolStarted)
    decisions = kinds(run, *decided)
    assert sorted(decisions[:3]) == ["gate_approved", "gate_approved", "gate_rejected"]
    assert decisions[3:] == ["snapshot_requested", "tool_started", "tool_started"]


class Thinking(ScriptedModel):
    """A model that takes its time: it is not quick."""

    is_quick = False


async def test_the_first_snapshot_begins_while_the_model_thinks_and_a_call_waits_for_it(workspace: Path) -> None:
    (workspace / "a").write_text("old")
    model = Thinking([call("bash", command="echo new > a"), "Done."])
    with Agent(model, workspace_tools(workspace), preset="coding") as agent:
        assert agent.keeper is not None
        store = agent.keeper.snapshots
        store.folder.mkdir(parents=True)
        seen = []
        with open(store.folder / "lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            async with agent.start("go") as run:
                async for step in run:
                    if isinstance(step.event, SnapshotRequested):
                        seen += [thread.name for thread in threading.enumerate() if "first snapshot" in thread.name]
                        fcntl.flock(lock, fcntl.LOCK_UN)
        assert seen == ["first snapshot"]
        assert [len(store.names(agent.keeper.run)), kinds(run, SnapshotTaken)] == [3, ["snapshot_taken"]]
        assert (await run.undo()).left == {}
    assert (workspace / "a").read_text() == "old"


async def test_the_first_snapshot_is_broken_off_when_the_agent_is_closed(workspace: Path) -> None:
    agent = Agent(Thinking(["Done."]), workspace_tools(workspace), preset="coding")
    assert agent.keeper is not None
    folder = agent.keeper.snapshots.folder
    folder.mkdir(parents=True)
    with open(folder / "lock", "a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        await agent.run("go")
        agent.close()
    assert [thread.name for thread in threading.enumerate() if "first snapshot" in thread.name] == []
    assert agent.keeper.snapshots.runs() == []


@pytest.mark.parametrize("yes", [True, False, None])
async def test_a_workspace_that_is_too_large_asks_once_what_to_leave_out(
    make_agent: MakeAgent, workspace: Path, yes: bool | None
) -> None:
    (workspace / "data").mkdir()
    (workspace / "data" / "large").write_text("x" * 3_000)
    (workspace / "src" / "data").mkdir(parents=True)
    (workspace / "src" / "data" / "notes").write_text("mine")
    questions: list[str] = []

    def approve(asked: Any) -> Any:
        questions.append(asked.question)
        return yes

    commands = [call("bash", command=f"echo {number} > src/data/notes; touch {number}") for number in "12"]
    agent = make_agent(*commands, "Done.", commands[0], "Done.", preset="coding", approve=approve)
    assert agent.keeper is not None
    agent.keeper.snapshots._limit = 2_000
    run = await agent.run("go")

    told = [event.result.text for event in run.events if isinstance(event, CallAnswered)]
    assert ["./data" in question and "from now on" in question for question in questions] == [True]
    if yes:
        assert kinds(run, SnapshotTaken, SnapshotFailed) == ["snapshot_failed", "snapshot_taken", "snapshot_taken"]
        assert agent.toolbox.unkept == (str(workspace / "data"),)
        assert (await run.undo()).left == {}
        again = make_agent(commands[0], "Done.", preset="coding")
        assert again.keeper is not None
        again.keeper.snapshots._limit = 2_000
        assert kinds(await again.run("go"), SnapshotFailed, SnapshotTaken) == ["snapshot_taken"]
    else:
        assert ["snapshot_exclude=./data" in text for text in told] == [True, True]
        assert kinds(run, ToolStarted) == []
        await agent.run("go on")
        assert len(questions) == 2  # once in each run
        assert (workspace / "src" / "data" / "notes").read_text() == "mine"


async def test_a_snapshot_that_a_b_thread_refuses_refuses_the_change(make_agent: MakeAgent, workspace: Path) -> None:
    @bthread
    def no_snapshots() -> BThreadBody:
        yield sync(refuse=SnapshotRequested, because="not on this disk")

    script = [answer("", *(call("bash", command=f"touch {name}") for name in "ab")), "Done."]
    run = await make_agent(*script, preset="coding", threads=[no_snapshots()]).run("go")

    answers = [event.result.text for event in run.events if isinstance(event, CallAnswered)]
    assert (run.status, answers) == ("completed", ["rejected: no_snapshots: not on this disk"] * 2)
    assert list(workspace.iterdir()) == []


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


@pytest.mark.parametrize("preset", ["passthrough", "coding", "default"])
@pytest.mark.parametrize(("yes", "outcome"), [(None, "rejected"), (True, "ran")])
async def test_without_snapshots_each_change_is_asked_about_once(
    make_agent: MakeAgent, workspace: Path, preset: str, yes: Any, outcome: str
) -> None:
    questions: list[str] = []

    def approve(asked: Any) -> Any:
        questions.append(asked.question)
        return yes

    (workspace / "a").touch()
    script = [call("read_file", path="a"), call("bash", command="echo new > b"), "Done."]
    agent = make_agent(*script, preset=preset, snapshots=False, approve=approve)
    run = await agent.run("go")

    assert [event.outcome for event in run.events if isinstance(event, CallAnswered)] == ["ran", outcome]
    assert (len(questions), "cannot be undone" in questions[0]) == (1, True)
    assert kinds(run, SnapshotRequested, SnapshotTaken, SnapshotFailed) == []


async def test_what_a_policy_denies_is_denied_without_snapshots_too(make_agent: MakeAgent) -> None:
    script = [call("bash", command="rm -rf / --no-preserve-root"), "Done."]
    run = await make_agent(*script, snapshots=False, approve=lambda _: True).run("go")

    assert [event.outcome for event in run.events if isinstance(event, CallAnswered)] == ["rejected"]
    assert kinds(run, ApprovalAsked) == []


async def test_files_that_are_thrown_away_need_neither_snapshots_nor_questions(make_agent: MakeAgent) -> None:
    run = await make_agent(call("bash", command="echo new > a"), "Done.", snapshots=None).run("go")

    assert kinds(run, SnapshotRequested, SnapshotTaken, SnapshotFailed, ApprovalAsked) == []


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


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_every_byte_comes_back_after_each_way_to_lose_work_with_no_user_present(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, needs: Callable[[str], Path]
) -> None:
    needs("bwrap")  # where commands are not isolated, many of these are refused
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
    assert refused == ["rm -rf lib/inner/.git", "rm -rf .git/objects", "rm -rf .git", "chmod -R 700 ."]


@pytest.mark.slow
@pytest.mark.parametrize("snapshots", [True, False, None])
async def test_what_a_subagent_changed_is_undone_and_it_takes_snapshots_of_its_own(
    workspace: Path, tmp_path: Path, snapshots: bool | None
) -> None:
    (workspace / "a").write_text("old")
    child = ScriptedModel([call("bash", command="echo child > a"), call("bash", command="echo more > b"), "Done."])
    logs = tmp_path / "logs"
    logs.mkdir()
    store = SubagentStore(child, PRESETS["coding"], lambda: workspace_tools(workspace), logs=logs)
    task = call("task", description="x", prompt="x", subagent_type="general")

    with Agent(
        ScriptedModel([task, "Done."]), [*workspace_tools(workspace), make_task(store)], preset="coding",
        snapshots=snapshots, approve=lambda asked: asked.call.tool == "task",
    ) as agent:  # fmt: skip
        run = await agent.run("go")
        store.close()
        [log] = logs.iterdir()
        assert log.read_text().count('"name":"snapshot_taken"') == (2 if snapshots else 0)
        if snapshots:
            assert (await run.undo()).left == {}
    assert {path.name: path.read_text() for path in workspace.iterdir()} == (
        {"a": "child\n", "b": "more\n"} if snapshots is None else {"a": "old"}
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
