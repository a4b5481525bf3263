"""`bpagent demo`: what it shows comes from the b-threads; without one of them it shows something else."""

import inspect
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated

import pytest
from attrs import evolve

from agent.cli.demo.workshop import (
    PROMPT,
    PROTOCOLS,
    Workshop,
    _steps,
    make_agent,
    make_model,
    make_workshop,
    nothing_leaves_after_a_secret,
)
from agent.session.agent import Agent
from agent.session.run import Run
from agent.tools.definition import tool
from agent.tools.schemas import ShellCommand
from agent.tools.toolbox import Toolbox
from agent.vocabulary.events import ActionDescribed, ApprovalAsked, CallAnswered, GateApproved, GateRejected
from bp import BProgram, BThread, Deadlock
from constitution import DEFAULT, judge
from tests.agent.cli.sessions import Command, Terminal

pytestmark = pytest.mark.anyio


@pytest.fixture
def workshop(tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workshop]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made = make_workshop(tmp_path / "workshop")
    yield made
    os.close(made.held)


# On the screen


@pytest.fixture
def performed_alone(start: Callable[..., "subprocess.Popen[str]"], tmp_path: Path) -> str:
    """What the demo writes without a terminal and without input."""
    demo = start("demo", "--log", tmp_path / "mine.jsonl")
    out, err = demo.communicate(timeout=120)
    assert (demo.returncode, err) == (0, "")
    return out


@pytest.mark.slow
def test_it_works_offline_without_terminal_and_input(performed_alone: str, command: Command, tmp_path: Path) -> None:
    for shown in (
        "result     all prices are right",
        "+price - price * percent // 100",
        "Approve command: cat .env? (yes/no)\nsystem   no terminal: the demo answers yes",
        "Of my 9 calls, 3 were",
        "Nothing was pushed",
        "git push: then rejected: nothing_leaves_after_a_secret: a secret was read earlier",
        "git push: now asks a person: git push would send commits to the remote",
        "says gate_approved; its b-threads say gate_rejected",
        "the model is told: interrupted, outcome unknown",
        "echo deployed >> deploys.txt ran once",
        "git push is approved after a secret was read",
        'deny  x=$(echo rm); "$x" -rf /usr',
    ):
        assert shown in performed_alone
    assert re.search(r"forgets_the_secret: violated, \d+ states", performed_alone)
    assert re.search(r"nothing_leaves_after_a_secret: holds, [\d,]+ states", performed_alone)
    refused = [line for line in performed_alone.splitlines() if "✕" in line and "refused  " in line and "│" in line]
    assert [line.split("refused")[1].split(":")[0].strip() for line in refused] == [
        "by_constitution",
        "by_constitution",
        "nothing_leaves_after_a_secret",
    ]
    source = inspect.getsource(nothing_leaves_after_a_secret.function).splitlines()
    assert len(source) <= 10
    assert max(map(len, source)) <= 95
    assert all(line in performed_alone for line in source)
    last = performed_alone.strip().splitlines()[-1].split()
    assert last == ["bpagent", "view", "--open", str(tmp_path / "mine.jsonl")]
    assert command("replay", last[3]).out.startswith("equal: ")


@pytest.mark.slow
def test_folders_of_demos_that_are_over_are_removed_and_nothing_else(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    over, under_way = make_workshop(), make_workshop()
    os.close(over.held)
    another = tmp_path / "bpagent-demo-mine"
    another.mkdir()

    newest = make_workshop()

    assert not over.folder.exists()
    assert [folder.exists() for folder in (under_way.folder, another, newest.folder)] == [True, True, True]
    os.close(under_way.held)
    os.close(newest.held)


@pytest.mark.slow
def test_on_a_terminal_the_user_is_asked_and_without_the_secret_the_fix_is_pushed(
    on_terminal: Callable[..., Terminal],
) -> None:
    terminal = on_terminal("demo", "--pace", "0", NO_COLOR="1")
    terminal.wait_for("your turn: after yes")
    terminal.wait_for("Approve command: cat .env? (yes/no)")
    terminal.type("why\n")
    terminal.wait_for("evidence: characters 0 to 8: cat .env")
    terminal.type("no\n")
    terminal.wait_for("Approve command: git push? (yes/no)")
    terminal.type("yes\n")
    for scene in ("The fix was pushed.", "kill -9", "ran once", "mistake", "violated", "check>"):
        terminal.wait_for(scene)
    terminal.type("rm -rf /usr\n")
    terminal.wait_for("rule delete_outside_workspace")
    terminal.type("\n")

    assert terminal.end() == 0
    assert "DEPLOY_TOKEN" not in terminal.screen
    assert "The fix was pushed." in terminal.screen
    assert "no secret was read, so the rule never spoke" in terminal.screen


# Where it comes from


@tool(name="bash")
def only_say(command: Annotated[str, ShellCommand()]) -> str:
    """Say what would be run: here the gate may be missing.

    Args:
        command: what would be run
    """
    return f"would run {command}"


async def performed(workshop: Workshop, *, without: str = "", protocols: Sequence[BThread] = PROTOCOLS) -> Run:
    """Perform the demo without the b-threads of one name, and with a bash that only says what it would run."""
    with make_agent(workshop, approve=lambda _: True, protocols=protocols) as agent:
        bthreads = (*agent.preset.bthreads(), *agent.threads)
        agent.program = BProgram(*[bthread for bthread in bthreads if bthread.name != without])
        agent.toolbox = with_harmless_bash(agent)
        return await agent.run(PROMPT)


def with_harmless_bash(agent: Agent) -> Toolbox:
    tools = [tool for name in agent.toolbox.names if (tool := agent.toolbox.get(name)) is not None]
    return Toolbox((*tools, only_say), agent.toolbox.workspace)


def refused(run: Run) -> list[object]:
    return [
        event.call.arguments.get("command") or event.call.arguments.get("path")
        for event in run.events
        if isinstance(event, GateRejected)
    ]


async def test_with_all_its_b_threads_it_refuses_three_calls(workshop: Workshop) -> None:
    run = await performed(workshop)

    assert refused(run) == ["rm -rf /", "~/.ssh/id_ed25519", "git push"]
    assert run.text == "The bug is fixed, and the check passes. Of my 9 calls, 3 were refused."


async def test_without_the_protocol_the_push_goes_through(workshop: Workshop) -> None:
    run = await performed(workshop, protocols=())

    assert refused(run) == ["rm -rf /", "~/.ssh/id_ed25519"]
    assert "2 were refused" in run.text


async def test_without_the_constitution_only_the_protocol_and_the_tools_refuse(workshop: Workshop) -> None:
    run = await performed(workshop, without="by_constitution")

    assert refused(run) == ["git push"]
    assert not any(isinstance(event, ApprovalAsked) for event in run.events)
    (key,) = [e for e in run.events if isinstance(e, CallAnswered) and "id_ed25519" in e.result]
    assert "permission denied" in key.result


async def test_without_the_gate_nothing_runs_at_all(workshop: Workshop) -> None:
    with pytest.raises(Deadlock):
        await performed(workshop, without="gate")


async def test_without_the_order_of_calls_they_run_at_once(workshop: Workshop) -> None:
    run = await performed(workshop, without="one_at_a_time")

    kinds = [type(event) for event in run.events if type(event) in (GateApproved, CallAnswered)]
    assert kinds[:2] == [GateApproved, GateApproved]


async def test_without_the_rule_against_it_the_deletion_is_another_rules_business(workshop: Workshop) -> None:
    run = await performed(workshop)
    (deletion,) = [e.facts for e in run.events if isinstance(e, ActionDescribed) and e.facts.command == "rm -rf /"]

    kept = tuple(rule for rule in DEFAULT.rules if rule.name != "delete_outside_workspace")

    assert judge(deletion, DEFAULT).rule == "delete_outside_workspace"
    assert judge(deletion, evolve(DEFAULT, rules=kept)).rule != "delete_outside_workspace"


def test_the_script_names_no_b_thread_and_no_rule() -> None:
    source = PROMPT + inspect.getsource(make_model) + inspect.getsource(_steps)

    assert "by_constitution" not in source
    assert "nothing_leaves" not in source


def test_the_rm_of_the_demo_deletes_nothing_outside_its_folder(workshop: Workshop) -> None:
    """Whoever takes the gate out to see what happens must not lose anything."""
    program = workshop.folder / "programs" / "rm"
    (workshop.project / "old.txt").write_text("x")

    refused = subprocess.run([program, "-rf", str(workshop.folder / "remote.git")], capture_output=True, text=True)
    done = subprocess.run([program, "old.txt"], cwd=workshop.project, capture_output=True)

    assert refused.returncode == 1
    assert (workshop.folder / "remote.git" / "HEAD").exists()
    assert done.returncode == 0
    assert not (workshop.project / "old.txt").exists()
