"""The core: session, converse, choose, carry_out, gate, each alone; and what is missing without it."""

import time
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent import Agent, ScriptedModel, answer, call, tool
from agent.presets.shipped import DEFAULT
from agent.threads.core import carry_out, choose, converse, gate, session
from agent.vocabulary.events import (
    AbortAsked,
    AnswerCommitted,
    CallAnswered,
    DraftsSettled,
    GateApproved,
    GateRejected,
    HistoryGiven,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    RunContinued,
    RunEnded,
    StopAsked,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.reasons import Declined, Ending, Flaw
from bp import BThreadBody, Refusal, Refusals, bthread, sync
from constitution import Level, Verdict
from tests.agent.threads.loops import A, B, Loop, committed, described, drafted, finished

ENDED = RunEnded("completed", "answered", "Done.")


@bthread
def refuse(events: object, because: object) -> BThreadBody:
    while True:
        yield sync(refuse=events, because=because)


# session


def test_between_runs_only_a_prompt_or_a_history_may_come() -> None:
    loop = Loop(session())
    loop.hear(HistoryGiven(()))

    assert loop.can(PromptGiven("Go"))
    assert not any(loop.can(event) for event in (StopAsked(), AbortAsked(), InferenceRequested(), ENDED))


# converse


def test_when_the_inference_is_refused_the_run_ends_with_the_worst_ending() -> None:
    loop = Loop(
        converse(),
        refuse(InferenceRequested, Ending("limit", "turns")),
        refuse(InferenceRequested, Ending("stopped", "asked", "Stopped.")),
        refuse(InferenceRequested, "a text"),
    )

    loop.hear()

    assert loop.events[-1] == RunEnded("stopped", "asked", "Stopped.")


def test_when_completion_is_refused_the_run_goes_on() -> None:
    loop = Loop(converse(), refuse(ENDED, "not yet"))
    loop.hear()

    assert loop.hear(committed(text="Done.")) == ["answer_committed", "run_continued", "inference_requested"]
    assert loop.events[-2] == RunContinued(Refusals((Refusal("refuse", "not yet"),)))


def test_when_completion_is_refused_with_an_ending_the_run_ends_so() -> None:
    loop = Loop(converse(), refuse(ENDED, Ending("stopped", "asked")))
    loop.hear()
    loop.hear(committed(text="Done."))

    assert loop.events[-1] == RunEnded("stopped", "asked")


# choose


def test_all_drafts_that_were_asked_for_are_waited_for() -> None:
    loop = Loop(choose())
    first, second = drafted("One."), drafted("Two.", draft="d1")

    assert loop.hear(InferenceRequested(), InferenceRequested("d1"), second)[-1] == "inference_finished"
    assert loop.hear(first) == ["inference_finished", "drafts_settled", "answer_committed"]
    assert loop.events[-2:] == [DraftsSettled(("d1", "d0")), AnswerCommitted("d1", second.message)]


def test_the_first_draft_that_is_not_refused_is_committed() -> None:
    first, second = drafted("One."), drafted("Two.", draft="d1")
    loop = Loop(choose(), refuse(AnswerCommitted("d0", first.message), "bad"))
    loop.hear(InferenceRequested(), InferenceRequested("d1"), first, second)

    assert loop.events[-1] == AnswerCommitted("d1", second.message)


def test_a_protocol_that_wants_another_draft_holds_the_settling() -> None:
    @bthread
    def second_opinion() -> BThreadBody:
        yield sync(wait_for=InferenceRequested)
        yield sync(request=InferenceRequested("d1"), block=DraftsSettled)

    loop = Loop(choose(), second_opinion())

    assert loop.hear(InferenceRequested(), drafted("One."))[-1] == "inference_finished"
    assert loop.hear(drafted("Two.", draft="d1"))[-2:] == ["drafts_settled", "answer_committed"]


# carry_out and gate


@pytest.mark.parametrize(
    ("refused", "because", "text", "outcome"),
    [
        (ProposedAction, Flaw("no tool 'x'"), "not executed: no tool 'x'", "invalid"),
        (ProposedAction, Ending("stopped", "asked", "Stopped."), "skipped: Stopped.", "ended"),
        (ProposedAction, "too many", "rejected: refuse: too many", "ended"),
        (GateApproved, "secret read", "rejected: refuse: secret read", "rejected"),
        (
            GateApproved,
            Declined(Verdict(Level.ask, "r"), "no person present", present=False),
            "denied: no person present (refuse: no person present: ask: r: no rule objects)",
            "rejected",
        ),
        (ToolStarted, "not approved", "rejected: refuse: not approved", "ended"),
    ],
)
def test_a_refusal_at_any_gate_is_the_answer(refused: object, because: object, text: str, outcome: str) -> None:
    """Exactly one answer, whoever refuses, and it says why."""
    loop = Loop(carry_out(A), gate(), refuse(refused, because))
    loop.hear(described(A))

    [answered] = [event for event in loop.events if isinstance(event, CallAnswered)]
    assert answered == CallAnswered("a", text, is_error=True, outcome=outcome)  # type: ignore[arg-type]
    assert not any(isinstance(event, ToolStarted) for event in loop.events)


def test_a_flaw_of_the_call_is_the_first_reason_and_the_end_of_the_run_the_last() -> None:
    ending, flaw = Ending("stopped", "asked", "Stopped."), Flaw("truncated: ...")
    for because, text in [
        ((ending, "not today", flaw), "not executed: truncated: ..."),
        ((ending, "not today"), "rejected: refuse: not today"),
    ]:
        loop = Loop(carry_out(A), *(refuse(ProposedAction, reason) for reason in because))

        assert [event.result for event in loop.events if isinstance(event, CallAnswered)] == [text]


def test_the_gate_names_every_b_thread_that_refuses() -> None:
    for first, second in [("x", "y"), ("y", "x")]:
        loop = Loop(gate(), refuse(GateApproved, first), refuse(GateApproved, second))
        loop.hear(described(A))

        expected = Refusals((Refusal("refuse", "y"), Refusal("refuse", "x")))
        assert loop.events[-1] == GateRejected(A, expected)


def test_holding_an_approval_only_delays_it() -> None:
    @bthread
    def hold() -> BThreadBody:
        yield sync(block=GateApproved, wait_for=ToolFinished)

    loop = Loop(gate(), hold())

    assert loop.hear(described(A)) == ["action_described:a"]
    assert loop.hear(finished(B)) == ["tool_finished:b", "gate_approved:a"]


# A thousand calls of one answer take time in proportion to their number


@tool(category="read", parallel=True)
def look(at: int) -> str:
    """Look."""
    return str(at)


def processor_time(calls: int, folder: Path) -> float:
    """Seconds of a processor for one answer with so many calls that run together."""
    preset = evolve(DEFAULT, max_failures=None)
    steps: list[Any] = [answer("", *[call("look", at=number) for number in range(calls)]), "Done."]
    begin = time.process_time()
    with Agent(ScriptedModel(steps), [look], preset=preset, log=folder / f"{calls}.jsonl") as agent:
        run = agent.run_sync("Look")
    assert run.status == "completed"
    return time.process_time() - begin


@pytest.mark.slow
def test_four_times_the_calls_take_about_four_times_as_long(tmp_path: Path) -> None:
    processor_time(50, tmp_path)  # what is loaded and learned once

    few, many = (min(processor_time(calls + again, tmp_path) for again in range(2)) for calls in (250, 1000))

    assert many / few < 9, "in proportion 4, in squares 16"
