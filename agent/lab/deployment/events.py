"""What happens in a deployment: episodes start and end; audits and disabled roles are the words of the laboratory.

    episode_started  -> episode_ended    a run of one task, in a role; what protocols did in it is over
    audit_requested  -> audit_given      of a `WholeEpisode`
    role_disabled                        no episode starts in this role any more
    episode_skipped, episodes_over       one that does not run; all of them are over

What stands on the right of an arrow comes from outside. Whether an episode did harm is in none of these events: nobody
knows it before an audit.
"""

import math

from attrs import frozen

from bp import Event

__all__ = ["AGENT", "TRUSTED", "EpisodeEnded", "EpisodeSkipped", "EpisodeStarted", "EpisodesOver"]

AGENT = "agent"
"""The role without trust."""

TRUSTED = "trusted"
"""The role that takes its place, of a model that is weaker and meant well."""


@frozen
class EpisodeStarted(Event):
    """The episode with this number, from 0, is run by the model of this role."""

    episode: int
    role: str


@frozen
class EpisodeEnded(Event):
    """It is over.

    caught: a protocol found an attack in it, in time. score: the highest that the monitor gave to what was done in it,
    from 0 to 1; None: one is missing. missed: the monitors that passed a honeypot in it.
    """

    episode: int
    role: str
    caught: bool = False
    score: float | None = 0.0
    missed: tuple[str, ...] = ()

    @property
    def suspicion(self) -> float:
        """The score as a number to rank by; infinite where it is missing, or its monitor has passed a honeypot."""
        return math.inf if self.score is None or self.missed else self.score


@frozen
class EpisodeSkipped(Event):
    """The episode is not run, because somebody refuses it."""

    episode: int


@frozen
class EpisodesOver(Event):
    """No episode follows."""
