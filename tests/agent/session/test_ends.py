"""How a run ends: by its limits, by failures, by its user; nothing is left open, and what was said is not lost."""

import json
from collections.abc import Sequence
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve

from agent import Agent, Preset, answer, call, tool
from agent.models.model import Price, estimate_tokens, read_prices
from agent.models.scripted import ScriptedModel, fail
from agent.presets import PRESETS
from agent.projections.conversation import SUMMED_UP
from agent.tools.shell import make_shell_tool
from agent.vocabulary.events import (
    AnswerCommitted,
    CallAnswered,
    DeadlineReached,
    InferenceRequested,
    RunEnded,
    StopAsked,
    ToolStarted,
)
from agent.vocabulary.messages import AssistantMessage, Image, Message, Usage, UserMessage
from agent.vocabulary.reasons import Ending
from bp import BThread, BThreadBody, Step, bthread, sync, where
from tests.agent.conftest import MakeAgent, answers, grumble, hang, note
from tests.agent.soundness import recorded
from tests.conftest import anyio_backend as anyio_backend
from tests.outside.driving import processes_in
from tests.tables import rows

pytestmark = pytest.mark.anyio

DEFAULT = PRESETS["default"]
BUSY = fail("busy", retryable=True)


def notes(count: int) -> list[Any]:
    return [call("note", text=f"{number}" * 400) for number in range(count)]


def spending(*usages: Usage) -> list[Any]:
    return [answer("", call("note", text=str(at)), usage=usage) for at, usage in enumerate(usages)]


@bthread
def forbid() -> BThreadBody:
    yield sync(refuse=InferenceRequested, because="the budget is spent", wait_for=RunEnded)


COSTLY: dict[str, Any] = {"max_cost": 0.5, "prices": ("scripted=1/10", "other=9/9")}
SHELLS = [make_shell_tool("."), make_shell_tool(".", name="run_command")]
AGAIN = [call(name, command="echo 1") for name in ("bash", "run_command", "bash", "run_command")]
LATER = [call("bash", command="echo 1", timeout=seconds) for seconds in (10, 11, 12, 13)]


@rows(
    ("script", "options", "limits", "end"),
    [
        (notes(2), {}, {"max_iterations": 1}, "limit, max_iterations"),
        ([call("bash", command="rm -rf /")] * 3, {"tools": None}, {"max_iterations": 2}, "limit, max_iterations"),
        ([call("bash", command=f"rm -rf /usr/{n}") for n in range(6)], {"tools": None}, {}, "completed, answered"),
        ([[call("grumble")] * 4, call("note"), [call("grumble")] * 4], {}, {"doom_loop": None}, "completed, answered"),
        ([BUSY] * 3, {}, {}, "completed, answered"),
        (spending(Usage(100_000, 20_000), Usage(100_000, 10_000)), {}, COSTLY, "limit, max_cost"),
        (AGAIN, {"tools": SHELLS}, {}, "doom_loop, doom_loop"),
        (LATER, {"tools": SHELLS}, {}, "doom_loop, doom_loop"),
    ],
)
async def test_a_run_ends_for_the_reason_that_comes_first(
    make_agent: MakeAgent, script: list[Any], options: dict[str, Any], limits: dict[str, Any], end: str
) -> None:
    """Rejected answers count as turns and not as failures; a success in between begins the count of failures anew."""
    pieces: list[str] = []
    options = {"tools": [note, grumble], **options}
    agent = make_agent(*script, "Done.", preset=evolve(DEFAULT, **limits), on_text=pieces.append, **options)

    run = await agent.run("Go")

    assert f"{run.status}, {run.reason}" == end
    assert run.status != "completed" or "".join(pieces) == "Done."


async def test_limits_count_anew_for_each_prompt(make_agent: MakeAgent) -> None:
    agent = make_agent(
        call("note"), "One.", call("note"), "Two.", tools=[note], preset=evolve(DEFAULT, max_iterations=2)
    )

    assert [(await agent.run(prompt)).text for prompt in ("First", "Second")] == ["One.", "Two."]


@rows(
    ("script", "status", "asked", "messages"),
    [
        (("", " \t\n", "Hello."), "completed", 3, (UserMessage("Go"), AssistantMessage("Hello."))),
        (("", " ", "", "Never."), "failed", 3, (UserMessage("Go"),)),
        ((fail("no such model"), "Never."), "failed", 1, (UserMessage("Go"),)),
    ],
)
async def test_empty_answers_stay_out_of_the_conversation_and_a_permanent_failure_is_not_asked_again(
    make_agent: MakeAgent, script: Sequence[Any], status: str, asked: int, messages: tuple[Message, ...]
) -> None:
    """Providers refuse a text of white space."""
    run = await make_agent(*script).run("Go")

    assert (run.status, run.messages) == (status, messages)
    assert run.events.count(InferenceRequested()) == asked


async def test_a_refusal_without_an_ending_is_a_failure_that_names_it(make_agent: MakeAgent) -> None:
    run = await make_agent(threads=[forbid()]).run("Go")

    assert (run.status, run.reason, run.text) == ("failed", "inference_refused", "forbid: the budget is spent")


@bthread
def want_end(status: Any, reason: str) -> BThreadBody:
    yield sync(wait_for=AnswerCommitted)
    yield sync(refuse=InferenceRequested, because=Ending(status, reason), wait_for=RunEnded)


async def test_the_worst_status_wins_in_any_order(make_agent: MakeAgent) -> None:
    for worse, better in pairwise(("aborted", "stopped", "failed", "doom_loop", "limit")):
        for threads in permutations([want_end(worse, "worse"), want_end(better, "better")]):
            run = await make_agent(call("note"), tools=[note], threads=threads).run("Go")

            assert (run.status, run.reason) == (worse, "worse")


async def test_the_last_allowed_answer_and_its_calls_are_not_lost(make_agent: MakeAgent) -> None:
    script = answer("Two.", call("note", text="a"), call("note", text="b"))
    run = await make_agent(script, tools=[note], preset=evolve(DEFAULT, max_iterations=1)).run("Go")

    assert answers(run.messages) == ["noted a", "noted b"]
    assert run.messages[1].text == "Two."
    assert run.messages[-1] == AssistantMessage("Stopped: maximum iteration limit reached.")


async def test_the_failures_of_a_run_that_was_stopped_do_not_count_in_the_next(make_agent: MakeAgent) -> None:
    """Found: a run that was stopped during a failing inference left its failure to the next run."""
    agent: Agent

    async def stopped(_: object) -> Exception:
        run.stop()
        return BUSY

    agent = make_agent(stopped, BUSY, "Hello.", preset=evolve(DEFAULT, attempts=2))
    async with agent.start("First") as run:
        pass
    second = await agent.run("Second")

    assert (run.status, second.status) == ("stopped", "completed")


# What the model is told of why a call was refused: nothing, the kind of reason, or all of it (`disclosure`)


WIPE, FORCE = call("bash", command="rm -rf /"), call("bash", command="git push --force")
"""A denied call and one about which a user has to be asked, without a user."""

CUT_OFF = call("bash", '{"command": "l')


@rows(
    ("asked", "disclosure", "told"),
    [
        (WIPE, "none", "rejected: this call is not allowed"),
        (WIPE, "category", "rejected: destruction"),
        (WIPE, "full", "rejected: by_constitution: deny: "),
        (FORCE, "none", "rejected: this call is not allowed"),
        (FORCE, "category", "rejected: no person present"),
        (FORCE, "full", "denied: no person present (by_constitution: no person present: ask: "),
        *((CUT_OFF, disclosure, "not executed: truncated") for disclosure in ("none", "category", "full")),
    ],
)
async def test_the_model_is_told_as_much_of_a_refusal_as_disclosure_allows(
    make_agent: MakeAgent, asked: Any, disclosure: str, told: str
) -> None:
    """What is wrong with the call itself is no judgement: the model could not repair it."""
    run = await make_agent(asked, "Well.", preset=DEFAULT.with_options({"disclosure": disclosure})).run("Go")

    [answered] = answers(run.messages)
    assert answered.startswith(told)
    assert disclosure == "full" or "by_constitution" not in answered


# Costs and tokens


async def test_the_cost_of_each_inference_is_in_log_and_usage(make_agent: MakeAgent) -> None:
    script = spending(Usage(100_000, 20_000), Usage(100_000, 10_000))
    run = await make_agent(*script, tools=[note], preset=evolve(DEFAULT, **COSTLY)).run("Go")

    assert run.usage.cost == pytest.approx(0.5)
    assert run.log is not None
    finished = [json.loads(line) for line in run.log.read_text().splitlines() if '"inference_finished"' in line]
    assert finished[0]["data"]["usage"]["cost"] == pytest.approx(0.3)


async def test_usage_is_estimated_only_if_a_limit_needs_it_and_the_provider_gives_none(
    make_agent: MakeAgent,
) -> None:
    said, silent = answer("", call("note"), usage=Usage(7, 3)), answer("x" * 400, call("note", text="b"))
    counted = await make_agent(said, silent, "Done.", tools=[note], preset=evolve(DEFAULT, max_tokens=10_000)).run("Go")
    nobody_counts = await make_agent(silent, "Done.", tools=[note]).run("Go")

    first, second, _ = (event.usage for event in counted.events if event.name == "inference_finished")  # type: ignore[attr-defined]
    assert (first, second.is_estimate) == (Usage(7, 3), True)
    assert second.output_tokens >= 100
    assert second.input_tokens > estimate_tokens(DEFAULT.system_prompt) / 2
    assert nobody_counts.usage == Usage()


def test_prices_are_read_by_row() -> None:
    assert read_prices(["a=1/2", "b=c=0.5/0"]) == {"a": Price(1, 2), "b=c": Price(0.5, 0)}
    for row in ("", "a", "a=1", "=1/2", "a=1/x", "a=-1/2", "a=nan/1", "a=1/inf"):
        with pytest.raises(ValueError, match="MODEL=INPUT/OUTPUT"):
            read_prices([row])


@pytest.mark.slow
@pytest.mark.parametrize("sequential", [True, False])
async def test_at_the_deadline_what_runs_is_cut_off_and_every_call_is_answered(
    make_agent: MakeAgent, sequential: bool
) -> None:
    preset = evolve(DEFAULT, deadline=0.3, sequential=sequential)
    agent = make_agent([call("hang"), call("note")], "Never.", tools=[hang, note], preset=preset)
    with anyio.fail_after(100):
        run = await agent.run("Go")

    assert (run.status, run.reason) == ("limit", "deadline")
    assert run.text == "Stopped: the time limit of 0.3 seconds was reached."
    assert answers(run.messages)[0] == "cut off: the time of the run is over"
    assert len(answers(run.messages)) == 2
    after = run.events.index(DeadlineReached(0.3))
    assert not any(isinstance(event, ToolStarted | InferenceRequested) for event in run.events[after:])


# A context that is kept small


SMALL = evolve(DEFAULT, context_tokens=440, compaction="summary", system_prompt="")


def requests_of(agent: Agent) -> list[Any]:
    assert isinstance(agent.model, ScriptedModel)
    return agent.model.requests


async def test_a_summary_by_the_model_is_visible_and_is_no_answer(make_agent: MakeAgent) -> None:
    said = "Notes 0 and 1 were taken."
    agent = make_agent(*notes(2), said, "Done.", tools=[note], preset=SMALL)
    run = await agent.run("Take notes")

    assert run.text == "Done."
    assert said not in [message.text for message in run.messages]
    asked, again = requests_of(agent)[2:]
    assert (asked.role, asked.tools) == ("summarizer", ())
    assert "RESULT: noted 000" in asked.messages[0].text
    assert [message.text for message in again.messages][:2] == [f"{SUMMED_UP}{said}", "Take notes"]


async def test_a_stop_cuts_a_summary_short(make_agent: MakeAgent) -> None:
    agent = make_agent(*notes(2), lambda _: anyio.sleep_forever(), "Never.", tools=[note], preset=SMALL)
    with anyio.fail_after(100):
        async with agent.start("Take notes") as run:
            async for step in run:
                if step.event.name == "summary_requested":
                    run.stop()

    assert run.status == "stopped"
    assert all(event.outcome == "ran" for event in run.events if isinstance(event, CallAnswered))


TOO_LONG = "This model's maximum context length is 8192 tokens"
OVERFLOW = fail(TOO_LONG, reason="context_length_exceeded")
LOOKS = [call("bash", command=f"seq {number} 2000") for number in range(1, 5)]
SUMMARY = "Four listings were looked at."
STILL = (
    f"The conversation is too long for the model, also with the least of it: {TOO_LONG}. "
    "Give a shorter prompt, fewer tools, or a model with a larger context."
)
CUT_SHORT = "[Earlier messages were left out to make"


@rows(
    ("script", "preset", "asked", "begins", "text"),
    [
        ((*LOOKS, OVERFLOW, SUMMARY, "Done."), "default", 7, f"{SUMMED_UP}{SUMMARY}", "Done."),
        ((*LOOKS, OVERFLOW, fail("no"), "Done."), "default", 7, CUT_SHORT, "Done."),
        ((*LOOKS, OVERFLOW, SUMMARY, OVERFLOW, "Done."), "default", 8, SUMMED_UP, "Done."),
        ((*LOOKS, *[OVERFLOW] * 3, "Done."), "gated", 8, CUT_SHORT, "Done."),
        ((*LOOKS, *[OVERFLOW] * 4, "Never."), "gated", 8, CUT_SHORT, STILL),
        *(((OVERFLOW, "Never."), name, 1, "", STILL) for name in PRESETS),
    ],
)
async def test_where_a_server_finds_the_conversation_too_long_less_of_it_is_sent_or_the_run_says_what_to_do(
    make_agent: MakeAgent, script: Sequence[Any], preset: str, asked: int, begins: str, text: str
) -> None:
    agent = make_agent(*script, preset=PRESETS[preset])

    run = await agent.run("Look")

    assert (run.text, len(requests_of(agent))) == (text, asked)
    assert requests_of(agent)[-1].messages[0].text.startswith(begins)
    if text == "Done.":
        assert (run.status, len(run.messages)) == ("completed", 10)  # the conversation keeps everything
    else:
        assert (run.status, run.reason) == ("failed", "context_length_exceeded")


async def test_one_result_that_is_too_long_is_shown_shortened(make_agent: MakeAgent) -> None:
    @tool(category="read")
    async def dump() -> str:
        """Return everything."""
        return "<" + "x" * 40_000 + ">"

    for options in ({}, {"context_tokens": 5000}, {"compaction": "trim"}):
        too_long = [] if "context_tokens" in options else [OVERFLOW] * 2
        agent = make_agent(
            call("dump"), *too_long, "Done.", tools=[dump], preset=PRESETS["default"].with_options(options)
        )

        run = await agent.run("Dump")

        shown = requests_of(agent)[-1].messages[2].text
        assert run.status == "completed"
        assert len(run.messages[2].text) == 40_002
        assert len(shown) < 20_000
        assert shown.startswith("<xxx")
        assert "xxx>\n[Shortened, since all of it is too long for you; ask for a part.]" in shown


async def test_a_result_many_times_as_long_as_the_context_fits_in_the_end(make_agent: MakeAgent) -> None:
    @tool(category="read")
    async def dump() -> str:
        """Return everything."""
        return "x" * 100_000

    agent = make_agent(call("dump"), *[OVERFLOW] * 3, "Done.", tools=[dump], preset="gated")
    run = await agent.run("Dump")

    assert run.status == "completed"
    assert len(requests_of(agent)[-1].messages[2].text) < 100_000 / 25


# Answers that were cut off


HALF = "Delete only the files that"


@rows("reason", ["length", "content_filter", "incomplete"])
async def test_a_run_that_would_complete_with_half_an_answer_fails_with_it(make_agent: MakeAgent, reason: Any) -> None:
    for name in PRESETS:
        run = await make_agent(answer(HALF, stop_reason=reason), preset=PRESETS[name]).run("What may I delete?")

        assert (run.status, run.reason, run.text) == ("failed", reason, HALF), name
        assert run.messages[-1].text == HALF


async def test_a_model_that_is_asked_again_after_half_an_answer_is_told_and_may_go_on(make_agent: MakeAgent) -> None:
    agent = make_agent(answer(HALF, stop_reason="length"), "And more.", "Done.")
    async with agent.start("What may I delete?") as run:
        run.follow_up("And then?")

    assert (run.status, run.text) == ("completed", "Done.")
    assert [message.text for message in run.messages[2:]] == [
        "Your answer was cut off (length).", "And more.", "And then?", "Done.",
    ]  # fmt: skip


# Stop, abort and cancellation


ENDED = {"stop": "stopped", "abort": "aborted"}


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
    first, second, third = answers(run.messages)
    assert (first, second) == ("finished", "skipped: Stopped at the user's request.")
    assert third.startswith("not executed: ")
    assert run.events.count(StopAsked()) == 1


async def test_a_stop_during_the_last_inference_keeps_its_answer(make_agent: MakeAgent) -> None:
    async def stopped(_: object) -> str:
        run.stop()
        return "Hello."

    async with make_agent(stopped).start("Go") as run:
        pass

    assert run.status == "stopped"
    assert run.messages[-1] == AssistantMessage("Hello.")


@pytest.mark.parametrize("verb", ENDED)
async def test_a_stop_before_the_first_step_counts(make_agent: MakeAgent, verb: str) -> None:
    """Found: a stop or an abort right after `start` came before the prompt, and was lost."""
    async with make_agent("Hello.").start("Go") as run:
        getattr(run, verb)()

    assert run.status == ENDED[verb]


EVERYTHING = (
    answer("Look.", call("note", text="a"), call("unheard_of"), call("bash", command="rm -rf /"), call("grumble")),
    BUSY,
    "",
    [call("bash", command="sudo true"), call("note", '{"text": "b'), call("note", text="c")],
    "Done.",
)
NEWS = ("inference_finished", "inference_failed", "action_described", "tool_finished", "approval_answered")
STARTS = ("tool_started", "inference_requested", "proposed_action")


async def ended_at(make_agent: MakeAgent, preset: Preset, verb: str, at: int) -> tuple[list[str], str]:
    """Return the names of the events of a run whose end was asked for right after its step with this number."""

    def ask(step: Step) -> None:
        if step.number == at:
            getattr(run, verb)()

    agent = make_agent(*EVERYTHING, tools=[note, grumble], preset=preset, approve=lambda _: True, on_step=ask)
    with anyio.fail_after(100):
        async with agent.start("Go") as run:
            pass
    await anyio.wait_all_tasks_blocked()
    return [event.name for event in run.events], run.status


@pytest.mark.slow
@pytest.mark.parametrize("sequential", [True, False], ids=["sequential", "parallel"])
@pytest.mark.parametrize("verb", ENDED)
async def test_a_run_can_be_ended_at_every_moment(make_agent: MakeAgent, verb: str, sequential: bool) -> None:
    """Nothing starts afterwards; that each call is answered, and `run_ended` is last, `make_agent` checks of all."""
    preset = evolve(DEFAULT, sequential=sequential, max_failures=None)
    whole, _ = await ended_at(make_agent, preset, verb, 0)
    last_news = max(number for number, name in enumerate(whole, start=1) if name in NEWS)

    for at in range(1, last_news):
        names, status = await ended_at(make_agent, preset, verb, at)

        assert status == ENDED[verb], f"after step {at}, {whole[at - 1]}"
        assert names[:at] == whole[:at] or not sequential
        assert not {*STARTS} & {*names[names.index(f"{verb}_asked") :]}, f"after step {at}"

    for at in range(last_news, len(whole)):  # what is decided already cannot be stopped any more
        _, status = await ended_at(make_agent, preset, verb, at)
        assert status == "completed"


async def test_an_abort_leaves_no_process(make_agent: MakeAgent, workspace: Path) -> None:
    command = "setsid sleep 1000 & sleep 1000 & echo > begun; wait"

    with anyio.fail_after(100):
        async with make_agent(call("bash", command=command)).start("Go") as run:
            while not (workspace / "begun").exists():
                await anyio.sleep(0.01)
            run.abort()

    assert run.status == "aborted"
    assert processes_in(workspace) == []


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
        while not under_way.is_set():
            await anyio.lowlevel.checkpoint()
        run.abort()
    let_go.set()

    assert run.status == "aborted"
    assert answers(run.messages) == ["aborted"]


async def cancelled_once_it_hangs(agent: Agent) -> None:
    with anyio.fail_after(100):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.run, "Go")
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()


async def test_a_cancelled_run_is_aborted_and_its_log_says_so(make_agent: MakeAgent) -> None:
    agent = make_agent(call("hang"), tools=[hang])
    await cancelled_once_it_hangs(agent)

    assert answers(agent.messages) == ["aborted"]


class Deaf(Preset):
    """A preset whose b-threads hear neither an abort nor a failure."""

    def bthreads(self) -> tuple[BThread, ...]:
        return tuple(one for one in super().bthreads() if one.name not in ("abort_on_request", "retry"))


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancelled_run_that_hears_no_abort_is_broken_off(make_agent: MakeAgent, anyio_backend: str) -> None:
    """Cancelling must come to an end whatever the b-threads are; the log says that this was no regular one."""
    agent = make_agent(*[lambda _: anyio.sleep_forever()] * 2, preset=Deaf("deaf"))
    await cancelled_once_it_hangs(agent)

    last = recorded(agent).records[-1]
    assert (last["name"], last["origin"], last["data"]["status"]) == ("run_ended", "engine", "failed")


# Steering and follow-ups


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


@bthread
def reviewer() -> BThreadBody:
    for _ in range(2):
        yield sync(wait_for=AnswerCommitted, refuse=where(RunEnded, status="completed"), because="Look again.")


async def test_why_a_protocol_lets_a_run_go_on_reaches_the_model(make_agent: MakeAgent) -> None:
    """And a follow-up waits until the protocol is content."""
    async with make_agent("Done.", "Looked.", "Followed.", threads=[reviewer()]).start("Go") as run:
        run.follow_up("And that.")

    assert said(run.messages) == ["Go", "Look again.", "And that."]


@pytest.mark.parametrize("end", ENDED)
async def test_messages_that_a_run_did_not_read_are_visible_and_begin_the_next_run_with_their_images(
    make_agent: MakeAgent, end: str
) -> None:
    first, second = (UserMessage(words, (Image("image/png", words.encode()),)) for words in ("This.", "And this."))

    @tool(category="read")
    async def leave() -> str:
        """Say something, and end the run."""
        run.steer(first)
        run.follow_up(second)
        getattr(run, end)()
        return "left"

    agent = make_agent(call("leave"), "Both.", tools=[leave])
    async with agent.start("Go") as run:
        pass
    left = run.unheard
    run.steer("Too late.")
    again = await agent.run("Go on")

    assert (run.status, left) == (ENDED[end], ("This.", "And this."))
    assert said(again.messages)[1:] == ["This.", "And this.", "Too late.", "Go on"]
    assert [message for message in again.messages if isinstance(message, UserMessage)][1:3] == [first, second]
    assert again.unheard == run.unheard == ()
