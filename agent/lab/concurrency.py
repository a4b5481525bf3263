"""File locks between the processes of a machine, and a bounded number of parallel tasks in one process.

The system releases a lock when its file is closed, also when its process is killed.
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
    """Open a file (created if missing, mode 0600), lock it, and yield its descriptor.

    The thread waits for the lock, so hold it briefly. `flags`: more for `os.open`. Raises OSError.
    """
    descriptor = os.open(path, FLAGS | flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield descriptor
    finally:
        os.close(descriptor)


@asynccontextmanager
async def alone(path: Path) -> AsyncIterator[int]:
    """Like `locked`, without blocking the other tasks of this process, one of which may hold the lock."""
    descriptor = os.open(path, FLAGS, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await anyio.sleep(LOOKS)
        yield descriptor
    finally:
        os.close(descriptor)


T = TypeVar("T")


async def at_once(items: Iterable[T], work: Callable[[T], Awaitable[object]], *, most: int) -> None:
    """Call `work` for each item, started in order, at most `most` of them at once.

    The first exception cancels the others and is raised.
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
