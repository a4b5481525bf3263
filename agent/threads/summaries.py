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


@bthread
def recover_from_overflow(summarize: bool) -> BThreadBody:
    """Summarize a conversation that is too long for the model's server and ask once more, or end the run.

    Once in a turn: if it is too long then, too, a further summary would not help. The context leaves out what it must,
    also where the summary fails.
    """
    has_recovered = False
    while True:
        said = yield sync(wait_for=OVERFLOW | AnswerCommitted | RunEnded if has_recovered else OVERFLOW)
        if not isinstance(said, InferenceFailed):
            has_recovered = False
            continue
        settled = yield sync(wait_for=NO_DRAFT | AnswerCommitted | RunEnded)  # another model may have answered
        if isinstance(settled, DraftsSettled) and summarize and not has_recovered:
            outcome = yield from summed_up()
            has_recovered = not isinstance(outcome, RunEnded)
            if not getattr(outcome, "nothing_older", False):  # no message may be left out: a summary would not help
                continue
        if isinstance(settled, DraftsSettled):
            ending = overflow_ending(said.error, summarize)
            yield sync(refuse=InferenceRequested, because=ending, wait_for=RunEnded)
        has_recovered = False


def overflow_ending(error: str, summarized: bool) -> Ending:
    """Return the end of a run whose conversation is too long for the model, with the cure."""
    also = ", also without its older part" if summarized else ""
    cure = "a smaller output_limit" if summarized else "compaction=summary"
    text = (
        f"The conversation is too long for the model{also}: {error.rstrip('.')}. "
        f"Give {cure}, or the size of the model's context as context_tokens."
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
