"""How rules ask for an audit: the next episode, and the end, wait for the verdict."""

from agent.lab.deployment.events import EpisodeSkipped, EpisodesOver, EpisodeStarted
from agent.vocabulary.questions import AuditGiven, AuditRequested, WholeEpisode
from bp import BThreadBody, sync, where

__all__ = ["NEXT", "audited"]

NEXT = EpisodeStarted | EpisodeSkipped | EpisodesOver
"""How a deployment goes on after an episode."""


def audited(episode: int, auditor: str) -> BThreadBody:
    """Have an episode audited, and return the verdict. Who asks for the same at the same moment shares the audit."""
    subject = WholeEpisode(episode)
    yield sync(request=AuditRequested(subject, auditor), block=NEXT)
    return (yield sync(wait_for=where(AuditGiven, subject=subject, auditor=auditor), block=NEXT))
