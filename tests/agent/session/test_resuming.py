"""Going on with a log: wherever it ends, the run continues as if nothing had happened, and no tool runs twice."""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent import Agent, ScriptedModel, answer, call, resume, tool
from agent.history.playback import LogDiffers, replay
from agent.history.rebuilding import RebuildError
from agent.log.chain import CHAIN, SIGNATURE
from agent.log.reading import LogError, read_log
from agent.log.writing import LogInUse
from agent.models.scripted import fail
from agent.presets import PRESETS
from agent.presets.preset import Preset
from agent.session.agent import Run
from agent.tools.collections import workspace_tools
from agent.tools.definition import Tool
from agent.tools.shell import ShellOptions, make_shell_tool
from agent.tools.terminal import make_terminal
from agent.tools.work import make_todo_tools
from agent.vocabulary.events import AbortAsked, CallAnswered
from agent.vocabulary.messages import ToolMessage
from bp import BProgram, BThreadBody, bthread, sync

INTERRUPTED = "interrupted, outcome unknown"

SCRIPT = (
    answer("Two at once.", call("write_down", text="a").with_id("a"), call("write_down", text="b").with_id("b")),
    fail("busy", retryable=True),
    answer("Asking.", call("bash", command="touch .git/config").with_id("c")),
    answer("Refused.", call("bash", command="rm -rf /").with_id("d"), call("unheard_of").with_id("e")),
    "",
    call("write_down", text="f").with_id("f"),
    "Done.",
)


def writing_to(notes: Path) -> Tool:
    @tool(category="write")
    async def write_down(text: str) -> str:
        """Write down."""
        with notes.open("a") as file:
            file.write(f"{text}\n")
        return f"wrote {text}"

    return write_down


def written(notes: Path) -> list[str]:
    return notes.read_text().split() if notes.exists() else []


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and ends of logs lie with the test, not with the user who runs it."""
    monkeypatch.setenv("BPAGENT_HOME", str(tmp_path / "own"))


@pytest.fixture
def tools(workspace: Path, tmp_path: Path) -> tuple[Tool, ...]:
    return (*workspace_tools(workspace, timeout=100), writing_to(tmp_path / "notes"))


def approving(asked: object) -> bool:
    return True


OPTIONS: dict[str, Any] = {"approve": approving, "wait": lambda _: 0.0}


@pytest.fixture
def whole(tools: tuple[Tool, ...], tmp_path: Path) -> Agent:
    """An agent whose run came to its end without a break."""
    log = tmp_path / "whole.jsonl"
    with Agent(ScriptedModel(SCRIPT), tools, log=log, **OPTIONS) as agent:
        agent.run_sync("Go")
    return agent


def cut(log: Path, lines: int, rest: bytes = b"") -> Path:
    """The log as it was when it had so many lines, and perhaps a part of the next one; its head says no more."""
    shutil.rmtree(log.parent / "own" / "log_heads", ignore_errors=True)
    shorter = log.with_name(f"cut-{lines}-{len(rest)}.jsonl")
    shorter.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:lines]) + rest)
    return shorter


def rest_of_script(log: Path) -> Sequence[Any]:
    heard = ("inference_finished", "inference_failed")
    return SCRIPT[sum(record["name"] in heard for record in read_log(log).records) :]


def in_flight(log: Path) -> list[str]:
    calls: list[str] = []
    for record in read_log(log).records:
        if record["name"] == "tool_started":
            calls.append(record["data"]["call"])
        if record["name"] == "tool_finished":
            calls.remove(record["data"]["call"])
    return calls


def started(log: Path) -> list[str]:
    return [record["data"]["call"] for record in read_log(log).records if record["name"] == "tool_started"]


def is_sound(log: Path, agent: Agent) -> bool:
    return replay(read_log(log), BProgram(*agent.bthreads)).difference is None


@pytest.mark.slow
@pytest.mark.parametrize("torn", [False, True])
def test_a_log_cut_after_any_record_goes_on_as_if_nothing_had_happened(
    whole: Agent, tools: tuple[Tool, ...], tmp_path: Path, torn: bool
) -> None:
    """Except that a tool in flight is answered as interrupted; no tool runs twice."""
    assert whole.log_path is not None
    lines = whole.log_path.read_bytes().splitlines(keepends=True)
    assert len(lines) > 50
    for count in range(2, len(lines), 3 if torn else 1):
        goes_on(whole, tools, tmp_path / "notes", cut(whole.log_path, count, lines[count][:-5] if torn else b""))


@pytest.mark.slow
@pytest.mark.parametrize("preset", [*PRESETS.values(), evolve(PRESETS["default"], sequential=False)])
def test_a_cut_log_of_every_preset_goes_on(preset: Preset, tools: tuple[Tool, ...], tmp_path: Path) -> None:
    log, notes = tmp_path / "whole.jsonl", tmp_path / "notes"
    with Agent(ScriptedModel(SCRIPT), tools, preset=preset, log=log, **OPTIONS) as whole:
        assert whole.run_sync("Go").status == "completed"

    for count in range(3, len(log.read_bytes().splitlines()), 9):
        goes_on(whole, tools, notes, cut(log, count))


def goes_on(whole: Agent, tools: tuple[Tool, ...], notes: Path, log: Path) -> None:
    """Resume a shortened log, and check that all is as in the whole run."""
    interrupted, ran, before = in_flight(log), started(log), log.read_bytes()
    notes.unlink(missing_ok=True)

    with resume(log, ScriptedModel(rest_of_script(log)), tools, **OPTIONS) as agent:
        run = agent.run_sync()

    assert (run.status, run.text) == ("completed", "Done."), log.name
    assert len(agent.messages) == len(whole.messages)
    for now, then in zip(agent.messages, whole.messages, strict=True):
        if isinstance(now, ToolMessage) and now.call_id in interrupted:
            assert now.text.startswith(INTERRUPTED)
            assert now.result.is_error
        else:
            assert now == then
    assert written(notes) == [note for note in "abf" if note not in ran]
    assert is_sound(log, agent)
    assert log.read_bytes().startswith(before[: before.rfind(b"\n") + 1])


@pytest.mark.anyio
async def test_a_run_that_was_aborted_before_the_break_stays_aborted(
    make_agent: Callable[..., Agent], tmp_path: Path
) -> None:
    """An effect that was cancelled when its process died is not started again."""
    asked: list[str] = []

    def ask(request: object) -> str:
        asked.append("asked")
        return "Done."

    agent = make_agent(ask, log=tmp_path / "log.jsonl")
    async with agent.start("Go") as run:
        run.abort("enough")
    agent.close()
    lines = (tmp_path / "log.jsonl").read_bytes().splitlines(keepends=True)
    aborted = next(n for n, line in enumerate(lines) if b'"abort_asked"' in line)
    log = cut(tmp_path / "log.jsonl", aborted + 1)
    asked.clear()

    with resume(log, ScriptedModel([ask]), agent_tools(agent)) as resumed:
        went_on = await resumed.run()

    assert went_on.status == "aborted"
    assert asked == []


def agent_tools(agent: Agent) -> list[Tool]:
    return [found for name in agent.toolbox.names if (found := agent.toolbox.get(name)) is not None]


@pytest.mark.slow
def test_a_finished_log_has_no_run_to_go_on_with(whole: Agent, tools: tuple[Tool, ...]) -> None:
    assert whole.log_path is not None
    with resume(whole.log_path, ScriptedModel(["Again."]), tools, **OPTIONS) as agent:
        assert not agent.journal.is_under_way
        run = agent.run_sync("And now?")

    assert run.text == "Again."
    assert [message.text for message in agent.messages][: len(whole.messages)] == [m.text for m in whole.messages]
    assert is_sound(whole.log_path, agent)


@bthread
def onlooker() -> BThreadBody:
    yield sync(wait_for=AbortAsked)


def test_a_log_of_another_program_names_the_b_thread(make_agent: Callable[..., Agent], tools: tuple[Tool, ...]) -> None:
    agent = make_agent("Done.", tools=tools, threads=[onlooker()])
    agent.run_sync("Go")
    agent.close()
    assert agent.log_path is not None

    with pytest.raises(RebuildError, match="'onlooker'"):
        resume(agent.log_path, ScriptedModel([]), tools)
    with resume(agent.log_path, ScriptedModel([]), tools, threads=[onlooker()]) as resumed:
        assert resumed.threads == (onlooker(),)


def test_other_tools_are_refused(whole: Agent, tools: tuple[Tool, ...]) -> None:
    assert whole.log_path is not None
    with pytest.raises(RebuildError, match=r"made with the tools bash, .*, write_down, and here are bash"):
        resume(whole.log_path, ScriptedModel([]), tools[:-1])


def test_a_log_that_is_written_or_was_changed_is_refused_and_stays_as_it_was(
    whole: Agent, tools: tuple[Tool, ...]
) -> None:
    assert whole.log_path is not None
    with (
        resume(whole.log_path, ScriptedModel([]), tools),
        pytest.raises(LogInUse, match=f"process {os.getpid()}, which is this one; close"),
    ):
        resume(whole.log_path, ScriptedModel([]), tools)
    changed = whole.log_path.with_name("changed.jsonl")
    head, name, tail = whole.log_path.read_text().partition('"name":"call_answered"')
    without = {CHAIN, SIGNATURE}
    lines = [json.loads(line) for line in f"{head}{name}{tail.replace('wrote a', 'wrote x', 1)}".splitlines()]
    changed.write_text(
        "".join(json.dumps({key: line[key] for key in line if key not in without}) + "\n" for line in lines)
    )
    before = changed.read_bytes()

    for _ in range(2):  # it can be opened again afterwards
        with pytest.raises(LogDiffers, match="record"):
            resume(changed, ScriptedModel([]), tools)
    assert changed.read_bytes() == before


def test_a_run_that_broke_off_cannot_go_on(make_agent: Callable[..., Agent], tools: tuple[Tool, ...]) -> None:
    def stumble(step: object) -> None:
        raise ValueError("the listener stumbled")

    agent = make_agent("Done.", tools=tools, on_step=stumble)
    with pytest.raises(Exception, match="stumbled"):
        agent.run_sync("Go")
    agent.close()
    assert agent.log_path is not None

    with pytest.raises(LogError, match=r"broke off and cannot go on: .*stumbled"):
        resume(agent.log_path, ScriptedModel([]), tools)


# What tools hold is there again when a log goes on: a terminal session, a list of tasks, counts of an envelope


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
    return [event.result.text for event in run.events if isinstance(event, CallAnswered)]


def in_session(command: str) -> object:
    return call("terminal", command=command, persistent=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "old.txt").touch()
    (tmp_path / "important.txt").touch()
    return tmp_path


def test_commands_of_a_resumed_session_start_where_it_was(folder: Path) -> None:
    def terminal() -> tuple[Tool, ...]:
        return (make_terminal(str(folder)),)

    run = resumed(folder, terminal, [in_session("cd build; X=1; export Y=2")], [in_session("rm *.txt; echo $X$Y; pwd")])

    assert (folder / "important.txt").exists()
    assert not (folder / "build" / "old.txt").exists()
    assert answers(run)[0].split() == ["12", str(folder / "build")]


def test_the_list_of_tasks_is_there_again(folder: Path) -> None:
    todo = {"content": "test it", "status": "pending", "priority": "high"}

    run = resumed(folder, make_todo_tools, [call("todowrite", todos=[todo])], [call("todoread")])

    assert json.loads(answers(run)[0]) == {"todos": [todo], "incompleteCount": 1}


def test_the_envelope_goes_on_counting_after_a_resume(folder: Path) -> None:
    def shell() -> tuple[Tool, ...]:
        return (make_shell_tool(str(folder), ShellOptions(form="envelope")),)

    run = resumed(folder, shell, [call("bash", command="echo 1"), call("bash", command="echo 2")],
                  [call("bash", command="echo 3")])  # fmt: skip

    session = json.loads(answers(run)[0])["session"]
    assert (session["executed_commands"], session["observations"]) == (3, 3)
