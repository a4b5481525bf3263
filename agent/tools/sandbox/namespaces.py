"""Namespaces that outlive a command: commands of an agent share a loopback, those of an episode share everything.

A process of bubblewrap holds them until the other end of its standard input, a socket, is closed: also when we die.
Commands join with `nsenter`, by the number of the first process inside. Descriptors of ours would be nothing to them:
files of a process that hides its memory are closed to every other one, unless it is root.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterable, Sequence
from contextlib import suppress

from attrs import define

from agent.tools.descendants import helpers

FLAGS = {"user": "--user", "mnt": "--mount", "pid": "--pid", "net": "--net", "ipc": "--ipc", "uts": "--uts"}
EVERYTHING = tuple(FLAGS)
LOOPBACK = ("user", "net", "ipc", "uts")
LONGEST_START = 30.0  # seconds
WAIT = ("/bin/sh", "-c", "echo >&0; exec cat >/dev/null")


@define(eq=False)
class Namespaces:
    """Namespaces of these kinds; `number` is that of the first process inside, and `first` a descriptor of it.

    `given` are descriptors that the program inside has sent.
    """

    process: "subprocess.Popen[bytes]"
    line: socket.socket
    given: tuple[int, ...] = ()
    number: int = 0
    first: int | None = None
    kinds: tuple[str, ...] = ()

    @property
    def is_held(self) -> bool:
        """Tell whether the process that holds them is there."""
        return self.process.poll() is None

    def words(self) -> tuple[str, ...]:
        """Return the words before a command that let it join, as long as these namespaces are held."""
        number = self.number if self.is_held else 0  # of a process that has ended: it may be that of another one by now
        flags = (f"{FLAGS[kind]}=/proc/{number}/ns/{kind}" for kind in self.kinds)
        return (shutil.which("nsenter") or "nsenter", *flags, "--preserve-credentials", "--")

    def close(self) -> None:
        """Let go of them; with a namespace of processes, the kernel ends everything inside."""
        self.line.close()
        if self.first is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.first, signal.SIGKILL)
            os.close(self.first)
        try:
            self.process.wait(LONGEST_START)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        if self.process.stderr is not None:
            self.process.stderr.close()
        helpers.discard(self.process.pid)


def hold(arguments: Iterable[str], kinds: Iterable[str], program: Sequence[str] = WAIT) -> Namespaces:
    """Return new namespaces, made with these arguments of `bwrap`, in which `program` waits.

    It says that it is there by a byte on its standard input, a socket, and may send descriptors with it. Raises
    OSError, with what bubblewrap said.
    """
    for name in ("bwrap", "nsenter"):
        if shutil.which(name) is None:
            raise OSError(f"there is no program {name!r}")
    ours, theirs = socket.socketpair()
    told, telling = os.pipe()
    with theirs, open(told, "rb", buffering=0) as info:
        try:
            process = _start([*arguments, "--info-fd", str(telling), "--", *program], theirs, telling)
        finally:
            os.close(telling)
        theirs.close()  # so that the line ends when the other side does
        ours.settimeout(LONGEST_START)
        held = Namespaces(process, ours)
        try:
            said, given, _, _ = socket.recv_fds(ours, 1, 1)
            held.given = tuple(given)
            if not said:
                raise OSError(_reason(process))
            _take(held, int(json.loads(info.read(65536))["child-pid"]), kinds)
        except BaseException:
            held.close()
            for descriptor in held.given:
                os.close(descriptor)
            raise
    return held


def _take(held: Namespaces, number: int, kinds: Iterable[str]) -> None:
    """Take the namespaces of a process. Raises OSError, also for one that is our own."""
    held.number, held.first, held.kinds = number, os.pidfd_open(number), tuple(kinds)
    for kind in held.kinds:
        if os.path.samefile(f"/proc/{number}/ns/{kind}", f"/proc/self/ns/{kind}"):
            raise OSError(f"bubblewrap shares the namespace {kind!r} with us")


def hold_loopback() -> Namespaces | None:
    """Return a loopback for all commands of an agent; None where none can be made, and each has its own."""
    unshared = (f"--unshare-{kind}" for kind in LOOPBACK)
    with suppress(OSError, ValueError):
        return hold((*unshared, "--cap-drop", "ALL", "--dev-bind", "/", "/"), LOOPBACK)
    return None


def _start(arguments: Sequence[str], line: socket.socket, telling: int) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        [shutil.which("bwrap") or "bwrap", *arguments], pass_fds=(telling,), env={}, stdin=line.fileno(),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    helpers.add(process.pid)
    return process


def _reason(process: "subprocess.Popen[bytes]") -> str:
    assert process.stderr is not None
    return process.stderr.read(2000).decode("utf-8", "replace").strip() or "bubblewrap ended at once"
