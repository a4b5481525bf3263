"""Places: what kind of place a path is, by its text, as numbers that only grow with sensitivity.

`secret`: how little its content may be read. `worth`: how much would be lost, or run later, if it changes. `lets`: the
same, as far as a sandbox lets it change. `foreign`: how little is known about a program there. `beyond`: whether it
lies outside of the workspace. Verdicts are thresholds on these numbers, so that a more sensitive place is never judged
milder. A path of which a part is unknown is the most sensitive place that it may be.
"""

import posixpath
import re
import unicodedata
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache, lru_cache

from attrs import frozen

from constitution.tables import table

UNKNOWN = "\0"
"""Placeholder for a part of a word that cannot be known."""
FETCHED = "\x01"
"""Placeholder for a part that was downloaded or decoded."""
FOUND = "?*"
"""Placeholder for a name below a folder: `src/?*`."""

LONGEST_NAME = 255
WILD = re.compile(r"[*?\[]")
EVERY_NAME = re.compile(r"(?:[*?.]|\[[^]]*\])*")


@frozen
class Place:
    """A kind of place: its name, and numbers that grow with its sensitivity."""

    name: str
    secret: int = 0
    worth: int = 0
    lets: int = 0
    foreign: int = 0
    beyond: int = 0

    @property
    def numbers(self) -> tuple[int, ...]:
        """All numbers, in their order."""
        return self.secret, self.worth, self.lets, self.foreign, self.beyond


@frozen(cache_hash=True)
class Places:
    """The folders with which paths are compared; absolute and normal. `roots` count as workspace, `denied` win."""

    workspace: str
    home: str
    denied: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    own: tuple[str, ...] = ()


@cache
def places() -> dict[str, Place]:
    """Return all kinds of places by name."""
    return {name: Place(name, *numbers) for name, numbers in table("places")["places"].items()}


@cache
def pattern(section: str, key: str) -> re.Pattern[str]:
    """Return the pattern of paths of a kind, in a section of the table."""
    return re.compile("(?:" + "|".join(table("places")[section][key].split()) + ")")


def absolute(path: str, cwd: str, home: str) -> str:
    """Return a path as normal text; a `..` behind an unknown part makes all of it unknown."""
    for mark in (UNKNOWN, FETCHED):
        before, found, after = path.partition(mark)
        if found and (not before or ".." in after.split("/")):
            return UNKNOWN
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    if not path.startswith("/"):
        if UNKNOWN in cwd:
            return UNKNOWN
        path = f"{cwd}/{path}"
    normal = posixpath.normpath(path)
    return normal[1:] if normal.startswith("//") else normal


HOME_PREFIXES = ("$HOME", "${HOME}", "~")


def placed(path: str, *, workspace: str, home: str) -> str:
    """Return a path of a configuration as an absolute one, in the same way for every tool.

    It starts at the workspace if it is relative; a leading `~`, `$HOME` or `${HOME}` is `home`.
    """
    for prefix in HOME_PREFIXES:
        if path == prefix or path.startswith(f"{prefix}/"):
            path = home + path[len(prefix) :]
    return absolute(path, workspace, home)


def checked_path(path: str, *, patterns: bool = False) -> str:
    """Return a path of a configuration. Raises ValueError for one that would match nothing, or not what it says."""
    rest = next((path[len(prefix) :] for prefix in HOME_PREFIXES if path.startswith(f"{prefix}/")), path)
    if "$" in rest and path not in HOME_PREFIXES:
        raise ValueError(f"{path!r}: of variables only $HOME, at the beginning, is known here; write the path itself")
    if "**" in rest or (not patterns and WILD.search(rest)):
        raise ValueError(f"{path!r} is a pattern that cannot be used here; name the folder itself")
    return path


def is_denied(path: str, denied: tuple[str, ...]) -> bool:
    """Return whether a path is one of the denied ones, lies below one, or fits a pattern (`secrets/*`) among them."""
    return any(is_within(path, each) or (WILD.search(each) and _fits_any(path, each)) for each in denied)


def _fits_any(path: str, pattern: str) -> bool:
    """Return whether a path or one of its parents fits a pattern, hidden names as well."""
    parts, patterns = path.split("/"), pattern.split("/")
    pairs = zip(parts, patterns, strict=False)
    return len(patterns) <= len(parts) and all(fnmatchcase(part, wanted) for part, wanted in pairs)


def is_within(path: str, root: str) -> bool:
    """Return whether `path` is `root` or lies below it, by components: `/ws-evil` is not within `/ws`."""
    return path == root or path.startswith(root if root.endswith("/") else root + "/")


def is_path_safe(path: str, workspace: str) -> bool:
    """Return whether `path`, relative ones taken from `workspace`, stays within `workspace` (S3, S0 6.4).

    Lexical: the caller has resolved links. A path with a NUL, or an empty one, is never safe.
    """
    if not path or "\0" in path or not workspace.startswith("/"):
        return False
    root = posixpath.normpath(workspace)
    return is_within(absolute(path, root, "/~"), root)


def most_sensitive(*found: Place) -> Place:
    """Return the place with the largest numbers of all, called by the one that is worth most."""
    if len(set(found)) == 1:
        return found[0]
    first = max(found, key=lambda place: (place.worth, place.secret, place.foreign))
    return Place(first.name, *map(max, zip(*(place.numbers for place in found), strict=True)))


@lru_cache(maxsize=8192)
def place_of(path: str, known: Places) -> Place:
    """Return the place of an absolute path, the most sensitive that it may be."""
    if UNKNOWN in path or FETCHED in path:
        return _partly_known(path, known)
    if not WILD.search(path):
        return _of_text(path, known)
    return most_sensitive(*_of_pattern(path, known))


def _partly_known(path: str, known: Places) -> Place:
    if not path.startswith("/"):
        return places()["unknown"]
    folder = re.split(f"[{UNKNOWN}{FETCHED}]", path, maxsplit=1)[0].rpartition("/")[0] or "/"
    inner = path.replace(UNKNOWN, "1").replace(FETCHED, "1")
    outer = [] if folder == known.workspace else [place_of(folder, known)]
    return most_sensitive(*outer, place_of(inner, known), places()["partly"])


def _of_pattern(path: str, known: Places) -> Iterator[Place]:
    """Yield the places of names that a pattern may stand for."""
    folder, _, name = path.rpartition("/")
    if any(len(part) > LONGEST_NAME for part in path.split("/")):
        yield places()["unknown"]
    elif WILD.search(folder):
        yield _of_text(path.replace("*", "x"), known)
        yield _of_text("/".join(_sample(part) for part in path.split("/")), known)
    elif name == FOUND:
        yield _of_text(path, known)
    elif EVERY_NAME.fullmatch(name):  # it fits nearly every name: as sensitive as the folder
        whole = _of_text(folder or "/", known)
        yield places()["content"] if whole.name == "root" else whole
        yield _of_text(f"{folder}/x", known)
    else:
        yield _of_text(path, known)
        for sample in table("places")["samples"]["files"].split():
            if fnmatchcase(sample, name.replace("[^", "[!")):
                yield _of_text(f"{folder}/{sample}", known)


def _sample(part: str) -> str:
    """Return a sensitive name that one part of a path may stand for."""
    if not WILD.search(part):
        return part
    fitting = (
        each for each in table("places")["samples"]["folders"].split() if fnmatchcase(each, part.replace("[^", "[!"))
    )
    return next(fitting, "x")


def _of_text(path: str, known: Places) -> Place:
    """Return the place of a path that is known."""
    if any(is_within(alike(path), alike(root)) for root in known.own):
        return places()["own"]
    if is_denied(alike(path), tuple(map(alike, known.denied))):
        return places()["denied"]
    if pattern("system", "program").match(path):
        return places()["program"]
    inner = _below(path, known.workspace)
    if inner is not None and known.workspace != "/":
        return places()[_in_workspace(inner, path, known)]
    if any(is_within(path, root) and path != root for root in known.roots):
        return places()["workspace"]
    return places()[_elsewhere(path, known)]


def _in_workspace(inner: str, path: str, known: Places) -> str:
    """Return the name of a place below the workspace; what is secret in a home folder within it stays so."""
    if not inner:
        return "root"
    below_home = _below(path, known.home) if is_within(known.home, known.workspace) else None
    if below_home is not None and (name := _in_home(below_home)) in ("own", "secret", "startup", "home_root"):
        return name
    if pattern("workspace", "history").search(alike(inner)):
        return "history"
    if is_private(inner):
        return "private"
    if kind_of_later(inner):
        return "later"
    return "built" if pattern("workspace", "built").search(alike(inner)) else "workspace"


def is_private(path: str) -> bool:
    """Return whether a path has the name of a secret of a project or a user."""
    return pattern("workspace", "private").search(path) is not None


LATER = ("workspace", "environment", "installed")


@lru_cache(maxsize=65536)  # each call of a tool asks about every file of a workspace
def kind_of_later(inner: str) -> str:
    """Return the list of places in a workspace that run later in which a relative path is; empty if in none."""
    path = alike(inner)
    return next((kind for kind in LATER if pattern("runs_later", kind).search(path)), "")


def is_work_that_runs(inner: str) -> bool:
    """Return whether a path in a workspace is a recipe that a tool of the project runs when it is called."""
    return pattern("runs_later", "work").search(inner) is not None


def _elsewhere(path: str, known: Places) -> str:
    is_at_home = known.home != "/" and is_within(path, known.home)
    for name in ("sink", "network_device", "device", "secret", "scratch_root", "scratch"):
        if pattern("system", name).match(path) and not (is_at_home and name.startswith("scratch")):
            return name
    inner = _below_a_home(path, known.home)
    if inner is not None:
        return _in_home(inner)
    if path in ("/home", "/Users") or (path != "/" and is_within(known.workspace, path)):
        return "home_root"
    for name in ("public", "system"):
        if pattern("system", name).match(path):
            return name
    return "private_outside" if is_private(path) else "outside"


def _below_a_home(path: str, home: str) -> str | None:
    """Return a path relative to a home folder, of the user or of another one."""
    inner = _below(path, home) if home != "/" else None
    if inner is None and (match := re.match(r"/(?:home|Users)/[^/]+(?:/|$)", path)):
        return path[match.end() :]
    return _below(path, "/root") if inner is None else inner


def _in_home(inner: str) -> str:
    if not inner:
        return "home_root"
    names = ("own", "secret", "startup", "home_programs", "keeps_secrets")
    found = (name for name in names if pattern("home", name).match(inner))
    return next(found, "private_outside" if is_private(inner) else "home")


def _below(path: str, root: str) -> str | None:
    return path[len(root) :].lstrip("/") if is_within(path, root) else None


def alike(path: str) -> str:
    """Return a form that is equal for paths that some file systems take for the same one (case, normalization)."""
    return path.lower() if path.isascii() else unicodedata.normalize("NFC", path).casefold()
