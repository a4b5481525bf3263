"""Steering and follow-ups, each rule alone and in a program; and calls that run together."""

import pytest

from agent.threads.core import CORE, carry_out, gate
from agent.threads.judging import by_constitution
from agent.threads.steering import continue_with_follow_ups, seek_follow_ups, seek_steering, skip_when_steered
from agent.threads.stopping import stop_on_request
from agent.threads.tool_calls import Together, answers_in_source_order, groups_of, one_at_a_time
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    AnswerCommitted,
    CallAnswered,
    FollowUpGiven,
    GateRejected,
    InferenceRequested,
    MessagesFound,
    MessagesSought,
    PromptGiven,
    ProposedAction,
    RunContinued,
    RunEnded,
    SteeringGiven,
    StopAsked,
    ToolStarted,
)
from agent.vocabulary.reasons import Ending, Flaw, FollowUpWaits, Steered, not_run, rejected, words_to_the_model
from bp import BThreadBody, Refusal, Refusals, bthread, contains, start, sync, where
from bp.testing import drive
from constitution import Level, Verdict
from tests.agent.threads.loops import A, B, C, Loop, committed, described, drafted, finished

DONE = RunEnded("completed", "answered")
STOPPED = RunEnded("stopped", "stop_asked")
THIS = SteeringGiven("rather this")
NEXT = FollowUpGiven("and then that")
SKIPPED = "skipped: Skipped due to queued user message."
A_FOLLOW_UP = RunContinued(Refusals((Refusal("continue_with_follow_ups", FollowUpWaits()),)))
ALL_FOLLOW_UPS = RunContinued(Refusals((Refusal("continue_with_follow_ups", FollowUpWaits(at_once=True)),)))
A_PROTOCOL = RunContinued(Refusals((Refusal("reviewer", "Look again."), *A_FOLLOW_UP.refusals)))


def answer_to(loop: Loop, call: ToolCall) -> CallAnswered:
    return next(event for event in loop.events if isinstance(event, CallAnswered) and event.call == call.id)


# skip_when_steered


def test_after_steering_no_call_begins_until_the_model_is_asked() -> None:
    waits, steered, *_ = drive(skip_when_steered(), [THIS, THIS, InferenceRequested()])

    assert (waits.refuse, steered.because) == (None, Steered())
    loop = Loop(skip_when_steered())
    loop.hear(THIS)
    assert not any(map(loop.can, (ProposedAction(A), ToolStarted(A), DONE)))
    assert loop.can(STOPPED)
    loop.hear(InferenceRequested())
    assert all(map(loop.can, (ProposedAction(A), ToolStarted(A), DONE)))


def test_a_draft_of_a_protocol_is_not_the_loops_own_and_hears_nothing() -> None:
    loop = Loop(skip_when_steered())
    loop.hear(THIS, InferenceRequested("d1"))

    assert not loop.can(DONE)


def test_the_end_of_a_run_ends_its_steering() -> None:
    loop = Loop(skip_when_steered())
    loop.hear(THIS, STOPPED)

    assert loop.can(ProposedAction(A))


def test_the_rest_of_a_batch_is_answered_as_skipped_and_what_runs_finishes() -> None:
    """S2: skipped tool calls still produce tool results marked as errors."""
    loop = Loop(*CORE, one_at_a_time(), answers_in_source_order(), skip_when_steered())
    loop.hear(PromptGiven("Go"), drafted("", A, B, C), described(A))

    loop.hear(THIS)
    assert loop.hear(finished(A)) == [
        "tool_finished:a",
        "call_answered:a",
        "call_answered:b",
        "call_answered:c",
        "inference_requested",
    ]
    assert answer_to(loop, A).outcome == "ran"
    assert (answer_to(loop, B).result, answer_to(loop, B).outcome, answer_to(loop, B).is_error) == (
        SKIPPED,
        "skipped",
        True,
    )


def test_a_call_that_is_being_asked_about_is_skipped_and_its_question_withdrawn() -> None:
    def judge(action: object) -> Verdict:
        return Verdict(Level.ask, "any_rule", explanation="May it?")

    loop = Loop(*CORE, by_constitution(judge), skip_when_steered())
    loop.hear(PromptGiven("Go"), drafted("", A), described(A))

    loop.hear(THIS)
    [gone] = [event for event in loop.events if isinstance(event, GateRejected)]
    assert [refusal.because for refusal in gone.refusals] == [Steered()]
    assert rejected("a", gone.refusals).result == SKIPPED


def test_steering_during_the_last_answer_makes_the_run_go_on() -> None:
    loop = Loop(*CORE, skip_when_steered())
    loop.hear(PromptGiven("Go"), THIS)

    assert loop.hear(drafted("Done."))[-2:] == ["run_continued", "inference_requested"]
    assert loop.hear(drafted("This then."))[-1] == "run_ended"


def test_a_stop_is_worse_than_steering() -> None:
    loop = Loop(*CORE, skip_when_steered(), stop_on_request())
    loop.hear(PromptGiven("Go"), THIS)
    loop.hear(StopAsked())

    loop.hear(drafted("Done."))
    assert loop.events[-1] == RunEnded("stopped", "stop_asked", "Stopped at the user's request.")


# continue_with_follow_ups


def test_follow_ups_are_heard_one_after_the_other() -> None:
    loop = Loop(continue_with_follow_ups())
    loop.hear(NEXT, NEXT)

    for _ in range(2):
        assert loop.reasons(DONE) == ["a follow-up waits"]
        loop.hear(A_FOLLOW_UP)
    assert loop.can(DONE)


def test_or_all_at_once() -> None:
    loop = Loop(continue_with_follow_ups(at_once=True))
    loop.hear(NEXT, NEXT, ALL_FOLLOW_UPS)

    assert loop.can(DONE)


def test_a_follow_up_waits_while_somebody_else_has_something_left_to_say() -> None:
    loop = Loop(continue_with_follow_ups())
    loop.hear(NEXT, A_PROTOCOL)

    assert not loop.can(DONE)


def test_another_end_is_not_kept_back_and_leaves_nothing_waiting() -> None:
    loop = Loop(continue_with_follow_ups())
    loop.hear(NEXT)

    assert loop.can(STOPPED)
    loop.hear(STOPPED)
    assert loop.can(DONE)


def test_more_than_may_wait_do_not_come_in() -> None:
    loop = Loop(continue_with_follow_ups(most=2))
    loop.hear(NEXT, NEXT)

    assert not loop.can(NEXT)
    loop.hear(A_FOLLOW_UP)
    assert loop.can(NEXT)


def test_in_a_program_the_run_goes_on_once_for_each() -> None:
    loop = Loop(*CORE, continue_with_follow_ups())
    loop.hear(PromptGiven("Go"), NEXT, NEXT, drafted("One."), drafted("Two."), drafted("Three."))

    assert [event.name for event in loop.events].count("run_continued") == 2
    assert loop.events[-1] == RunEnded("completed", "answered", "Three.")


# What those who refuse say


def test_only_protocols_have_words_of_their_own_for_the_model() -> None:
    refusals = Refusals((Refusal("b", "Second."), Refusal("a", "First."), Refusal("c", " "), Refusal("s", Steered())))

    assert words_to_the_model(refusals) == ("First.", "Second.")


@pytest.mark.parametrize(
    ("reasons", "text", "outcome"),
    [
        ([Steered()], SKIPPED, "skipped"),
        ([Ending("stopped", "stop", "Stopped.")], "skipped: Stopped.", "ended"),
        (
            [Steered(), Ending("stopped", "stop", "Over.")],
            "skipped: Skipped due to queued user message.; Over.",
            "ended",
        ),
        ([Steered(), "never"], "rejected: r1: never", "ended"),
        ([Steered(), Flaw("cut off")], "not executed: cut off", "invalid"),
    ],
)
def test_the_answer_to_a_call_that_did_not_run_says_why(reasons: list[object], text: str, outcome: str) -> None:
    answer = not_run("a", Refusals(Refusal(f"r{number}", because) for number, because in enumerate(reasons)))

    assert (answer.result, answer.outcome) == (text, outcome)


# Calls that run together

S1, S2, S3 = (ToolCall(f"s{number}", "look", parallel=True) for number in (1, 2, 3))


@pytest.mark.parametrize(
    ("calls", "together", "groups"),
    [
        ((S1, S2, A, S3), "none", ((S1,), (S2,), (A,), (S3,))),
        ((S1, S2, A, S3), "neighbours", ((S1, S2), (A,), (S3,))),
        ((A, B, S1), "neighbours", ((A,), (B,), (S1,))),
        ((S1, S2, A), "all", ((S1,), (S2,), (A,))),
        ((S1, S2, S3), "all", ((S1, S2, S3),)),
        ((), "neighbours", ()),
    ],
)
def test_calls_are_grouped_by_what_may_run_together(
    calls: tuple[ToolCall, ...], together: Together, groups: tuple[tuple[ToolCall, ...], ...]
) -> None:
    assert groups_of(calls, together) == groups


def test_an_unsafe_call_is_a_barrier() -> None:
    loop = Loop(one_at_a_time("neighbours"))
    loop.hear(committed(S1, S2, A, S3))

    def may_be_proposed() -> list[str]:
        return [call.id for call in (S1, S2, A, S3) if loop.can(ProposedAction(call))]

    assert may_be_proposed() == ["s1", "s2"]
    loop.hear(CallAnswered("s1", "x"))
    assert may_be_proposed() == ["s1", "s2"]
    loop.hear(CallAnswered("s2", "x"))
    assert may_be_proposed() == ["s1", "s2", "a"]
    loop.hear(CallAnswered("a", "x"))
    assert may_be_proposed() == ["s1", "s2", "a", "s3"]


@bthread
def carry_out_all(*calls: ToolCall) -> BThreadBody:
    yield sync(wait_for=where(AnswerCommitted))
    yield start(*[carry_out(call) for call in calls])


def test_safe_neighbours_run_together_and_are_answered_in_source_order() -> None:
    loop = Loop(one_at_a_time("neighbours"), answers_in_source_order(), gate(), carry_out_all(S1, S2, A))
    loop.hear(committed(S1, S2, A), described(S1), described(S2), finished(S2))

    assert loop.story[-1] == "tool_finished:s2"
    assert loop.hear(finished(S1)) == [
        "tool_finished:s1",
        "call_answered:s1",
        "call_answered:s2",
        "proposed_action:a",
    ]


# seek_steering, seek_follow_ups

SOUGHT, NOTHING = MessagesSought("steering"), MessagesFound("steering")
FOUND = MessagesFound("steering", ("rather this",))


def test_people_are_asked_at_each_joint_and_everything_waits_for_them() -> None:
    waits, asks, hears, gives, again, *_ = drive(seek_steering(), [PromptGiven("Go"), SOUGHT, FOUND, THIS])

    assert waits.block is None
    assert asks.requests == (SOUGHT,)
    assert gives.requests == (THIS,)
    assert all(contains(said.block, InferenceRequested()) for said in (asks, hears, gives))
    assert again == waits


def test_who_has_nothing_to_say_is_asked_again_when_something_happened_meanwhile() -> None:
    answered = CallAnswered("a", "x")

    said = drive(seek_steering(), [answered, SOUGHT, answered, NOTHING])

    assert said[-1].requests == (SOUGHT,)


def test_after_a_stop_nobody_is_asked_any_more_in_this_run() -> None:
    loop = Loop(*CORE, seek_steering(), seek_follow_ups(), stop_on_request())
    loop.hear(PromptGiven("Go"))
    assert loop.story[-1] == "messages_sought"

    assert loop.hear(StopAsked(), NOTHING)[-1] == "run_ended"
    assert loop.hear(PromptGiven("Again"))[-1] == "messages_sought"


def test_follow_ups_are_asked_for_when_the_run_would_complete() -> None:
    loop = Loop(*CORE, seek_follow_ups(), continue_with_follow_ups())
    loop.hear(PromptGiven("Go"), drafted("One."))

    assert loop.story[-1] == "messages_sought"
    found = MessagesFound("follow_up", ("and then that", "and more"))
    assert sorted(loop.hear(found)[1:]) == [
        "follow_up_given",
        "follow_up_given",
        "inference_requested",
        "run_continued",
    ]
    assert loop.hear(drafted("Two."), MessagesFound("follow_up"))[-1] == "inference_requested"


def test_an_empty_answer_is_no_last_one() -> None:
    loop = Loop(*CORE, seek_follow_ups())
    loop.hear(PromptGiven("Go"))

    assert "messages_sought" not in loop.hear(drafted(""))
