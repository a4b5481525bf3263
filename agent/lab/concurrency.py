"""Concurrency: many things done at once, but no more than so many."""

from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

import anyio

__all__ = ["at_once"]

T = TypeVar("T")


async def at_once(items: Iterable[T], work: Callable[[T], Awaitable[object]], *, most: int) -> None:
    """Have work done for each item, begun in their order, for at most `most` of them at once, and for one at least.

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
