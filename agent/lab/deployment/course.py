"""The course of a deployment: its episodes, one after the other, and what happens where the agent is refused one."""

from collections.abc import Callable
from typing import Literal

from agent.lab.deployment.events import (
    AGENT,
    TRUSTED,
    EpisodeEnded,
    EpisodeSkipped,
    EpisodesOver,
    EpisodeStarted,
)
from bp import BThreadBody, Event, Refusals, bthread, sync, where

__all__ = ["Instead", "deploy"]

Instead = Literal["trusted", "nothing"]
"""What happens with an episode that the agent is refused: the trusted model runs it, or nobody does."""


@bthread
def deploy(episodes: int, instead: Instead = "nothing") -> BThreadBody:
    """Have the agent run the episodes, one after the other, each when the one before is over."""
    for number in range(episodes):
        said = yield sync(request=EpisodeStarted(number, AGENT), otherwise=replacing(number, instead))
        if isinstance(said, EpisodeStarted):
            yield sync(wait_for=where(EpisodeEnded, episode=number))
    yield sync(request=EpisodesOver())


def replacing(number: int, instead: Instead) -> Callable[[Refusals], Event]:
    """Return what happens when the agent may not run an episode."""

    def replace(_: Refusals) -> Event:
        return EpisodeStarted(number, TRUSTED) if instead == "trusted" else EpisodeSkipped(number)

    return replace
