"""The agent's own things are out of its reach: runs, rules and key, the log in use, and what could answer for it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent import call
from agent.presets.equipment import equip
from agent.presets.shipped import PRESETS
from agent.session.run import Run
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
    agent = make_agent(*steps, "Done.", tools=tools, preset=chosen, log=log, approve=lambda _: True)
    return agent.run_sync("Go")


@pytest.mark.parametrize("preset", JUDGING)
def test_commands_that_touch_them_are_denied_and_not_asked_about(
    preset: str, make_agent: MakeAgent, workspace: Path, own: Path
) -> None:
    log = workspace / "log.jsonl"
    (workspace / "evil.yaml").write_text("allow: all")
    commands = [touch.format(own=own, log=log) for touch in TOUCHES]

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
    agent = make_agent(*steps, "Done.", tools=tools, approve=lambda _: True)

    done = agent.run_sync("Go")

    assert [event for event in done.events if isinstance(event, ToolStarted)] == []
