"""Steering, follow-ups and calls that run together, in whole runs; and an abort at every moment of such a run."""

from collections.abc import Sequence

import pytest

from agent import call, tool
from agent.presets.shipped import PRESETS
from agent.vocabulary.events import (
    AnswerCommitted,
    RunEnded,
)
from agent.vocabulary.messages import Image, Message, UserMessage
from bp import BThreadBody, bthread, sync, where
from tests.agent.conftest import MakeAgent
from tests.agent.notes import answers, note
from tests.conftest import anyio_backend as anyio_backend

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


@pytest.mark.parametrize(("end", "status"), [("abort", "aborted"), ("stop", "stopped")])
async def test_messages_that_a_run_did_not_read_are_visible_and_begin_the_next_run(
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


@pytest.mark.parametrize("end", ["in time", "too late"])
async def test_images_of_the_user_come_with_their_words(end: str, make_agent: MakeAgent) -> None:
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
