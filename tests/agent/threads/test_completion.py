"""complete_to_finish, one_objective, iterations_at_most: each alone, and what happens without it."""

from agent.threads.completion import COMPLETE, PURSUE, complete_to_finish, iterations_at_most, one_objective
from agent.threads.core import converse
from agent.threads.stopping import stop_on_request
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    AnswerCommitted,
    CallAnswered,
    GateApproved,
    InferenceRequested,
    RunContinued,
    RunEnded,
    StopAsked,
    ToolFinished,
)
from bp import BThreadBody, bthread, sync
from tests.agent.threads.loops import A, Loop, action, committed, finished

PURSUING = ToolCall("p", PURSUE, {"user_prompt": "Go", "objective": "All of it"})
COMPLETING = ToolCall("c", COMPLETE, {"result": "It is done.", "status": "partial"})
ANSWERED = RunEnded("completed", "answered", "Hello.")


def ran(call: ToolCall) -> tuple[ToolFinished, CallAnswered]:
    return finished(call), CallAnswered(call.id, "x")


def test_complete_ends_the_run_with_its_result_and_its_status() -> None:
    loop = Loop(converse(), complete_to_finish())
    loop.hear()

    story = loop.hear(committed(COMPLETING), *ran(COMPLETING))

    assert story[-2:] == ["completion_declared", "run_ended"]
    assert loop.events[-1] == RunEnded("completed", "partial", "It is done.")


def test_a_complete_that_failed_or_did_not_run_completes_nothing() -> None:
    loop = Loop(complete_to_finish())
    loop.hear()
    loop.hear(finished(COMPLETING, is_error=True), CallAnswered("c", "rejected", outcome="rejected"))

    assert loop.can(InferenceRequested())
    assert not loop.can(ANSWERED)


def test_before_an_objective_is_taken_a_text_ends_the_run_as_in_any_conversation() -> None:
    loop = Loop(complete_to_finish(after_objective=True))
    loop.hear()
    assert loop.can(ANSWERED)

    loop.hear(*ran(PURSUING))
    assert not loop.can(ANSWERED)
    assert loop.can(RunEnded("stopped", "stop_asked"))
    loop.hear(RunEnded("stopped", "stop_asked"))
    assert loop.can(ANSWERED)


@bthread
def one_more_thing() -> BThreadBody:
    """Somebody has something left to say when the run would complete, once."""
    yield sync(refuse=RunEnded, because="one more thing", wait_for=RunContinued)


def test_after_complete_a_follow_up_is_heard_and_the_run_goes_on_as_it_began() -> None:
    for after_objective, ends in ((False, False), (True, True)):
        loop = Loop(converse(), complete_to_finish(after_objective), one_more_thing())
        loop.hear()
        loop.hear(*ran(PURSUING), committed(COMPLETING))
        assert loop.hear(*ran(COMPLETING))[-3:] == ["completion_declared", "run_continued", "inference_requested"]

        loop.hear(committed(text="Hello."))
        assert (loop.story[-1] == "run_ended") == ends


def test_a_step_that_completes_the_work_completes_the_run_though_a_stop_was_asked_for() -> None:
    """S1 4.1: complete exits the loop (5) before the interrupt is looked at (7)."""
    for after, status in (("step", "completed"), ("call", "stopped")):
        loop = Loop(converse(), complete_to_finish(), stop_on_request(after))  # type: ignore[arg-type]
        loop.hear()
        loop.hear(committed(COMPLETING), StopAsked(), *ran(COMPLETING))

        ended = loop.events[-1]
        assert isinstance(ended, RunEnded)
        assert ended.status == status


def test_while_an_objective_is_pursued_no_other_one_is_taken() -> None:
    loop = Loop(one_objective())
    another = GateApproved(PURSUING, action(PURSUING))
    assert loop.can(another)

    loop.hear(*ran(PURSUING))
    assert loop.reasons(another) == ["an objective is being pursued; call complete before you take another one"]
    assert loop.can(GateApproved(A, action(A)))
    loop.hear(finished(COMPLETING))
    assert loop.can(another)


# iterations_at_most


def test_iterations_are_counted_from_the_objective_on() -> None:
    loop = Loop(iterations_at_most(2, "Enough."))
    loop.hear(committed(PURSUING), *ran(PURSUING))
    loop.hear(committed(A, text="I look around."))
    assert loop.can(InferenceRequested())

    loop.hear(committed(A))
    assert loop.reasons(InferenceRequested()) == ["Enough.\n\nLast response: I look around."]


def test_an_objective_that_is_taken_again_does_not_begin_the_count_anew() -> None:
    loop = Loop(iterations_at_most(2))
    loop.hear(committed(), *ran(PURSUING), committed(), *ran(PURSUING), committed())

    assert not loop.can(InferenceRequested())


def test_turns_without_an_objective_are_limited_too_and_each_run_begins_anew() -> None:
    loop = Loop(iterations_at_most(2))
    answers: list[AnswerCommitted] = [committed(), committed()]
    loop.hear(*answers)
    assert loop.reasons(InferenceRequested()) == ["Stopped: maximum iteration limit reached."]

    loop.hear(RunEnded("limit", "max_iterations"), committed())
    assert loop.can(InferenceRequested())
