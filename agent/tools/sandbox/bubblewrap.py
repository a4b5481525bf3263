"""Bubblewrap: the files that a command, or an episode of the laboratory, finds inside (Linux).

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
A process that is left over keeps running, as it would outside: the one who started the command ends it, or the kernel
when that process dies, also by SIGKILL. Root may write the settings in /proc/sys without any capability, so /proc is
read-only, too.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from agent.tools.sandbox.egress import FOLDER, parent_to_end_with
from agent.tools.sandbox.places import Confinement

SCRATCHES = ("/tmp", "/var/tmp")
FROM_RUN = ("/run/current-system", "/run/wrappers", "/run/opengl-driver", "/run/systemd/resolve")  # programs, names

MEMORY = 256 * 1024 * 1024  # bytes of each of an episode's folders in memory
USER = "1000"  # the user of an episode: an ordinary one, so that programs started there have no capability
SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store",
    "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/passwd", "/etc/group",
    "/etc/nsswitch.conf", "/etc/localtime", "/etc/ssl", "/etc/ca-certificates", "/etc/pki", "/etc/mime.types",
)  # fmt: skip
DEVICES = ("null", "zero", "full", "random", "urandom")
STREAMS = {"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}


def arguments(inside: Confinement) -> Iterator[str]:
    """Yield the arguments of `bwrap` that a command of an agent follows."""
    yield from ("--unshare-user", "--unshare-pid", "--unshare-cgroup-try")
    yield from ("--die-with-parent",) if parent_to_end_with() else ()
    yield from () if inside.joined else ("--unshare-ipc", "--unshare-uts")
    yield from () if inside.joined or inside.network else ("--unshare-net",)
    yield from ("--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--tmpfs", "/run")
    yield from ("--bind", inside.egress, FOLDER) if inside.egress else ()
    yield from _read_only(FROM_RUN)
    for place in SCRATCHES:
        yield from ("--bind", inside.scratch, place)
    yield from _read_only([*_own_places(), *inside.readable])  # which may lie in what was hidden just now
    for place in inside.writable:
        yield from ("--bind", place, place)
    yield from _read_only(inside.kept)
    yield from _hidden(inside.hidden)
    for place in inside.granted:
        yield from ("--bind", place, place)
    yield from ("--chdir", inside.cwd)


def episode_arguments(readable: Path, writable: Path) -> Iterator[str]:
    """Yield the arguments of `bwrap` for an episode in the folder `readable`, with a workspace in it."""
    yield from ("--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts")
    yield from ("--unshare-cgroup-try", "--uid", USER, "--gid", USER, "--hostname", "episode")
    yield from ("--cap-drop", "ALL", "--clearenv", "--new-session", "--chdir", "/")
    yield from _read_only(SYSTEM)
    yield from _devices()
    yield from ("--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--size", str(MEMORY), "--perms", "1777", "--tmpfs", "/tmp")
    yield from _read_only(_own_places())  # after /tmp, which may be where they are
    yield from ("--ro-bind", str(readable), str(readable), "--bind", str(writable), str(writable))
    yield from ("--remount-ro", "/")


def _read_only(places: Iterable[str]) -> Iterator[str]:
    """Yield the arguments that show places as they are, if they are there."""
    for place in places:
        yield from ("--ro-bind-try", place, place)


def _own_places() -> list[str]:
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


def _hidden(places: Iterable[str]) -> Iterator[str]:
    for place in places:
        if os.path.isdir(place):
            yield from ("--size", "4096", "--tmpfs", place, "--remount-ro", place)
        elif os.path.exists(place):
            yield from ("--ro-bind", "/dev/null", place)
