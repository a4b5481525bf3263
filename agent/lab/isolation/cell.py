"""A cell: the namespaces of one episode, opened by the first process that goes in, and ended with all that runs inside.

Inside there are a user, process, mount, network, IPC and host name of its own. A first process hands out a socket that
listens on their loopback, whose connections are accepted outside; what runs inside reaches no other host. No process
has a capability, or can get one: where they are no file system gives any (nosuid).
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
"""The port of the hosts of an episode, on the loopback of its cell, in which no other process listens."""

KEEPER = f"""\
import socket
line, listener = socket.socket(fileno=0), socket.create_server(("127.0.0.1", {PORT}), backlog=64)
socket.send_fds(line, [b"!"], [listener.fileno()])
listener.close()
line.recv(1)
"""
"""The program of the first process: listen, hand over the socket, and wait until the other end is closed."""


class IsolationError(AgentError):
    """A cell could not be made; the message says what failed. Nothing ran outside of it instead."""


class Cell:
    """Namespaces around a folder of which one part, the workspace, can be written.

    on_open: gets the socket that listens inside; it is closed with the cell. limits: of each process inside. met: the
    limits that commands met with. failure: why there is no cell, now and ever after.
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
        """Make the namespaces, unless they are there. May be called by any thread. Raises IsolationError."""
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
        """Return the command that runs `command` inside, in the folder `cwd` there. Raises IsolationError.

        Its paths are those outside; it is good as long as the cell is open.
        """
        self.open()
        assert self._held is not None
        # The folder is entered inside: one that nsenter enters (--wd) would be one of outside, with its parents.
        prlimit = shutil.which("prlimit") or "prlimit"
        return (*self._held.words(), prlimit, *self.limits.arguments(), "--", "env", "-C", cwd, *command)

    def close(self) -> None:
        """End everything inside. A cell that is closed is not opened again."""
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
        """Run `command` inside. Raises IsolationError where there is no inside."""
        await anyio.to_thread.run_sync(self.cell.open)
        inside: How = {**how, "cwd": "/"}
        finished = await LocalCommands().run(command, shell=self.cell.joined(shell, how["cwd"]), **inside)
        met = kinds_shown_by(finished)
        self.cell.met.update(met)
        lines = [f"[the limit here: {self.cell.limits.told(kind)}]" for kind in met]
        parts = [finished.output.rstrip("\n"), *lines] if finished.output.strip() else lines
        return evolve(finished, output="\n".join(parts) + "\n") if lines else finished
