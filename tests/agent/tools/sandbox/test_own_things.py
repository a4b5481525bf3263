"""The agent's own things are out of its reach: runs, rules and key, the log in use, and what could answer for it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent import call
from agent.presets.equipment import equip
from agent.presets.shipped import PRESETS
from agent.session.agent import Run
from agent.tools.sandbox import permissions
from agent.tools.sandbox.sandbox import Sandbox
from agent.vocabulary.events import ApprovalAsked, GateRejected, ToolStarted
from tests.agent.conftest import MakeAgent

JUDGING = [name for name, preset in PRESETS.items() if preset.policy not in (None, "passthrough")]
TOUCHES = (
    "cat {own}/rules.yaml",
    "echo 'allow: all' > {own}/rules.yaml",
    "cp evil.yaml {own}/rules.yaml",
    "ln {own}/rules.yaml rules.yaml",
    "mv {own}/runs elsewhere",
    "rm -rf {own}",
    "cat {own}/key",
    "sed -i s/ask/allow/ {own}/rules.yaml",
    "grep -r key {own}",
    "tee -a {log} < evil.yaml",
    "echo forged >> {log}",
    "tmux send-keys -t 0 yes Enter",
    "screen -S x -X stuff yes",
    "bpagent resume x --approve call_1",
    "kill -9 $PPID",
    "kill -9 {pid}",
    "kill -- -{pid}",
    "cat /proc/{pid}/cmdline",
    "xxd /proc/{pid}/mem",
    "ls /proc/{pid}/fd",
    "python -m agent.cli resume x",
    "python -c 'from agent.cli import main; main()'",
    "python -c 'import os; os.kill(os.getppid(), 9)'",
    "python -c 'import fcntl, termios; fcntl.ioctl(0, termios.TIOCSTI, b\"y\")'",
    "echo x > {program}/threads/judging.py",
    "sed -i s/deny/allow/ {program}/../constitution/judge.py",
    "rm -rf {program}",
    "mv {program} elsewhere",
    "pkill bpagent",
)

Go = Callable[..., Run]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("BPAGENT_HOME", str(tmp_path / "own"))
    (tmp_path / "own" / "runs").mkdir(parents=True)
    (tmp_path / "own" / "rules.yaml").write_text("rules: []\n")
    (tmp_path / "own" / "key").write_bytes(b"k" * 32)
    return tmp_path / "own"


def run(make_agent: MakeAgent, workspace: Path, preset: str, *steps: Any, log: Path) -> Run:
    chosen = evolve(PRESETS[preset], sandbox="off", max_iterations=50, max_failures=None)
    tools = equip(evolve(chosen, tools="workspace", tools_file=None), workspace)
    made = make_agent(*steps, "Done.", tools=tools, preset=chosen, log=log, approve=lambda _: True)
    return made.run_sync("Go")


@pytest.mark.slow
@pytest.mark.parametrize("preset", JUDGING)
def test_commands_that_touch_them_are_denied_and_not_asked_about(
    preset: str, make_agent: MakeAgent, workspace: Path, own: Path
) -> None:
    log = workspace / "log.jsonl"
    (workspace / "evil.yaml").write_text("allow: all")
    program = workspace / ".venv" / "lib" / "site-packages" / "agent"
    commands = [touch.format(own=own, log=log, pid=os.getpid(), program=program) for touch in TOUCHES]

    done = run(make_agent, workspace, preset, *(call("bash", command=each) for each in commands), log=log)

    assert [event for event in done.events if isinstance(event, ApprovalAsked | ToolStarted)] == []
    assert len([event for event in done.events if isinstance(event, GateRejected)]) == len(TOUCHES)
    assert (own / "rules.yaml").read_text() == "rules: []\n"


def test_file_tools_do_not_touch_them_either(make_agent: MakeAgent, workspace: Path, own: Path) -> None:
    log = workspace / "log.jsonl"
    (workspace / "link").symlink_to(log)
    steps = [call("write_file", path=name, content="forged") for name in ("log.jsonl", "link")]

    done = run(make_agent, workspace, "default", *steps, call("read_file", path="log.jsonl"), log=log)

    assert [event for event in done.events if isinstance(event, ToolStarted)] == []


def test_no_right_makes_them_writable(make_agent: MakeAgent, workspace: Path, own: Path) -> None:
    rights = [f"write {own}/rules.yaml"], [f"write {own.parent}"], ["write /"]
    tools = equip(PRESETS["default"], workspace)
    steps = (call("bash", command="true", rights=right) for right in rights)
    made = make_agent(*steps, "Done.", tools=tools, approve=lambda _: True)

    done = made.run_sync("Go")

    assert [event for event in done.events if isinstance(event, ToolStarted)] == []


def test_the_program_and_its_python_are_read_only_in_the_sandbox(
    workspace: Path, needs: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also for commands of which no text tells what they do, and through other names of its files."""
    needs("bwrap")
    (workspace / "lib" / "agent").mkdir(parents=True)
    (workspace / "lib" / "agent" / "judging.py").write_text("deny")
    monkeypatch.setattr(permissions, "PYTHON", (str(workspace / "lib" / "agent"),))
    monkeypatch.setattr(permissions, "program_folders", permissions.program_folders.__wrapped__)
    made = Sandbox((str(workspace),), "bubblewrap")

    command = (
        "cd lib/agent; echo allow > judging.py; ln judging.py ../x; mv ../agent ../y; rm -r ../agent; echo ok > ../z"
    )
    subprocess.run([*made.prefix(str(workspace)), "sh", "-c", command], check=False, capture_output=True)

    assert (workspace / "lib" / "agent" / "judging.py").read_text() == "deny"
    assert sorted(os.listdir(workspace / "lib")) == ["agent", "z"]


@pytest.mark.slow
def test_the_memory_of_the_command_is_closed_to_other_processes_of_the_user() -> None:
    """Its files in /proc then belong to root; here the system is asked, since tests may run as root."""
    code = "import ctypes; from agent.tools.descendants import hide_memory; assert hide_memory()"
    asked = f"{code}; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"

    assert subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True).stdout == "0\n"
