"""Summaries: a model sums up the older part of a conversation that has grown long, before the next inference.

The b-thread takes the length from the usage of the last inference. The projection that builds the context chooses the
part to summarize; the log and the conversation keep everything.
"""

from typing import Any

from attrs import frozen

from agent.threads.endings import OVERFLOW
from agent.vocabulary.calls import without
from agent.vocabulary.events import (
    AnswerCommitted,
    CallAnswered,
    DraftsSettled,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    PromptGiven,
    RunContinued,
    RunEnded,
    SummaryFailed,
    SummaryFinished,
    SummaryRequested,
)
from agent.vocabulary.reasons import Ending
from bp import BThreadBody, bthread, sync, where

NO_DRAFT = where(DraftsSettled, drafts=())


@frozen
class TookAtLeast:
    """A predicate that is a value: an inference took at least `tokens` tokens."""

    tokens: int

    def __call__(self, finished: InferenceFinished) -> bool:
        """Compare input and output tokens: all of them are input of the next inference."""
        return finished.usage.tokens >= self.tokens


@bthread
def summarize_when_full(tokens: int) -> BThreadBody:
    """After an inference of `tokens` or more, have a summary made before the next one; the run does not end meanwhile.

    A summary that fails is not asked for again before the next inference.
    """
    full = where(InferenceFinished, TookAtLeast(tokens))
    while True:
        yield sync(wait_for=full)
        yield from until_next_turn()
        yield from summed_up()


MOST_OVERFLOWS = 3
"""The number of times in a turn that a conversation which is too long is made shorter."""


@bthread
def recover_from_overflow(summarize: bool) -> BThreadBody:
    """Ask again with less of a conversation that is too long for the model's server, or end the run.

    The context shows less after each such failure, which says whether it can (`retryable`); a summary of the older part
    is made once in a turn.
    """
    times = 0
    while True:
        said = yield sync(wait_for=OVERFLOW | AnswerCommitted | RunEnded if times else OVERFLOW)
        if not isinstance(said, InferenceFailed):
            times = 0
            continue
        settled = yield sync(wait_for=NO_DRAFT | AnswerCommitted | RunEnded)  # another model may have answered
        if not isinstance(settled, DraftsSettled):
            times = 0
        elif said.retryable and times < MOST_OVERFLOWS:
            outcome = (yield from summed_up()) if summarize and not times else None
            times = 0 if isinstance(outcome, RunEnded) else times + 1
        else:
            yield sync(refuse=InferenceRequested, because=overflow_ending(said.error), wait_for=RunEnded)
            times = 0


def overflow_ending(error: str) -> Ending:
    """Return the end of a run whose conversation is too long for the model, with the cure."""
    text = (
        f"The conversation is too long for the model, also with the least of it: {error.rstrip('.')}. "
        "Give a shorter prompt, fewer tools, or a model with a larger context."
    )
    return Ending("failed", "context_length_exceeded", text)


def summed_up() -> BThreadBody:
    """Have a summary made before the next inference; return its outcome, or the end of the run."""
    said = yield sync(request=SummaryRequested(), block=InferenceRequested, wait_for=RunEnded)
    if isinstance(said, RunEnded):
        return said
    return (yield sync(wait_for=SummaryFinished | SummaryFailed, block=InferenceRequested | RunEnded))


def until_next_turn() -> BThreadBody:
    """Return when the answer was committed and carried out: what follows is an inference, unless the run ends."""
    said: Any = yield sync(wait_for=AnswerCommitted | RunEnded)
    if isinstance(said, AnswerCommitted) and said.calls:
        unanswered = tuple(call.id for call in said.calls)
        while unanswered:
            answered = yield sync(wait_for=CallAnswered)
            unanswered = without(unanswered, answered.call)
        return
    if isinstance(said, AnswerCommitted) and not said.is_empty:
        said = yield sync(wait_for=RunContinued | RunEnded)
    if isinstance(said, RunEnded):
        yield sync(wait_for=PromptGiven)
