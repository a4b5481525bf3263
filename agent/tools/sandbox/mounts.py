"""The files inside a cell: a system that can be read, a workspace that can be written, and nothing of the rest.

| place | inside |
| --- | --- |
| programs, libraries, Python | as outside, read only |
| the workspace | as outside, to be written; the folder around it is read only |
| /tmp, /dev/shm | empty, in memory, gone with the cell |
| /proc | the processes of the cell, read only |
| homes, /run, /sys, /var, other files | not there |

Root may write the settings in /proc/sys without any capability, so /proc is read-only, too.
"""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

__all__ = ["DEVICES", "arguments", "own_places", "read_only"]

MEMORY = 256 * 1024 * 1024  # bytes of each of the folders in memory
USER = "1000"  # the user inside: an ordinary one, so that programs started there have no capability

SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store",
    "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/passwd", "/etc/group",
    "/etc/nsswitch.conf", "/etc/localtime", "/etc/ssl", "/etc/ca-certificates", "/etc/pki", "/etc/mime.types",
)  # fmt: skip
DEVICES = ("null", "zero", "full", "random", "urandom")
STREAMS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}


def arguments(readable: Path, writable: Path) -> Iterator[str]:
    """Yield the arguments of `bwrap` that make a cell around a folder, with a workspace in it."""
    yield from ("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts")
    yield from ("--unshare-cgroup-try", "--uid", USER, "--gid", USER, "--hostname", "episode")
    yield from ("--cap-drop", "ALL", "--clearenv", "--new-session", "--chdir", "/")
    yield from read_only(SYSTEM)
    yield from _devices()
    yield from ("--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--size", str(MEMORY), "--perms", "1777", "--tmpfs", "/tmp")
    yield from read_only(own_places())  # after /tmp, which may be where they are
    yield from ("--ro-bind", str(readable), str(readable), "--bind", str(writable), str(writable))
    yield from ("--remount-ro", "/")


def read_only(places: Iterable[str]) -> Iterator[str]:
    """Yield the arguments that show places as they are, if they are there."""
    for place in places:
        yield from ("--ro-bind-try", place, place)


def own_places() -> list[str]:
    """Return where the Python is that runs this, if not with the system."""
    own = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    return sorted(place for place in own if not Path(place).is_relative_to("/usr"))


def _devices() -> Iterator[str]:
    """Yield arguments for the few devices there are; no terminal, since that would take a second user namespace."""
    yield from ("--tmpfs", "/dev")
    for name in DEVICES:
        yield from ("--dev-bind", f"/dev/{name}", f"/dev/{name}")
    for name, target in STREAMS.items():
        yield from ("--symlink", target, f"/dev/{name}")
    yield from ("--size", str(MEMORY), "--perms", "1777", "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
