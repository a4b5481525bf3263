"""The guard of a cell: looks at all of it, from outside, and ends it when together it takes more than it may.

The limits of the kernel hold for each process, and an agent that may start many has many times as much. A thread of
ours counts what is there, ten times a second. It stands outside, since inside it could be stopped.
"""

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from time import perf_counter

from attrs import define, field, frozen

from agent.tools.sandbox.limits import Kind, Limits, readable

__all__ = ["Excess", "Guard"]


PAUSE = 0.1  # seconds between two looks
SHARE = 0.05  # of the time that looks take at most
OURS = frozenset(("1", "2"))  # bubblewrap, and who keeps the cell
ENTRY = 4096  # bytes that a file or a folder takes at least


@frozen
class Excess:
    """A limit that was broken: which one, and what was found."""

    kind: Kind
    text: str


@define
class Tally:
    """The contents of a cell at one moment, in bytes; processes with their threads."""

    processes: int = 0
    memory: int = 0
    disk: int = 0
    nameless: set[tuple[int, int]] = field(factory=set)


class Guard:
    """Looks at a cell until it is dismissed, and calls `over` once, from a thread of its own, when there is too much.

    `first` is the number of the cell's first process. A workspace that is too large from the beginning may become
    smaller, but not larger. Raises OSError for a cell that has ended.
    """

    def __init__(self, first: int, workspace: Path, limits: Limits, over: Callable[["Guard", Excess], None]) -> None:
        self._workspace, self._limits, self._over = workspace, limits, over
        self._device = workspace.stat().st_dev
        self._folders = [os.open(f"/proc/{first}/root{place}", os.O_DIRECTORY) for place in ("/tmp", "/dev/shm")]
        self._processes = os.open(f"/proc/{first}/root/proc", os.O_DIRECTORY)
        found = self._sized()
        self._disk = limits.disk if found is None else max(limits.disk, found)
        self._dismissed = Event()
        Thread(target=self._watch, daemon=True, name="guard of a cell").start()

    def dismiss(self) -> None:
        """Look no more. May be called by any thread, any number of times."""
        self._dismissed.set()

    def _watch(self) -> None:
        pause = PAUSE  # the process that made it too large may make it smaller at once
        while not self._dismissed.wait(pause):
            begun = perf_counter()
            found = self._excess()
            if found is not None:
                self._over(self, found)
                break
            pause = max(PAUSE, (perf_counter() - begun) / SHARE)
        for descriptor in (*self._folders, self._processes):
            os.close(descriptor)

    def _excess(self) -> Excess | None:
        tally, limits = self._tally(), self._limits
        if tally.processes > limits.processes:
            return Excess("processes", f"{tally.processes} processes at once, {limits.processes} are allowed")
        if tally.memory > limits.memory:
            told = f"{readable(tally.memory)} of memory in all, {readable(limits.memory)} are allowed"
            return Excess("memory", told)
        named = self._sized(self._disk)
        if named is None:
            return Excess("disk", "the workspace has a folder that is too deep, or closed: its size cannot be told")
        if named + tally.disk > self._disk:
            told = f"{readable(named + tally.disk)} in the workspace, {readable(limits.disk)} are allowed"
            return Excess("disk", told)
        return None

    def _tally(self) -> Tally:
        tally = Tally()
        for folder in self._folders:
            there = os.statvfs(folder)
            tally.memory += (there.f_blocks - there.f_bfree) * there.f_frsize
        with suppress(OSError):  # the cell has ended
            for name in os.listdir(self._processes):
                if name.isdecimal() and name not in OURS:
                    with suppress(OSError):  # this process has
                        self._count(name, tally)
                if tally.processes > self._limits.processes:
                    break  # that is enough
        return tally

    def _count(self, process: str, tally: Tally) -> None:
        for name, value in _status(self._processes, process):
            if name == b"Threads":
                tally.processes += value
            else:
                tally.memory += value * 1024
        for found in _open_files(self._processes, process):
            if (
                stat.S_ISREG(found.st_mode)
                and not found.st_nlink
                and (found.st_dev, found.st_ino) not in tally.nameless
            ):
                tally.nameless.add((found.st_dev, found.st_ino))
                if found.st_dev == self._device:
                    tally.disk += found.st_blocks * 512
                else:
                    tally.memory += found.st_blocks * 512

    def _sized(self, enough: int | None = None) -> int | None:
        """Return how many bytes the workspace takes, or more than `enough`; None where that cannot be told."""
        size, waiting = 0, [str(self._workspace)]
        while waiting and (enough is None or size <= enough):
            try:
                for found, path in _entries(waiting.pop()):
                    size += max(ENTRY, found.st_blocks * 512)
                    if stat.S_ISDIR(found.st_mode):
                        waiting.append(path)
            except (FileNotFoundError, NotADirectoryError):
                continue  # it was removed meanwhile, or is another one
            except OSError:
                return None
        return size


def _entries(folder: str) -> Iterator[tuple[os.stat_result, str]]:
    """Yield what is in a folder; what is removed meanwhile is not. Raises OSError."""
    with os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                yield entry.stat(follow_symlinks=False), entry.path


def _status(processes: int, process: str) -> Iterator[tuple[bytes, int]]:
    """Yield how many threads a process has, and its memory in KiB: what is its own, and what is shared in memory."""
    descriptor = os.open(f"{process}/status", os.O_RDONLY, dir_fd=processes)
    try:
        text = os.read(descriptor, 65536)
    finally:
        os.close(descriptor)
    for line in text.split(b"\n"):
        name, _, value = line.partition(b":")
        if name in (b"RssAnon", b"RssShmem", b"Threads"):
            yield name, int(value.split()[0])


def _open_files(processes: int, process: str) -> Iterator[os.stat_result]:
    folder = os.open(f"{process}/fd", os.O_DIRECTORY, dir_fd=processes)
    try:
        for name in os.listdir(folder):
            with suppress(OSError):
                yield os.stat(name, dir_fd=folder)
    finally:
        os.close(folder)
