"""What must hold for limits: what they count stays within them, and the run ends then."""

from agent.vocabulary.events import (
    AnswerCommitted,
    BackoffElapsed,
    CallAnswered,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    ProposedAction,
    RunEnded,
    ToolFinished,
)
from bp import BThreadBody, bthread, sync, where

__all__ = ["attempts_are_limited", "empty_answers_are_limited", "failures_are_limited", "turns_are_limited"]


@bthread
def turns_are_limited(turns: int) -> BThreadBody:
    """A run has at most `turns` committed answers, and asks for no further one."""
    taken = 0
    while True:
        said = yield sync(wait_for=AnswerCommitted | InferenceRequested | RunEnded)
        if isinstance(said, RunEnded):
            taken = 0
        else:
            assert taken < turns, f"{said.name} after {turns} turns"
            taken += 1 if isinstance(said, AnswerCommitted) else 0


@bthread
def failures_are_limited(limit: int) -> BThreadBody:
    """After `limit` failures in a row nothing more is proposed or asked for in this run."""
    news = where((ToolFinished, ProposedAction, InferenceRequested, RunEnded)) | where(CallAnswered, outcome="invalid")
    failures = 0
    while True:
        said = yield sync(wait_for=news)
        if isinstance(said, ProposedAction | InferenceRequested):
            assert failures < limit, f"{said.name} after {limit} failures in a row"
        elif isinstance(said, RunEnded):
            failures = 0
        elif failures < limit:
            failures = failures + 1 if said.is_error else 0


@bthread
def empty_answers_are_limited(limit: int) -> BThreadBody:
    """After `limit` answers in a row with neither text nor calls, nothing more is asked for in this run."""
    empty = 0
    while True:
        said = yield sync(wait_for=AnswerCommitted | InferenceRequested | RunEnded)
        if isinstance(said, InferenceRequested):
            assert empty < limit, f"{said.name} after {limit} empty answers in a row"
        else:
            is_empty = isinstance(said, AnswerCommitted) and said.is_empty
            empty = empty + 1 if is_empty else 0


@bthread
def attempts_are_limited(attempts: int) -> BThreadBody:
    """A failed inference is tried again after its backoff, `attempts` times in all, and only if that may help."""
    failures, may_ask = 0, True
    while True:
        said = yield sync(
            wait_for=where((InferenceRequested, InferenceFinished, InferenceFailed, BackoffElapsed, RunEnded))
        )
        if isinstance(said, InferenceRequested):
            assert may_ask, f"{said.name} after an inference failed, and without a backoff"
        elif isinstance(said, InferenceFailed):
            failures, may_ask = failures + 1, False
        elif isinstance(said, BackoffElapsed):
            assert failures < attempts, f"{failures} inferences failed, and another one is to follow"
            may_ask = True
        else:
            failures, may_ask = 0, True
