"""Sockets of Unix with a path: a read-only mount stops no connection, so those outside are hidden from commands.

A socket of a container engine or a password agent opens everything outside. The kernel names the sockets of our
network namespace; those of another namespace, as of a rootless container engine, are looked for where they usually are.
"""

import glob
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

from constitution.places import is_within

USUAL = (
    "~/.docker/*/*.sock", "~/.colima/*/*.sock", "~/.lima/*/sock/*", "~/.rd/*.sock", "~/.orbstack/run/*.sock",
    "~/.local/share/containers/podman/machine/*/*.sock", "~/.local/share/containers/podman/machine/*.sock",
    "~/.1password/*.sock", "~/.bitwarden-ssh-agent.sock", "/var/snap/*/common/*/unix.socket", "/var/lib/lxd/*.socket",
    "/var/lib/incus/*.socket", "/var/lib/mysql/*.sock", "/var/lib/docker/*.sock", "/nix/var/nix/daemon-socket/socket",
)  # fmt: skip


def outer_sockets(inner: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of all sockets that can be connected to, links followed, but those in the `inner` places."""
    places = tuple(inner)
    real = {os.path.realpath(path) for path in (*_bound(), *_usual())}
    return tuple(
        sorted(path for path in real if os.path.exists(path) and not any(is_within(path, at) for at in places))
    )


def _bound() -> Iterator[str]:
    """Yield the absolute paths of bound sockets, as the kernel tells them (unix(4)); the path is the eighth field."""
    with suppress(OSError), open("/proc/net/unix", encoding="utf-8", errors="surrogateescape") as table:
        rows = (line.rstrip("\n").split(None, 7) for line in table)
        yield from (row[7] for row in rows if len(row) > 7 and row[7].startswith("/"))


def _usual() -> Iterator[str]:
    for pattern in USUAL:
        yield from glob.iglob(os.path.expanduser(pattern))
