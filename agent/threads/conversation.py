"""The conversation: prompt, inference, answer, calls, inference, until the model asks for no more.

    prompt_given -> inference_requested -> answer_committed -+- with calls: each carried out and answered -+
                       ^   |                                 +- empty ------------------------------------ + -> again
                       |   +- refused: run_ended             +- text alone: run_ended(completed) -+
                       +------------------------ run_continued, when that is refused -------------+

An inference that is refused because the work is complete makes it `completion_declared`, which ends like a text alone.

Whoever wants the run to end refuses `inference_requested` with an `Ending`; this b-thread alone requests `run_ended`.
"""

from agent.threads.calls import carry_out
from agent.vocabulary.calls import without
from agent.vocabulary.events import (
    AnswerCommitted,
    CallAnswered,
    CompletionDeclared,
    DraftsRefused,
    DraftsSettled,
    InferenceRequested,
    PromptGiven,
    RunContinued,
    RunEnded,
)
from agent.vocabulary.reasons import Disclosure, worst_ending
from bp import BThreadBody, Event, Refusals, bthread, start, sync, where

__all__ = ["converse"]

TURN_OVER = AnswerCommitted | DraftsRefused | where(DraftsSettled, drafts=())


@bthread
def converse(disclosure: Disclosure = "full") -> BThreadBody:
    """Lead one run after the other, each from its prompt to its one `run_ended`.

    disclosure: what the model is told of the reasons for which a call was refused.
    """
    while True:
        yield sync(wait_for=PromptGiven)
        said: Event = RunContinued(Refusals())
        while not isinstance(said, RunEnded):
            said = yield from one_turn(disclosure)


def one_turn(disclosure: Disclosure) -> BThreadBody:
    """Take one turn; return `run_ended` if it was the last."""
    said = yield sync(request=InferenceRequested(), otherwise=ended_instead)
    if isinstance(said, RunEnded):
        return said
    if isinstance(said, CompletionDeclared):
        return (yield from completed(said.status, said.text))
    said = yield sync(wait_for=TURN_OVER)
    if isinstance(said, DraftsRefused):
        return (yield sync(request=no_draft_left(said)))
    if not isinstance(said, AnswerCommitted):
        return said  # no draft at all: the inference failed, and is asked again unless somebody refuses
    if said.calls:
        return (yield from have_carried_out(said, disclosure))
    if not said.is_empty:
        return (yield from completed("answered", said.message.text))
    return said


def completed(reason: str, text: str) -> BThreadBody:
    """End the run as completed, or go on if somebody has something left to say."""
    return (yield sync(request=RunEnded("completed", reason, text), otherwise=continued_instead))


def have_carried_out(answer: AnswerCommitted, disclosure: Disclosure) -> BThreadBody:
    """Start the calls of an answer and wait until each is answered."""
    yield start(*[carry_out(call, disclosure) for call in answer.calls])
    unanswered = tuple(call.id for call in answer.calls)
    while unanswered:
        answered = yield sync(wait_for=CallAnswered)
        unanswered = without(unanswered, answered.call)
    return answered


def ended_instead(refusals: Refusals) -> RunEnded | CompletionDeclared:
    """Turn the refusals of an inference into the end of the run; one that is complete may still be continued."""
    ending = worst_ending(refusals) or RunEnded("failed", "inference_refused", _reasons(refusals))
    return CompletionDeclared(ending.reason, ending.text) if ending.status == "completed" else ending


def continued_instead(refusals: Refusals) -> RunEnded | RunContinued:
    """Turn the refusals of completion into another end, or into going on."""
    return worst_ending(refusals) or RunContinued(refusals)


def no_draft_left(refused: DraftsRefused) -> RunEnded:
    """End the run because every draft of the turn was refused: as an ending among the reasons says, if there is one."""
    text = f"Every draft was refused: {_reasons(refused.refusals)}"
    return worst_ending(refused.refusals) or RunEnded("failed", "drafts_refused", text)


def _reasons(refusals: Refusals) -> str:
    return "; ".join(sorted(f"{refusal.bthread}: {refusal.because}" for refusal in refusals))
