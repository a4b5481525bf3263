"""The permissions of one command: hidden places (secrets, denied paths, the agent's own files), and rights.

A right lets one call go beyond the sandbox, if the call requested it and the user agreed.

network      reach any host, as outside
network HOST reach this host through a proxy of the call (bubblewrap)
read PATH    read this file, or the content of this folder, where the sandbox hides it
write PATH   change this file, or the content of this folder, and read it
unconfined   run without any sandbox
"""

import glob
import os
import posixpath
import re
import sys
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache, lru_cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import chain, pairwise
from pathlib import Path
from urllib.parse import urlsplit

from attrs import frozen

from agent.tools.workspace import other_names
from constitution import Effect
from constitution.places import WILD, Places, absolute, is_within, place_of
from constitution.rules import group

OWN_FOLDER = "~/.bpagent"
PACKAGES = ("agent", "bp", "constitution")
PYTHON = tuple(sorted({sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}))

PUBLIC = ("/etc/passwd", "/etc/passwd-")  # user names, which programs look up
SYSTEM_FOLDERS = ("/etc", "/etc/ssh", "/etc/ssl", "/var/lib", "/var/spool")
SETTLED = 1_000_000_000  # nanoseconds; changes within less may have equal timestamps
DEPTH = 2  # levels below the home folder: `.config/gh`, `.codex/auth.json`

VARIABLES = tomllib.loads(Path(__file__).with_name("variables.toml").read_text())
SERVERS = frozenset(VARIABLES["servers"]["names"].split())
"""Variables with addresses of the user's servers: key agents, the screen, terminals, containers."""
WITHOUT_PERSON: Mapping[str, str] = {
    **VARIABLES["without_person"],
    **dict.fromkeys(("VISUAL", "GIT_EDITOR", "GIT_SEQUENCE_EDITOR"), VARIABLES["without_person"]["EDITOR"]),
}
"""Variables with which no program opens an editor or a pager."""
CACHES: Mapping[str, str] = VARIABLES["caches"]
"""Variables for caches, and the folder of each below the one of the project."""


@frozen
class Confinement:
    """The permissions of one command. All paths are absolute, with links followed, and exist.

    cwd: where it starts. writable: the workspace and further roots. scratch: the replacement of /tmp. readable:
    readable places in replaced folders. hidden: invisible places. granted: writable for this one call, even if hidden.
    kept: read-only places in writable ones. network: all hosts can be reached. joined: it already is in the agent's
    network, which has only a loopback. masks: files that hide others.
    """

    cwd: str
    scratch: str
    writable: tuple[str, ...]
    readable: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    granted: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    network: bool = False
    joined: bool = False
    masks: tuple[tuple[str, str], ...] = ()


def agents_own(home: str) -> tuple[str, ...]:
    """Return the folders in which the agent keeps runs, rules and keys: the default one, and that of BPAGENT_HOME."""
    chosen = (os.environ.get("BPAGENT_HOME"), absolute(OWN_FOLDER, "/", home))
    return tuple(dict.fromkeys(os.path.realpath(place) for place in chosen if place))


def own_processes(text: str) -> tuple[str, ...]:
    """Return the folders in /proc of our process, its group and its parent whose IDs occur in a text."""
    numbers = dict.fromkeys((os.getpid(), os.getpgrp(), os.getppid()))
    return tuple(f"/proc/{number}" for number in numbers if number > 1 and str(number) in text)


@cache
def program_folders() -> tuple[str, ...]:
    """Return where this program lies: its packages as they are installed, and its Python with all others."""
    specs = (find_spec(name) for name in PACKAGES)
    origins = (os.path.dirname(spec.origin) for spec in specs if spec is not None and spec.origin)
    return (*origins, *PYTHON)


def kept_places(writable: tuple[str, ...], *own: str) -> Iterator[str]:
    """Yield the read-only places in writable ones.

    That is code which runs outside later: this program and all that it may still import, and `own`.
    """
    for place in map(os.path.realpath, (*program_folders(), *own)):
        if os.path.isdir(place) and any(is_within(place, outer) for outer in writable):
            yield place


def cache_folder(workspace: str) -> str:
    """Return the folder for the caches of commands in a workspace."""
    caches = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    digest = sha256(os.fsencode(workspace)).hexdigest()[:16]
    return os.path.join(os.path.abspath(caches), "bpagent", f"{os.path.basename(workspace) or 'root'}-{digest}")


def hidden_places(workspace: str, home: str, denied: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the hidden files and folders, links followed, none within another.

    These are the secrets of the constitution (`constitution/places.toml`), and those `denied`, with all their
    mounts and, if they are patterns, matches. A folder that contains the workspace cannot be hidden.
    """
    matches = (glob.glob(path, include_hidden=True) if WILD.search(path) else [path] for path in denied)
    found = (*_secrets(home), *map(os.path.expanduser, chain.from_iterable(matches)), *agents_own(home))
    real = {os.path.realpath(path) for path in found if path not in PUBLIC and os.path.lexists(path)}
    shown = (path for path in other_names(real) - real if os.path.exists(path))
    outer = {path for path in (*real, *shown) if not is_within(workspace, path)}
    return tuple(sorted(path for path in outer if not any(path != other and is_within(path, other) for other in outer)))


def _secrets(home: str) -> Iterator[str]:
    places = Places(workspace="/dev/null", home=home)  # no workspace: secrets do not depend on it
    for folder in SYSTEM_FOLDERS:
        yield from _entries(folder, places)[0]
    yield from _secrets_below(home, places, DEPTH)


def _secrets_below(folder: str, places: Places, depth: int) -> Iterator[str]:
    """Yield the secrets in a folder; of the home folder's subfolders only hidden ones are searched."""
    secrets, keeping, hidden = _entries(folder, places)
    yield from secrets
    for path in (*keeping, *(hidden if depth > 1 else ())):
        yield from _secrets_below(path, places, depth - 1)


Entries = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def _entries(folder: str, places: Places) -> Entries:
    """Return a folder's secrets, its subfolders that keep secrets, and its hidden subfolders."""
    try:
        status = os.stat(folder)
    except OSError:
        return (), (), ()
    state = (status.st_dev, status.st_ino, status.st_ctime_ns)
    if abs(time.time_ns() - status.st_ctime_ns) < SETTLED:
        return _look.__wrapped__(folder, state, places)
    return _look(folder, state, places)


@lru_cache(maxsize=1024)
def _look(folder: str, _state: tuple[int, ...], places: Places) -> Entries:
    """Scan a folder; cached until its state changes: an entry was added, renamed or removed."""
    secrets, keeping, hidden = list[str](), list[str](), list[str]()
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            place = place_of(entry.path, places)
            if place.name == "secret":
                secrets.append(entry.path)
            elif place.name == "keeps_secrets" and entry.is_dir(follow_symlinks=False):
                keeping.append(entry.path)
            elif entry.name.startswith(".") and entry.is_dir(follow_symlinks=False):
                hidden.append(entry.path)
    return tuple(secrets), tuple(keeping), tuple(hidden)


NETWORK, UNCONFINED, READ, WRITE = "network", "unconfined", "read ", "write "
HOST = re.compile(r"network ([a-z0-9][a-z0-9.:_-]{0,252})")

INSIDE = frozenset(
    {
        "nowhere", "built", "workspace", "root", "content", "history", "scratch", "scratch_root", "sink", "partly",
        "unknown",
    }
)  # fmt: skip
"""Places that are writable in the sandbox anyway, or of which it is not known where they are."""


PROXIED = frozenset(["curl", "wget", "git"])
"""Programs that use the proxy of the usual variables for HTTP addresses."""
ADDRESS = re.compile(r"https?://", re.IGNORECASE)
NOT_REACHED = frozenset(["-e", "--referer"])
OTHER_WAY = re.compile(
    r"-\w*[xKi]|--(no-?proxy|proxy|preproxy|socks\w+|resolve|connect-to|(abstract-)?unix-socket|config|input-file)(=.*)?"
)
"""Options with which a program reaches other hosts than its addresses, or bypasses the proxy."""


def needed_for(effects: Iterable[Effect], *, by_host: bool = False) -> tuple[str, ...]:
    """Return the rights without which these effects would fail inside, in order; `unconfined` includes all others.

    by_host: if the command names all hosts that it reaches, request these instead of the network.
    """
    found: set[str] = set()
    for effect in effects:
        if effect.kind in group("by_machine"):
            return (UNCONFINED,)
        if effect.kind in group("by_network") or effect.place.name == "network_device":
            found.update(_reached(effect) if by_host else [NETWORK])
        elif effect.place.name == "private" and effect.kind not in group("by_path") and effect.path:
            found.add(READ + effect.path)
        elif effect.kind in group("by_path") and effect.path and effect.place.name not in INSIDE:
            is_exact = effect.kind == "write" or effect.place.name in ("later", "private")
            found.add(WRITE + (effect.path if is_exact else posixpath.dirname(effect.path)))
    return without_hosts(tuple(sorted(found)))


def without_hosts(rights: tuple[str, ...]) -> tuple[str, ...]:
    """Return rights without those to single hosts, if they include the network."""
    return tuple(each for each in rights if NETWORK not in rights or HOST.fullmatch(each) is None)


def _reached(effect: Effect) -> list[str]:
    """Return the network rights for an effect: single hosts if these are known for certain.

    A request to a host that is missing here is refused with a message.
    """
    if effect.program.partition(" ")[0] not in PROXIED or effect.kind not in ("network", "send"):
        return [NETWORK]
    words = effect.evidence.argv
    if any(word.startswith("…") or OTHER_WAY.fullmatch(word) for word in words):
        return [NETWORK]
    addresses = (word for before, word in pairwise(words) if ADDRESS.match(word) and before not in NOT_REACHED)
    hosts = [f"{NETWORK} {_host(address)}" for address in addresses]
    return hosts if hosts and all(map(is_right, hosts)) else [NETWORK]


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def is_right(text: str) -> bool:
    """Return whether a text names a right."""
    is_path = text.startswith((f"{READ}/", f"{WRITE}/")) and "\0" not in text
    return is_path or text in (NETWORK, UNCONFINED) or HOST.fullmatch(text) is not None


def hosts_of(rights: Iterable[str]) -> tuple[str, ...]:
    """Return the hosts that rights name; none if they include the network."""
    rights = tuple(rights)
    found = (HOST.fullmatch(right) for right in rights)
    return () if NETWORK in rights else tuple(match[1] for match in found if match is not None)


def shown_by(rights: Iterable[str]) -> tuple[str, ...]:
    """Return the files and folders that rights let a command read."""
    rights = tuple(rights)
    return tuple(right.removeprefix(kind) for kind in (READ, WRITE) for right in rights if right.startswith(kind))


def writable_by(rights: Iterable[str]) -> tuple[str, ...]:
    """Return the files and folders that rights make writable; for a missing file, its folder."""
    named = (right.removeprefix(WRITE) for right in rights if right.startswith(WRITE))
    return tuple(path if os.path.lexists(path) else posixpath.dirname(path) for path in named)
