"""Ask again after a failed inference, a little later each time; give up when that cannot help."""

from agent.vocabulary.events import (
    BackoffElapsed,
    BackoffStarted,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
    RunEnded,
)
from agent.vocabulary.reasons import Ending
from bp import BThreadBody, bthread, sync, where

__all__ = ["retry"]

INFERENCES = InferenceFailed | InferenceFinished | RunEnded


@bthread
def retry(attempts: int) -> BThreadBody:
    """Allow `attempts` inferences for an answer: the next one waits for its backoff, and comes only if it may help.

    While a backoff is under way the run does not end; whoever ends it cuts the backoff short.
    """
    failures = 0
    while True:
        said = yield sync(wait_for=INFERENCES)
        failures = failures + 1 if isinstance(said, InferenceFailed) else 0
        if not failures:
            continue
        if said.retryable and failures < attempts:
            said = yield sync(
                request=BackoffStarted(failures, said.retry_after), block=InferenceRequested, wait_for=RunEnded
            )
            if isinstance(said, BackoffStarted):
                elapsed = where(BackoffElapsed, attempt=failures)
                yield sync(wait_for=elapsed, block=InferenceRequested | RunEnded)
            else:
                failures = 0
        else:
            ending = Ending("failed", "inference_failed", said.error)
            yield sync(refuse=InferenceRequested, because=ending, wait_for=RunEnded)
            failures = 0
