"""`bpagent doctor` tells what this machine can do; `--sandbox` chooses what a run does about it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli import doctor
from agent.tools.sandbox.sandbox import LEVELS, achieved
from tests.agent.cli.sessions import Command, bash

Script = Callable[..., str]


def test_it_tells_the_level_and_why_it_is_not_another(command: Command) -> None:
    said = command("doctor", "--json")

    found = json.loads(said.out)
    assert said.code == (1 if found["sandbox"] == "none" else 0)
    assert found["sandbox"] in LEVELS
    assert set(found["why_not"]) <= set(LEVELS)
    assert found["programs"]["bash"]


def test_it_tells_the_same_in_words(command: Command) -> None:
    said = command("doctor")

    assert f"sandbox: {achieved()}" in said.out
    assert all(program in said.out for program in doctor.PROGRAMS)


@pytest.mark.parametrize(("chosen", "changed"), [("off", True), ("on", achieved() == "none")])
def test_the_sandbox_is_chosen_on_the_command_line(
    chosen: str, changed: bool, command: Command, script: Script, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "work.sh").write_text("echo gone > ../canary")
    canary, log = workspace.parent / "canary", tmp_path / "log.jsonl"
    canary.write_text("alive")

    command("run", "go", "--model", script(bash("sh work.sh"), "Done."), "--workspace", workspace, "--log", log,
            "--sandbox", chosen)  # fmt: skip

    assert (canary.read_text() != "alive") is changed
    assert json.loads(log.read_text().splitlines()[0])["sandbox"] == ("" if chosen == "off" else achieved())
