"""A run and other threads: what people do from there is heard at once, on both event loops, and nothing is lost."""

from collections.abc import Callable
from threading import Barrier, Thread, Timer
from time import sleep
from typing import Any

import anyio
import pytest

from agent import call, tool
from agent.session.run import Run
from agent.vocabulary.events import ApprovalAsked, FollowUpGiven, GateApproved, GateRejected, SteeringGiven, ToolStarted
from tests.agent.conftest import MakeAgent

pytestmark = pytest.mark.anyio

SOON = 5  # seconds; the thing itself takes milliseconds, and nothing else wakes the event loop before
A_MOMENT = 0.05  # seconds
QUESTIONABLE = call("bash", command="git reset --hard")


@tool(category="read")
async def hang() -> str:
    """Never come back."""
    await anyio.sleep_forever()
    raise AssertionError("unreachable")


async def at(run: Run, kind: type[Any], do: Callable[[], object]) -> None:
    """Do something in another thread once an event of this kind happened, and the event loop waits."""
    async for step in run:
        if isinstance(step.event, kind):
            await anyio.wait_all_tasks_blocked()
            Timer(A_MOMENT, do).start()
            return


async def test_an_abort_from_another_thread_is_heard_at_once(make_agent: MakeAgent) -> None:
    with anyio.fail_after(SOON):
        async with make_agent(call("hang"), tools=[hang]).start("Go") as run:
            await at(run, ToolStarted, run.abort)

    assert (run.status, run.reason) == ("aborted", "abort_asked")


async def test_a_stop_from_another_thread_is_heard_at_once(make_agent: MakeAgent) -> None:
    with anyio.fail_after(SOON):
        async with make_agent(QUESTIONABLE).start("Go") as run:
            await at(run, ApprovalAsked, run.stop)

    assert (run.status, run.reason) == ("stopped", "stop_asked")


async def test_steering_from_another_thread_is_heard_at_once(make_agent: MakeAgent) -> None:
    def steer() -> None:
        run.steer("Rather this.")
        run.abort()

    with anyio.fail_after(SOON):
        async with make_agent(call("hang"), tools=[hang]).start("Go") as run:
            await at(run, ToolStarted, steer)

    assert SteeringGiven("Rather this.") in run.events
    assert run.status == "aborted"


@pytest.mark.parametrize("yes", [True, False])
async def test_an_answer_from_another_thread_is_heard_at_once(make_agent: MakeAgent, yes: bool) -> None:
    with anyio.fail_after(SOON):
        async with make_agent(QUESTIONABLE, "Done.").start("Go") as run:
            await at(run, ApprovalAsked, lambda: run.answer("call_1", yes))

    assert any(isinstance(event, GateApproved if yes else GateRejected) for event in run.events)


async def test_of_answers_from_many_threads_the_first_counts(make_agent: MakeAgent) -> None:
    together = Barrier(8)
    refused: list[KeyError] = []

    def answer_once() -> None:
        together.wait()
        try:
            run.answer("call_1", yes=False)
        except KeyError as error:
            refused.append(error)

    threads = [Thread(target=answer_once) for _ in range(8)]

    def answer_together() -> None:
        for thread in threads:
            thread.start()

    with anyio.fail_after(SOON):
        async with make_agent(QUESTIONABLE, "Done.").start("Go") as run:
            await at(run, ApprovalAsked, answer_together)

    for thread in threads:
        thread.join()
    assert len(refused) == 7


async def test_what_another_thread_says_while_a_run_ends_is_what_the_next_one_begins_with(
    make_agent: MakeAgent,
) -> None:
    agent = make_agent(call("hang"), "Heard.", tools=[hang])
    words: list[str] = []

    def say(count: int) -> None:
        for _ in range(count):
            words.append(f"word {len(words)}")
            run.follow_up(words[-1])

    def say_until_the_end() -> None:
        while run.status == "running":
            say(1)
            sleep(0.001)
        say(3)

    thread = Thread(target=say_until_the_end)
    with anyio.fail_after(SOON):
        async with agent.start("Go") as run:
            thread.start()
            await at(run, FollowUpGiven, run.abort)
        await anyio.to_thread.run_sync(thread.join)
        await agent.run("And now")

    assert [message.text for message in agent.messages if message.text.startswith("word")] == words
