"""Drafts: everything that a model writes is one, and nothing enters the conversation uncommitted.

A turn's drafts are collected until none is outstanding. Then they settle (a protocol that wants another draft holds
`drafts_settled` and requests it), and the first one that nobody refuses is committed. Nobody is asked twice for a
draft of one name in a turn, and when it is over no more are asked for: a late draft would be a second answer.
"""

from functools import lru_cache, reduce
from operator import or_

from agent.vocabulary.calls import without
from agent.vocabulary.events import (
    AnswerCommitted,
    DraftsRefused,
    DraftsSettled,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
)
from agent.vocabulary.reasons import NoDraftWanted
from bp import NONE, BThreadBody, EventSet, bthread, sync, where

__all__ = ["OWN", "choose"]

OWN = "d0"
"""The name of the draft with which the loop itself begins each turn; all others are wanted by protocols."""

DRAFT_NEWS = InferenceRequested | InferenceFinished | InferenceFailed
FIRST = where(InferenceRequested, draft=OWN)
OTHERS = InferenceRequested & ~FIRST
TOO_LATE = NoDraftWanted("the drafts of this turn have settled")
ASKED_ALREADY = NoDraftWanted("it was asked for already in this turn")


@bthread
def choose() -> BThreadBody:
    """Commit the first draft of each turn that nobody refuses."""
    while True:
        yield sync(wait_for=FIRST, refuse=OTHERS, because=TOO_LATE)
        drafts = yield from collected(OWN)
        if drafts:
            answers = [committed(draft) for draft in drafts]
            yield sync(request=answers, otherwise=DraftsRefused, refuse=InferenceRequested, because=TOO_LATE)


def collected(first: str) -> BThreadBody:
    """Wait until all drafts that were asked for are there and have settled; return those that did not fail."""
    outstanding: tuple[str, ...] = (first,)
    drafts: tuple[InferenceFinished, ...] = ()
    while True:
        names = tuple(draft.draft for draft in drafts)
        said = yield sync(
            request=() if outstanding else DraftsSettled(names),
            wait_for=DRAFT_NEWS,
            refuse=drafts_named(*outstanding, *names),
            because=ASKED_ALREADY,
        )
        if isinstance(said, DraftsSettled):
            return drafts
        if isinstance(said, InferenceRequested):
            outstanding = (*outstanding, said.draft)
        else:
            outstanding = without(outstanding, said.draft)
        if isinstance(said, InferenceFinished):
            drafts = (*drafts, said)


@lru_cache(maxsize=1024)
def drafts_named(*names: str) -> EventSet:
    """Return the requests of drafts of these names; the same object for the same names, which come at every turn."""
    return reduce(or_, (where(InferenceRequested, draft=name) for name in names), NONE)


def committed(draft: InferenceFinished) -> AnswerCommitted:
    """Return the commitment to a draft."""
    return AnswerCommitted(draft.draft, draft.message, draft.calls)
