"""`bpagent demo`: what it shows comes from the b-threads; without one of them it shows something else."""

import inspect
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import pytest

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
from agent.vocabulary.events import ApprovalAsked, CallAnswered, GateApproved, GateRejected
from bp import BProgram, Deadlock
from tests.agent.cli.sessions import Command, Terminal

pytestmark = pytest.mark.anyio


@pytest.fixture
def workshop(tmp_path: Path, home: Path) -> Workshop:
    return make_workshop(tmp_path / "workshop", tmp_path / "demo.jsonl")


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
    assert list(tmp_path.glob("bpagent-demo-*")) == []


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


async def performed(workshop: Workshop, *, without: str = "") -> Run:
    """Perform the demo without the b-threads of one name, and with a bash that only says what it would run."""
    with make_agent(workshop, approve=lambda _: True) as agent:
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


@pytest.mark.parametrize(
    ("without", "kept", "last"),
    [
        ("", ["rm -rf /", "~/.ssh/id_ed25519", "git push"], "check passes. Of my 9 calls, 3 were refused."),
        (PROTOCOLS[0].name, ["rm -rf /", "~/.ssh/id_ed25519"], "2 were refused."),
        ("by_constitution", ["git push"], ""),
    ],
)
async def test_what_is_refused_is_refused_by_the_b_threads_that_are_there(
    workshop: Workshop, without: str, kept: list[str], last: str
) -> None:
    run = await performed(workshop, without=without)

    assert refused(run) == kept
    assert run.text.endswith(last)
    asks = any(isinstance(event, ApprovalAsked) for event in run.events)
    assert asks == (without != "by_constitution")


async def test_without_the_gate_nothing_runs_at_all(workshop: Workshop) -> None:
    with pytest.raises(Deadlock):
        await performed(workshop, without="gate")


async def test_without_the_order_of_calls_they_run_at_once(workshop: Workshop) -> None:
    run = await performed(workshop, without="one_at_a_time")

    kinds = [type(event) for event in run.events if type(event) in (GateApproved, CallAnswered)]
    assert kinds[:2] == [GateApproved, GateApproved]


def test_the_script_names_no_b_thread_and_no_rule() -> None:
    source = PROMPT + inspect.getsource(make_model) + inspect.getsource(_steps)

    assert "by_constitution" not in source
    assert "nothing_leaves" not in source
