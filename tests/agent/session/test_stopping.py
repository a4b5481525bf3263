"""Stop and abort: at every moment a run ends in time, leaves nothing behind, and every call is answered once."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import anyio
import pytest
from attrs import evolve

from agent import Preset, answer, call, tool
from agent.models.scripted import fail
from agent.presets.shipped import PRESETS
from agent.vocabulary.events import (
    ActionDescribed,
    AnswerCommitted,
    ApprovalAnswered,
    CallAnswered,
    GateApproved,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    RunEnded,
    StopAsked,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.messages import AssistantMessage, Image, Message, UserMessage
from bp import BThread, BThreadBody, Event, Step, bthread, sync, where
from tests.agent.conftest import MakeAgent
from tests.agent.notes import answers, grumble, hang, note
from tests.agent.soundness import recorded
from tests.conftest import anyio_backend as anyio_backend

pytestmark = pytest.mark.anyio

DEFAULT = PRESETS["default"]

Verb = Literal["stop", "abort"]


async def test_a_stop_lets_the_running_call_finish_and_answers_the_others(make_agent: MakeAgent) -> None:
    @tool
    async def stop_and_go_on() -> str:
        """Stop the run, and finish."""
        run.stop()
        await anyio.wait_all_tasks_blocked()
        return "finished"

    agent = make_agent([call("stop_and_go_on"), call("stop_and_go_on"), call("nope")], tools=[stop_and_go_on])
    async with agent.start("Go") as run:
        pass

    assert (run.status, run.reason) == ("stopped", "stop_asked")
    first, *others = answers(run.messages)
    assert first == "finished"
    assert others[0] == "skipped: Stopped at the user's request."
    assert others[1].startswith("not executed: ")
    assert run.events.count(StopAsked()) == 1


async def test_a_stop_during_the_last_inference_keeps_its_answer(make_agent: MakeAgent) -> None:
    async def stopped(_: object) -> str:
        run.stop()
        return "Hello."

    async with make_agent(stopped).start("Go") as run:
        pass

    assert run.status == "stopped"
    assert run.messages[-1] == AssistantMessage("Hello.")


@pytest.mark.parametrize("verb", ["stop", "abort"])
async def test_a_stop_before_the_first_step_counts(make_agent: MakeAgent, verb: Verb) -> None:
    """Found: a stop or an abort right after `start` came before the prompt, and was lost."""
    async with make_agent("Hello.").start("Go") as run:
        getattr(run, verb)()

    assert run.status == {"stop": "stopped", "abort": "aborted"}[verb]


async def test_an_abort_does_not_wait_for_a_thread(make_agent: MakeAgent) -> None:
    import threading

    under_way, let_go = threading.Event(), threading.Event()

    @tool
    def block() -> str:
        """Block a thread."""
        under_way.set()
        let_go.wait(1000)
        return "late"

    async with make_agent(call("block"), tools=[block]).start("Go") as run:
        async for step in run:
            if isinstance(step.event, ToolStarted):
                break
        while not under_way.is_set():
            await anyio.lowlevel.checkpoint()
        run.abort()
    let_go.set()

    assert run.status == "aborted"
    assert answers(run.messages) == ["aborted"]


async def test_an_abort_leaves_no_process(make_agent: MakeAgent, workspace: Path) -> None:
    command = f"setsid {SLEEP} & {SLEEP} & echo > begun; wait"

    async with make_agent(call("bash", command=command)).start("Go") as run:
        while not (workspace / "begun").exists():
            await anyio.sleep(0.01)
        run.abort()

    assert run.status == "aborted"
    assert sleeping() == []


SLEEP = f"sleep 98{os.getpid()}"  # tests in other processes have others


def sleeping() -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                argv = (folder / "cmdline").read_bytes()
            except OSError:
                continue
            if argv.startswith(SLEEP.replace(" ", "\0").encode() + b"\0"):
                found.append(int(folder.name))
    return found


# Stop and abort at every moment of a run

SCRIPT = (
    answer("Look.", call("note", text="a"), call("unheard_of"), call("bash", command="rm -rf /"), call("grumble")),
    fail("busy", retryable=True),
    "",
    [call("bash", command="sudo true"), call("note", '{"text": "b'), call("note", text="c")],
    "Done.",
)


FROM_OUTSIDE = (PromptGiven, InferenceFinished, InferenceFailed, ActionDescribed, ToolFinished, ApprovalAnswered)


async def run_with(make_agent: MakeAgent, preset: Preset, verb: Verb | None, at: int) -> tuple[list[Event], str]:
    """Take the run of SCRIPT, and ask for its end right after its step number `at`."""

    def ask(step: Step) -> None:
        if step.number == at and verb is not None:
            getattr(run, verb)()

    agent = make_agent(*SCRIPT, tools=[note, grumble], preset=preset, approve=lambda _: True, on_step=ask)
    with anyio.fail_after(100):
        async with agent.start("Go") as run:
            pass
    await anyio.wait_all_tasks_blocked()
    return [untimed(step.event) for step in run.steps], f"{run.status}: {run.text}"


def untimed(event: Event) -> Event:
    """The event without what differs from run to run: its duration, and where the log of the run is."""
    if isinstance(event, ActionDescribed | GateApproved):
        return evolve(event, facts=evolve(event.facts, own=()))
    return evolve(event, duration=0.0) if isinstance(event, InferenceFinished | ToolFinished) else event


@pytest.mark.slow
@pytest.mark.parametrize("sequential", [True, False], ids=["sequential", "parallel"])
@pytest.mark.parametrize("verb", ["stop", "abort"])
async def test_a_run_can_be_ended_at_every_moment(make_agent: MakeAgent, verb: Verb, sequential: bool) -> None:
    """Each call is answered once, nothing starts afterwards, `run_ended` is last and single (and `assert_sound`)."""
    preset = evolve(DEFAULT, sequential=sequential, max_failures=None)
    whole, _ = await run_with(make_agent, preset, None, 0)
    last_news = max(number for number, event in enumerate(whole, start=1) if isinstance(event, FROM_OUTSIDE))

    for at in range(1, last_news):
        events, status = await run_with(make_agent, preset, verb, at)

        assert status.startswith({"stop": "stopped", "abort": "aborted"}[verb]), f"after step {at}, {whole[at - 1]}"
        assert events[:at] == whole[:at] or not sequential
        asked = next(number for number, event in enumerate(events) if event.name == f"{verb}_asked")
        for event in events[asked:]:
            assert type(event) not in (ToolStarted, InferenceRequested, ProposedAction)
        assert [isinstance(event, RunEnded) for event in events].index(True) == len(events) - 1
        assert_every_committed_call_is_answered(events)

    for at in range(last_news, len(whole)):  # what is decided already cannot be stopped any more
        _, status = await run_with(make_agent, preset, verb, at)
        assert status == "completed: Done."


def assert_every_committed_call_is_answered(events: list[Event]) -> None:
    committed = [call.id for event in events if isinstance(event, AnswerCommitted) for call in event.calls]
    assert [event.call for event in events if isinstance(event, CallAnswered)] == committed


async def test_a_cancelled_run_is_aborted_and_its_log_says_so(make_agent: MakeAgent) -> None:
    agent = make_agent(call("hang"), tools=[hang])
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(agent.run, "Go")
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()

    assert answers(agent.messages) == ["aborted"]


class Deaf(Preset):
    """A preset whose b-threads hear neither an abort nor a failure."""

    def bthreads(self) -> tuple[BThread, ...]:
        return tuple(one for one in super().bthreads() if one.name not in ("abort_on_request", "retry"))


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancelled_run_that_hears_no_abort_is_broken_off(make_agent: MakeAgent, anyio_backend: str) -> None:
    """Cancelling must come to an end whatever the b-threads are; the log says that this was no regular one."""
    asked = anyio.Event()

    async def hang(_: object) -> str:
        asked.set()
        await anyio.sleep_forever()
        return ""

    agent = make_agent(hang, hang, preset=Deaf("deaf"))
    with anyio.fail_after(100):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.run, "Go")
            await asked.wait()
            tasks.cancel_scope.cancel()

    last = recorded(agent).records[-1]
    assert (last["name"], last["origin"], last["data"]["status"]) == ("run_ended", "engine", "failed")


# Steering, follow-ups and calls that run together, in whole runs; and an abort at every moment of such a run


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
