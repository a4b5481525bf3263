"""Bubblewrap: namespaces of its own for each command (Linux).

| place | inside |
| --- | --- |
| the workspace, allowed paths | as outside, to be written |
| /tmp, /var/tmp | the scratch folder of the agent, to be written, kept from command to command |
| /run, secret places, the agent's own | empty |
| /dev | the few devices that everyday programs need, no terminal of the user |
| /proc | the processes of the command, read only |
| all other files | as outside, read only |

Sockets of tmux, docker, X11 and D-Bus lie in /tmp and /run, or have no file, and then belong to the network outside.
A process that is left over keeps running, as it would outside: the one who started the command ends it.
"""

import os
from collections.abc import Iterable, Iterator

from agent.tools.sandbox.confinement import Confinement
from agent.tools.sandbox.egress import FOLDER
from agent.tools.sandbox.mounts import own_places, read_only

__all__ = ["arguments"]

SCRATCHES = ("/tmp", "/var/tmp")
FROM_RUN = ("/run/current-system", "/run/wrappers", "/run/opengl-driver", "/run/systemd/resolve")  # programs, names


def arguments(inside: Confinement) -> Iterator[str]:
    """Yield the arguments of `bwrap` that a command follows."""
    yield from ("--unshare-user", "--unshare-pid", "--unshare-cgroup-try")
    yield from () if inside.joined else ("--unshare-ipc", "--unshare-uts")
    yield from () if inside.joined or inside.network else ("--unshare-net",)
    yield from ("--cap-drop", "ALL", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--tmpfs", "/run")
    yield from ("--bind", inside.egress, FOLDER) if inside.egress else ()
    yield from read_only(FROM_RUN)
    for place in SCRATCHES:
        yield from ("--bind", inside.scratch, place)
    yield from read_only([*own_places(), *inside.readable])  # which may lie in what was hidden just now
    for place in inside.writable:
        yield from ("--bind", place, place)
    yield from read_only(inside.kept)
    yield from _hidden(inside.hidden)
    for place in inside.granted:
        yield from ("--bind", place, place)
    yield from ("--chdir", inside.cwd)


def _hidden(places: Iterable[str]) -> Iterator[str]:
    for place in places:
        if os.path.isdir(place):
            yield from ("--size", "4096", "--tmpfs", place, "--remount-ro", place)
        elif os.path.exists(place):
            yield from ("--ro-bind", "/dev/null", place)
