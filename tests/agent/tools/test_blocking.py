"""`agent.tools.blocking`: blocking functions that nobody has to wait for."""

import subprocess
import sys
import threading
from collections.abc import Callable

import anyio
import pytest
from anyio.lowlevel import current_token

from agent.tools.blocking import call_back, run_in_background


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop waits for threads: each of both is tried."""
    return str(request.param)


@pytest.mark.slow
def test_an_abandoned_function_may_end_after_the_event_loop(anyio_backend: str) -> None:
    release, threads = threading.Event(), []

    def block(report: Callable[[str], None]) -> None:
        threads.append(threading.current_thread())
        report("begun")
        release.wait(1000)
        report("nobody hears this")

    async def main() -> None:
        begun = anyio.Event()
        report = call_back(lambda _: begun.set(), current_token())
        async with anyio.create_task_group() as group:
            group.start_soon(run_in_background, lambda: block(report))
            await begun.wait()
            group.cancel_scope.cancel()

    anyio.run(main, backend=anyio_backend)
    release.set()
    threads[0].join(100)

    assert not threads[0].is_alive()


@pytest.mark.slow
def test_a_function_that_never_returns_does_not_keep_the_program_alive(anyio_backend: str) -> None:
    script = f"""
import anyio, threading
from agent.tools.blocking import run_in_background
async def main():
    with anyio.move_on_after(0.1):
        await run_in_background(threading.Event().wait)
anyio.run(main, backend={anyio_backend!r})
print("over")
"""

    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert ended.stdout == "over\n"
    assert ended.stderr == ""


def test_a_thread_does_one_function_after_the_other_and_ends_when_there_are_no_more(anyio_backend: str) -> None:
    async def main() -> list[threading.Thread]:
        return [await run_in_background(threading.current_thread) for _ in range(100)]

    threads = anyio.run(main, backend=anyio_backend)
    for thread in threads:
        thread.join(5)

    assert len(set(threads)) < 50
    assert not any(thread.is_alive() for thread in threads)


def test_functions_do_not_wait_for_abandoned_ones_and_errors_are_raised(anyio_backend: str) -> None:
    release = threading.Event()

    async def main() -> list[int]:
        with anyio.move_on_after(0.05):
            await run_in_background(release.wait)
        with pytest.raises(ZeroDivisionError):
            await run_in_background(lambda: 1 // 0)
        return [await run_in_background(lambda number=number: number) for number in range(20)]  # type: ignore[misc]

    assert anyio.run(main, backend=anyio_backend) == [*range(20)]
    release.set()


FORKING = """
import anyio, os, warnings
from agent.tools.blocking import run_in_background
warnings.simplefilter("ignore")  # of a fork beside threads
async def main():
    return await run_in_background(os.getpid)
parent = anyio.run(main)
if os.fork():
    os.wait()
else:
    print(anyio.run(main) == os.getpid() != parent, flush=True)
"""


@pytest.mark.slow
def test_a_copy_of_the_process_has_threads_of_its_own() -> None:
    ended = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=20, check=True)

    assert (ended.stdout, ended.stderr) == ("True\n", "")
