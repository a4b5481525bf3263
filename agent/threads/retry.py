"""Ask again after a failed inference, a little later each time; give up when that cannot help."""

from agent.events import BackoffElapsed, BackoffStarted, InferenceFailed, InferenceFinished, InferenceRequested, RunEnded
from agent.reasons import Ending
from bp import BThreadBody, bthread, sync

__all__ = ["retry"]


@bthread
def retry(attempts: int) -> BThreadBody:
    """Allow `attempts` inferences for an answer: the next one waits for its backoff, and only if it may help."""
    failures = 0
    while True:
        said = yield sync(wait_for=InferenceFailed | InferenceFinished | RunEnded)
        if not isinstance(said, InferenceFailed):
            failures = 0
            continue
        failures += 1
        if said.retryable and failures < attempts:
            backoff = BackoffStarted(failures, said.retry_after)
            yield sync(request=backoff, block=InferenceRequested, wait_for=RunEnded)
            yield sync(wait_for=BackoffElapsed | RunEnded, block=InferenceRequested)
        else:
            ending = Ending("failed", "inference_failed", said.error)
            yield sync(refuse=InferenceRequested, because=ending, wait_for=RunEnded)
            failures = 0
