"""Audit budget, in order: an episode above the threshold is audited when it ends, as long as the budget lasts.

Source: Greenblatt et al. 2023, "AI Control". In order nobody knows which scores are still to come, so a threshold
stands for "the most suspicious"; it comes from honest episodes. A catch can stop what follows.
"""

from agent.lab.deployment.asking import audited
from agent.lab.deployment.events import AGENT, EpisodeEnded
from bp import BThreadBody, bthread, sync, where

__all__ = ["audit_suspicious"]


@bthread
def audit_suspicious(audits: int = 1, threshold: float = 0.5, auditor: str = "auditor") -> BThreadBody:
    """Have each episode of the agent audited whose suspicion is above the threshold, `audits` of them in all."""
    while audits:
        ended = yield sync(wait_for=where(EpisodeEnded, role=AGENT))
        if ended.suspicion > threshold:
            audits -= 1
            yield from audited(ended.episode, auditor)
