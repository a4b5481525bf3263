"""Zones: the kinds of places of paths, and the order in which the rows of their table apply."""

import posixpath
import re
from fnmatch import fnmatchcase
from functools import cache, lru_cache

from attrs import frozen

from constitution.effects import UNKNOWN, Zone
from constitution.tables import table

FETCHED = UNKNOWN + "\x01"
"""Placeholder for an unknown part that was downloaded or decoded."""

FOUND = "?*"
"""Placeholder for a name found by a search below a folder: a file in it, never the folder itself."""

GLOB = re.compile(r"[*?\[]")
ANY_NAME = re.compile(r"/\.?(\*|\?(?!\*$)|\[[^]/]*-[^]/]*\])*\*(\?|\*|\[[^]/]*\])*$")
"""A pattern of wildcards only, which matches nearly every name; `FOUND` is not one."""

HOOKS = re.compile(r"(^|/)\.git/hooks/.")
VERSION_CONTROL = r"(^|/)\.(git|hg|svn|jj)(/|$)"

HARMLESS_PREFIXES = (Zone.WORKSPACE, Zone.WORKSPACE_ROOT, Zone.WORKSPACE_CONTENT, Zone.SCRATCH, Zone.SCRATCH_ROOT)


@cache
def _home(kind: str) -> re.Pattern[str]:
    """Return the pattern of places in a home folder: "secret", "startup", "autostart" or "keeps_secrets"."""
    parts = "|".join(part for text in table("places")["home"][kind].values() for part in text.split())
    ends = {"secret": r"(/|\.|$)", "keeps_secrets": ""}.get(kind, r"(/|$)")
    return re.compile(f"({parts}){ends}")


@cache
def _paths(section: str, key: str) -> tuple[str, ...]:
    return tuple(table("places")[section][key].split())


@cache
def _pattern(section: str, key: str, form: str = "{}") -> re.Pattern[str]:
    return re.compile(form.format("|".join(_paths(section, key))))


@frozen(cache_hash=True)
class Places:
    """The folders that paths are compared with; all absolute and normalised."""

    workspace: str
    home: str
    denied: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()  # further folders treated as workspace
    own: tuple[str, ...] = ()  # files and folders of the agent itself


def zones_of(path: str, places: Places) -> tuple[Zone, ...]:
    """Return the zone of a path and, if its end is unknown, the zone of files that may be there.

    `~/$X` and `~/*` are the home folder and a file in it: unknown paths are judged as strictly as known ones.
    """
    zone = zone_of(path, places)
    if (UNKNOWN not in path and "*" not in path) or path[0] != "/":
        return (zone,)
    return zone, zone_of(_example(path), places)


def zone_of(path: str, places: Places) -> Zone:
    """Return the zone of an absolute path, of which parts may be `UNKNOWN`.

    The part after the unknown one counts only if it makes the path secret. A path whose first folder is unknown is
    itself unknown.
    """
    if places.own and _is_within_any(_whole(path), places.own):
        return Zone.OWN
    return _zone(path, places)


@lru_cache(maxsize=4096)
def _zone(path: str, places: Places) -> Zone:
    if UNKNOWN in path:
        return _zone_of_prefix(path, places)
    given, path = path, _whole(path)
    if path != given and path == places.workspace:
        return Zone.WORKSPACE_CONTENT
    if is_denied(alike(path), tuple(map(alike, places.denied))):
        return Zone.DENIED
    if _pattern("anywhere", "program", "(^|/)({})(/|$)").search(path):
        return Zone.PROGRAM
    if path.startswith(("/dev/", "/proc/", "/sys/")) and (zone := _device_zone(path)):
        return zone
    if GLOB.search(path) and FOUND not in path and (zone := _zone_of_pattern(path, places)):
        return zone
    if is_within(places.home, places.workspace) and is_within(path, places.home):
        return _home_in_workspace(path, places)
    if any(is_within(path, root) and path != root for root in places.roots):
        return Zone.WORKSPACE
    return _workspace_zone(path, places) if is_within(path, places.workspace) else _other_zone(path, places)


def _zone_of_prefix(path: str, places: Places) -> Zone:
    """Return the zone of a path by the folders before its unknown part.

    A path that is secret for any value of this part, like `/proc/$PPID/environ`, is secret.
    """
    if _zone(_example(path), places) is Zone.SECRET:
        return Zone.SECRET
    prefix = path[: path.index(UNKNOWN)].rpartition("/")[0]
    zone = _zone(prefix, places) if prefix else Zone.UNKNOWN
    return Zone.PARTLY_KNOWN if zone in HARMLESS_PREFIXES else zone


def _zone_of_pattern(path: str, places: Places) -> Zone | None:
    """Return the zone of `~/.ss*/id_*` by its possible matches: a secret, if a known secret path matches."""
    of_homes = table("places")["home"]["samples"]["files"].split()
    samples = (f"{home}/{inner}" for home in ("/home/x", places.home) for inner in of_homes)
    if any(fits(sample, path) for sample in (*_paths("system", "samples"), *samples)):
        return Zone.SECRET
    private = (f"{places.workspace}/{name}" for name in _paths("anywhere", "private_samples"))
    return Zone.PRIVATE if any(fits(sample, path) for sample in private) else None


def _example(path: str) -> str:
    """Return an example path for one with an unknown part, or with a pattern that matches every name."""
    folder = _whole(path)
    inner = path if folder == path else f"{folder.rstrip('/')}/1"
    return inner.replace(FETCHED, "1").replace(UNKNOWN, "1")


def _whole(path: str) -> str:
    """Return the folder for `folder/*`: all its content is treated like the folder."""
    while path.endswith(("/.[!.]*", "/.[^.]*")) or ANY_NAME.search(path):
        path = path.rpartition("/")[0] or "/"
    return path


def _device_zone(path: str) -> Zone | None:
    if path in _paths("roots", "sinks") or path.startswith("/dev/fd/"):
        return Zone.SINK
    if path.startswith(("/dev/tcp/", "/dev/udp/")):
        return Zone.NETWORK_DEVICE
    if is_within(path, "/dev/shm"):
        return None  # an ordinary folder: scratch, unless it contains the workspace
    if path.startswith("/proc/"):
        return _proc_zone(path)
    return Zone.DEVICE if path.startswith("/dev/") else Zone.SYSTEM


def _proc_zone(path: str) -> Zone:
    """Return the zone of a path in /proc: `/proc/self/root` and similar links lead anywhere; the rest is system."""
    if re.match(r"/proc/[^/]+/(root|cwd|fd)(/|$)", path):
        return Zone.UNKNOWN if path.count("/") > 3 else Zone.SYSTEM
    return Zone.SECRET if _pattern("system", "secret").match(path) else Zone.SYSTEM


def _workspace_zone(path: str, places: Places) -> Zone:
    inner = path[len(places.workspace) + (places.workspace != "/") :]
    if not inner:
        return Zone.WORKSPACE_ROOT if places.workspace != "/" else Zone.SYSTEM
    if "/" not in inner and inner.startswith(".") and FOUND not in inner and fits(".git", inner):
        return Zone.VERSION_CONTROL
    if re.search(VERSION_CONTROL, inner):
        return Zone.AUTOSTART if HOOKS.search(inner) else Zone.VERSION_CONTROL
    if is_private(inner):
        return Zone.PRIVATE
    return Zone.RUNS_LATER if kind_of_later(inner) else Zone.WORKSPACE


def _home_in_workspace(path: str, places: Places) -> Zone:
    """Return the zone of a path when the workspace contains the home folder: secrets there stay secret."""
    zone = _home_zone(path[len(places.home) + 1 :])
    stays = (Zone.OWN, Zone.SECRET, Zone.STARTUP, Zone.AUTOSTART, Zone.HOME_ROOT)
    return zone if zone in stays else _workspace_zone(path, places)


OF_HOME = ("own", "secret", "autostart", "startup", "keeps_secrets", "home_programs")
"""Zones of places in a home folder, as the table names them, in the order in which they are asked."""


def _home_zone(inner: str) -> Zone:
    if not inner:
        return Zone.HOME_ROOT
    for kind in OF_HOME:
        if _home(kind).match(inner):
            return Zone[kind.upper()]
    return Zone.PRIVATE_OUTSIDE if is_private(inner) else Zone.HOME


def is_private(word: str) -> bool:
    """Return whether a path has the name of a secret of a project or a user."""
    return _pattern("anywhere", "private", "(^|/)({})$").search(word) is not None


LATER = ("workspace", "environment", "installed")


@lru_cache(maxsize=65536)  # each call of a tool asks about every file of a workspace
def kind_of_later(inner: str) -> str:
    """Return the list of places in a workspace that run later in which a relative path is; empty if in none."""
    path = alike(inner)
    return next((kind for kind in LATER if _pattern("runs_later", kind).search(path)), "")


def is_work_that_runs(inner: str) -> bool:
    """Return whether a path in a workspace is a recipe that a tool of the project runs when it is called."""
    return _pattern("runs_later", "work").search(inner) is not None


def runs_later(path: str, home: str) -> bool:
    """Return whether a shell, an editor or a schedule will run the content of a file."""
    if _pattern("runs_later", "system").search(path) or _pattern("runs_later", "workspace").search(path):
        return True
    inner = path[len(home) + 1 :] if is_within(path, home) else ""
    return _home("startup").match(inner) is not None or _home("autostart").match(inner) is not None


def _other_zone(path: str, places: Places) -> Zone:
    if is_within(path, places.home) and places.home != "/":
        return _home_zone(path[len(places.home) + 1 :])
    if _pattern("system", "secret").match(path):
        return Zone.SECRET
    for root in _paths("roots", "scratch"):
        if is_within(path, root):
            return Zone.SCRATCH_ROOT if path == root else Zone.SCRATCH
    for root in _paths("roots", "homes"):
        if is_within(path, root):
            return _home_zone(path[len(root) + 1 :].partition("/")[2]) if path.count("/") > 2 else Zone.HOME_ROOT
    if is_within(places.workspace, path) or is_within(places.home, path):
        return Zone.HOME_ROOT if path != "/" else Zone.SYSTEM
    if is_private(path):
        return Zone.PRIVATE_OUTSIDE
    if any(is_within(path, root) for root in _paths("roots", "shared")):
        return Zone.OUTSIDE if path.count("/") > 1 else Zone.SYSTEM
    return Zone.SYSTEM if path == "/" or _pattern("roots", "system", "/({})(/|$)").match(path) else Zone.OUTSIDE


def resolve(word: str, *, cwd: str, home: str) -> str:
    """Return the absolute path of a word; a `..` after an unknown part makes all of it unknown."""
    if UNKNOWN not in word:
        return absolute(word, cwd=cwd, home=home)
    before, _, after = word.partition(UNKNOWN)
    if not before or (UNKNOWN in cwd and not before.startswith("/")) or ".." in after.split("/"):
        return UNKNOWN
    return absolute(before + "x", cwd=cwd, home=home)[:-1] + UNKNOWN + after


def absolute(path: str, *, cwd: str, home: str) -> str:
    """Return `path` as normalised text, a leading `~` taken as `home` and a relative path as below `cwd`."""
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    normal = posixpath.normpath(f"{cwd}/{path}" if cwd and path[:1] != "/" else path)
    return normal[1:] if normal.startswith("//") else normal


HOME_PREFIXES = ("$HOME", "${HOME}", "~")


def placed(path: str, *, workspace: str, home: str) -> str:
    """Return a path of a configuration as an absolute one, in the same way for every tool.

    It starts at the workspace if it is relative; a leading `~`, `$HOME` or `${HOME}` is `home`.
    """
    for prefix in HOME_PREFIXES:
        if path == prefix or path.startswith(f"{prefix}/"):
            path = home + path[len(prefix) :]
    return absolute(path, cwd=workspace, home=home)


def checked_path(path: str, *, patterns: bool = False) -> str:
    """Return a path of a configuration. Raises ValueError for one that would match nothing, or not what it says."""
    rest = next((path[len(prefix) :] for prefix in HOME_PREFIXES if path.startswith(f"{prefix}/")), path)
    if "$" in rest and path not in HOME_PREFIXES:
        raise ValueError(f"{path!r}: of variables only $HOME, at the beginning, is known here; write the path itself")
    if "**" in rest or (not patterns and GLOB.search(rest)):
        raise ValueError(f"{path!r} is a pattern that cannot be used here; name the folder itself")
    return path


def is_denied(path: str, denied: tuple[str, ...]) -> bool:
    """Return whether a path is one of the denied ones, lies below one, or fits a pattern (`secrets/*`) among them."""
    return any(is_within(path, each) or (GLOB.search(each) and _fits_any(path, each)) for each in denied)


def _fits_any(path: str, pattern: str) -> bool:
    """Return whether a path or one of its parents fits a pattern, hidden names as well."""
    parts, patterns = path.split("/"), pattern.split("/")
    pairs = zip(parts, patterns, strict=False)
    return len(patterns) <= len(parts) and all(fnmatchcase(part, wanted) for part, wanted in pairs)


def is_within(path: str, root: str) -> bool:
    """Return whether `path` is `root` or lies below it, by components: `/ws-evil` is not within `/ws`."""
    return path == root or path.startswith(root if root.endswith("/") else root + "/")


def fits(path: str, pattern: str) -> bool:
    """Return whether a shell pattern matches `path` or one of its parents.

    As in a shell, only patterns with a leading dot match hidden names.
    """
    parts, patterns = path.split("/"), pattern.replace("[^", "[!").split("/")
    if len(patterns) > len(parts):
        return False
    return all(
        part == wanted or (fnmatchcase(part, wanted) and not (part[:1] == "." and wanted[:1] in "*?["))
        for part, wanted in zip(parts, patterns, strict=False)
    )


def _is_within_any(path: str, roots: tuple[str, ...]) -> bool:
    return any(is_within(alike(path), alike(root)) for root in roots)


def is_path_safe(path: str, workspace: str) -> bool:
    """Return whether `path`, relative ones taken from `workspace`, stays within `workspace` (S3, S0 6.4).

    Lexical: the caller has resolved links. A path with a NUL, or an empty one, is never safe.
    """
    if not path or "\0" in path or not workspace.startswith("/"):
        return False
    root = posixpath.normpath(workspace)
    return is_within(absolute(path, cwd=root, home="/~"), root)


def alike(path: str) -> str:
    """Return a form that is equal for paths that some file systems take for the same one (case, normalization)."""
    if path.isascii():
        return path.lower()
    import unicodedata  # few paths need it

    return unicodedata.normalize("NFC", path).casefold()
