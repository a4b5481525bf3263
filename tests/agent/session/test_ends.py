"""How a run ends: a b-thread that wants it refuses, `converse` ends the run, and nothing is left open."""

from itertools import combinations, permutations
from typing import Any

import pytest
from attrs import evolve

from agent import Agent, answer, call
from agent.models.scripted import fail
from agent.presets.shipped import PRESETS, preset_named
from agent.vocabulary.events import AnswerCommitted, CallAnswered, InferenceRequested, RunEnded
from agent.vocabulary.messages import AssistantMessage, UserMessage
from agent.vocabulary.reasons import Ending
from bp import BThreadBody, bthread, sync
from tests.agent.conftest import MakeAgent
from tests.agent.notes import answers, grumble, note

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


async def test_what_cannot_help_is_not_tried_again(make_agent: MakeAgent) -> None:
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
