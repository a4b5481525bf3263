"""Run a blocking function without ever waiting for it longer than the caller wants.

The threads are daemons of ours, not those of a pool: a pool waits for its threads when the program ends, so that one
function that never returns would keep the whole program alive.
"""

import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any, TypeVar

import anyio
from anyio.lowlevel import EventLoopToken, current_token

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
        _tell(token, done.set)

    threading.Thread(target=work, daemon=True, name="bpagent tool").start()
    await done.wait()
    if raised:
        raise raised.pop()
    return returned.pop()


def call_back(function: Callable[[str], None], token: EventLoopToken) -> Callable[[str], None]:
    """Return `function` as another thread may call it: it runs in the event loop of `token`, or not at all."""
    return lambda text: _call_loop(token, lambda: function(text))


def _tell(token: EventLoopToken, function: Callable[[], None]) -> None:
    """Have the event loop of `token` call `function` soon; not waiting for it, since the loop may end before."""
    loop: Any = token.native_token
    soon = loop.call_soon_threadsafe if hasattr(loop, "call_soon_threadsafe") else loop.run_sync_soon  # else trio's
    with suppress(RuntimeError):  # it has ended: no result is waited for
        soon(function)


def _call_loop(token: EventLoopToken, function: Callable[[], Any]) -> None:
    from anyio import from_thread  # 5 ms, which programs without such tools do without

    try:
        from_thread.run_sync(function, token=token)
    except anyio.RunFinishedError:
        return  # no listener is left: the program ended while this thread was abandoned


async def unwind(pieces: AsyncIterator[object]) -> None:
    """End an iterator, also one that is left early.

    It is a chain of async generators, of which `aclose` reaches only the outermost, and trio warns of every other
    that is left to the garbage collector. A cancelled read ends them all, from the innermost outwards.
    """
    import httpx2

    with anyio.CancelScope() as scope, suppress(httpx2.HTTPError):  # what breaks now was not wanted any more
        scope.cancel()
        while await anext(pieces, None) is not None:
            pass
