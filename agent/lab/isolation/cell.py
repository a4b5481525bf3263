"""A cell: the namespaces of one episode, kept by bubblewrap, into which its processes are put one by one.

    new -> opened by the first process that goes in -> closed: whatever still runs inside is killed by the kernel
             |`-- too much inside: ended likewise by its guard, and opened again by the next process
             `-- fails: IsolationError, then and ever after

Inside there are a user, process, mount, network, IPC and host name of its own. A first process holds the namespaces and
hands out a socket that listens on their loopback: a thread outside accepts its connections; what runs inside
reaches no other host. Other processes join with `nsenter`, by descriptors of the namespaces that were opened once:
a number of a process that has ended is never asked. They have no capability, and cannot get one: where they are no file
system gives any (nosuid).

Two gaps that root leaves are closed from outside. A user who runs experiments as root owns the devices of the machine,
also inside, where they are the same ones; mounted read only by bubblewrap they are no devices any more, so a thread of
ours goes into the mount namespace, as only root can, and mounts them once more. And of root the kernel counts no
processes: from Linux 6.14 on each process namespace has a `pid_max` of its own, which only root lowers (numbers below
300 are used once); before that it is one for the whole machine, and the guard alone counts.
"""

import array
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from select import select
from threading import Lock, Thread
from typing import Unpack

import anyio.to_thread
from attrs import evolve, frozen

from agent.lab.isolation.guard import Excess, Guard
from agent.tools.descendants import note_end, note_start
from agent.tools.process import Finished
from agent.tools.sandbox.limits import Limits, kinds_shown_by, linux
from agent.tools.sandbox.mounts import DEVICES, arguments
from agent.tools.shell import How, LocalCommands
from agent.vocabulary.errors import AgentError

__all__ = ["PORT", "Cell", "CellCommands", "IsolationError", "number_at_most", "protect"]


PORT = 8025
"""The port of the hosts of an episode, on the loopback of its cell, in which no other process listens."""

LONGEST_START = 30.0  # seconds
NAMESPACES = {"user": "--user", "mnt": "--mount", "pid": "--pid", "net": "--net", "ipc": "--ipc", "uts": "--uts"}

KEEPER = """\
import _socket, array
listener = _socket.socket()
listener.bind(("127.0.0.1", {port}))
listener.listen(64)
outside = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, fileno={descriptor})
rights = (_socket.SOL_SOCKET, _socket.SCM_RIGHTS, array.array("i", [listener.fileno()]))
outside.sendmsg([b"!"], [rights])
listener.close()
outside.recv(1)
"""
"""The program of the first process: listen, hand over the socket, and wait until the other end is closed."""


class IsolationError(AgentError):
    """A cell could not be made; the message says what failed. Nothing ran outside of it instead."""


class Cell:
    """Namespaces around a folder of which one part, the workspace, can be written.

    on_open: gets the socket that listens inside, whenever the cell is opened; it is closed with the cell. limits: how
    much there is of everything. excesses: the limits that were broken so far, and what was found each time.
    """

    def __init__(
        self,
        readable: Path,
        writable: Path,
        on_open: Callable[[socket.socket], None] | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._readable, self._writable, self._on_open = readable, writable, on_open
        self.limits = limits or Limits()
        self.excesses: list[Excess] = []
        self._lock = Lock()
        self._namespaces: dict[str, int] = {}
        self._retired: list[int] = []
        self._guard: Guard | None = None
        self._keeper: subprocess.Popen[bytes] | None = None
        self._first: int | None = None
        self._line: socket.socket | None = None
        self._listener: socket.socket | None = None
        self.failure: IsolationError | None = None

    def open(self) -> None:
        """Make the namespaces, unless they are there. May be called by any thread. Raises IsolationError."""
        with self._lock:
            if self.failure is None and self._guard is None:
                try:
                    self._close()  # what is left of a cell that was ended
                    self._open()
                except (IsolationError, OSError, ValueError) as error:
                    self._close()
                    self.failure = IsolationError(f"no cell could be made: {error}")
                    self.failure.__cause__ = error
            if self.failure is not None:
                raise self.failure

    def joined(self, command: Sequence[str], cwd: str) -> tuple[str, ...]:
        """Return the command that runs `command` inside, in the folder `cwd` there. Raises IsolationError.

        Its paths are those outside; the descriptors in it are good as long as the cell is open.
        """
        self.open()
        ours = f"/proc/{os.getpid()}/fd"
        flags = (f"{NAMESPACES[name]}={ours}/{descriptor}" for name, descriptor in self._namespaces.items())
        # The folder is entered inside: one that nsenter enters (--wd) would be one of outside, with its parents.
        limited = (_program("prlimit"), *self.limits.arguments(), "--", "env", "-C", cwd, *command)
        return (_program("nsenter"), *flags, "--preserve-credentials", "--", *limited)

    def close(self) -> None:
        """End everything inside. A cell that is closed is not opened again."""
        with self._lock:
            self._close()
            for descriptor in self._retired:
                os.close(descriptor)
            self._retired.clear()
            self.failure = self.failure or IsolationError("the cell is closed")

    def _end(self, guard: Guard, excess: Excess) -> None:
        """End everything inside, since there is too much of it. The next process opens the cell again."""
        with self._lock:
            if guard is self._guard and self._first is not None:
                self.excesses.append(excess)
                self._guard = None
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(self._first, signal.SIGKILL)

    def _open(self) -> None:
        self._line, theirs = socket.socketpair()
        told, telling = os.pipe()
        with theirs, open(told, "rb", buffering=0) as info:
            try:
                self._keeper = self._start(theirs.fileno(), telling)
            finally:
                os.close(telling)
            theirs.close()  # so that the line ends when the other side does
            self._listener = self._receive()
            first = int(json.loads(info.read(65536))["child-pid"])
        self._first = os.pidfd_open(first)
        for name in NAMESPACES:
            self._namespaces[name] = _opened(first, name)
        if select([self._first], [], [], 0)[0]:
            raise IsolationError("the first process ended at once")
        if os.geteuid() == 0:
            protect(self._namespaces["mnt"], (f"/dev/{name}" for name in DEVICES))
            number_at_most(self._namespaces["pid"], self.limits.processes)
        self._guard = Guard(first, self._writable, self.limits, self._end)
        if self._on_open is not None:
            self._on_open(self._listener)

    def _start(self, line: int, telling: int) -> "subprocess.Popen[bytes]":
        keeper = [sys.executable, "-I", "-S", "-c", KEEPER.format(port=PORT, descriptor=line)]
        started = subprocess.Popen(
            [_program("bwrap"), *arguments(self._readable, self._writable), "--info-fd", str(telling), "--", *keeper],
            pass_fds=(line, telling),
            env={},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        note_start(started.pid)
        return started

    def _receive(self) -> socket.socket:
        """Return the socket that listens inside; it is there when everything else is."""
        assert self._line is not None
        self._line.settimeout(LONGEST_START)
        _, given, _, _ = self._line.recvmsg(1, socket.CMSG_SPACE(array.array("i").itemsize))
        descriptors = array.array("i")
        for level, kind, content in given:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                descriptors.frombytes(content)
        if not descriptors:
            raise IsolationError(self._said() or "bubblewrap ended at once")
        return socket.socket(fileno=descriptors[0])

    def _said(self) -> str:
        """Return what bubblewrap said before it gave up."""
        if self._keeper is None or self._keeper.stderr is None:
            return ""
        return self._keeper.stderr.read(2000).decode("utf-8", "replace").strip()

    def _close(self) -> None:
        if self._guard is not None:
            self._guard.dismiss()
        if self._first is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)  # the kernel ends all others inside with it
            os.close(self._first)
        if self._listener is not None:
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for connections
            self._listener.close()
        if self._line is not None:
            self._line.close()
        self._retired += self._namespaces.values()  # a number that is free again could mean another cell by now
        self._end_keeper()
        self._first, self._listener, self._line, self._keeper, self._guard = None, None, None, None, None
        self._namespaces.clear()

    def _end_keeper(self) -> None:
        if self._keeper is None:
            return
        if self._keeper.stderr is not None:
            self._keeper.stderr.close()
        try:
            self._keeper.wait(LONGEST_START)
        except subprocess.TimeoutExpired:
            self._keeper.kill()
            self._keeper.wait()
        note_end(self._keeper.pid)


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise IsolationError(f"there is no program {name!r}")
    return found


def _opened(number: int, name: str) -> int:
    """Return a descriptor of a namespace of a process. Raises IsolationError for one that is our own."""
    descriptor = os.open(f"/proc/{number}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)
    if os.path.sameopenfile(descriptor, ours := os.open(f"/proc/self/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)):
        os.close(descriptor)
        os.close(ours)
        raise IsolationError(f"bubblewrap shares the namespace {name!r} with us")
    os.close(ours)
    return descriptor


CLONE_FS, CLONE_NEWNS = 0x200, 0x20000
READ_ONLY = 1 | 2 | 8 | 32 | 4096  # MS_RDONLY, MS_NOSUID, MS_NOEXEC, MS_REMOUNT, MS_BIND


def protect(mounts: int, places: Iterable[str]) -> None:
    """Mount `places` read only in a mount namespace, given by its descriptor. Raises OSError."""
    failed: list[OSError] = []

    def go_in() -> None:
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            _succeed(libc.unshare(CLONE_FS))  # this thread has a root and a folder of its own from here on
            _succeed(libc.setns(mounts, CLONE_NEWNS))
            for place in places:
                _succeed(libc.mount(None, os.fsencode(place), None, ctypes.c_ulong(READ_ONLY), None))
        except OSError as error:
            failed.append(error)

    thread = Thread(target=go_in, name="into a cell")  # and never comes back: it ends in there
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def _succeed(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


OF_EACH_NAMESPACE = (6, 14)
USED_ONCE = 300
LONGEST = 10.0  # seconds


def number_at_most(namespace: int, processes: int) -> None:
    """Let the kernel have numbers for about so many processes in a namespace, given by its descriptor, if it can."""
    nsenter = shutil.which("nsenter")
    if nsenter is None or linux() < OF_EACH_NAMESPACE:
        return
    inside = [nsenter, f"--pid=/proc/{os.getpid()}/fd/{namespace}", "--"]
    script = f"echo {USED_ONCE + 8 + processes} > /proc/sys/kernel/pid_max"
    with suppress(OSError, subprocess.SubprocessError):  # the guard counts, too
        subprocess.run(
            [*inside, "sh", "-c", script], env={"PATH": os.defpath}, capture_output=True, timeout=LONGEST, check=False
        )


@frozen
class CellCommands:
    """Runs commands in a cell, as `Commands` says."""

    cell: Cell

    async def run(self, command: str, *, shell: tuple[str, ...], **how: Unpack[How]) -> Finished:
        """Run `command` inside. Raises IsolationError where there is no inside."""
        await anyio.to_thread.run_sync(self.cell.open)
        inside: How = {**how, "cwd": "/"}
        before = len(self.cell.excesses)
        finished = await LocalCommands().run(command, shell=self.cell.joined(shell, how["cwd"]), **inside)
        return self._with_limits(finished, self.cell.excesses[before:])

    def _with_limits(self, finished: Finished, ended_by: list[Excess]) -> Finished:
        """Return how a command ended with a line for each limit that it met with."""
        if ended_by:
            end = "everything that ran here was ended, and what was in memory is gone"
            return _with_lines(finished, [f"[{excess.text}; {end}]" for excess in ended_by])
        shown = [Excess(kind, self.cell.limits.told(kind)) for kind in kinds_shown_by(finished)]
        self.cell.excesses += shown
        return _with_lines(finished, [f"[the limit here: {excess.text}]" for excess in shown])


def _with_lines(finished: Finished, lines: list[str]) -> Finished:
    if not lines:
        return finished
    parts = [finished.output.rstrip("\n"), *lines] if finished.output.strip() else lines
    return evolve(finished, output="\n".join(parts) + "\n")
