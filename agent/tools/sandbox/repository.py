"""The folders in which git keeps the repository around a workspace, read from files: nothing that they name runs."""

import os
from contextlib import suppress
from pathlib import Path

PARTS = ("HEAD", "objects", "refs")
LONGEST = 4096  # characters of a path in a file of git


def git_folders(workspace: str) -> tuple[str, ...]:
    """Return the folder of git for a workspace, and the one that it shares with other worktrees; links followed.

    As git does it: the nearest `.git` in the workspace or above counts, a folder, a link, or a file that names a folder
    (of a linked worktree, a submodule, a separate folder), and only folders of this user are trusted.
    """
    top = repository_root(workspace)
    if not top:
        return ()
    folder = followed(os.path.join(top, ".git"))
    common = os.path.realpath(os.path.join(folder, _named_in(os.path.join(folder, "commondir")) or "."))
    if not all(os.path.exists(os.path.join(common, part)) for part in PARTS):
        return ()
    return tuple(dict.fromkeys(each for each in (folder, common) if os.stat(each).st_uid == os.geteuid()))


def repository_root(workspace: str) -> str:
    """Return the nearest folder with a `.git`, from the workspace upwards; empty without one."""
    start = Path(os.path.realpath(workspace))
    return next((str(each) for each in (start, *start.parents) if os.path.lexists(each / ".git")), "")


def followed(path: str) -> str:
    """Return the folder of version control that a path is, or that its text names after `gitdir:`; links followed."""
    named = _named_in(path).removeprefix("gitdir:").strip() if os.path.isfile(path) else ""
    return os.path.realpath(os.path.join(os.path.dirname(path), named or path))


def _named_in(path: str) -> str:
    with suppress(OSError), open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read(LONGEST).strip()
    return ""
