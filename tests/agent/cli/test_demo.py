"""`bpagent demo`: what it shows comes from the b-threads; without one of them it shows something else."""

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli.demo import (
    PROMPT,
    Workshop,
    _steps,
    make_model,
    make_workshop,
    nothing_leaves_after_a_secret,
)
from tests.agent.cli.sessions import Command, OnTerminal

pytestmark = pytest.mark.anyio


@pytest.fixture
def workshop(tmp_path: Path, home: Path) -> Workshop:
    return make_workshop(tmp_path / "workshop", tmp_path / "demo.jsonl")


# On the screen


@pytest.fixture
def performed_alone(
    start: Callable[..., "subprocess.Popen[str]"], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> str:
    """What the demo writes without a terminal and without input; it leaves no temporary file."""
    (temporary := tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    demo = start("demo", "--log", tmp_path / "mine.jsonl")
    out, err = demo.communicate(timeout=120)
    assert (demo.returncode, err, list(temporary.iterdir())) == (0, "", [])
    return out


@pytest.mark.slow
def test_the_demo_needs_no_network_terminal_or_input(performed_alone: str, command: Command, tmp_path: Path) -> None:
    for shown in (
        "result     all prices are right",
        "+price - price * percent // 100",
        "Approve command: cat .env? (yes/no)\nsystem   no terminal: the demo answers yes",
        "Of my 9 calls, 3",
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
    assert [line.split("b-thread ")[1].split(":")[0] for line in refused] == [
        "by_constitution",
        "by_constitution",
        "nothing_leaves_after_a_secret",
    ]
    source = inspect.getsource(nothing_leaves_after_a_secret.function).splitlines()
    assert len(source) <= 10
    assert max(map(len, source)) <= 75  # a terminal of 80 columns shows it as it is
    assert all(line in performed_alone for line in source)
    last = performed_alone.strip().splitlines()[-1].split()
    assert last == ["bpagent", "view", "--open", str(tmp_path / "mine.jsonl")]
    assert command("replay", last[3]).out.startswith("equal: ")
    why = command("why", last[3], "call_9").out
    assert "- without b-thread nothing_leaves_after_a_secret: by_constitution asks a person" in why


def repeat(command: str) -> int:
    """Return the exit code of a command that the demo has shown; its run of a minute is left out, and kept."""
    if "killed.jsonl" in command and not command.startswith("bpagent resume"):
        return 0
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(["bash", "-c", command], env=env, stdin=subprocess.DEVNULL, capture_output=True).returncode


@pytest.mark.slow
def test_on_a_terminal_the_user_is_asked_and_without_the_secret_the_fix_is_pushed(
    on_terminal: OnTerminal,
) -> None:
    terminal = on_terminal("demo", "--pace", "0", NO_COLOR="1")
    terminal.wait_for("your turn: after a yes, the demo's rule refuses git push")
    terminal.wait_for("Approve command: cat .env? (yes/no)")
    terminal.talk("why\n", "evidence: characters 0 to 8: cat .env")
    terminal.talk("no\n", "your turn: no secret was read", "Approve command: git push? (yes/no)")
    terminal.type("yes\n")
    for scene in ("The fix was pushed.", "kill -9", "ran once", "mistake", "violated", "check>"):
        terminal.wait_for(scene)
    terminal.talk("rm -rf /usr\n", "rule delete_tree")
    terminal.type("help\n")
    terminal.wait_for("An empty line or quit leaves.", times=2)
    repeated = {each: repeat(each) for each in re.findall(r"^  \$ (.*?)\s*$", terminal.raw, re.M)}
    assert [code for each, code in repeated.items() if " run " not in each] == [0, 0, 0, 0, 6, 0, 0]

    assert terminal.end("quit\n") == 0
    assert "DEPLOY_TOKEN" not in terminal.screen
    assert "The fix was pushed." in terminal.screen
    assert "no secret was read, so the rule never spoke" in terminal.screen


# Where it comes from


def test_the_script_names_no_b_thread_and_no_rule() -> None:
    source = PROMPT + inspect.getsource(make_model) + inspect.getsource(_steps)

    assert "by_constitution" not in source
    assert "nothing_leaves" not in source
