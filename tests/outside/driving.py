"""The command as a process: started, typed at, signalled, and its log read as JSON."""

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

__all__ = ["COMMAND", "PATIENCE", "Log", "Said", "Terminal", "open_terminal"]

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "import sys; from agent.cli import main; sys.exit(main())"]
PATIENCE = 40.0  # seconds until a test gives up
CONTROLLING = """\
import os, sys
terminal = os.open(os.ttyname(0), os.O_RDWR)  # the first one that a session leader opens controls it
for descriptor in (0, 1, 2):
    os.dup2(terminal, descriptor)
os.execv(sys.argv[1], sys.argv[1:])
"""


@frozen
class Log:
    """A log as others read it: lines of JSON."""

    path: Path

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    @property
    def header(self) -> dict[str, Any]:
        return self.lines[0]

    def data(self, name: str) -> list[dict[str, Any]]:
        """The data of all records of a name."""
        return [record["data"] for record in self.lines[1:] if record["name"] == name]

    @property
    def names(self) -> list[str]:
        return [record["name"] for record in self.lines[1:]]

    @property
    def end(self) -> tuple[str, str]:
        """Status and reason of the end, which is the last record and the only one of its name."""
        assert self.names.count("run_ended") == 1
        assert self.names[-1] == "run_ended"
        ended = self.data("run_ended")[0]
        return ended["status"], ended["reason"]

    def told(self, call: str) -> str:
        """The one answer of a call."""
        [answer] = [data for data in self.data("call_answered") if data["call"] == call]
        return str(answer["result"])

    def result(self, call: str) -> dict[str, Any]:
        """How the tool of a call finished."""
        [finished] = [data for data in self.data("tool_finished") if data["call"] == call]
        return finished


@frozen
class Said:
    """What the command said, and its exit code."""

    code: int
    out: str
    err: str


@define
class Terminal:
    """The command on a terminal."""

    process: "subprocess.Popen[bytes]"
    master: int
    screen: str = field(default="", init=False)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def wait_for(self, text: str, times: int = 1) -> None:
        """Read until the screen has shown a text so often."""
        self._read(lambda: self.screen.count(text) >= times)
        assert self.screen.count(text) >= times, f"{text!r} did not appear:\n{self.screen}"

    def end(self) -> int:
        """Read to the end and return the exit code."""
        self._read(lambda: False)
        return self.process.wait(PATIENCE)

    def _read(self, enough: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not enough() and time.monotonic() < deadline:
            ready, _, _ = select.select([self.master], [], [], deadline - time.monotonic())
            piece = b""
            with suppress(OSError):  # the other end is gone
                piece = os.read(self.master, 65536) if ready else b""
            if not piece:
                return
            self.screen += piece.decode("utf-8", "replace").replace("\r\n", "\n")


def open_terminal(words: list[str], environment: Mapping[str, str]) -> Terminal:
    """Start the command on a new terminal."""
    master, slave = pty.openpty()
    started = [sys.executable, "-c", CONTROLLING, *COMMAND, *words]
    process = subprocess.Popen(started, env=environment, stdin=slave, start_new_session=True)
    os.close(slave)
    return Terminal(process, master)
