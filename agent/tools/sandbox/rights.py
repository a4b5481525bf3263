"""Rights: what one call may do beyond the sandbox, when it was asked for and the answer was yes.

network      reach any host, as outside
network HOST reach this host through a proxy of the call (bubblewrap)
write PATH   change this file, or what is in this folder
unconfined   run without any sandbox
"""

import os
import posixpath
import re
from collections.abc import Iterable
from itertools import pairwise
from urllib.parse import urlsplit

from constitution import Deed, Effect, Zone
from constitution.effects import UNKNOWN

NETWORK, UNCONFINED, WRITE = "network", "unconfined", "write "
HOST = re.compile(r"network ([a-z0-9][a-z0-9.:_-]{0,252})")

BY_NETWORK = frozenset(
    {
        Effect.NETWORK, Effect.UPLOAD, Effect.REMOTE_SHELL, Effect.PUBLISH, Effect.PUSH, Effect.INSTALL,
        Effect.FOREIGN_PACKAGES, Effect.RUN_FETCHED_CODE, Effect.SHARED_HISTORY_LOSS, Effect.MAIN_HISTORY_LOSS,
        Effect.CLOUD_CHANGE, Effect.CLOUD_LOSS, Effect.CLOUD_EXPOSURE, Effect.DATABASE_LOSS, Effect.DATABASE_RESET,
        Effect.LISTEN, Effect.REVERSE_TUNNEL,
    }
)  # fmt: skip
BY_THE_MACHINE = frozenset(
    {
        Effect.PRIVILEGE, Effect.POWER, Effect.FORMAT, Effect.MOUNT, Effect.ACCOUNTS, Effect.SERVICES, Effect.KERNEL,
        Effect.FIREWALL, Effect.KILL, Effect.KILL_ALL, Effect.KILL_MATCHING, Effect.SCHEDULE, Effect.PACKAGES,
        Effect.PACKAGES_LOSS, Effect.CONTAINER_ESCAPE, Effect.CONTAINER_LOSS, Effect.CONTAINER_DATA_LOSS, Effect.SPY,
    }
)  # fmt: skip
BY_PATH = frozenset({Effect.WRITE, Effect.DELETE, Effect.DELETE_TREE, Effect.PERMISSIONS, Effect.OPEN_TO_ALL})
INSIDE = frozenset(
    {
        Zone.NOWHERE, Zone.WORKSPACE, Zone.WORKSPACE_ROOT, Zone.WORKSPACE_CONTENT, Zone.VERSION_CONTROL, Zone.PRIVATE,
        Zone.SCRATCH, Zone.SCRATCH_ROOT, Zone.SINK, Zone.PARTLY_KNOWN, Zone.UNKNOWN,
    }
)  # fmt: skip
"""Zones in which the sandbox lets a command write anyway, or of which it is not known where they are."""


PROXIED = frozenset(["curl", "wget", "git"])
"""Programs that ask the proxy which the usual variables name, for an address of HTTP."""
ADDRESS = re.compile(r"https?://", re.IGNORECASE)
NOT_REACHED = frozenset(["-e", "--referer"])
OTHER_WAY = re.compile(
    r"-\w*[xKi]|--(no-?proxy|proxy|preproxy|socks\w+|resolve|connect-to|(abstract-)?unix-socket|config|input-file)(=.*)?"
)
"""Options by which a program reaches what its addresses do not name, or not by the proxy."""


def needed_for(deeds: Iterable[Deed], *, by_host: bool = False) -> tuple[str, ...]:
    """Return the rights without which these deeds would fail inside, in order; `unconfined` stands for all others.

    by_host: where the command names all hosts that it reaches, those stand for the network.
    """
    found: set[str] = set()
    for deed in deeds:
        if deed.effect in BY_THE_MACHINE:
            return (UNCONFINED,)
        if deed.effect in BY_NETWORK or deed.zone is Zone.NETWORK_DEVICE:
            found.update(_reached(deed) if by_host else [NETWORK])
        elif deed.effect in BY_PATH and deed.path and deed.zone not in INSIDE:
            found.add(WRITE + (deed.path if deed.effect is Effect.WRITE else posixpath.dirname(deed.path)))
    return without_hosts(tuple(sorted(found)))


def without_hosts(rights: tuple[str, ...]) -> tuple[str, ...]:
    """Return rights without those to single hosts, if all hosts may be reached."""
    return tuple(each for each in rights if NETWORK not in rights or HOST.fullmatch(each) is None)


def _reached(deed: Deed) -> list[str]:
    """Return the rights to reach what a deed reaches: single hosts where these are known for certain.

    A host that is missing here is refused when the command asks for it, and said so.
    """
    if deed.program not in PROXIED or deed.effect not in (Effect.NETWORK, Effect.UPLOAD):
        return [NETWORK]
    if any(word.startswith(UNKNOWN) or OTHER_WAY.fullmatch(word) for word in deed.words):
        return [NETWORK]
    addresses = (word for before, word in pairwise(deed.words) if ADDRESS.match(word) and before not in NOT_REACHED)
    hosts = [f"{NETWORK} {_host(address)}" for address in addresses]
    return hosts if hosts and all(map(is_right, hosts)) else [NETWORK]


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def is_right(text: str) -> bool:
    """Tell whether a text names a right."""
    is_path = text.startswith(f"{WRITE}/") and "\0" not in text
    return is_path or text in (NETWORK, UNCONFINED) or HOST.fullmatch(text) is not None


def hosts_of(rights: Iterable[str]) -> tuple[str, ...]:
    """Return the hosts that rights name; none where they let all be reached."""
    rights = tuple(rights)
    found = (HOST.fullmatch(right) for right in rights)
    return () if NETWORK in rights else tuple(match[1] for match in found if match is not None)


def writable_by(rights: Iterable[str]) -> tuple[str, ...]:
    """Return the files and folders that rights make writable; of a file that is not there yet, its folder."""
    named = (right.removeprefix(WRITE) for right in rights if right.startswith(WRITE))
    return tuple(path if os.path.lexists(path) else posixpath.dirname(path) for path in named)
