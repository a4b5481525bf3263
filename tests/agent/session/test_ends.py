"""How a run ends: a b-thread that wants it refuses, `converse` ends the run, and nothing is left open."""

import json
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import evolve

from agent import Agent, Run, answer, call
from agent.models.model import Price, estimate_tokens, read_prices
from agent.models.scripted import ScriptedModel, fail
from agent.presets.shipped import PRESETS, preset_named
from agent.projections.conversation import SUMMED_UP
from agent.tools.shell import make_shell_tool
from agent.vocabulary.events import (
    AnswerCommitted,
    CallAnswered,
    DeadlineReached,
    InferenceRequested,
    RunEnded,
    SummaryFinished,
    ToolStarted,
)
from agent.vocabulary.messages import AssistantMessage, Usage, UserMessage
from agent.vocabulary.reasons import Ending
from bp import BThreadBody, bthread, sync
from tests.agent.conftest import MakeAgent
from tests.agent.notes import answers, grumble, hang, note

pytestmark = pytest.mark.anyio

DEFAULT = PRESETS["default"]
LIMIT_TEXT = "Stopped: maximum iteration limit reached."


# Limits


async def test_the_last_allowed_answer_and_its_calls_are_not_lost(make_agent: MakeAgent) -> None:
    agent = make_agent(
        answer("Two.", call("note", text="a"), call("note", text="b")),
        tools=[note],
        preset=evolve(DEFAULT, max_iterations=1),
    )

    run = await agent.run("Go")

    assert run.status == "limit"
    assert answers(run.messages) == ["noted a", "noted b"]
    assert run.messages[1].text == "Two."
    assert run.messages[-1] == AssistantMessage(LIMIT_TEXT)


async def test_the_limit_counts_anew_for_each_prompt(make_agent: MakeAgent) -> None:
    agent = make_agent(
        call("note"), "One.", call("note"), "Two.", tools=[note], preset=evolve(DEFAULT, max_iterations=2)
    )

    first = await agent.run("First")
    second = await agent.run("Second")

    assert (first.status, second.status) == ("completed", "completed")
    assert second.text == "Two."


async def test_an_answer_that_was_rejected_counts_as_a_turn(make_agent: MakeAgent) -> None:
    run = await make_agent(*[call("bash", command="rm -rf /")] * 3, preset=evolve(DEFAULT, max_iterations=2)).run("Go")

    assert run.status == "limit"
    assert [text.startswith("rejected: ") for text in answers(run.messages)] == [True, True]


async def test_a_success_in_between_begins_the_count_anew(make_agent: MakeAgent) -> None:
    script = [[call("grumble")] * 4, call("note"), [call("grumble")] * 4, "Done."]
    run = await make_agent(*script, tools=[grumble, note], preset=evolve(DEFAULT, doom_loop=None)).run("Go")

    assert run.status == "completed"


async def test_refusals_are_no_failures(make_agent: MakeAgent) -> None:
    script = [call("bash", command=f"rm -rf /usr/{n}") for n in range(6)]
    run = await make_agent(*script, "Done.").run("Go")

    assert run.status == "completed"


async def test_empty_answers_are_asked_again_and_stay_out_of_the_conversation(make_agent: MakeAgent) -> None:
    run = await make_agent("", " \t\n", "Hello.").run("Go")  # providers refuse a text of white space

    assert run.status == "completed"
    assert run.messages == (UserMessage("Go"), AssistantMessage("Hello."))


# Failures of the model


async def test_a_permanent_failure_is_not_retried(make_agent: MakeAgent) -> None:
    run = await make_agent(fail("no such model"), "never asked").run("Go")

    assert (run.status, run.text) == ("failed", "no such model")
    assert run.events.count(InferenceRequested()) == 1


async def test_a_failed_inference_is_asked_again_also_while_the_text_is_watched(make_agent: MakeAgent) -> None:
    """Found: a watcher put the model's error into an exception group, and nothing was ever tried again."""
    pieces: list[str] = []

    run = await make_agent(*[fail("busy", retryable=True)] * 3, "Hello.", on_text=pieces.append).run("Go")

    assert run.status == "completed"
    assert run.messages == (UserMessage("Go"), AssistantMessage("Hello."))
    assert "".join(pieces) == "Hello."


async def test_the_failures_of_a_run_that_was_stopped_do_not_count_in_the_next(make_agent: MakeAgent) -> None:
    """Found: a run that was stopped during a failing inference left its failure to the next run."""
    agent: Agent

    async def stopped(_: object) -> Exception:
        run.stop()
        return fail("busy", retryable=True)

    agent = make_agent(stopped, fail("busy", retryable=True), "Hello.", preset=evolve(DEFAULT, attempts=2))
    async with agent.start("First") as run:
        pass
    second = await agent.run("Second")

    assert run.status == "stopped"
    assert second.status == "completed"


# Several at once


@bthread
def want_end(status: Any, reason: str) -> BThreadBody:
    while True:
        yield sync(wait_for=AnswerCommitted)
        yield sync(refuse=InferenceRequested, because=Ending(status, reason), wait_for=RunEnded)


STATUSES = ("aborted", "stopped", "failed", "doom_loop", "limit")


@pytest.mark.slow
def test_the_worst_status_wins_in_any_order(make_agent: MakeAgent) -> None:
    for worse, better in combinations(STATUSES, 2):
        for threads in permutations([want_end(worse, "worse"), want_end(better, "better")]):
            run = make_agent(call("note"), tools=[note], threads=threads).run_sync("Go")

            assert (run.status, run.reason) == (worse, "worse")


async def test_a_refusal_without_an_ending_is_a_failure_that_names_it(make_agent: MakeAgent) -> None:
    @bthread
    def forbid() -> BThreadBody:
        yield sync(refuse=InferenceRequested, because="the budget is spent", wait_for=RunEnded)

    run = await make_agent(threads=[forbid()]).run("Go")

    assert (run.status, run.reason, run.text) == ("failed", "inference_refused", "forbid: the budget is spent")


# What the model is told of why a call was refused: nothing, the kind of reason, or all of it (`disclosure`)


WIPE, FORCE = "rm -rf /", "git push --force"
"""A denied call and one about which a user has to be asked, without a user."""


@pytest.mark.parametrize(
    ("command", "disclosure", "told"),
    [
        (WIPE, "none", "rejected: this call is not allowed"),
        (WIPE, "category", "rejected: destruction"),
        (WIPE, "full", "rejected: by_constitution: deny: "),
        (FORCE, "none", "rejected: this call is not allowed"),
        (FORCE, "category", "rejected: no person present"),
        (FORCE, "full", "denied: no person present (by_constitution: no person present: ask: "),
    ],
)
def test_the_model_is_told_as_much_of_a_refusal_as_disclosure_allows(
    make_agent: MakeAgent, command: str, disclosure: str, told: str
) -> None:
    preset = preset_named("default").with_options({"disclosure": disclosure})
    agent = make_agent(call("bash", command=command), "Well.", preset=preset)

    run = agent.run_sync("Go")

    [answered] = [event for event in run.events if isinstance(event, CallAnswered)]
    assert answered.result.startswith(told)
    assert answered.outcome in ("rejected", "denied")
    if disclosure != "full":
        assert "by_constitution" not in answered.result


@pytest.mark.parametrize("disclosure", ["none", "category", "full"])
def test_the_model_always_reads_what_is_wrong_with_its_call(make_agent: MakeAgent, disclosure: str) -> None:
    """That is no judgement, and the model could not repair its call."""
    preset = preset_named("default").with_options({"disclosure": disclosure})
    agent = make_agent(call("bash", '{"command": "l'), "Well.", preset=preset)

    run = agent.run_sync("List")

    [answered] = [event for event in run.events if isinstance(event, CallAnswered)]
    assert answered.result.startswith("not executed: truncated")


# Runs that spend: budgets, prices, a deadline, the same call again, and a context that is kept small


def spending(*usages: Usage) -> list[Any]:
    return [answer("", call("note", text=str(at)), usage=usage) for at, usage in enumerate(usages)]


# budgets


async def test_cost_ends_the_run_and_is_in_log_and_usage(make_agent: MakeAgent) -> None:
    preset = evolve(DEFAULT, max_cost=0.5, prices=("scripted=1/10", "other=9/9"))
    agent = make_agent(*spending(Usage(100_000, 20_000), Usage(100_000, 10_000)), "Never.", tools=[note], preset=preset)
    run = await agent.run("Go")

    assert (run.status, run.reason) == ("limit", "max_cost")
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
    assert first == Usage(7, 3)
    assert second.is_estimate
    assert second.output_tokens >= 100
    assert second.input_tokens > estimate_tokens(DEFAULT.system_prompt) / 2
    assert nobody_counts.usage == Usage()


def test_prices_are_read_by_row() -> None:
    assert read_prices(["a=1/2", "b=c=0.5/0"]) == {"a": Price(1, 2), "b=c": Price(0.5, 0)}
    for row in ("", "a", "a=1", "=1/2", "a=1/x", "a=-1/2", "a=nan/1", "a=1/inf"):
        with pytest.raises(ValueError, match="MODEL=INPUT/OUTPUT"):
            read_prices([row])


# deadline


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


# context


def shown(agent: Agent, number: int) -> list[str]:
    assert isinstance(agent.model, ScriptedModel)
    return [message.text for message in agent.model.requests[number - 1].messages]


def notes(count: int) -> list[Any]:
    return [call("note", text=f"{number}" * 400) for number in range(count)]


async def test_a_summary_by_the_model_is_visible_and_is_no_answer(make_agent: MakeAgent) -> None:
    preset = evolve(DEFAULT, context_tokens=440, compaction="summary", system_prompt="")
    script = [*notes(2), "Notes 0 and 1 were taken.", "Done."]
    agent = make_agent(*script, tools=[note], preset=preset)
    run = await agent.run("Take notes")

    assert run.text == "Done."
    [summary] = [event for event in run.events if isinstance(event, SummaryFinished)]
    assert (summary.text, summary.usage.is_estimate) == ("Notes 0 and 1 were taken.", True)
    assert "Notes 0 and 1 were taken." not in [message.text for message in run.messages]
    assert isinstance(agent.model, ScriptedModel)
    asked = agent.model.requests[2]
    assert (asked.role, asked.tools) == ("summarizer", ())
    assert "RESULT: noted 000" in asked.messages[0].text
    assert shown(agent, 4)[:2] == [f"{SUMMED_UP}Notes 0 and 1 were taken.", "Take notes"]
    assert run.usage.input_tokens > summary.usage.input_tokens


async def test_a_stop_cuts_a_summary_short(make_agent: MakeAgent) -> None:
    preset = evolve(DEFAULT, context_tokens=440, compaction="summary", system_prompt="")
    agent = make_agent(*notes(2), lambda _: anyio.sleep_forever(), "Never.", tools=[note], preset=preset)
    with anyio.fail_after(100):
        run = await stopped_at(agent, "summary_requested")

    assert run.status == "stopped"
    assert UserMessage("Take notes") in run.messages
    assert all(not isinstance(event, CallAnswered) or event.outcome == "ran" for event in run.events)


async def stopped_at(agent: Agent, name: str) -> Run:
    async with agent.start("Take notes") as run:
        async for step in run:
            if step.event.name == name:
                run.stop()
    return run


# The same command again and again is the same call, whatever the tool is called and whatever its timeout (S4)


def run_with(make_agent: MakeAgent, folder: Path, *calls: object) -> Run:
    tools = [make_shell_tool(str(folder)), make_shell_tool(str(folder), name="run_command")]
    return make_agent(*calls, "Done.", tools=tools, preset="passthrough").run_sync("Go")


def started(run: Run) -> int:
    return sum(isinstance(event, ToolStarted) for event in run.events)


@pytest.mark.parametrize(
    "calls",
    [
        [call(name, command="echo 1") for name in ("bash", "run_command", "bash", "run_command")],
        [call("bash", command="echo 1", timeout=seconds) for seconds in (10, 11, 12, 13)],
    ],
)
def test_the_third_identical_command_ends_the_run(make_agent: MakeAgent, tmp_path: Path, calls: list[object]) -> None:
    run = run_with(make_agent, tmp_path, *calls)

    assert (run.status, started(run)) == ("doom_loop", 2)


# When a server says that the conversation is too long it is summed up once, or the run ends and says what to do


TOO_LONG = "This model's maximum context length is 8192 tokens"
OVERFLOW = fail(TOO_LONG, reason="context_length_exceeded")
LOOKS = [call("bash", command=f"seq {number} 2000") for number in range(1, 5)]
SUMMARY = "Four listings were looked at."


def without_steps(names: list[str]) -> list[str]:
    return [name for name in names if name.startswith(("inference", "summary", "run_ended", "backoff"))][8:]


async def test_the_older_part_is_summed_up_and_the_model_asked_again(make_agent: MakeAgent) -> None:
    agent = make_agent(*LOOKS, OVERFLOW, SUMMARY, "Done.")

    run = await agent.run("Look")

    assert (run.status, run.text) == ("completed", "Done.")
    assert without_steps([event.name for event in run.events]) == [
        "inference_requested", "inference_failed", "summary_requested", "summary_finished",
        "inference_requested", "inference_finished", "run_ended",
    ]  # fmt: skip
    too_long, _, again = agent.model.requests[-3:]  # type: ignore[attr-defined]
    assert len(again.messages) < len(too_long.messages)
    assert isinstance(again.messages[0], UserMessage)
    assert SUMMARY in again.messages[0].text
    assert len(run.messages) == 10  # the conversation keeps everything


async def test_without_a_summary_older_messages_are_left_out(make_agent: MakeAgent) -> None:
    agent = make_agent(*LOOKS, OVERFLOW, fail("busy"), "Done.")

    run = await agent.run("Look")

    assert run.status == "completed"
    assert agent.model.requests[-1].messages[0].text == "[Earlier messages were left out to make room.]"  # type: ignore[attr-defined]


async def test_a_second_overflow_in_one_turn_ends_the_run_and_names_the_options(make_agent: MakeAgent) -> None:
    run = await make_agent(*LOOKS, OVERFLOW, SUMMARY, OVERFLOW, "Never asked for.").run("Look")

    assert (run.status, run.reason) == ("failed", "context_length_exceeded")
    assert run.text == (
        f"The conversation is too long for the model, also without its older part: {TOO_LONG}. "
        "Give a smaller output_limit, or the size of the model's context as context_tokens."
    )


async def test_where_nothing_can_be_left_out_the_model_is_not_asked_again(make_agent: MakeAgent) -> None:
    agent = make_agent(OVERFLOW, "Never asked for.")

    run = await agent.run("Look")

    assert (run.status, run.reason) == ("failed", "context_length_exceeded")
    assert len(agent.model.requests) == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("preset", ["workspace", "autonomous", "coding", "gated", "passthrough"])
async def test_a_preset_that_sums_nothing_up_ends_and_names_the_options(make_agent: MakeAgent, preset: str) -> None:
    agent = make_agent(OVERFLOW, preset=PRESETS[preset])

    run = await agent.run("Look")

    assert (run.status, run.reason) == ("failed", "context_length_exceeded")
    assert run.text == (
        f"The conversation is too long for the model: {TOO_LONG}. "
        "Give compaction=summary, or the size of the model's context as context_tokens."
    )
    assert len(agent.model.requests) == 1  # type: ignore[attr-defined]
