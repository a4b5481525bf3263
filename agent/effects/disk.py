"""Facts on disk about a call: the files that it would run with their contents, and the repository around a folder.

The constitution does no I/O; this module reads the facts for it. Nothing in the workspace is executed.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from agent.tools.sandbox.repository import followed
from constitution import Effect

FOLDERS_OF_HISTORY = (".git", ".hg", ".jj", ".svn")


def repository_around(folder: str) -> str:
    """Return the folder in which version control keeps the history of `folder`, links followed; empty without one."""
    start = Path(os.path.realpath(folder))
    candidates = (each / name for each in (start, *start.parents) for name in FOLDERS_OF_HISTORY)
    history = next((each for each in candidates if os.path.lexists(each)), None)
    if history is None:
        return ""
    return followed(str(history))


INSTALLED = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/nix/", "/snap/")
"""The folders of programs that commands of the agent cannot change."""

RECIPES = {
    ("make", "gmake"): ("Makefile", "makefile", "GNUmakefile"),
    ("npm", "npx", "yarn", "pnpm", "bun"): ("package.json",),
    ("just",): ("justfile", "Justfile"),
    ("rake",): ("Rakefile",),
    ("tox", "nox"): ("tox.ini", "noxfile.py"),
}
"""Programs that execute commands from a file in their folder."""

LARGEST = 64 * 1024 * 1024  # bytes of a file that is read; a larger one is known by its size and time


def files_run(effects: Iterable[Effect], executables: Mapping[str, str], cwd: str) -> Iterator[str]:
    """Yield the files that a command would execute, except programs of the system; each may be missing."""
    yield from (effect.path for effect in effects if effect.kind == "run" and effect.path.startswith("/"))
    yield from executables.values()
    programs = {os.path.basename(program) for program in executables}
    for names, recipes in RECIPES.items():
        if not programs.isdisjoint(names):
            yield from (os.path.join(cwd, recipe) for recipe in recipes)


def contents_of(files: Iterable[str]) -> dict[str, str]:
    """Return a digest or an identity of the content of each file that exists and is no program of the system."""
    found = {}
    for path in dict.fromkeys(files):
        if "\0" not in path and not path.startswith(INSTALLED):
            try:
                status = os.stat(path)
                if stat.S_ISREG(status.st_mode):
                    found[path] = _identity(path, status.st_ino, status.st_size, status.st_ctime_ns)
            except OSError:
                continue
    return found


@lru_cache(maxsize=256)
def _identity(path: str, _: int, size: int, changed: int) -> str:
    """Return the hash of a file; it is read again when its status has changed. Raises OSError."""
    if size > LARGEST:
        return f"{size} bytes, changed at {changed}"
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
