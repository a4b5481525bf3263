"""Facts on disk about a call: folders, other names of files, patterns, unsaved work, declared packages.

The constitution does no I/O; this module reads the facts for it. Nothing in the workspace is executed: git runs in the
sandbox and without the programs that its settings name, since a command may change these meanwhile.
"""

import glob
import hashlib
import json
import os
import re
import signal
import stat
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from agent.tools.process import inherited_environment
from constitution import Deed, Disk, Effect, Mentions

MATCHES = 1_000
"""Paths of one pattern that are looked up."""

SECONDS = 5.0
"""The seconds that git may take; files on which it has not reported by then count as unsaved."""

NO_REPOSITORY, NO_SETTING = 128, 1  # exit codes of git
QUIET = {"core.fsmonitor": "false", "core.hooksPath": "/dev/null", "safe.bareRepository": "explicit"}
"""Settings that override those of a repository, so that git starts no program which these name."""


Confine = Callable[[str], tuple[str, ...]]
Ask = Callable[..., str]


def survey(
    named: Mentions,
    replaced: Iterable[str],
    root: str,
    cwd: str,
    *,
    since: float | None = None,
    confine: Confine = lambda _: (),
    is_kept: bool = False,
) -> Disk:
    """Return the facts on disk about the words of a command and the files that a tool would replace.

    `root` is the workspace; `confine` gives the command prefix of the sandbox. `since` is when the session began, in
    seconds since 1970: a file that changed later is the agent's own work, and no loss. With `is_kept` nothing in the
    workspace can be lost, and git is not asked.
    """
    paths = [_absolute(word, cwd) for word in named.paths]
    patterns = [_absolute(word, cwd) for word in named.patterns]
    matches = {pattern: _matching(pattern) for pattern in patterns if ANYWHERE not in pattern}
    found = [path for each in matches.values() for path in each]
    losing = [_absolute(word, cwd) for word in named.lost]
    lost = [path for each in losing for path in matches.get(each, [each.partition(ANYWHERE)[0]])]
    return Disk(
        folders=tuple(path for path in paths if os.path.isdir(path)),
        linked=tuple(path for path in (*paths, *found, *replaced) if _has_other_names(path)),
        repositories=tuple(path for path in paths if _is_bare_repository(path)),
        matches={pattern: "\0".join(each) for pattern, each in matches.items()},
        unsaved=() if is_kept else tuple(_unsaved([*lost, *replaced], root, since, confine)),
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


def _unsaved(paths: list[str], root: str, since: float | None, confine: Confine) -> Iterator[str]:
    """Yield the files among paths, and below them, that git could not bring back."""
    inside = sorted({path for path in paths if path == root or path.startswith(root.rstrip("/") + "/")})
    if not inside:
        return
    ask = partial(_asked, root, confine(root))
    try:
        top = ask("rev-parse", "--show-toplevel", fails=NO_REPOSITORY).strip()
        changes = _changes(ask, inside) if top else []
    except subprocess.SubprocessError:
        yield from inside
        return
    for name in changes:
        path = os.path.join(top, name)
        if os.path.lexists(path) and (since is None or os.lstat(path).st_mtime < since):
            yield path


def _changes(ask: Ask, paths: list[str]) -> list[str]:
    """Return the changed and untracked files that git names, as it names them: from the top of the repository."""
    words = ("--porcelain=v1", "-z", "--untracked-files=all", "--ignore-submodules=all", "--no-renames", "--", *paths)
    entries = ask("status", *words, settings=_without_filters(ask)).split("\0")
    return [entry[3:] for entry in entries if len(entry) > 3]


def _without_filters(ask: Ask) -> dict[str, str]:
    """Return settings that remove the filter programs through which git reads changed files."""
    named = ask("config", "-z", "--name-only", "--get-regexp", r"^filter\.", fails=NO_SETTING).split("\0")
    filters = {name.rpartition(".")[0] for name in named if name}
    no_program = {"clean": "", "process": "", "required": "false"}
    return {f"{name}.{key}": value for name in filters for key, value in no_program.items()}


def _asked(
    root: str,
    before: tuple[str, ...],
    *words: str,
    settings: Mapping[str, str] = MappingProxyType({}),
    fails: int = 0,
) -> str:
    """Return what git says, with settings above those of the repository; nothing without git, or if it exits `fails`.

    Raises CalledProcessError if git ends otherwise, TimeoutExpired if it does not end in time.
    """
    quiet = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", **_as_variables(settings)}
    try:
        asked = subprocess.Popen(
            [*before, "git", "--literal-pathspecs", *words], cwd=root, env={**inherited_environment(), **quiet},
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, process_group=0,
        )  # fmt: skip
    except OSError:
        return ""
    with asked:
        try:
            said, _ = asked.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(asked.pid, signal.SIGKILL)  # the processes of the sandbox, too
            raise
    if asked.returncode not in (0, fails):
        raise subprocess.CalledProcessError(asked.returncode, asked.args)
    return os.fsdecode(said)


def _as_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Return variables with settings for git; in options, names with `=` in them would be cut."""
    known = {**QUIET, **settings}
    pairs = {
        f"GIT_CONFIG_{part}_{number}": text
        for number, item in enumerate(known.items())
        for part, text in zip(("KEY", "VALUE"), item, strict=True)
    }
    return {"GIT_CONFIG_COUNT": str(len(known)), **pairs}


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
