"""The command as a process: started, typed at, signalled, and its log read as JSON."""

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
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyte
import pytest
from attrs import define, field, frozen

__all__ = ["COMMAND", "PATIENCE", "Log", "Said", "Terminal", "is_running", "open_terminal", "processes_in"]

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "import sys; from agent.cli import main; sys.exit(main())"]
PATIENCE = 120.0  # seconds until a test gives up
ON_TERMINAL = """\
import os, sys
terminal = os.open(os.ttyname(0), os.O_RDWR)  # the first one that a session leader opens controls it
for descriptor in (0, 1, 2) if sys.argv[1] == "all" else (0, 2):
    os.dup2(terminal, descriptor)
os.execv(sys.argv[2], sys.argv[2:])
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
        return str(answer["result"]["text"])

    def result(self, call: str) -> dict[str, Any]:
        """The result of the tool of a call."""
        [finished] = [data for data in self.data("tool_finished") if data["call"] == call]
        return dict(finished["result"])


@frozen
class Said:
    """What the command said, and its exit code."""

    code: int
    out: str
    err: str


def is_running(number: int) -> bool:
    """Whether there is a process of this number that has not ended; a zombie has."""
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def processes_in(folder: Path) -> list[str]:
    """Return the command lines of the processes that work in a folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.readlink(process / "cwd") == str(folder.resolve()):
                found.append((process / "cmdline").read_text().replace("\0", " "))
    return found


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

    def talk(self, text: str, *expected: str | int) -> None:
        """Type a text, then wait for each of these: a text on the screen, or the rest after a number of runs."""
        self.type(text)
        for each in expected:
            if isinstance(each, int):
                self.rest(each)
            else:
                self.wait_for(each)

    def wait_for(self, text: str, times: int = 1) -> None:
        """Read until the screen shows `text` this often."""
        self._read(lambda: self.screen.count(text) >= times, f"{text!r} did not appear")

    def end(self, text: str = "") -> int:
        """Type a text, read to the end and return the exit code."""
        if text:
            self.type(text)
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


def open_terminal(words: list[str], environment: Mapping[str, str], out: str = "all") -> Terminal:
    """Start the command on a new terminal; `out`: "all" of its streams are there, or standard output is a "pipe"."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    process = subprocess.Popen(
        [sys.executable, "-c", ON_TERMINAL, out, *COMMAND, *words],
        env=environment,
        stdin=slave,
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    os.close(slave)
    return Terminal(process, master)
