"""Faults of the core: each b-thread here stands in for the one whose name it has, and does one thing wrong."""

from typing import Any

from attrs import evolve

from agent.threads.core import carry_out
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import (
    ActionDescribed,
    AnswerCommitted,
    CallAnswered,
    DraftsSettled,
    GateApproved,
    GateRejected,
    HistoryGiven,
    InferenceFinished,
    InferenceRequested,
    PromptGiven,
    ProposedAction,
    RunContinued,
    RunEnded,
    StopAsked,
    ToolFinished,
    ToolStarted,
)
from agent.vocabulary.reasons import not_run, rejected
from bp import BThreadBody, bthread, start, sync, where

# carry_out


@bthread(name="carry_out")
def does_not_wait_for_the_gate(call: ToolCall, disclosure: str = "full") -> BThreadBody:
    yield sync(request=ProposedAction(call))
    yield sync(wait_for=where(ActionDescribed, call=call))
    yield sync(request=ToolStarted(call))
    finished = yield sync(wait_for=where(ToolFinished, call=call))
    yield sync(request=CallAnswered(call.id, finished.result, finished.is_error))


@bthread(name="carry_out")
def runs_other_arguments_than_approved(call: ToolCall, disclosure: str = "full") -> BThreadBody:
    yield sync(request=ProposedAction(call))
    yield sync(wait_for=where((GateApproved, GateRejected), call=call))
    changed = evolve(call, arguments={"path": "elsewhere"})
    yield sync(request=ToolStarted(changed))
    finished = yield sync(wait_for=where(ToolFinished, call=changed))
    yield sync(request=CallAnswered(call.id, finished.result, finished.is_error))


@bthread(name="carry_out")
def does_not_answer_rejections(call: ToolCall, disclosure: str = "full") -> BThreadBody:
    yield sync(request=ProposedAction(call))
    said = yield sync(wait_for=where((GateApproved, GateRejected), call=call))
    if isinstance(said, GateApproved):
        yield sync(request=ToolStarted(call))
        finished = yield sync(wait_for=where(ToolFinished, call=call))
        yield sync(request=CallAnswered(call.id, finished.result, finished.is_error))


@bthread(name="carry_out")
def answers_before_the_tool_has_ended(call: ToolCall, disclosure: str = "full") -> BThreadBody:
    yield sync(request=ProposedAction(call))
    said = yield sync(wait_for=where((GateApproved, GateRejected), call=call))
    if isinstance(said, GateRejected):
        yield sync(request=rejected(call.id, said.refusals))
        return
    yield sync(request=ToolStarted(call))
    yield sync(request=CallAnswered(call.id, "started"))


@bthread(name="carry_out")
def answers_twice(call: ToolCall, disclosure: str = "full") -> BThreadBody:
    yield sync(request=ProposedAction(call))
    said = yield sync(wait_for=where((GateApproved, GateRejected), call=call))
    answer = CallAnswered(call.id, "not now", is_error=True, outcome="rejected")
    if isinstance(said, GateApproved):
        yield sync(request=ToolStarted(call))
        finished = yield sync(wait_for=where(ToolFinished, call=call))
        answer = CallAnswered(call.id, finished.result, finished.is_error)
    yield sync(request=answer)
    yield sync(request=answer)


@bthread(name="carry_out")
def insists_on_its_proposal(call: ToolCall, disclosure: str = "full") -> BThreadBody:
    """No `otherwise`: what is refused is held back for ever, and never answered."""
    yield sync(request=ProposedAction(call))
    said = yield sync(wait_for=where((GateApproved, GateRejected), call=call))
    if isinstance(said, GateRejected):
        yield sync(request=rejected(call.id, said.refusals))
        return
    said = yield sync(request=ToolStarted(call), otherwise=lambda refusals: not_run(call.id, refusals))
    if isinstance(said, ToolStarted):
        finished = yield sync(wait_for=where(ToolFinished, call=call))
        yield sync(request=CallAnswered(call.id, finished.result, finished.is_error))


@bthread(name="carry_out")
def says_of_rejected_calls_that_they_ran(call: ToolCall, disclosure: str = "full") -> BThreadBody:
    yield sync(request=ProposedAction(call))
    said = yield sync(wait_for=where((GateApproved, GateRejected), call=call))
    if isinstance(said, GateApproved):
        yield sync(request=ToolStarted(call))
        yield sync(wait_for=where(ToolFinished, call=call))
    yield sync(request=CallAnswered(call.id, "done"))


# gate


@bthread(name="gate")
def without_otherwise() -> BThreadBody:
    while True:
        described = yield sync(wait_for=ActionDescribed)
        yield start(insists(described))


@bthread(name="gate")
def insists(described: ActionDescribed) -> BThreadBody:
    yield sync(request=GateApproved(described.call, described.facts))


@bthread(name="gate")
def with_a_single_slot() -> BThreadBody:
    """Whatever is described while an action is put up goes unseen."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        yield from put_up(described.call, GateApproved(described.call, described.facts))


@bthread(name="gate")
def decides_twice() -> BThreadBody:
    while True:
        described = yield sync(wait_for=ActionDescribed)
        approved = GateApproved(described.call, described.facts)
        yield from put_up(described.call, approved)
        yield from put_up(described.call, approved)


@bthread(name="gate")
def believes_every_yes() -> BThreadBody:
    """What a call would touch may have changed while the user was asked."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        yield start(put_up_at_once(described.call, GateApproved(described.call, described.facts)))


@bthread(name="gate")
def put_up_at_once(call: ToolCall, approved: GateApproved) -> BThreadBody:
    yield from put_up(call, approved)


def put_up(call: ToolCall, approved: GateApproved) -> Any:
    yield sync(request=approved, otherwise=lambda refusals: GateRejected(call, refusals))


# choose


@bthread(name="choose")
def commits_twice() -> BThreadBody:
    while True:
        finished = yield sync(wait_for=InferenceFinished)
        answer = AnswerCommitted(finished.draft, finished.message, finished.calls)
        yield sync(request=DraftsSettled((finished.draft,)))
        yield sync(request=answer)
        yield sync(request=answer)


@bthread(name="choose")
def drops_calls() -> BThreadBody:
    while True:
        finished = yield sync(wait_for=InferenceFinished)
        yield sync(request=DraftsSettled((finished.draft,)))
        yield sync(request=AnswerCommitted(finished.draft, finished.message, finished.calls[:1]))


@bthread(name="choose")
def forgets_that_inference_may_fail() -> BThreadBody:
    while True:
        finished = yield sync(wait_for=InferenceFinished)
        yield sync(request=DraftsSettled((finished.draft,)))
        yield sync(request=AnswerCommitted(finished.draft, finished.message, finished.calls))


# converse


@bthread(name="converse")
def does_not_wait_for_all_answers() -> BThreadBody:
    while True:
        yield sync(wait_for=PromptGiven)
        while True:
            yield sync(request=InferenceRequested())
            answer = yield sync(wait_for=AnswerCommitted | where(DraftsSettled, drafts=()))
            if isinstance(answer, AnswerCommitted) and answer.calls:
                yield start(*[carry_out(call) for call in answer.calls])
                yield sync(wait_for=CallAnswered)
            elif isinstance(answer, AnswerCommitted):
                break
        yield sync(request=RunEnded("completed", "answered"))


@bthread(name="converse")
def takes_a_text_for_the_end() -> BThreadBody:
    """It looks for a text before it looks for calls."""
    while True:
        yield sync(wait_for=PromptGiven)
        answer = None
        while not (isinstance(answer, AnswerCommitted) and answer.message.text):
            yield sync(request=InferenceRequested())
            answer = yield sync(wait_for=AnswerCommitted | where(DraftsSettled, drafts=()))
            if isinstance(answer, AnswerCommitted) and not answer.message.text:
                yield from carried_out(answer)
        yield sync(request=RunEnded("completed", "answered"))


@bthread(name="converse")
def goes_on_after_a_refused_call() -> BThreadBody:
    """The answers that follow that of a refused call are not waited for."""
    while True:
        yield sync(wait_for=PromptGiven)
        answer = None
        while not (isinstance(answer, AnswerCommitted) and not answer.calls):
            yield sync(request=InferenceRequested())
            answer = yield sync(wait_for=AnswerCommitted | where(DraftsSettled, drafts=()))
            outcomes = [] if not isinstance(answer, AnswerCommitted) else list(answer.calls)
            yield start(*[carry_out(call) for call in outcomes])
            while outcomes:
                answered = yield sync(wait_for=CallAnswered)
                outcomes = outcomes[1:] if answered.outcome == "ran" else []
        yield sync(request=RunEnded("completed", "answered"))


@bthread(name="converse")
def insists_on_inference() -> BThreadBody:
    """No `otherwise`: a limit that refuses leaves the run standing."""
    while True:
        yield sync(wait_for=PromptGiven)
        while True:
            yield sync(request=InferenceRequested())
            answer = yield sync(wait_for=AnswerCommitted | where(DraftsSettled, drafts=()))
            if isinstance(answer, AnswerCommitted) and not answer.calls:
                break
            yield from carried_out(answer)
        yield sync(request=RunEnded("completed", "answered"), otherwise=RunContinued)


@bthread(name="converse")
def ends_twice() -> BThreadBody:
    while True:
        yield sync(wait_for=PromptGiven)
        yield sync(request=InferenceRequested())
        yield sync(wait_for=AnswerCommitted | where(DraftsSettled, drafts=()))
        yield sync(request=RunEnded("completed", "answered"))
        yield sync(request=RunEnded("completed", "answered", "again"))


@bthread(name="converse")
def ends_at_a_stop_by_itself() -> BThreadBody:
    """What is under way is left behind."""
    while True:
        yield sync(wait_for=PromptGiven)
        yield sync(request=InferenceRequested())
        said = yield sync(wait_for=AnswerCommitted | StopAsked | where(DraftsSettled, drafts=()))
        if isinstance(said, AnswerCommitted):
            yield from carried_out(said)
        yield sync(request=RunEnded("stopped", "stop_asked"))


def carried_out(answer: Any) -> Any:
    calls = answer.calls if isinstance(answer, AnswerCommitted) else ()
    yield start(*[carry_out(call) for call in calls])
    for _ in calls:
        yield sync(wait_for=CallAnswered)


@bthread(name="choose")
def takes_an_answer_with_text_for_text() -> BThreadBody:
    """The calls of an answer with text are lost."""
    while True:
        draft = yield sync(wait_for=InferenceFinished)
        yield sync(request=DraftsSettled((draft.draft,)))
        yield sync(request=AnswerCommitted(draft.draft, draft.message, () if draft.message.text else draft.calls))


# session


@bthread(name="session")
def lets_prompts_through() -> BThreadBody:
    while True:
        yield sync(wait_for=PromptGiven, block=~where((PromptGiven, HistoryGiven)))
        yield sync(wait_for=RunEnded)


@bthread(name="session")
def lets_everything_through_between_runs() -> BThreadBody:
    while True:
        yield sync(wait_for=PromptGiven)
        yield sync(wait_for=RunEnded, block=where((PromptGiven, HistoryGiven)))
