"""The length of each log, kept among the agent's own files: the chain alone does not show that its end is missing.

A file has a slot of fixed size for each of its logs: the number of the log's lines and the hash of the last one. Which
file and slot are a log's follows from its path and the seed of its chain; there are 256 files, because an experiment
has ten thousand logs, and each is looked for when it begins. A copy is another log, of which nothing is known. The slot
is written after the log was, so a process that is killed leaves a log that is as long as its slot says, or longer. It
is kept where the folder of the agent's own things exists, which the command line makes.
"""

import fcntl
import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from agent.log.chain import own_folder

__all__ = ["Head", "head_of"]

SLOT = 128  # bytes
NAME, COUNT = 32, 12  # characters of what names a log, and of a number of lines


class Head:
    """The slot of one log, open to be written."""

    def __init__(self, path: Path, seed: str) -> None:
        """Find the slot of a log, or take a new one. Raises OSError, also where there is no folder for it."""
        self._name = _name(path, seed)
        file = _file(self._name)
        file.parent.mkdir(exist_ok=True)
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            content = _content(self._descriptor)
            place = _place(content, self._name)
            self._place = len(content) // SLOT * SLOT if place is None else place
            if place is None:
                self.note(0, "")
        finally:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def note(self, lines: int, link: str) -> None:
        """Write down how many lines the log has, and the hash of the last one."""
        slot = f"{self._name} {lines:0{COUNT}d} {link}".ljust(SLOT - 1) + "\n"
        with suppress(OSError):
            os.pwrite(self._descriptor, slot.encode(), self._place)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._descriptor)


def head_of(path: Path, seed: str) -> tuple[int, str] | None:
    """Return the number of lines that a log had when it was written last, and the hash of its last line.

    None where this is not known: the log was written elsewhere, copied or moved, or nothing is kept here.
    """
    name = _name(path, seed)
    try:
        content = _file(name).read_bytes()
    except (OSError, RuntimeError):
        return None
    place = _place(content, name)
    words = [] if place is None else content[place : place + SLOT].split()
    return (int(words[1]), words[2].decode()) if len(words) == 3 and words[1].isdigit() else None


def _file(name: str) -> Path:
    return own_folder() / "log_heads" / name[:2]


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, 0)


def _name(path: Path, seed: str) -> str:
    return sha256(f"{os.path.realpath(path)}\0{seed}".encode("utf-8", "surrogateescape")).hexdigest()[:NAME]


def _place(content: bytes, name: str) -> int | None:
    """Return where the slot of a log begins."""
    place = content.find(f"{name} ".encode())
    return place if place >= 0 and place % SLOT == 0 else None
