"""What tests of the command share: the drivers of tests/outside, steps of a script, the records of a log."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import frozen

from tests.outside.driving import COMMAND, ROOT, Said, Terminal, open_terminal

__all__ = ["COMMAND", "ROOT", "Said", "Terminal", "open_terminal"]

PATIENCE = 120.0  # seconds until a test gives up
NOTHING_TODAY = """\
from agent.events import GateApproved
from bp import bthread, sync


@bthread
def nothing_today():
    yield sync(refuse=GateApproved, because="it is a holiday")
"""

Command = Callable[..., Said]
OnTerminal = Callable[..., Terminal]
RunOf = Callable[..., tuple[object, ...]]
Script = Callable[..., str]
Start = Callable[..., "subprocess.Popen[str]"]


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def records(log: Path) -> list[dict[str, Any]]:
    """The records of a log, without its header."""
    return [json.loads(line) for line in log.read_text().splitlines()][1:]


def answers_in(log: Path) -> list[str]:
    """What the calls of a log were answered with."""
    return [record["data"]["result"]["text"] for record in records(log) if record["name"] == "call_answered"]


def bash(command: str, say: str = "") -> dict[str, object]:
    """A step of a script that calls bash."""
    return {"say": say, "call": {"tool": "bash", "arguments": {"command": command}}}


@frozen
class SlowTool:
    """A command for bash that says when it has started, and ends when it is told to."""

    folder: Path
    command: str = "echo > started; read line < go; echo finished"

    def wait_for_start(self) -> None:
        (self.folder / "started").read_text()

    def let_finish(self) -> None:
        (self.folder / "go").write_text("now\n")
