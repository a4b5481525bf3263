"""Temporary folders. Each is removed by its owner, or after a kill by the next process that makes one of its kind.

The owner holds a lock on the folder. The system releases it when the process dies, however it dies.
"""

import fcntl
import os
import shutil
from contextlib import suppress
from functools import cache
from tempfile import gettempdir, mkdtemp

from attrs import define, field, frozen


@define(eq=False)
class TemporaryFolder:
    """A folder that is there until it is removed, which a process forked from its owner does not do."""

    path: str
    _lock: int
    _owner: int = field(init=False, factory=os.getpid)

    def __enter__(self) -> str:
        """Return its path; it is removed at the end of the block."""
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder, once."""
        if self._owner == os.getpid():
            remove_folder(self.path)
            os.close(self._lock)


def make_folder(kind: str, parent: str | None = None) -> TemporaryFolder:
    """Return a new folder in `parent`, by default where temporary files are. Raises OSError.

    The first one of a process removes those of its kind whose owners have died.
    """
    prefix, parent = f"bpagent-{kind}-", os.path.realpath(parent or gettempdir())
    remove_abandoned(prefix, parent)
    while True:
        path = mkdtemp(prefix=prefix, dir=parent)
        with suppress(BlockingIOError, FileNotFoundError):  # another process took it for an abandoned one
            return TemporaryFolder(path, _locked(path))


@frozen
class LastingFolder:
    """A folder that stays unless its folder `tmp` holds no file."""

    path: str

    def remove(self) -> None:
        """Remove it if no file is in its `tmp`, in which places to mount something may be left."""
        if not any(files for _, _, files in os.walk(os.path.join(self.path, "tmp"))):
            shutil.rmtree(self.path, ignore_errors=True)


def make_lasting_folder(parent: str) -> LastingFolder:
    """Return a new folder in `parent`, which only this user may open. Raises OSError."""
    os.makedirs(parent, mode=0o700, exist_ok=True)
    return LastingFolder(mkdtemp(dir=parent))


@cache
def remove_abandoned(prefix: str, parent: str) -> None:
    """Remove the folders of this user whose owners have died, once for each process. Raises OSError."""
    for name in os.listdir(parent):
        if name.startswith(prefix):
            with suppress(OSError):  # its owner lives, or it was just removed
                lock = _locked(path := os.path.join(parent, name))
                if os.fstat(lock).st_uid == os.geteuid():
                    remove_folder(path)
                os.close(lock)


def _locked(path: str) -> int:
    """Return a descriptor that holds the lock of a folder.

    Raises BlockingIOError if another process holds it, and FileNotFoundError if it is gone.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.stat(path)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def remove_folder(path: str) -> None:
    """Remove a folder, also one with folders that cannot be written, such as Go's modules."""
    shutil.rmtree(path, ignore_errors=True)
    for folder, inner, _ in os.walk(path):
        for name in inner:
            if not os.path.islink(inside := os.path.join(folder, name)):
                with suppress(OSError):  # of another user
                    os.chmod(inside, 0o700)
    shutil.rmtree(path, ignore_errors=True)
