"""Run a blocking function without ever waiting for it longer than the caller wants.

The thread is a daemon of ours, not one of a pool: a pool waits for its threads when the program ends, so that one
function that never returns would keep the whole program alive.
"""

import threading
from collections.abc import Callable
from typing import Any, TypeVar

import anyio
from anyio import from_thread
from anyio.lowlevel import EventLoopToken, current_token

__all__ = ["call_back", "run_in_background"]

T = TypeVar("T")


async def run_in_background(function: Callable[[], T]) -> T:
    """Return what `function` returns, or raise what it raises; it runs in a daemon thread.

    When the caller is cancelled the thread is abandoned: it runs on, and what it returns is dropped.
    """
    token, done = current_token(), anyio.Event()
    returned: list[T] = []
    raised: list[BaseException] = []

    def work() -> None:
        try:
            returned.append(function())
        except BaseException as error:
            raised.append(error)
        _call_loop(token, done.set)

    threading.Thread(target=work, daemon=True, name="bpagent tool").start()
    await done.wait()
    if raised:
        raise raised.pop()
    return returned.pop()


def call_back(function: Callable[[str], None], token: EventLoopToken) -> Callable[[str], None]:
    """Return `function` as another thread may call it: it runs in the event loop of `token`, or not at all."""
    return lambda text: _call_loop(token, lambda: function(text))


def _call_loop(token: EventLoopToken, function: Callable[[], Any]) -> None:
    try:
        from_thread.run_sync(function, token=token)
    except anyio.RunFinishedError:
        return  # nobody is there any more: the program ended while this thread was abandoned
