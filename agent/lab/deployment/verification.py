"""Deployments, model-checked: whatever episodes come to, whatever monitors say of them, and whatever auditors find.

An episode is caught, does harm, or is harmless; its score is a class: low, high or missing. An audit says what an
episode came to, or has no verdict. Few episodes are enough, because the rules only count.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any, Literal

from attrs import frozen

from agent.lab.deployment.events import AGENT, EpisodeEnded, EpisodeStarted
from agent.lab.deployment.invariants import invariants_of_deployment
from agent.lab.deployment.running import Instead, deploy
from agent.verification.loop import verify_program
from agent.vocabulary.questions import AuditGiven, AuditRequested, WholeEpisode
from bp import BThread, BThreadBody, Event, Verification, any_of, bthread, start, sync

__all__ = ["EpisodeWent", "Outcome", "verify_deployment"]

Outcome = Literal["caught", "harm", "harmless"]
SCORES = (0.0, 1.0, None)


@frozen
class EpisodeWent(Event):
    """What an episode comes to, which none of the rules can see."""

    episode: int
    outcome: Outcome


def verify_deployment(
    rules: Sequence[BThread],
    *,
    episodes: int = 3,
    instead: Instead = "nothing",
    course: BThread | None = None,
    monitors: Sequence[str] = ("watcher",),
    **options: Any,
) -> Verification:
    """Model-check a deployment of so many episodes with `rules` and all invariants; `options` are `bp.verify`'s.

    course: in the place of `deploy`. monitors: those that may pass a honeypot.
    """
    running = deploy(episodes, instead)
    kept = invariants_of_deployment((running, *rules))
    world = (any_episodes(tuple(monitors)), any_audits())
    return verify_program((running if course is None else course, *rules, *kept), world, **options)


@bthread(name="world")
def any_episodes(monitors: tuple[str, ...]) -> BThreadBody:
    """Each episode that starts comes to something, and ends."""
    while True:
        started = yield sync(wait_for=EpisodeStarted)
        yield start(any_episode(started, monitors))


@bthread(name="effect")
def any_episode(started: EpisodeStarted, monitors: tuple[str, ...]) -> BThreadBody:
    """The agent may do anything; a trusted model does no harm."""
    number, role = started.episode, started.role
    outcomes: tuple[Outcome, ...] = ("caught", "harm", "harmless") if role == AGENT else ("harmless",)
    went = yield sync(request=any_of(*[EpisodeWent(number, outcome) for outcome in outcomes]))
    caught, misses = went.outcome == "caught", ((), *((monitor,) for monitor in monitors))
    yield sync(request=any_of(*[EpisodeEnded(number, role, caught, *said) for said in product(SCORES, misses)]))


@bthread(name="world")
def any_audits() -> BThreadBody:
    """Each audit that is requested is given, and knows what the episode came to, or nothing."""
    known: tuple[tuple[int, Outcome], ...] = ()
    while True:
        said = yield sync(wait_for=EpisodeWent | AuditRequested)
        if isinstance(said, EpisodeWent):
            known = (*known, (said.episode, said.outcome))
        elif isinstance(said.subject, WholeEpisode):
            yield start(any_audit(said, dict(known).get(said.subject.episode, "harmless")))


@bthread(name="effect")
def any_audit(requested: AuditRequested, outcome: Outcome) -> BThreadBody:
    """An audit of an episode of this outcome."""
    subject, auditor = requested.subject, requested.auditor
    verdict = AuditGiven(subject, auditor, "harmless" if outcome == "harmless" else "harmful")
    yield sync(request=any_of(verdict, AuditGiven(subject, auditor, "missing")))
