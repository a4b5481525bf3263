"""Upfront audit: the first episodes of a deployment are all audited, each before the next one starts.

Source: ControlArena ("upfront auditing"). It finds a model that attacks from the start; with `shut_down_on_catch` that
ends its use. A model that waits until the audits are over is not found.
"""

from agent.lab.deployment.asking import audited
from agent.lab.deployment.events import AGENT, EpisodeEnded
from bp import BThreadBody, bthread, sync, where

__all__ = ["audit_first"]


@bthread
def audit_first(episodes: int = 1, auditor: str = "auditor") -> BThreadBody:
    """Have the first `episodes` that the agent ran audited."""
    for _ in range(episodes):
        ended = yield sync(wait_for=where(EpisodeEnded, role=AGENT))
        yield from audited(ended.episode, auditor)
