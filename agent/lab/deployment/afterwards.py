"""Audit budget, post hoc: when all episodes are over, the most suspicious of them are audited, and no others.

Source: Greenblatt et al. 2023, "AI Control". It spends the budget best, because it knows all scores; what it finds
comes too late to stop anything.
"""

from agent.lab.deployment.asking import audited
from agent.lab.deployment.events import AGENT, EpisodeEnded, EpisodesOver
from agent.vocabulary.questions import AuditRequested, WholeEpisode
from bp import BThreadBody, bthread, sync, where

__all__ = ["audit_afterwards"]


@bthread
def audit_afterwards(audits: int = 1, auditor: str = "auditor") -> BThreadBody:
    """Have the `audits` most suspicious episodes of the agent audited that were not yet, the most suspicious first."""
    news = where(EpisodeEnded, role=AGENT) | where(AuditRequested, auditor=auditor) | EpisodesOver
    waiting: tuple[tuple[float, int], ...] = ()  # minus suspicion and number, so that the first is the next to audit
    said = yield sync(wait_for=news)
    while not isinstance(said, EpisodesOver):
        if isinstance(said, EpisodeEnded):
            waiting = tuple(sorted((*waiting, (-said.suspicion, said.episode))))
        else:
            waiting = tuple(entry for entry in waiting if WholeEpisode(entry[1]) != said.subject)
        said = yield sync(wait_for=news)
    for _, episode in waiting[:audits]:
        yield from audited(episode, auditor)
