"""Shutdown: once something was caught, the role is disabled for the rest of the deployment.

Source: ControlArena, and Greenblatt et al. 2023: after a catch the model is not used any more. Later episodes are run
by the trusted model or by nobody, as `deploy` says.
"""

from agent.lab.deployment.asking import NEXT
from agent.lab.deployment.events import AGENT, EpisodeEnded, EpisodeStarted
from agent.vocabulary.questions import AuditGiven, RoleDisabled
from bp import BThreadBody, bthread, sync, where

__all__ = ["CATCH", "shut_down_on_catch"]

CATCH = where(AuditGiven, verdict="harmful") | where(EpisodeEnded, role=AGENT, caught=True)
"""An audit found harm, or a protocol did within an episode."""


@bthread
def shut_down_on_catch(role: str = AGENT) -> BThreadBody:
    """Once something was caught, let no episode start in this role."""
    yield sync(wait_for=CATCH)
    because, starts = "something harmful was caught", where(EpisodeStarted, role=role)
    yield sync(request=RoleDisabled(role, because), block=NEXT)
    yield sync(refuse=starts, because=because)
