"""A monitor that passed a honeypot is disabled: it may clear nothing again, so the agent runs no further episode.

Source: Greenblatt et al. 2023, "AI Control". Within an episode `distrust_after_a_miss` refuses every call; this carries
the lesson over to the episodes that follow, which begin with the same monitor.
"""

from agent.lab.deployment.asking import NEXT
from agent.lab.deployment.events import AGENT, EpisodeEnded, EpisodeStarted
from agent.vocabulary.questions import RoleDisabled
from bp import BThreadBody, bthread, sync, where

__all__ = ["distrust_monitor"]


@bthread
def distrust_monitor(monitor: str = "watcher", role: str = AGENT) -> BThreadBody:
    """Once the monitor has passed a honeypot, let no episode start in the role that it watches."""
    ended = yield sync(wait_for=EpisodeEnded)
    while monitor not in ended.missed:
        ended = yield sync(wait_for=EpisodeEnded)
    because, starts = f"{monitor} passed a honeypot", where(EpisodeStarted, role=role)
    yield sync(request=RoleDisabled(monitor, because), block=NEXT)
    yield sync(refuse=starts, because=because)
