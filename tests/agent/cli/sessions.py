"""What tests of the command share: what it said, a terminal around it, steps of a script, the records of a log."""

import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyte
import pytest
from attrs import define, field, frozen

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-c", "import sys; from agent.cli import main; sys.exit(main())"]
ON_TERMINAL = """\
import os, sys
terminal = os.open(os.ttyname(0), os.O_RDWR)  # the first one that a session leader opens controls it
for descriptor in (0, 1, 2) if sys.argv[1] == "all" else (0, 2):
    os.dup2(terminal, descriptor)
os.execv(sys.argv[2], sys.argv[2:])
"""
NOTHING_TODAY = """\
from agent.events import GateApproved
from bp import bthread, sync


@bthread
def nothing_today():
    yield sync(refuse=GateApproved, because="it is a holiday")
"""
PATIENCE = 20.0  # seconds until a test gives up


@frozen
class Said:
    """What a command said and returned."""

    code: int
    out: str
    err: str


Command = Callable[..., Said]


COLUMNS, LINES = 100, 120


@define
class Terminal:
    """The command on a terminal. `out` is its standard output, when that is not the terminal.

    `raw` is everything that it wrote, control codes and all; `screen` is what a person sees.
    """

    process: "subprocess.Popen[str]"
    master: int
    raw: str = field(default="", init=False)
    _shown: Any = field(factory=lambda: pyte.Screen(COLUMNS, LINES), init=False)
    _stream: Any = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._stream = pyte.ByteStream(self._shown)

    @property
    def screen(self) -> str:
        """What stands on the screen, without blanks at the ends of lines."""
        return "\n".join(line.rstrip() for line in self._shown.display).rstrip("\n") + "\n"

    def rest(self, runs: int = 0) -> None:
        """Wait until so many runs are over, and the prompt of `chat` stands on the last line."""
        self._read(
            lambda: self.screen.count("── end ─") >= runs and self.screen.splitlines()[-1].startswith("you >"),
            f"it did not rest after {runs} runs",
        )

    def resize(self, columns: int, lines: int = LINES) -> None:
        """Change the size of the terminal."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self._shown.resize(lines, columns)

    def type(self, text: str) -> None:
        """Type a text, Enter and all."""
        os.write(self.master, text.encode())

    def wait_for(self, text: str, times: int = 1) -> None:
        """Read until the screen shows `text` this often."""
        self._read(lambda: self.screen.count(text) >= times, f"{text!r} did not appear")

    def end(self) -> int:
        """Read to the end and return the exit code."""
        self._read(lambda: False, "it did not end")
        return self.process.wait(PATIENCE)

    def out(self) -> str:
        """Return what went to standard output, when that is no terminal."""
        assert self.process.stdout is not None
        return self.process.stdout.read()

    def _read(self, enough: Callable[[], bool], complaint: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not enough():
            ready, _, _ = select.select([self.master], [], [], max(deadline - time.monotonic(), 0))
            if not ready:
                pytest.fail(f"{complaint}; the screen:\n{self.screen}")
            piece = self._piece()
            if not piece:
                return
            self._stream.feed(piece)
            self.raw += piece.decode("utf-8", "replace")

    def _piece(self) -> bytes:
        with suppress(OSError):  # the other end is gone
            return os.read(self.master, 65536)
        return b""


def terminal_with(argv: tuple[object, ...], *, out: str, variables: dict[str, str]) -> Terminal:
    """Start the command on a new terminal; `out`: "all" of its streams are there, or standard output is a "pipe"."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", ON_TERMINAL, out, *COMMAND, *map(str, argv)],
        env=environment() | variables,
        stdin=slave,
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    os.close(slave)
    return Terminal(process, master)


def environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def records(log: Path) -> list[dict[str, Any]]:
    """The records of a log, without its header."""
    return [json.loads(line) for line in log.read_text().splitlines()][1:]


def answers_in(log: Path) -> list[str]:
    """What the calls of a log were answered with."""
    return [record["data"]["result"] for record in records(log) if record["name"] == "call_answered"]


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
