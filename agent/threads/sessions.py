"""One run at a time: a prompt begins it, `run_ended` ends it, and nothing happens in between."""

from agent.vocabulary.events import HistoryGiven, PromptGiven, RunEnded
from bp import BThreadBody, bthread, sync, where

__all__ = ["session"]


@bthread
def session() -> BThreadBody:
    """Between runs nothing but a prompt (or an earlier history) may come; a prompt waits for the end of its run."""
    beginnings = where((PromptGiven, HistoryGiven))
    while True:
        yield sync(wait_for=PromptGiven, block=~beginnings)
        yield sync(wait_for=RunEnded, block=beginnings)
