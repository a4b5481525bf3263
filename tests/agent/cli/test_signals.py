"""Ctrl-C and SIGTERM: the run ends as aborted, its log says so, and no process stays behind."""

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from io import StringIO
from pathlib import Path

import pytest

from agent.cli.screen import Screen
from agent.cli.session import UserInterface
from agent.models.scripted import ScriptedModel, delay
from agent.presets import PRESETS
from agent.session.agent import Agent
from tests.agent.cli.sessions import PATIENCE, ROOT, OnTerminal, Script, Start, bash, environment

Tool = Callable[[], int]

STUBBORN = "trap '' TERM; echo $$ > started; while true; do sleep 1; done"


@pytest.fixture
def tool(workspace: Path) -> Iterator[Callable[[], int]]:
    """`tool()` waits until the command has started, and returns a handle on its process."""
    os.mkfifo(workspace / "started")
    handles: list[int] = []

    def wait_for_start() -> int:
        with (workspace / "started").open() as file:
            handles.append(os.pidfd_open(int(file.read())))
        return handles[-1]

    yield wait_for_start
    for handle in handles:
        os.close(handle)


UNCONFINED = ("--sandbox", "off")  # inside, a process has a number of its own


def has_ended(handle: int, within: float = 0.0) -> bool:
    """Whether a process has ended, or does so within this many seconds."""
    return bool(select.select([handle], [], [], within)[0])


@pytest.mark.slow
def test_a_second_ctrl_c_lets_the_abort_come_to_its_end(
    start: Start, tool: Tool, script: Script, workspace: Path, log: Path
) -> None:
    """It takes a second at most; whoever presses twice, or signals a whole group, still finds the end in the log."""
    running = start("run", "go", "--model", script(bash(STUBBORN)), *UNCONFINED, "--workspace", workspace, "--log", log)
    process = tool()

    running.send_signal(signal.SIGINT)
    assert running.stderr is not None
    while "abort    everything ends now" not in running.stderr.readline():
        pass
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=PATIENCE)

    assert running.returncode == 130
    assert has_ended(process, within=1.0)
    assert json.loads(log.read_text().splitlines()[-1])["data"]["status"] == "aborted"


@pytest.mark.anyio
async def test_a_ctrl_c_after_an_abort_that_takes_too_long_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr("os._exit", left.append)
    interface, model = UserInterface(Screen(StringIO()), PRESETS["default"]), ScriptedModel([delay(60, "Late.")])

    with interface.agent_by(lambda tools, **options: Agent(model, **options), ()) as agent:
        async with agent.start("go") as interface.run:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
                interface.interrupt(number)
            assert left == []  # there was no time for the abort yet
            monkeypatch.setattr("agent.cli.session.PATIENCE", 0.0)
            interface.interrupt()

    assert (interface.interrupted_by, left) == (signal.SIGTERM, [130])


@pytest.mark.slow
@pytest.mark.parametrize(("ignored", "code"), [(False, -signal.SIGINT), (True, 0)])
def test_ctrl_c_before_anything_is_loaded_is_no_traceback_and_ignored_where_it_was(ignored: bool, code: int) -> None:
    begin = "import os, signal; from agent.cli import let_interrupts_end_the_program as let; let()"
    program = f"{begin}; os.kill(os.getpid(), signal.SIGINT)"
    ignore = (lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if ignored else None

    ended = subprocess.run([sys.executable, "-c", program], env=environment(), capture_output=True, preexec_fn=ignore)

    assert (ended.returncode, ended.stderr) == (code, b"")


def test_nothing_is_loaded_that_takes_long_before_ctrl_c_is_no_traceback() -> None:
    program = "import sys; before = {*sys.modules}; import agent.cli; print(*sorted({*sys.modules} - before))"

    loaded = subprocess.run([sys.executable, "-S", "-c", program], cwd=ROOT, capture_output=True, text=True)

    assert {name.partition(".")[0] for name in loaded.stdout.split()} <= {"agent", "importlib", "warnings"}


@pytest.mark.slow
def test_a_message_after_ctrl_c_begins_a_new_line(on_terminal: OnTerminal) -> None:
    terminal = on_terminal("verify")
    terminal.wait_for("to look at")
    terminal.type("\x03")

    assert terminal.end() == 1
    assert "^C\nbounded " in terminal.screen
    assert re.search(r"not verified: interrupted; only [0-9,]+ states were looked at", terminal.screen)


@pytest.mark.slow
def test_ctrl_c_ends_the_serving_of_a_page_and_begins_a_new_line(on_terminal: OnTerminal, recorded_log: Path) -> None:
    terminal = on_terminal("view", "--follow", recorded_log)
    terminal.wait_for("Ctrl-C ends it")
    terminal.type("\x03")

    assert terminal.end() == 0
    assert terminal.raw.endswith("^C\r\n")
