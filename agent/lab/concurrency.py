"""Concurrency: locks between the processes of a machine, and many tasks at once in one of them, but not too many.

The system takes a lock back when its file is closed, and so from a process that was killed.
"""

import fcntl
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import TypeVar

import anyio

LOOKS = 0.02  # seconds between two looks at a lock
FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


@contextmanager
def locked(path: Path, *, flags: int = 0) -> Iterator[int]:
    """Open a file, which need not be there and only its owner can read, and have it alone. Gives its descriptor.

    For what takes no longer than a read and a write: the thread waits. `flags`: more for `os.open`. Raises OSError.
    """
    descriptor = os.open(path, FLAGS | flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


@asynccontextmanager
async def alone(lock: Path) -> AsyncIterator[None]:
    """Hold this lock while the block lasts; its file is made, and removed. Raises OSError."""
    while True:
        descriptor = os.open(lock, FLAGS, 0o600)
        try:
            await _flock(descriptor)
            if _is_still(lock, descriptor):  # who had it before may have removed it
                try:
                    yield
                finally:
                    lock.unlink(missing_ok=True)
                return
        finally:
            os.close(descriptor)


async def _flock(descriptor: int) -> None:
    """Wait for a lock without blocking the other tasks of this process, one of which may hold it."""
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await anyio.sleep(LOOKS)


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


T = TypeVar("T")


async def at_once(items: Iterable[T], work: Callable[[T], Awaitable[object]], *, most: int) -> None:
    """Do work for each item, begun in their order, for at most `most` items at once, and at least one.

    What it raises for one of them ends the others, and is raised: the first, if several do.
    """
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    try:
        async with anyio.create_task_group() as tasks:
            for _ in range(max(1, most)):
                tasks.start_soon(worker)
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from group
