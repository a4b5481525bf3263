"""Faults of hearing people and of running calls together: each stands in for the b-thread whose name it has."""

from agent.threads.core import continued_instead, ended_instead
from agent.threads.steering import HEARD, JOINTS, NEXT
from agent.threads.stopping import NEXT_CALL, NEXT_INFERENCE
from agent.threads.tool_calls import in_turn
from agent.vocabulary.events import (
    AnswerCommitted,
    CallAnswered,
    DraftsSettled,
    FollowUpGiven,
    InferenceRequested,
    MessagesFound,
    MessagesSought,
    PromptGiven,
    ProposedAction,
    RunContinued,
    RunEnded,
    SteeringGiven,
    StopAsked,
)
from agent.vocabulary.reasons import Ending, FollowUpWaits, Steered, follow_ups_heard
from bp import BThreadBody, Event, Refusals, bthread, start, sync, where

COMPLETION = where(RunEnded, status="completed")
STEERED = NEXT["steering"]

# skip_when_steered


@bthread(name="skip_when_steered")
def hears_steering_once() -> BThreadBody:
    yield sync(wait_for=SteeringGiven)
    yield sync(refuse=NEXT_CALL | COMPLETION, because=Steered(), wait_for=HEARD)


@bthread(name="skip_when_steered")
def lets_the_run_complete() -> BThreadBody:
    while True:
        yield sync(wait_for=SteeringGiven)
        yield sync(refuse=NEXT_CALL, because=Steered(), wait_for=HEARD)


@bthread(name="skip_when_steered")
def goes_on_with_the_batch() -> BThreadBody:
    while True:
        yield sync(wait_for=SteeringGiven)
        yield sync(refuse=COMPLETION, because=Steered(), wait_for=HEARD)


@bthread(name="skip_when_steered")
def skips_one_call() -> BThreadBody:
    while True:
        yield sync(wait_for=SteeringGiven)
        yield sync(refuse=NEXT_CALL | COMPLETION, because=Steered(), wait_for=HEARD | CallAnswered)


@bthread(name="skip_when_steered")
def holds_the_batch() -> BThreadBody:
    """Calls that are held and not refused are never answered."""
    while True:
        yield sync(wait_for=SteeringGiven)
        yield sync(block=NEXT_CALL | COMPLETION, wait_for=HEARD)


# continue_with_follow_ups


@bthread(name="continue_with_follow_ups")
def lets_the_run_complete_when_steered(at_once: bool, most: int) -> BThreadBody:
    while True:
        yield sync(wait_for=FollowUpGiven)
        yield sync(
            refuse=COMPLETION, because=FollowUpWaits(), block=FollowUpGiven, wait_for=RunContinued | SteeringGiven
        )


@bthread(name="continue_with_follow_ups")
def forgets_the_second(at_once: bool, most: int) -> BThreadBody:
    while True:
        yield sync(wait_for=FollowUpGiven)
        second = yield sync(
            refuse=COMPLETION, because=FollowUpWaits(), wait_for=FollowUpGiven | RunContinued | RunEnded
        )
        if isinstance(second, FollowUpGiven):
            yield sync(
                refuse=COMPLETION, because=FollowUpWaits(), block=FollowUpGiven, wait_for=RunContinued | RunEnded
            )


@bthread(name="continue_with_follow_ups")
def repeats_the_first(at_once: bool, most: int) -> BThreadBody:
    while True:
        yield sync(wait_for=FollowUpGiven)
        said = None
        while not isinstance(said, RunEnded):
            said = yield sync(
                refuse=COMPLETION, because=FollowUpWaits(), block=FollowUpGiven, wait_for=RunContinued | RunEnded
            )


@bthread(name="continue_with_follow_ups")
def takes_itself_for_heard(at_once: bool, most: int) -> BThreadBody:
    """The run goes on because of somebody else, and the follow-up is forgotten."""
    while True:
        yield sync(wait_for=FollowUpGiven)
        yield sync(refuse=COMPLETION, because=FollowUpWaits(), block=FollowUpGiven, wait_for=RunContinued | RunEnded)


@bthread(name="continue_with_follow_ups")
def holds_completion(at_once: bool, most: int) -> BThreadBody:
    while True:
        yield sync(wait_for=FollowUpGiven)
        said = None
        while not isinstance(said, RunEnded) and follow_ups_heard(getattr(said, "refusals", Refusals())) == "none":
            said = yield sync(block=COMPLETION | FollowUpGiven, wait_for=RunContinued | RunEnded)


# seek_steering


@bthread(name="seek_steering")
def does_not_wait_for_people() -> BThreadBody:
    while True:
        yield sync(wait_for=JOINTS["steering"])
        yield sync(request=MessagesSought("steering"))
        found = yield sync(wait_for=MessagesFound)
        for text in found.texts:
            yield sync(request=SteeringGiven(text))


@bthread(name="seek_steering")
def drops_what_people_say() -> BThreadBody:
    while True:
        yield sync(wait_for=JOINTS["steering"])
        yield sync(request=MessagesSought("steering"), block=STEERED)
        yield sync(wait_for=MessagesFound, block=STEERED)


@bthread(name="seek_steering")
def asks_once() -> BThreadBody:
    yield sync(wait_for=JOINTS["steering"])
    yield sync(request=MessagesSought("steering"), block=STEERED)
    found = yield sync(wait_for=MessagesFound, block=STEERED)
    for text in found.texts:
        yield sync(request=SteeringGiven(text), block=STEERED)


@bthread(name="seek_steering")
def waits_for_people_after_the_end() -> BThreadBody:
    """The run may end while they are asked: what they say comes when no run is under way."""
    while True:
        yield sync(wait_for=JOINTS["steering"])
        yield sync(request=MessagesSought("steering"), block=STEERED)
        yield sync(wait_for=MessagesFound, block=ProposedAction | InferenceRequested)


# converse


@bthread(name="converse")
def completes_all_the_same() -> BThreadBody:
    """The run is said to go on, and ends."""
    while True:
        yield sync(wait_for=PromptGiven)
        said: Event = RunContinued(Refusals())
        while not isinstance(said, RunEnded):
            said = yield sync(request=InferenceRequested(), otherwise=ended_instead)
            if isinstance(said, InferenceRequested):
                said = yield sync(wait_for=AnswerCommitted | where(DraftsSettled, drafts=()))
            if isinstance(said, AnswerCommitted) and not said.calls:
                ending = RunEnded("completed", "answered")
                said = yield sync(request=ending, otherwise=continued_instead)
                if isinstance(said, RunContinued):
                    said = yield sync(request=ending, otherwise=continued_instead)


# one_at_a_time


@bthread(name="one_at_a_time")
def forgets_the_barrier(together: str) -> BThreadBody:
    """Calls that may run together wait for nobody; only the others wait."""
    while True:
        answer = yield sync(wait_for=AnswerCommitted)
        alone = tuple((call,) for call in answer.calls if not call.parallel)
        yield start(in_turn(alone))


@bthread(name="one_at_a_time")
def takes_one_for_all(together: str) -> BThreadBody:
    """One call that may run together makes the whole answer run together."""
    while True:
        answer = yield sync(wait_for=AnswerCommitted)
        if not any(call.parallel for call in answer.calls):
            yield start(in_turn(tuple((call,) for call in answer.calls)))


@bthread(name="one_at_a_time")
def waits_for_the_barrier_to_begin(together: str) -> BThreadBody:
    """What comes after the barrier is held until the barrier is proposed, and not until it is answered."""
    while True:
        answer = yield sync(wait_for=AnswerCommitted)
        if len(answer.calls) > 1:
            first, *others = answer.calls
            later = [where(ProposedAction, call=call) for call in others]
            yield sync(wait_for=where(ProposedAction, call=first) | where(CallAnswered, call=first.id), block=later)


# A stop, when the step is to be finished


@bthread(name="stop_on_request")
def asks_after_a_stop(after: str = "step") -> BThreadBody:
    """A fault that the first version of the loop had: who had said stop was asked about the rest of the step."""
    nothing_new = NEXT_INFERENCE | where(RunEnded, status="completed", reason="answered")
    while True:
        yield sync(wait_for=StopAsked)
        yield sync(refuse=nothing_new, because=Ending("stopped", "stop_asked"), wait_for=RunEnded)
