"""How paths are compared: as text, by components, after `.` and `..` are gone. Nothing here looks at a disk.

Links are followed by the caller; what arrives in `PathUse.resolved` and `Action.resolved` is taken as it is.
"""

import posixpath
from fnmatch import fnmatchcase

__all__ = ["absolute", "alike", "fits", "is_path_safe", "is_within"]


def absolute(path: str, *, cwd: str, home: str) -> str:
    """Return `path` as normalised text, a leading `~` taken as `home` and a relative path as below `cwd`."""
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    normal = posixpath.normpath(posixpath.join(cwd, path))
    return normal[1:] if normal.startswith("//") else normal


def is_within(path: str, root: str) -> bool:
    """Return whether `path` is `root` or lies below it, by components: `/ws-evil` is not within `/ws`."""
    return path == root or path.startswith(root if root.endswith("/") else root + "/")


def fits(path: str, pattern: str) -> bool:
    """Return whether a shell's pattern can stand for `path`, or for a folder that it lies in.

    As in a shell, what begins with a dot is only found by a pattern that does.
    """
    parts, patterns = path.split("/"), pattern.split("/")
    if len(patterns) > len(parts):
        return False
    return all(
        part == wanted or (fnmatchcase(part, wanted) and not (part[:1] == "." and wanted[:1] in "*?["))
        for part, wanted in zip(parts, patterns, strict=False)
    )


def is_path_safe(path: str, workspace: str) -> bool:
    """Return whether `path`, relative ones taken from `workspace`, stays within `workspace` (S3, S0 6.4).

    Lexical: the caller has resolved links. A path with a NUL, or an empty one, is never safe.
    """
    if not path or "\0" in path or not workspace.startswith("/"):
        return False
    root = posixpath.normpath(workspace)
    return is_within(absolute(path, cwd=root, home="/~"), root)


def alike(path: str) -> str:
    """Return a form that is equal for paths that a forgiving file system takes for the same one."""
    if path.isascii():
        return path.lower()
    import unicodedata  # few paths need it

    return unicodedata.normalize("NFC", path).casefold()
