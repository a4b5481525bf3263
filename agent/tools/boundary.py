"""Which paths a tool may touch: below an allowed root, and not below a denied one.

Only decides; `Workspace` opens. A decision about a path's text holds for a path without links only, so that every
path is resolved first. Prefixes are compared by components: /tmp/agent-evil is not below /tmp/agent.
"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress

from attrs import frozen

from agent.tools.errors import PathRefused

__all__ = ["Boundary", "follow_links", "make_boundary"]

Identity = tuple[int, int]  # device and inode: what a file is, whatever it is called

_MOST_DENIED_FILES = 10_000
_ATTEMPTS = 40


@frozen
class Boundary:
    """Allowed roots and denied paths, absolute. Denied wins (S0 6.4). Roots are without links."""

    root: str
    allowed: tuple[str, ...]
    denied: tuple[str, ...]
    home: str

    def absolute(self, path: str) -> str:
        """Return `path` as an absolute one, links not followed: relative ones start at the root, `~` is the home."""
        check_text(path)
        return os.path.join(self.root, expand(path, self.home))

    def check(self, real: str, asked: str) -> None:
        """Raise PathRefused for a path without links that is outside or denied; `asked` is how the caller wrote it."""
        name = asked if asked == real else f"{asked} leads to {real}, which"
        if self.is_denied(real):
            raise PathRefused(f"permission denied: {name} is a denied path")
        if not any(is_below(real, root) for root in self.allowed):
            raise PathRefused(f"permission denied: {name} is outside the allowed paths ({', '.join(self.allowed)})")

    def is_denied(self, real: str) -> bool:
        """Whether a path without links is a denied one or lies below it."""
        return any(is_below(real, denied) for denied in self.denied_names())

    def denied_names(self) -> frozenset[str]:
        """Return the denied paths, as they are written and with their links followed."""
        return frozenset(name for path in self.denied for name in (path, follow_links(path)))

    def check_identity(self, found: os.stat_result, asked: str) -> None:
        """Raise PathRefused for another name of a denied file or directory: renamed, mounted, or hard-linked."""
        hard_linked = stat.S_ISREG(found.st_mode) and found.st_nlink > 1
        if (found.st_dev, found.st_ino) in self._denied_identities(hard_linked=hard_linked):
            raise PathRefused(f"permission denied: {asked} is another name of a denied path")

    def may_create(self, real: str) -> bool:
        """Whether a missing directory may be made: an allowed root, or what lies below one."""
        return any(is_below(real, root) for root in self.allowed)

    def _denied_identities(self, *, hard_linked: bool) -> set[Identity]:
        found: set[Identity] = set()
        for path in self.denied:
            try:
                status = os.stat(path)
            except OSError:
                continue  # not there, so nothing can be another name of it
            found.add((status.st_dev, status.st_ino))
            if hard_linked and os.path.isdir(path):
                found |= _identities_below(path)
        return found


def make_boundary(root: str, allowed: Iterable[str], denied: Iterable[str], home: str | None) -> Boundary:
    """Return the boundary of a workspace; `~` in `allowed` and `denied` is `home`, by default the user's."""
    home = os.path.expanduser("~") if home is None else home
    real_root = follow_links(os.path.abspath(expand(root, home)))
    roots = [real_root, *(follow_links(os.path.join(real_root, expand(path, home))) for path in allowed)]
    refused = (os.path.normpath(os.path.join(real_root, expand(path, home))) for path in denied)
    return Boundary(real_root, tuple(dict.fromkeys(roots)), tuple(refused), home)


def is_below(path: str, root: str) -> bool:
    """Whether `path` is `root` or lies below it; both absolute and normal."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def follow_links(path: str) -> str:
    """Return `path` without links, as far as it exists. Raises PathRefused if it changes faster than one can look."""
    for _ in range(_ATTEMPTS):
        with suppress(OSError):  # a link that is none any more when it is read
            return os.path.realpath(path)
    raise PathRefused(f"permission denied: {path} is being changed all the time")


def expand(path: str, home: str) -> str:
    """Return `path` with a leading `~` component replaced by `home`."""
    return home + path[1:] if path == "~" or path.startswith("~/") else path


def check_text(path: str) -> None:
    """Raise PathRefused for a text that no file system takes as a path."""
    if "\0" in path:
        raise PathRefused(f"{path[:60]!r} contains a NUL character; no path does")
    try:
        path.encode("utf-8")
    except UnicodeEncodeError as error:
        raise PathRefused(f"{path[:60]!r} contains a lone surrogate; write the path as text") from error


def _identities_below(path: str) -> set[Identity]:
    """Return what lies below a denied directory. Raises PathRefused where that cannot be told: fail closed."""
    found: set[Identity] = set()
    for folder, _, names in os.walk(path, onerror=_cannot_tell):
        for name in names:
            status = os.lstat(os.path.join(folder, name))
            found.add((status.st_dev, status.st_ino))
        if len(found) > _MOST_DENIED_FILES:
            raise PathRefused(f"permission denied: a hard link, and {path} has too many files to tell whether into it")
    return found


def _cannot_tell(error: OSError) -> None:
    raise PathRefused(f"permission denied: a hard link, and {error.filename} cannot be read to tell whether into it")
