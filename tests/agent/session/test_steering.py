"""Steering, follow-ups and calls that run together, in whole runs; and an abort at every moment of such a run."""

from collections.abc import Sequence

import anyio
import pytest
from attrs import evolve

from agent import answer, call, tool
from agent.effects.hooks import Hooks
from agent.models.scripted import fail
from agent.presets.shipped import PRESETS
from agent.verification.invariants import OUTCOMES
from agent.vocabulary.events import (
    AnswerCommitted,
    CallAnswered,
    MessagesFound,
    ProposedAction,
    RunEnded,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import Image, Message, UserMessage
from bp import BThreadBody, Event, Step, bthread, sync, where
from tests.agent.conftest import MakeAgent
from tests.agent.notes import answers, grumble, note
from tests.agent.session.test_stopping import assert_every_committed_call_is_answered

pytestmark = pytest.mark.anyio

DEFAULT = PRESETS["default"]


def said(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages if isinstance(message, UserMessage)]


async def test_all_steering_is_heard_in_its_order_after_the_answers_of_the_batch(make_agent: MakeAgent) -> None:
    @tool(category="read")
    async def steer() -> str:
        """Steer twice."""
        run.steer("Rather this.")
        run.steer("And that.")
        return "steered"

    async with make_agent([call("steer"), call("note")], "Done.", tools=[steer, note]).start("Go") as run:
        pass

    assert answers(run.messages) == ["steered", "skipped: Skipped due to queued user message."]
    assert said(run.messages) == ["Go", "Rather this.", "And that."]
    assert run.unheard == ()


async def test_steering_before_the_first_inference_and_during_the_last_one_is_heard(make_agent: MakeAgent) -> None:
    async def last(_: object) -> str:
        run.steer("One more thing.")
        return "Done."

    async with make_agent("Hello.", last, "Really done.").start("Go") as run:
        run.steer("Wait.")

    assert said(run.messages) == ["Go", "Wait.", "One more thing."]
    assert run.text == "Really done."


async def test_parallel_calls_that_run_finish_and_those_behind_a_barrier_are_skipped(make_agent: MakeAgent) -> None:
    go_on = anyio.Event()

    @tool(category="read", parallel=True)
    async def wait() -> str:
        """Wait beside others."""
        await go_on.wait()
        return "waited"

    agent = make_agent([call("wait"), call("wait"), call("note")], "Done.", tools=[wait, note])
    async with agent.start("Go") as run:
        async for step in run:
            if isinstance(step.event, ToolStarted):
                break
        await anyio.wait_all_tasks_blocked()
        run.steer("Enough.")
        go_on.set()

    assert answers(run.messages) == ["waited", "waited", "skipped: Skipped due to queued user message."]


async def test_an_unsafe_call_runs_alone_and_safe_neighbours_together(make_agent: MakeAgent) -> None:
    @tool(category="read", parallel=True)
    async def safe() -> str:
        """Run beside others."""
        await anyio.wait_all_tasks_blocked()
        return "safe"

    @tool(category="read")
    async def alone() -> str:
        """Run alone."""
        await anyio.wait_all_tasks_blocked()
        return "alone"

    calls = [call("safe"), call("safe"), call("alone"), call("safe")]
    run = await make_agent(calls, "Done.", tools=[safe, alone]).run("Go")

    ran = [(event.name, event.call.tool) for event in run.events if isinstance(event, ToolStarted | ToolFinished)]
    assert ran == [
        *[("tool_started", "safe")] * 2,
        *[("tool_finished", "safe")] * 2,
        ("tool_started", "alone"),
        ("tool_finished", "alone"),
        ("tool_started", "safe"),
        ("tool_finished", "safe"),
    ]
    assert answers(run.messages) == ["safe", "safe", "alone", "safe"]


@pytest.mark.parametrize(("end", "status"), [("abort", "aborted"), ("stop", "stopped")])
async def test_what_a_run_leaves_unheard_is_seen_and_begins_the_next_one(
    make_agent: MakeAgent, end: str, status: str
) -> None:
    @tool(category="read")
    async def leave() -> str:
        """Say something, and end the run."""
        run.steer("Rather this.")
        run.follow_up("And then that.")
        getattr(run, end)()
        return "left"

    agent = make_agent(call("leave"), "Both.", tools=[leave])
    async with agent.start("Go") as run:
        pass
    left = run.unheard
    run.steer("Too late.")
    again = await agent.run("Go on")

    assert run.status == status
    assert left == ("Rather this.", "And then that.")
    assert said(again.messages)[1:] == ["Rather this.", "And then that.", "Too late.", "Go on"]
    assert again.unheard == run.unheard == ()


async def test_at_a_limit_follow_ups_are_left_for_later(make_agent: MakeAgent) -> None:
    agent = make_agent("One.", preset=evolve(DEFAULT, max_iterations=1))
    async with agent.start("Go") as run:
        run.follow_up("And that.")
        run.follow_up("And more.")

    assert run.status == "limit"
    assert run.unheard == ("And more.",)
    assert said(run.messages) == ["Go", "And that."]


@bthread
def reviewer() -> BThreadBody:
    yield sync(wait_for=AnswerCommitted, refuse=where(RunEnded, status="completed"), because="Look again.")
    yield sync(wait_for=AnswerCommitted, refuse=where(RunEnded, status="completed"), because="Look again.")


async def test_why_a_protocol_lets_a_run_go_on_reaches_the_model(make_agent: MakeAgent) -> None:
    """And a follow-up waits until the protocol is content."""
    agent = make_agent("Done.", "Looked.", "Followed.", threads=[reviewer()])
    async with agent.start("Go") as run:
        run.follow_up("And that.")

    assert said(run.messages) == ["Go", "Look again.", "And that."]


# An abort at every moment of a run with everything in it

SCRIPT = (
    answer("Look.", call("note", text="a"), call("grumble"), call("bash", command="sudo true"), call("note")),
    fail("busy", retryable=True),
    [call("note", text="b"), call("note", text="c")],
    "One.",
    "Two.",
    "Three.",
)
TOGETHER = evolve(note, parallel=True)


async def whole_run(make_agent: MakeAgent, at: int) -> list[Event]:
    """Take the run of SCRIPT with two follow-ups and steering, and abort it right after step `at`."""

    def step_in(step: Step) -> None:
        if step.number == 4:
            run.follow_up("And that.")
            run.follow_up("And more.")
        if isinstance(step.event, ToolFinished) and step.event.result == "noted b":
            run.steer("Rather this.")
        if step.number == at:
            run.abort()

    agent = make_agent(
        *SCRIPT,
        tools=[TOGETHER, grumble, *shell()],
        approve=lambda _: True,
        on_step=step_in,
        hooks=Hooks(get_steering_messages=quiet, get_follow_up_messages=quiet),
    )
    with anyio.fail_after(5):
        async with agent.start("Go") as run:
            pass
    await anyio.wait_all_tasks_blocked()
    assert said(run.messages)[:1] == ["Go"]
    assert run.status in ("aborted", "completed")
    return list(run.events)


async def quiet() -> list[str]:
    return []


def shell() -> list[object]:
    @tool(name="bash", category="write")
    async def pretend(command: str) -> str:
        """Pretend to run a command."""
        return command

    return [pretend]


@pytest.mark.slow
async def test_a_run_with_everything_in_it_can_be_aborted_at_every_moment(make_agent: MakeAgent) -> None:
    """Calls together, refused, asked about and failing, a backoff, steering, follow-ups, and hooks that are asked."""
    whole = await whole_run(make_agent, 0)
    assert whole[-1].text == "Three."  # type: ignore[attr-defined]
    assert len([event for event in whole if isinstance(event, MessagesFound)]) > 5

    for at in range(1, len(whole)):
        events = await whole_run(make_agent, at)

        assert [isinstance(event, RunEnded) for event in events].index(True) == len(events) - 1
        assert_every_committed_call_is_answered(events)
        asked = next((number for number, event in enumerate(events) if event.name == "abort_asked"), len(events))
        for event in events[asked:]:
            assert type(event) not in OUTCOMES, f"{event.name} after the abort at {at}"
        assert isinstance(events[-1], RunEnded)
        starts = sum(isinstance(event, ProposedAction) for event in events)
        assert starts <= sum(isinstance(event, CallAnswered) for event in events)


@pytest.mark.parametrize("end", ["in time", "too late"])
async def test_what_people_show_with_their_words_is_heard_with_them(end: str, make_agent: MakeAgent) -> None:
    first, second = (UserMessage(words, (Image("image/png", words.encode()),)) for words in ("This.", "And this."))

    @tool(category="read")
    async def show() -> str:
        """Show two pictures."""
        run.steer(first)
        run.follow_up(second)
        if end == "too late":
            run.stop()
        return "shown"

    agent = make_agent(call("show"), "I see.", "I see that too.", tools=[show])
    async with agent.start("Go") as run:
        pass
    again = await agent.run("Go on") if end == "too late" else run

    assert [message for message in again.messages if isinstance(message, UserMessage)][1:3] == [first, second]
