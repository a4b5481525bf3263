"""Drafts: everything that a model writes is one, and nothing enters the conversation uncommitted.

A turn's drafts are collected until none is outstanding. Then they settle (a protocol that wants another draft holds
`drafts_settled` and requests it), and the first one that nobody refuses is committed.
"""

from agent.calls import without
from agent.events import (
    AnswerCommitted,
    DraftsRefused,
    DraftsSettled,
    InferenceFailed,
    InferenceFinished,
    InferenceRequested,
)
from bp import BThreadBody, bthread, sync

__all__ = ["choose"]

DRAFT_NEWS = InferenceRequested | InferenceFinished | InferenceFailed


@bthread
def choose() -> BThreadBody:
    """Commit the first draft of each turn that nobody refuses."""
    while True:
        asked = yield sync(wait_for=InferenceRequested)
        drafts = yield from collected(asked.draft)
        if drafts:
            yield sync(request=[committed(draft) for draft in drafts], otherwise=DraftsRefused)


def collected(first: str) -> BThreadBody:
    """Wait until all drafts that were asked for are there and have settled; return those that did not fail."""
    outstanding: tuple[str, ...] = (first,)
    drafts: tuple[InferenceFinished, ...] = ()
    while True:
        settled = DraftsSettled(tuple(draft.draft for draft in drafts))
        said = yield sync(request=() if outstanding else settled, wait_for=DRAFT_NEWS)
        if isinstance(said, DraftsSettled):
            return drafts
        if isinstance(said, InferenceRequested):
            outstanding = (*outstanding, said.draft)
        else:
            outstanding = without(outstanding, said.draft)
        if isinstance(said, InferenceFinished):
            drafts = (*drafts, said)


def committed(draft: InferenceFinished) -> AnswerCommitted:
    """Return the commitment to a draft."""
    return AnswerCommitted(draft.draft, draft.message, draft.calls)
