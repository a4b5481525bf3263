"""A cell: the namespaces of one episode, opened on first use, and closed together with all processes inside.

It has its own user, process, mount, network, IPC and UTS namespace. The first process hands out a socket that listens
on the loopback inside, whose connections are accepted outside; no other host can be reached. No process has a
capability or can get one: all file systems are mounted nosuid.
"""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Unpack

import anyio.to_thread
from attrs import evolve, frozen

from agent.tools.process import Finished
from agent.tools.sandbox.bubblewrap import EVERYTHING, Namespaces, episode_arguments, hold
from agent.tools.sandbox.limits import Kind, Limits, kinds_shown_by, linux
from agent.tools.shell import How, LocalCommands
from agent.vocabulary.errors import AgentError

__all__ = ["PORT", "Cell", "CellCommands", "IsolationError"]

PORT = 8025
"""The port of an episode's hosts on the loopback of its cell, where nothing else listens."""

KEEPER = f"""\
import socket
line, listener = socket.socket(fileno=0), socket.create_server(("127.0.0.1", {PORT}), backlog=64)
socket.send_fds(line, [b"!"], [listener.fileno()])
listener.close()
line.recv(1)
"""
"""The program of the first process: listen, hand over the socket, and wait until the other end closes."""


class IsolationError(AgentError):
    """A cell could not be made; the message says what failed. Nothing ran without a cell instead."""


class Cell:
    """Namespaces around a folder in which only the workspace is writable.

    on_open: gets the socket that listens inside; it is closed with the cell. limits: of each process inside. met: the
    limits that commands ran into. failure: why the cell cannot be made; final.
    """

    def __init__(
        self,
        readable: Path,
        writable: Path,
        on_open: Callable[[socket.socket], None] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.readable, self.writable, self._on_open = readable, writable, on_open
        self.limits = limits or Limits()
        self.met: set[Kind] = set()
        self.failure: IsolationError | None = None
        self._lock = Lock()
        self._held: Namespaces | None = None
        self._listener: socket.socket | None = None

    def open(self) -> None:
        """Make the namespaces unless they exist. Thread-safe. Raises IsolationError."""
        with self._lock:
            if self.failure is None and self._held is None:
                try:
                    self._open()
                except (OSError, ValueError) as error:
                    self.failure = IsolationError(f"no cell could be made: {error}")
                    self.failure.__cause__ = error
            if self.failure is not None:
                raise self.failure

    def joined(self, command: Sequence[str], cwd: str) -> tuple[str, ...]:
        """Return the command that runs `command` inside, in the folder `cwd`. Raises IsolationError.

        Paths are the same inside and outside; the command is valid while the cell is open.
        """
        self.open()
        assert self._held is not None
        # `cd` inside: `nsenter --wd` would enter the outer folder, with its parents.
        prlimit = shutil.which("prlimit") or "prlimit"
        return (*self._held.words(), prlimit, *self.limits.arguments(), "--", "env", "-C", cwd, *command)

    def close(self) -> None:
        """End all processes inside. A closed cell cannot be opened again."""
        with self._lock:
            if self._listener is not None:
                with suppress(OSError):
                    self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for connections
                self._listener.close()
            if self._held is not None:
                self._held.close()
            self._listener, self._held = None, None
            self.failure = self.failure or IsolationError("the cell is closed")

    def _open(self) -> None:
        if shutil.which("prlimit") is None:
            raise OSError("there is no program 'prlimit'")
        keeper = (sys.executable, "-I", "-S", "-c", KEEPER)
        self._held = hold(episode_arguments(self.readable, self.writable), EVERYTHING, keeper)
        self._listener = socket.socket(fileno=self._held.given[0])
        if os.geteuid() == 0:
            _number_at_most(self._held.number, self.limits.processes)
        if self._on_open is not None:
            self._on_open(self._listener)


OF_EACH_NAMESPACE = (6, 14)
USED_ONCE = 300
LONGEST = 10.0  # seconds


def _number_at_most(first: int, processes: int) -> None:
    """Limit the process numbers of the namespace: the kernel does not count processes of root (Linux 6.14)."""
    if linux() < OF_EACH_NAMESPACE:
        return
    script = f"echo {USED_ONCE + 8 + processes} > /proc/sys/kernel/pid_max"
    command = ["nsenter", f"--pid=/proc/{first}/ns/pid", "--", "sh", "-c", script]
    with suppress(OSError, subprocess.SubprocessError):
        subprocess.run(command, env={"PATH": os.environ["PATH"]}, capture_output=True, timeout=LONGEST, check=False)


@frozen
class CellCommands:
    """Runs commands in a cell, as `Commands` says."""

    cell: Cell

    async def run(self, command: str, *, shell: tuple[str, ...], **how: Unpack[How]) -> Finished:
        """Run `command` inside. Raises IsolationError if the cell cannot be made."""
        await anyio.to_thread.run_sync(self.cell.open)
        inside: How = {**how, "cwd": "/"}
        finished = await LocalCommands().run(command, shell=self.cell.joined(shell, how["cwd"]), **inside)
        met = kinds_shown_by(finished)
        self.cell.met.update(met)
        lines = [f"[the limit here: {self.cell.limits.told(kind)}]" for kind in met]
        parts = [finished.output.rstrip("\n"), *lines] if finished.output.strip() else lines
        return evolve(finished, output="\n".join(parts) + "\n") if lines else finished
