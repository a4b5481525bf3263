"""Pieces of text on their way to those who look on: coalesced, about twenty times a second, never in the log."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

__all__ = ["INTERVAL", "Watcher", "coalesced"]

INTERVAL = 0.05  # seconds between two pieces that a watcher sees

Watcher = Callable[[str], None]


@asynccontextmanager
async def coalesced(watcher: Watcher | None) -> AsyncIterator[Watcher]:
    """Give a function that takes pieces of text; `watcher`, which must not raise, gets them joined and whole."""
    if watcher is None:
        yield _ignore
        return
    pieces: list[str] = []
    failure: Exception | None = None

    def show() -> None:
        if pieces:
            text = "".join(pieces)
            pieces.clear()
            watcher(text)

    async def show_now_and_then() -> None:
        while True:
            await anyio.sleep(INTERVAL)
            show()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(show_now_and_then)
        try:
            yield pieces.append
        except Exception as error:  # kept out of the task group, which would make a group of it
            failure = error
        finally:
            show()
            tasks.cancel_scope.cancel()
    if failure is not None:
        raise failure


def _ignore(_: str) -> None:
    """Nobody looks on."""
