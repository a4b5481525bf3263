"""Runs a blocking function in a thread that can be abandoned.

The threads are daemons of ours, not those of a pool: a pool waits for its threads when the program ends, so that one
function that never returns would keep the whole program alive.
"""

import os
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from contextvars import Context, copy_context
from inspect import isawaitable
from queue import Empty, SimpleQueue
from time import time
from typing import Any, TypeVar

import anyio
from anyio.lowlevel import EventLoopToken, current_token

PATIENCE = 0.2  # seconds until a thread without work ends
IDLE: list["SimpleQueue[Callable[[], None]]"] = []
"""The queues of threads without work: starting a thread takes longer than most calls."""
DISCARDED: list[float] = []
"""The times, in seconds since 1970, at which results of abandoned functions came and were discarded."""
os.register_at_fork(after_in_child=IDLE.clear)  # the threads stay in the parent

T = TypeVar("T")


async def run_in_background(function: Callable[[], T]) -> T:
    """Return the result of `function`, or raise its exception; it runs in a daemon thread, in the caller's context.

    A coroutine that it returns is awaited in the event loop.

    When the caller is cancelled the thread is abandoned: it runs on, and its result is discarded.
    """
    token, done, context = current_token(), anyio.Event(), _context_of_a_thread()
    returned: list[Any] = []
    raised: list[BaseException] = []
    is_abandoned = False

    def work() -> None:
        try:
            returned.append(context.run(function))
        except BaseException as error:
            raised.append(error)
        if is_abandoned:
            DISCARDED.append(time())
        _tell(token, done.set)

    _begin(work)
    try:
        await done.wait()
    finally:
        is_abandoned = True
    if raised:
        raise raised.pop()
    result = returned.pop()
    return await result if isawaitable(result) else result  # type: ignore[no-any-return]


def _context_of_a_thread() -> Context:
    """Return the caller's context for a thread, which has no event loop and may start one."""
    context, sniffio = copy_context(), sys.modules.get("sniffio")
    if sniffio is not None:  # where anyio looks for an event loop
        context.run(sniffio.current_async_library_cvar.set, None)
    return context


def _begin(work: Callable[[], None]) -> None:
    """Do `work` in an idle thread, or in a new one."""
    try:
        queue = IDLE.pop()
    except IndexError:
        queue = SimpleQueue()
        threading.Thread(target=_serve, args=(queue,), daemon=True, name="bpagent tool").start()
    queue.put(work)


def _serve(queue: "SimpleQueue[Callable[[], None]]") -> None:
    """Do one work after the other; end after a time without any, unless a caller has taken the queue meanwhile."""
    while True:
        try:
            queue.get(timeout=PATIENCE)()
            IDLE.append(queue)
        except Empty:
            with suppress(ValueError):
                IDLE.remove(queue)
                return


def call_back(function: Callable[[str], None], token: EventLoopToken) -> Callable[[str], None]:
    """Return a thread-safe `function`: it runs in the event loop of `token`, or not at all if that has ended."""

    def call(text: str) -> None:
        from anyio import from_thread  # a slow import (5 ms)

        with suppress(anyio.RunFinishedError):  # the program ended after this thread was abandoned
            from_thread.run_sync(function, text, token=token)

    return call


def _tell(token: EventLoopToken, function: Callable[[], None]) -> None:
    """Schedule `function` in the event loop of `token` without waiting, since the loop may end before."""
    loop: Any = token.native_token
    soon = loop.call_soon_threadsafe if hasattr(loop, "call_soon_threadsafe") else loop.run_sync_soon  # else trio's
    with suppress(RuntimeError):  # the loop has ended
        soon(function)


async def unwind(pieces: AsyncIterator[object]) -> None:
    """End an iterator, also one that is left early.

    It is a chain of async generators. `aclose` closes only the outermost, and trio warns of the others when they are
    garbage-collected. A cancelled read closes all, from the innermost outwards.
    """
    import httpx2

    with anyio.CancelScope() as scope, suppress(httpx2.HTTPError):  # errors of the abandoned rest do not matter
        scope.cancel()
        while await anext(pieces, None) is not None:
            pass
