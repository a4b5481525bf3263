"""A run told as the events of S2, and what people said that was not heard."""

from agent.projections.conversation import Conversation, Unheard
from agent.projections.narration import Narration
from agent.vocabulary.events import (
    FollowUpGiven,
    HistoryGiven,
    InferenceFailed,
    InferenceRequested,
    MessagesFound,
    PromptGiven,
    RunEnded,
    SteeringGiven,
)
from agent.vocabulary.messages import UserMessage
from bp import Event


def told(narration: Narration, *events: Event) -> list[str]:
    return [one.type for event in events for one in narration.tell(event)]


def test_what_was_said_before_is_not_told() -> None:
    narration = Narration()
    types = told(narration, HistoryGiven((UserMessage("Before"),)), PromptGiven("Go"))

    assert types == ["agent_start", "turn_start", "message_start", "message_end"]
    assert narration.new_messages == (UserMessage("Go"),)


def test_a_turn_that_fails_is_one_turn_however_often_it_is_tried() -> None:
    narration = Narration()
    asked, failed = InferenceRequested(), InferenceFailed("d0", "busy", retryable=True)

    types = told(narration, PromptGiven("Go"), asked, failed, asked, failed, RunEnded("failed", "inference_failed"))

    assert (types.count("turn_start"), types.count("turn_end"), types[-1]) == (1, 1, "agent_end")


def test_words_said_twice_are_heard_twice() -> None:
    unheard = Unheard()
    for _ in range(2):
        unheard.fold(FollowUpGiven("again"))

    assert unheard.take_follow_ups("one") == (UserMessage("again"),)
    assert unheard.texts == ("again",)


def test_what_a_hook_found_is_kept_though_the_run_ends_before_it_is_given() -> None:
    conversation = Conversation()
    found = MessagesFound("steering", ("this", "that"))
    for event in (PromptGiven("Go"), found, SteeringGiven("this"), RunEnded("aborted", "abort_asked")):
        conversation.fold(event)
    left = conversation.unheard

    conversation.fold(PromptGiven("Go on"))

    assert conversation.messages == tuple(map(UserMessage, ("Go", "this", "that", "Go on")))
    assert (left, conversation.unheard) == (("this", "that"), ())


def test_a_draft_of_a_protocol_takes_nothing_that_was_said() -> None:
    conversation = Conversation()
    conversation.fold(SteeringGiven("this"))

    conversation.fold(InferenceRequested("d1", role="trusted"))

    assert conversation.unheard == ("this",)
