"""Bubblewrap (Linux): the files inside for a command, or an episode of the laboratory; persistent namespaces.

| place | inside, for a command of an agent | inside, for an episode |
| --- | --- | --- |
| the workspace, allowed paths | as outside, to be written | as outside, to be written; the folder around read only |
| /tmp, /var/tmp | the scratch folder of the agent, kept from command to command | in memory |
| /run, secret places, the agent's own | empty | not there |
| /dev | the few devices that everyday programs need, no terminal of the user | the same |
| /proc | the processes of the command, read only | those of the episode, read only |
| programs, libraries, Python | as outside, read only | as outside, read only |
| all other files | as outside, read only | not there |

Sockets of tmux, docker, X11 and D-Bus lie in /tmp and /run, or have no file, and then belong to the network outside.
A process that is left over keeps running, as it would outside, so that it can be counted and told: the one who started
the command ends it, or the watchdog of the program does. With `--die-with-parent` the kernel would end it unseen. Root
may write the settings in /proc/sys without any capability, so /proc is read-only, too.

Commands of an agent share a loopback, those of an episode all namespaces. A process of bubblewrap holds these until its
standard input, a socket, is closed: also when we die. Commands join with `nsenter`, by the ID of the first process
inside. They cannot use our descriptors in /proc: the files of a process that hides its memory are readable by root
only.
"""

import json
import os
import platform
import signal
import socket
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from attrs import define

from agent.tools.descendants import helpers
from agent.tools.sandbox.permissions import PYTHON, Confinement
from agent.tools.sandbox.seccomp import NUMBERS

SCRATCHES = ("/tmp", "/var/tmp")
REPLACED = (*SCRATCHES, "/run", "/dev", "/proc")
"""Folders that are not those of outside."""
FROM_RUN = ("/run/current-system", "/run/wrappers", "/run/opengl-driver", "/run/systemd/resolve")  # programs, names

SHARED_MEMORY = 1024 * 1024 * 1024  # bytes of /dev/shm
MEMORY = 256 * 1024 * 1024  # bytes of each of an episode's folders in memory
USER = "1000"  # the ordinary user of an episode, so that its programs have no capability
SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store",
    "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/passwd", "/etc/group",
    "/etc/nsswitch.conf", "/etc/localtime", "/etc/ssl", "/etc/ca-certificates", "/etc/pki", "/etc/mime.types",
)  # fmt: skip
DEVICES = ("null", "zero", "full", "random", "urandom")
STREAMS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}


WITH_FILTER = ("/bin/sh", "-c", 'exec "$@" 9< "$0"')


def confining(launcher: Sequence[str], inside: Confinement) -> tuple[str, ...]:
    """Return the words that a command of an agent follows. launcher: the words of `bwrap`, or of what stands in."""
    if platform.machine() not in NUMBERS:
        return (*launcher, *_arguments(inside), "--")
    code = os.path.join(os.path.dirname(inside.scratch), "network" if inside.network else "loopback")
    return (*WITH_FILTER, code, *launcher, "--seccomp", "9", *_arguments(inside), "--")


def _arguments(inside: Confinement) -> Iterator[str]:
    yield from ("--unshare-user", "--unshare-pid", "--unshare-cgroup-try")
    yield from () if inside.joined else ("--unshare-ipc", "--unshare-uts")
    yield from () if inside.joined or inside.network else ("--unshare-net",)
    yield from ("--cap-drop", "ALL", "--ro-bind", "/", "/", "--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--dev", "/dev", "--size", str(SHARED_MEMORY), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
    yield from ("--tmpfs", "/run")
    yield from _read_only(FROM_RUN)
    for place in SCRATCHES:
        yield from ("--bind", inside.scratch, place)
    yield from _read_only([*_own_places(), *inside.readable])  # which may be in a hidden place
    for place in inside.writable:
        yield from ("--bind", place, place)
    yield from _read_only(inside.kept)
    yield from _hidden(inside.hidden)
    for mask, place in inside.masks:
        yield from ("--ro-bind", mask, place)
    for place in inside.granted:
        yield from ("--bind", place, place)
    yield from ("--chdir", inside.cwd)


def episode_arguments(readable: Path, writable: Path) -> Iterator[str]:
    """Yield the arguments of `bwrap` for an episode in the folder `readable`, with a workspace in it."""
    yield from ("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts")
    yield from ("--unshare-cgroup-try", "--uid", USER, "--gid", USER, "--hostname", "episode")
    yield from ("--cap-drop", "ALL", "--clearenv", "--new-session", "--chdir", "/")
    for place in SYSTEM:  # a link costs an episode less than a mount
        in_usr = os.path.islink(place) and os.path.realpath(place).startswith("/usr/")
        yield from ("--symlink", os.readlink(place), place) if in_usr else _read_only([place])
    yield from _devices()
    yield from ("--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--size", str(MEMORY), "--perms", "1777", "--tmpfs", "/tmp")
    yield from _read_only(_own_places())  # after /tmp, in which they may be
    yield from ("--ro-bind", str(readable), str(readable), "--bind", str(writable), str(writable))
    yield from ("--remount-ro", "/")


def _read_only(places: Iterable[str]) -> Iterator[str]:
    for place in places:
        yield from ("--ro-bind-try", place, place)


def _own_places() -> list[str]:
    return [place for place in PYTHON if not Path(place).is_relative_to("/usr")]


def _devices() -> Iterator[str]:
    """Yield arguments for a few devices; no terminal, since that would need a second user namespace."""
    yield from ("--tmpfs", "/dev")
    for name in DEVICES:
        yield from ("--dev-bind", f"/dev/{name}", f"/dev/{name}")
    for name, target in STREAMS.items():
        yield from ("--symlink", target, f"/dev/{name}")
    yield from ("--size", str(MEMORY), "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev")


def _hidden(places: Iterable[str]) -> Iterator[str]:
    for place in places:
        if os.path.isdir(place):
            yield from ("--size", "4096", "--tmpfs", place, "--remount-ro", place)
        elif os.path.exists(place):
            yield from ("--ro-bind", "/dev/null", place)


FLAGS = {"user": "--user", "mnt": "--mount", "pid": "--pid", "net": "--net", "ipc": "--ipc", "uts": "--uts"}
EVERYTHING = tuple(FLAGS)
LOOPBACK = ("user", "net", "ipc", "uts")
LONGEST_START = 30.0  # seconds
WAIT = ("/bin/sh", "-c", "echo >&0; read _")


@define(eq=False)
class Namespaces:
    """Namespaces of these kinds; `number` is that of the first process inside, and `first` a descriptor of it.

    nsenter: the path of the program that joins them.
    """

    process: "subprocess.Popen[bytes]"
    line: socket.socket
    nsenter: str
    number: int = 0
    first: int | None = None
    kinds: tuple[str, ...] = ()

    @property
    def is_held(self) -> bool:
        """Return whether the process that holds them is alive."""
        return self.process.poll() is None

    def words(self) -> tuple[str, ...]:
        """Return the words before a command that make it join, while these namespaces are held."""
        number = self.number if self.is_held else 0  # the ID of an ended process may be reused
        flags = (f"{FLAGS[kind]}=/proc/{number}/ns/{kind}" for kind in self.kinds)
        return (self.nsenter, *flags, "--preserve-credentials", "--")

    def close(self) -> None:
        """Release them; with a PID namespace, the kernel ends all processes inside."""
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


def hold(launcher: Sequence[str], nsenter: str, arguments: Iterable[str], kinds: Iterable[str]) -> Namespaces:
    """Return new namespaces, made with these arguments by `bwrap` or what stands in for it, in which a shell waits.

    It says that it is there by a byte on its standard input, a socket. Raises OSError, with what the launcher said.
    """
    ours, theirs = socket.socketpair()
    told, telling = os.pipe()
    words = (*launcher, *arguments, "--info-fd", str(telling), "--", *WAIT)
    with theirs, open(told, "rb", buffering=0) as info:
        try:
            process = subprocess.Popen(
                words, pass_fds=(telling,), env={}, stdin=theirs.fileno(), stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE, start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(telling)
        helpers.add(process.pid)
        theirs.close()  # so that the socket closes when the other side ends
        ours.settimeout(LONGEST_START)
        held = Namespaces(process, ours, nsenter)
        try:
            if not ours.recv(1):
                assert process.stderr is not None
                said = process.stderr.read(2000).decode("utf-8", "replace").strip()
                raise OSError(said or "bubblewrap ended at once")
            _take(held, int(json.loads(info.read(65536))["child-pid"]), kinds)
        except BaseException:
            held.close()
            raise
    return held


def _take(held: Namespaces, number: int, kinds: Iterable[str]) -> None:
    """Open the namespaces of a process. Raises OSError, also for a namespace that is our own."""
    held.number, held.first, held.kinds = number, os.pidfd_open(number), tuple(kinds)
    for kind in held.kinds:
        if os.path.samefile(f"/proc/{number}/ns/{kind}", f"/proc/self/ns/{kind}"):
            raise OSError(f"bubblewrap shares the namespace {kind!r} with us")


def hold_loopback(launcher: Sequence[str], nsenter: str) -> Namespaces | None:
    """Return a loopback for all commands of an agent; None if it cannot be made: then each has its own."""
    unshared = (f"--unshare-{kind}" for kind in LOOPBACK)
    with suppress(OSError, ValueError):
        return hold(launcher, nsenter, (*unshared, "--cap-drop", "ALL", "--dev-bind", "/", "/"), LOOPBACK)
    return None
