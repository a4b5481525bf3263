"""A cell: the namespaces of one episode, opened on first use, and closed together with all processes inside.

Inside there are a user, process, mount, network, IPC and host name of its own. A socket listens on their loopback,
whose connections are accepted outside; what runs inside reaches no other host. No process has a capability, or can get
one: where they are no file system gives any (nosuid).
"""

import atexit
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import Unpack

from anyio import CancelScope
from attrs import define, evolve, field, frozen

from agent.tools.blocking import run_in_background
from agent.tools.descendants import helpers
from agent.tools.process import Finished
from agent.tools.programs import required_program
from agent.tools.sandbox.bubblewrap import EVERYTHING, Namespaces, episode_arguments, hold
from agent.tools.sandbox.sandbox import Resource, ResourceLimits, exhausted_by, kernel_version
from agent.tools.shell import How, LocalCommands
from agent.vocabulary.errors import AgentError, CannotStart

PORT = 8025
"""The port of an episode's hosts on the loopback of its cell, where nothing else listens."""

LISTENING = f"""\
import os
import _socket as s
try:
    from os import setns
except ImportError:  # before Python 3.12
    from ctypes import CDLL
    setns = lambda descriptor: CDLL(None).setns(descriptor, 0) and os._exit(1)
line = s.socket(fileno=0)

def join(*kinds):
    for descriptor in [os.open(f"/proc/{{first}}/ns/{{kind}}", os.O_RDONLY) for kind in kinds]:
        setns(descriptor)

def limit():
    join("pid")
    if os.fork():
        os.wait()
    else:
        os.write(os.open("/proc/sys/kernel/pid_max", os.O_WRONLY), highest.encode())
        os._exit(0)

def listen():
    join("user", "net")
    listener = s.socket(s.AF_INET, s.SOCK_STREAM)
    listener.bind(("127.0.0.1", {PORT}))
    listener.listen(64)
    line.sendmsg([b"!"], [(s.SOL_SOCKET, s.SCM_RIGHTS, listener.fileno().to_bytes(4, "{sys.byteorder}"))])

while asked := line.recv(64).decode():
    first, highest = asked.split()
    if not os.fork():
        if highest != "0":
            limit()
        listen()
        os._exit(0)
    if os.wait()[1]:
        line.send(b"?")
"""
"""The program of the process that listens in cells: for each, a process of it joins, and hands the socket over.

Not the first process of a cell itself, since to start another Python takes longer than all else that a cell needs.
"""


class IsolationError(AgentError):
    """A cell could not be made; the message says what failed. Nothing ran without a cell instead."""


@define(eq=False)
class Cell:
    """Namespaces around a folder in which only the workspace is writable.

    on_open: gets the socket that listens inside; it is closed with the cell. limits: those of each process inside.
    limits_reached: the resources whose limits commands ran into. failure: why the cell cannot be made; final.
    """

    readable: Path
    writable: Path
    _on_open: Callable[[socket.socket], None] | None = None
    limits: ResourceLimits = ResourceLimits()
    limits_reached: set[Resource] = field(factory=set, init=False)
    failure: IsolationError | None = field(default=None, init=False)
    _lock: Lock = field(factory=Lock, init=False)
    _held: Namespaces | None = field(default=None, init=False)
    _listener: socket.socket | None = field(default=None, init=False)

    def open(self) -> None:
        """Make the namespaces unless they exist. Thread-safe. Raises IsolationError."""
        with self._lock:
            if self.failure is None and self._held is None:
                try:
                    self._open()
                except (OSError, ValueError, CannotStart) as error:
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
        limits = (required_program("prlimit", [str(self.writable)]), *self.limits.arguments(), "--")
        if _enters_folders():
            return (*self._held.words()[:-1], f"--wdns={cwd}", "--", *limits, *command)
        return (*self._held.words(), *limits, "env", "-C", cwd, *command)

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
        bwrap, nsenter, _ = (required_program(name, [str(self.writable)]) for name in ("bwrap", "nsenter", "prlimit"))
        self._held = hold([bwrap], nsenter, episode_arguments(self.readable, self.writable), EVERYTHING)
        self._listener = listeners_of(os.getpid()).listen(self._held.number, self.limits.processes)
        if self._on_open is not None:
            self._on_open(self._listener)


@cache
def _enters_folders() -> bool:
    """Return whether nsenter enters a folder inside (util-linux 2.38): one process less for each command.

    Its older option --wd enters a folder of outside, from which the parents can be reached.
    """
    helped = subprocess.run(["nsenter", "--help"], capture_output=True, timeout=LONGEST, check=False)
    return b"--wdns" in helped.stdout


OF_EACH_NAMESPACE = (6, 14)
USED_ONCE = 300
LONGEST = 30.0  # seconds


class Listeners:
    """The process that listens in the cells of this process."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair()
        self._lock = Lock()
        command, nowhere = (sys.executable, "-I", "-S", "-c", LISTENING), subprocess.DEVNULL
        with theirs:
            self._process = subprocess.Popen(
                command, env={}, stdin=theirs.fileno(), stdout=nowhere, stderr=nowhere, start_new_session=True
            )
        self._line.settimeout(LONGEST)
        helpers.add(self._process.pid)
        atexit.register(self.close)

    def listen(self, first: int, processes: int) -> socket.socket:
        """Return a socket that listens on the loopback of a process; after an OSError there is none for anything.

        For root, the numbers of processes there are limited: the kernel does not count those of root (Linux 6.14).
        """
        limited = os.geteuid() == 0 and kernel_version() >= OF_EACH_NAMESPACE
        try:
            with self._lock:
                self._line.send(f"{first} {USED_ONCE + 8 + processes if limited else 0}".encode())
                _, given, _, _ = socket.recv_fds(self._line, 1, 1)
            if not given:
                raise OSError("no process can listen in it")
        except OSError:  # an answer that comes too late would be for another cell
            self.close()
            raise
        return socket.socket(fileno=given[0])

    def close(self) -> None:
        """End the process."""
        self._line.close()
        self._process.kill()
        self._process.wait()
        helpers.discard(self._process.pid)
        atexit.unregister(self.close)
        listeners_of.cache_clear()


@lru_cache(maxsize=1)
def listeners_of(_: int) -> Listeners:
    """Return the process that listens for the process of this number: a copy of one that has it gets its own."""
    return Listeners()


@frozen
class CellCommands:
    """Runs commands in a cell, as `Commands` says."""

    cell: Cell

    async def run(self, command: str, *, shell: tuple[str, ...], **how: Unpack[How]) -> Finished:
        """Run `command` inside. Raises IsolationError if the cell cannot be made."""
        with CancelScope(shield=True):  # a cell that opens is closed later
            await run_in_background(self.cell.open)
        inside: How = {**how, "cwd": "/"}
        finished = await LocalCommands().run(command, shell=self.cell.joined(shell, how["cwd"]), **inside)
        exhausted = exhausted_by(finished)
        self.cell.limits_reached.update(exhausted)
        lines = [f"[the limit here: {self.cell.limits.told(resource)}]" for resource in exhausted]
        parts = [finished.output.rstrip("\n"), *lines] if finished.output.strip() else lines
        return evolve(finished, output="\n".join(parts) + "\n") if lines else finished
