"""When the conversation has grown long, a model sums up its older part before the next inference.

The b-thread knows of the length what the last inference said of it. Which part is summed up, and what is shown in its
place, is the business of the projection that builds the context; the log and the conversation keep everything.
"""

from typing import Any

from attrs import frozen

from agent.vocabulary.calls import without
from agent.vocabulary.events import (
    AnswerCommitted,
    CallAnswered,
    InferenceFinished,
    InferenceRequested,
    PromptGiven,
    RunContinued,
    RunEnded,
    SummaryFailed,
    SummaryFinished,
    SummaryRequested,
)
from bp import BThreadBody, bthread, sync, where


@frozen
class TookAtLeast:
    """Whether an inference took so many tokens: a predicate that is a value."""

    tokens: int

    def __call__(self, finished: InferenceFinished) -> bool:
        """Compare what was read and written: all of it is read the next time."""
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
        said = yield sync(request=SummaryRequested(), block=InferenceRequested, wait_for=RunEnded)
        if isinstance(said, SummaryRequested):
            yield sync(wait_for=SummaryFinished | SummaryFailed, block=InferenceRequested | RunEnded)


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
