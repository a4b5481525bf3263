"""Masks of secrets in the workspace: a command sees an empty file, git leaves it out, and who opens it is noticed."""

import ctypes
import os
import struct
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from weakref import finalize

from attrs import define, field

from agent.tools.programs import find_program
from agent.tools.sandbox.repository import repository_root

OPENED = 0x20  # IN_OPEN
FLAGS = 0o2004000  # IN_NONBLOCK, IN_CLOEXEC
HEAD = struct.Struct("iIII")  # of an event: watch, mask, cookie, length of the name
EXCLUDES = "excluded-by-git"


@define(eq=False)
class Masks:
    """Empty files in a folder, each for one hidden file; `opened` tells which of them were opened (Linux)."""

    folder: str
    workspace: str
    _patterns: bytes | None = field(default=None, init=False)
    _watcher: int = field(default=-1, init=False)
    _watched: dict[int, str] = field(factory=dict, init=False)
    _made: dict[str, str] = field(factory=dict, init=False)

    def over(self, paths: Iterable[str]) -> tuple[tuple[str, str], ...]:
        """Return a mask and the file that it hides, for each of these files. Raises OSError."""
        return tuple((self._made.get(path) or self._make(path), path) for path in paths)

    def _make(self, path: str) -> str:
        os.makedirs(self.folder, exist_ok=True)
        mask = os.path.join(self.folder, sha256(os.fsencode(path)).hexdigest())
        with open(mask, "xb"):
            os.chmod(mask, 0o444)
        libc = ctypes.CDLL(None)
        if self._watcher < 0 and (watcher := libc.inotify_init1(FLAGS)) >= 0:
            self._watcher = watcher
            finalize(self, os.close, watcher)
        self._watched[libc.inotify_add_watch(self._watcher, os.fsencode(mask), OPENED)] = path
        self._made[path] = mask
        return mask

    def opened(self) -> tuple[str, ...]:
        """Return the hidden files that were opened since the last call."""
        return tuple(dict.fromkeys(self._watched[each] for each in self._events() if each in self._watched))

    def variables(self, given: Mapping[str, str], scratch: str, seen_as: str, paths: Sequence[str]) -> dict[str, str]:
        """Return variables with which git leaves out these files, besides what it leaves out anyway.

        The patterns are written into the scratch folder, which a command sees as `seen_as`. Raises OSError.
        """
        if not paths:
            return {}
        tops = ((path, repository_root(os.path.dirname(path)) or "/") for path in paths)
        patterns = (b"/" + _escaped(os.path.relpath(path, top)) for path, top in tops)
        with open(os.path.join(scratch, EXCLUDES), "wb") as file:
            file.write(b"\n".join([self._excluded_anyway(), *patterns, b""]))
        count = int(given.get("GIT_CONFIG_COUNT") or 0)
        names = (f"GIT_CONFIG_KEY_{count}", f"GIT_CONFIG_VALUE_{count}")
        values = ("core.excludesFile", os.path.join(seen_as, EXCLUDES))
        return {"GIT_CONFIG_COUNT": str(count + 1), **dict(zip(names, values, strict=True))}

    def _excluded_anyway(self) -> bytes:
        """Return the patterns of the user's own `core.excludesFile`, looked up once."""
        if self._patterns is None:
            self._patterns = b""
            git = find_program("git", [self.workspace])
            words = (git or "false", "-C", self.workspace, "config", "--type=path", "--get", "core.excludesFile")
            said = subprocess.run(words, capture_output=True, check=False).stdout.strip()
            folder = os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
            with suppress(OSError), open(os.fsdecode(said) or f"{folder}/git/ignore", "rb") as file:
                self._patterns = file.read()
        return self._patterns

    def _events(self) -> Iterator[int]:
        with suppress(OSError):  # there are no more, or nothing is watched
            while events := os.read(self._watcher, 65536):
                while events:
                    watch, _, _, length = HEAD.unpack_from(events)
                    yield watch
                    events = events[HEAD.size + length :]


def _escaped(path: str) -> bytes:
    return b"".join(b"\\" + bytes([each]) if each in b"\\*?[] #!" else bytes([each]) for each in os.fsencode(path))
