"""One writer for each log: the file itself is locked while it is written, and whoever comes second learns by whom."""

import fcntl
import os
from pathlib import Path

from agent.log.reading import LogError

__all__ = ["LogInUse", "check_free", "is_in_use", "lock"]


class LogInUse(LogError):
    """Another process (or another agent of this one) writes the log; the message names the process."""


def lock(descriptor: int, path: Path, how: int = fcntl.LOCK_EX) -> None:
    """Lock an open log until it is closed, or its process ends. Raises LogInUse, and OSError."""
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise LogInUse(f"the log {path} is in use by {_holder(descriptor)}; wait for its end, or end it") from error


def check_free(path: Path) -> None:
    """Raise LogInUse when somebody writes the log now, LogError when it cannot be opened."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise LogError(f"cannot read the log {path}: {error.strerror}") from error
    try:
        lock(descriptor, path, how=fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def is_in_use(path: Path) -> bool:
    """Whether somebody writes the log now. Raises LogError when it cannot be opened."""
    try:
        check_free(path)
    except LogInUse:
        return True
    return False


def _holder(descriptor: int) -> str:
    """Name the process that holds the lock, where the system tells."""
    inode = str(os.fstat(descriptor).st_ino)
    try:
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return "another process"
    holders = [words[4] for words in locks if words[1:4] == ["FLOCK", "ADVISORY", "WRITE"] and _inode(words) == inode]
    return f"process {holders[0]}" if holders else "another process"


def _inode(words: list[str]) -> str:
    return words[5].rpartition(":")[2]
