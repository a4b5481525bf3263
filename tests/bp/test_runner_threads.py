"""The runner and other threads: posts are heard at once, on both event loops; and a runner runs once at a time."""

import os
import signal
from collections.abc import Callable, Coroutine
from functools import partial
from threading import Thread, Timer
from typing import Any

import anyio
import pytest

from bp import BProgram, BProgramError, Step, bthread, sync
from bp.runner import Runner, Wakeup
from tests.bp.asking import Asked, Book, Halt, Told, ask, effect, listen

pytestmark = pytest.mark.anyio

SOON = 5  # seconds; the thing itself takes milliseconds, and nothing else wakes the event loop before
A_MOMENT = 0.05  # seconds


async def hang(_: Asked) -> Told:
    await anyio.sleep_forever()
    raise AssertionError("unreachable")


async def beside(run: Callable[[], Coroutine[Any, Any, None]], *functions: Callable[[], object]) -> None:
    """Run, and call functions in a thread of its own when the event loop waits: a moment after nothing moves."""
    thread = Timer(A_MOMENT, lambda: [function() for function in functions])
    thread.daemon = True
    with anyio.fail_after(SOON):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(run)
            await anyio.wait_all_tasks_blocked()
            thread.start()
    thread.join()


async def test_a_post_from_another_thread_is_heard_at_once() -> None:
    runner = Runner(BProgram(ask(), listen()), [effect(hang)], book := Book())

    await beside(runner.run, lambda: runner.post(Halt()))

    assert book.events == [Asked(0), Halt(), Told(0, "cancelled")]


async def test_a_post_from_a_signal_handler_is_heard_at_once() -> None:
    runner = Runner(BProgram(ask(), listen()), [effect(hang)], book := Book())
    before = signal.signal(signal.SIGUSR1, lambda *_: runner.post(Halt()))
    try:
        await beside(runner.run, lambda: os.kill(os.getpid(), signal.SIGUSR1))
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert book.events == [Asked(0), Halt(), Told(0, "cancelled")]


async def test_posts_of_one_thread_keep_their_order() -> None:
    runner = Runner(BProgram(ask(), listen()), [effect(hang)], book := Book())
    posts = [Told(number) for number in range(100)]

    await beside(partial(runner.run, Halt), *[lambda post=post: runner.post(post) for post in (*posts, Halt())])

    assert book.events == [Asked(0), *posts, Halt()]
    await runner.close()


async def test_posts_of_many_threads_all_arrive() -> None:
    runner = Runner(BProgram(listen()), [], book := Book())

    def post_hundred(first: int) -> None:
        for number in range(100):
            runner.post(Told(first + number))

    def post_all() -> None:
        threads = [Thread(target=post_hundred, args=[first]) for first in range(0, 400, 100)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        runner.post(Halt())

    await beside(partial(runner.serve, Halt), post_all)

    assert len(book.events) == 401
    assert set(book.events) == {Halt(), *map(Told, range(400))}


async def test_a_failure_from_another_thread_ends_the_run_at_once() -> None:
    runner = Runner(BProgram(ask(), listen()), [effect(hang)])

    with pytest.raises(ExceptionGroup) as group:
        await beside(runner.run, lambda: runner.fail(ValueError("it broke")))

    assert str(group.value.exceptions[0]) == "it broke"
    await runner.close()


@pytest.mark.parametrize(
    ("post", "complaint"),
    [
        ((Told,), "only events can be posted"),
        (("told",), "only events can be posted"),
        ((Halt(), "later"), "use 'keep'"),
    ],
)
async def test_what_cannot_be_posted_is_refused_where_it_is_posted(post: tuple[Any, ...], complaint: str) -> None:
    """Found: the run ended with the error of the thread that had posted it."""
    runner = Runner(BProgram(listen()))

    with pytest.raises(TypeError, match=complaint):
        runner.post(*post)

    await runner.run()


async def test_posts_before_and_after_a_run_wait_for_the_next_one() -> None:
    runner = Runner(BProgram(listen()), [], book := Book())

    for number in (1, 2):
        thread = Thread(target=runner.post, args=[Told(number)])
        thread.start()
        thread.join()
        await runner.run(until=Told)

    assert book.events == [Told(1), Told(2)]


def test_a_post_after_the_end_of_the_event_loop_waits_for_the_next_run(anyio_backend: str) -> None:
    runner = Runner(BProgram(listen()), [], book := Book())

    async def wait() -> None:
        with anyio.move_on_after(0.01):
            await runner.serve()

    anyio.run(wait, backend=anyio_backend)
    runner.post(Told(1))
    anyio.run(runner.run, Told, backend=anyio_backend)

    assert book.events == [Told(1)]


async def test_what_was_set_before_is_not_waited_for() -> None:
    wakeup = Wakeup()
    wakeup.set()

    with anyio.fail_after(SOON):
        await wakeup.wait()

    with anyio.move_on_after(0) as patience:
        await wakeup.wait()
    assert patience.cancelled_caught


# One run at a time


async def test_a_second_run_beside_the_first_is_refused() -> None:
    """Found: it hung for ever after the program had finished."""
    runner = Runner(BProgram(ask(), listen()), [effect(hang)], book := Book())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.run, Told)
        await anyio.wait_all_tasks_blocked()
        for second in (runner.run, runner.serve):
            with pytest.raises(BProgramError, match="runs already; await"):
                await second()
        runner.post(Halt())

    assert book.events == [Asked(0), Halt(), Told(0, "cancelled")]
    await runner.run()  # after the first one


# Serving


async def test_a_program_that_serves_waits_for_posts_until_the_set_comes() -> None:
    """Found: without an effect under way, `until` that only a post brings was a deadlock."""
    runner = Runner(BProgram(listen()), [], book := Book())

    await beside(partial(runner.serve, Halt), lambda: runner.post(Told(1)), lambda: runner.post(Halt()))

    assert book.events == [Told(1), Halt()]


async def test_posts_without_end_leave_the_event_loop_to_others() -> None:
    """Found: while posts waited the runner never gave way, so that it could not even be cancelled."""

    class Flood(Book):
        def record(self, step: Step) -> None:
            runner.post(Told(len(self.steps)))
            super().record(step)
            assert len(self.steps) < 100_000, "the event loop never had a turn"

    runner = Runner(BProgram(listen()), [], Flood())
    runner.post(Told(0))

    with anyio.move_on_after(0.05) as patience:
        await runner.serve()

    assert patience.cancelled_caught


async def test_blocked_requests_are_no_deadlock_while_a_post_may_help() -> None:
    @bthread
    def only_after_halt() -> Any:
        yield sync(wait_for=Halt, block=Asked)

    runner = Runner(BProgram(ask(), only_after_halt()), [effect()], book := Book())

    await beside(runner.serve, lambda: runner.post(Halt()))

    assert book.events == [Halt(), Asked(0)]


async def test_serving_ends_with_the_last_b_thread() -> None:
    with anyio.fail_after(SOON):
        await Runner(BProgram(ask()), [effect()]).serve()

    with anyio.fail_after(SOON), pytest.raises(BProgramError, match="did not come"):
        await Runner(BProgram(ask()), [effect()]).serve(until=Halt)


@pytest.mark.parametrize("until", [lambda event: True, "halt", None])
async def test_an_end_that_is_no_event_set_is_refused_at_once(until: Any) -> None:
    runner = Runner(BProgram(listen()))
    runner.post(Told(1))

    for run in (runner.run, runner.serve):
        with anyio.fail_after(SOON), pytest.raises(TypeError, match="is no event set"):
            await run(until)


async def test_a_list_is_an_event_set_as_an_end() -> None:
    book = Book()
    runner = Runner(BProgram(listen()), journal=book)
    runner.post(Halt())

    with anyio.fail_after(SOON):
        await runner.run(until=[Told, Halt])

    assert book.events == [Halt()]
