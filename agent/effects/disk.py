"""Facts on disk about a call: folders, other names of files, patterns, repositories, declared packages.

The constitution does no I/O; this module reads the facts for it. Nothing in the workspace is executed.
"""

import glob
import hashlib
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from agent.tools.sandbox.repository import followed
from constitution import Deed, Disk, Effect, Mentions

MATCHES = 1_000
"""Paths of one pattern that are looked up."""


def survey(named: Mentions, changed: Iterable[str], cwd: str) -> Disk:
    """Return the facts on disk about the words of a command and the files that a tool would change."""
    paths = [_absolute(word, cwd) for word in named.paths]
    patterns = [_absolute(word, cwd) for word in named.patterns]
    matches = {pattern: _matching(pattern) for pattern in patterns if ANYWHERE not in pattern}
    found = [path for each in matches.values() for path in each]
    return Disk(
        folders=tuple(path for path in paths if os.path.isdir(path)),
        linked=tuple(path for path in (*paths, *found, *changed) if _has_other_names(path)),
        repositories=tuple(path for path in paths if _is_bare_repository(path)),
        matches={pattern: "\0".join(each) for pattern, each in matches.items()},
        declared=tuple(_declared(Path(cwd))) if named.installs else (),
    )


ANYWHERE = "/**/"
"""`FOLDER/**/NAME`: files of that name, anywhere below the folder."""


def _absolute(word: str, cwd: str) -> str:
    return os.path.normpath(os.path.join(cwd, os.path.expanduser(word)))


def _matching(pattern: str) -> list[str]:
    """Return the paths to which a shell would expand a pattern."""
    found = glob.iglob(pattern.replace("[^", "[!"), include_hidden=os.path.basename(pattern).startswith("."))
    return [path for path, _ in zip(found, range(MATCHES), strict=False)]


def _has_other_names(path: str) -> bool:
    try:
        status = os.lstat(path)
    except (OSError, ValueError):
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def _is_bare_repository(path: str) -> bool:
    return all(os.path.exists(os.path.join(path, part)) for part in ("HEAD", "objects", "refs"))


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


def files_run(deeds: Iterable[Deed], executables: Mapping[str, str], cwd: str) -> Iterator[str]:
    """Yield the files that a command would execute, except programs of the system; each may be missing."""
    yield from (deed.path for deed in deeds if deed.effect is Effect.EXECUTE and deed.path.startswith("/"))
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


REQUIREMENT = re.compile(r"^\s*([A-Za-z0-9][\w.-]*)")


def _declared(folder: Path) -> Iterator[str]:
    """Yield the packages that the files of a project name, in lower case and with `-` for `_`."""
    requirements = [line for file in sorted(folder.glob("requirements*.txt"))[:8] for line in _text(file).splitlines()]
    package, project = _parsed(folder / "package.json", json.loads), _parsed(folder / "pyproject.toml", tomllib.loads)
    for name in dict.fromkeys((*_of_package_json(package), *_of_tables(project), *_names(requirements))):
        yield name.lower().replace("_", "-")


def _of_package_json(data: Mapping[str, Any]) -> Iterator[str]:
    for key in ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies"):
        if isinstance(data.get(key), dict):
            yield from data[key]


def _of_tables(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield every name in the tables and lists of dependencies of a `pyproject.toml`."""
    tables = [table]
    while tables:
        for key, value in tables.pop().items():
            if "dependencies" in key or "dependency-groups" in key:
                yield from _names(_texts(value))
            elif isinstance(value, dict):
                tables.append(value)


def _texts(value: object) -> Iterator[str]:
    """Yield the requirements in a list, in lists of a table, or the names of a table."""
    if isinstance(value, list):
        yield from (one for one in value if isinstance(one, str))
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _texts(inner) if isinstance(inner, list) else [name]


def _names(requirements: Iterable[str]) -> Iterator[str]:
    yield from (match[1] for match in map(REQUIREMENT.match, requirements) if match)


def _parsed(file: Path, parse: Callable[[str], Any]) -> dict[str, Any]:
    """Return the parsed content of a project file; nothing without a readable file."""
    try:
        data = parse(_text(file))
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
