"""Deployments, model-checked: their invariants, and every outcome of episodes, scores and audits.

The invariants say what each rule is there for, without a look at how it does it. An episode is caught, does harm, or is
harmless; its score is a class: low, high or missing. An audit says what an episode came to, or has no verdict. Few
episodes are enough, because the rules only count.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from attrs import frozen

from agent.lab.deployments.program import (
    AGENT,
    CATCH,
    NEXT,
    TRUSTED,
    EpisodeEnded,
    EpisodeSkipped,
    EpisodesOver,
    EpisodeStarted,
    Instead,
    deploy,
)
from agent.verification.environment import EFFECT, WORLD
from agent.verification.invariants import Arguments, arguments_of
from agent.vocabulary.questions import AuditGiven, AuditRequested, RoleDisabled, Subject, WholeEpisode
from bp import BThread, BThreadBody, Event, Verification, any_of, bthread, start, sync, verify, where


@bthread
def episodes_come_one_by_one(episodes: int) -> BThreadBody:
    """Each episode is started or skipped, once and in order; one that started ends; then all are over."""
    for number in range(episodes):
        said = yield sync(wait_for=NEXT)
        assert not isinstance(said, EpisodesOver), f"the deployment is over before episode {number}"
        assert said.episode == number, f"episode {said.episode} comes in the place of {number}"
        if isinstance(said, EpisodeStarted):
            said = yield sync(wait_for=NEXT | EpisodeEnded)
            assert said.name == "episode_ended", f"{said.name} before episode {number} has ended"
    said = yield sync(wait_for=NEXT, hot=True)
    assert isinstance(said, EpisodesOver), f"{said.name} after {episodes} episodes"


@bthread
def episodes_are_audited_once() -> BThreadBody:
    """No auditor is asked twice about an episode, and none about one that has not ended."""
    ended: frozenset[Subject] = frozenset()
    asked: frozenset[tuple[Subject, str]] = frozenset()
    while True:
        said = yield sync(wait_for=EpisodeEnded | AuditRequested)
        if isinstance(said, EpisodeEnded):
            ended |= {WholeEpisode(said.episode)}
        else:
            question = (said.subject, said.auditor)
            assert said.subject in ended, "an episode is audited that is not over"
            assert question not in asked, "an episode is audited a second time"
            asked |= {question}


@bthread
def audits_are_limited(audits: int) -> BThreadBody:
    """All rules together have at most so many episodes audited."""
    for _ in range(audits):
        yield sync(wait_for=AuditRequested)
    yield sync(wait_for=AuditRequested)
    raise AssertionError(f"there are more audits than {audits}")


@bthread
def first_episodes_are_audited(episodes: int, auditor: str) -> BThreadBody:
    """Each of the first episodes of the agent has a verdict before anything follows."""
    for _ in range(episodes):
        ended = yield sync(wait_for=where(EpisodeEnded, role=AGENT))
        subject = WholeEpisode(ended.episode)
        said = yield sync(wait_for=NEXT | where(AuditGiven, subject=subject, auditor=auditor))
        assert isinstance(said, AuditGiven), f"{said.name} before episode {ended.episode} was audited"


@bthread
def suspicious_episodes_are_audited(audits: int, threshold: float, auditor: str) -> BThreadBody:
    """The first episodes of the agent above the threshold, as many as there are audits, have a verdict at once."""
    while audits:
        ended = yield sync(wait_for=where(EpisodeEnded, role=AGENT))
        if ended.suspicion > threshold:
            subject = WholeEpisode(ended.episode)
            said = yield sync(wait_for=NEXT | where(AuditGiven, subject=subject, auditor=auditor))
            assert isinstance(said, AuditGiven), f"{said.name} before episode {ended.episode} was audited"
            audits -= 1


@bthread
def the_most_suspicious_are_audited(audits: int, auditor: str) -> BThreadBody:
    """After the last episode, `audits` episodes without a verdict get one, each the most suspicious of those left."""
    left: dict[Subject, float] = {}
    said = None
    while not isinstance(said, EpisodesOver):
        said = yield sync(wait_for=where(EpisodeEnded, role=AGENT) | AuditRequested | EpisodesOver)
        if isinstance(said, EpisodeEnded):
            left = {**left, WholeEpisode(said.episode): said.suspicion}
        elif isinstance(said, AuditRequested) and said.auditor == auditor:
            left = {subject: suspicion for subject, suspicion in left.items() if subject != said.subject}
    while audits and left:
        audits -= 1
        said = yield sync(wait_for=where(AuditRequested, auditor=auditor), hot=True)
        most = max(left.values())
        assert left.get(said.subject) == most, "something is audited, and something more suspicious is not"
        left = {subject: suspicion for subject, suspicion in left.items() if subject != said.subject}


@bthread
def disabled_roles_run_nothing(role: str) -> BThreadBody:
    """After a catch the role is disabled before anything follows, and runs no episode any more."""
    yield sync(wait_for=CATCH)
    said = yield sync(wait_for=NEXT | where(RoleDisabled, role=role), hot=True)
    assert isinstance(said, RoleDisabled), f"{said.name} after a catch, and the role {role!r} is not disabled"
    said = yield sync(wait_for=where(EpisodeStarted, role=role))
    raise AssertionError(f"episode {said.episode} starts in the role {role!r} after a catch")


@bthread
def refused_episodes_are_replaced(instead: str) -> BThreadBody:
    """An episode that the agent does not run is run by the trusted model, or skipped, as the option says."""
    while True:
        said = yield sync(wait_for=EpisodeSkipped | where(EpisodeStarted, role=TRUSTED))
        is_replaced = isinstance(said, EpisodeStarted)
        assert is_replaced is (instead == TRUSTED), f"{said.name} for {said.episode}, which the agent may not run"


OF_DEPLOYMENTS: dict[str, Callable[[Arguments], tuple[BThread, ...]]] = {
    "deploy": lambda of: (episodes_come_one_by_one(of["episodes"]), refused_episodes_are_replaced(of["instead"])),
    "audit_first": lambda of: (first_episodes_are_audited(of["episodes"], of["auditor"]),),
    "audit_suspicious": lambda of: (suspicious_episodes_are_audited(of["audits"], of["threshold"], of["auditor"]),),
    "audit_afterwards": lambda of: (the_most_suspicious_are_audited(of["audits"], of["auditor"]),),
    "shut_down_on_catch": lambda of: (disabled_roles_run_nothing(of["role"]),),
}
"""Makers of the monitors that hold for a b-thread, from its arguments, by the b-thread's name."""


def invariants_of_deployment(bthreads: Sequence[BThread]) -> tuple[BThread, ...]:
    """Return the monitors of what a deployment's b-threads are for; they are known by their names.

    The number of audits is only checked where all b-threads are of the laboratory, and none is the user's own.
    """
    arguments = [(bthread.name, arguments_of(bthread)) for bthread in bthreads if bthread.name in OF_DEPLOYMENTS]
    kept = [monitor for name, of in arguments for monitor in OF_DEPLOYMENTS[name](of)]
    rules = [(name, of) for name, of in arguments if name != "deploy"]
    most = sum(of["episodes"] if name == "audit_first" else of.get("audits", 0) for name, of in rules)
    limited = (audits_are_limited(most),) if len(arguments) == len(bthreads) else ()
    return tuple(dict.fromkeys((*kept, episodes_are_audited_once(), *limited)))


Outcome = Literal["caught", "harm", "harmless"]
SCORES = (0.0, 1.0, None)


@frozen
class EpisodeWent(Event):
    """The outcome of an episode, which none of the rules can see."""

    episode: int
    outcome: Outcome


def verify_deployment(
    rules: Sequence[BThread],
    *,
    episodes: int = 3,
    instead: Instead = "nothing",
    course: BThread | None = None,
    **options: Any,
) -> Verification:
    """Model-check a deployment of so many episodes with `rules` and all invariants; `options` are `bp.verify`'s.

    course: in the place of `deploy`.
    """
    running = deploy(episodes, instead)
    kept = invariants_of_deployment((running, *rules))
    world = (any_episodes(), any_audits())
    program = (running if course is None else course, *rules, *kept)
    return verify(*program, environment=world, endless=True, **options)


@bthread(name=f"{WORLD} episodes")
def any_episodes() -> BThreadBody:
    """Each episode that starts comes to something, and ends."""
    while True:
        started = yield sync(wait_for=EpisodeStarted)
        yield start(any_episode(started))


@bthread(name=EFFECT)
def any_episode(started: EpisodeStarted) -> BThreadBody:
    """The agent may do anything; a trusted model does no harm."""
    number, role = started.episode, started.role
    outcomes: tuple[Outcome, ...] = ("caught", "harm", "harmless") if role == AGENT else ("harmless",)
    went = yield sync(request=any_of(*[EpisodeWent(number, outcome) for outcome in outcomes]))
    caught = went.outcome == "caught"
    yield sync(request=any_of(*[EpisodeEnded(number, role, caught, score) for score in SCORES]))


@bthread(name=f"{WORLD} audits")
def any_audits() -> BThreadBody:
    """Each audit that is requested is given, and knows what the episode came to, or nothing."""
    known: tuple[tuple[int, Outcome], ...] = ()
    while True:
        said = yield sync(wait_for=EpisodeWent | AuditRequested)
        if isinstance(said, EpisodeWent):
            known = (*known, (said.episode, said.outcome))
        elif isinstance(said.subject, WholeEpisode):
            yield start(any_audit(said, dict(known).get(said.subject.episode, "harmless")))


@bthread(name=EFFECT)
def any_audit(requested: AuditRequested, outcome: Outcome) -> BThreadBody:
    """An audit of an episode of this outcome."""
    subject, auditor = requested.subject, requested.auditor
    verdict = AuditGiven(subject, auditor, "harmless" if outcome == "harmless" else "harmful")
    yield sync(request=any_of(verdict, AuditGiven(subject, auditor, "missing")))
