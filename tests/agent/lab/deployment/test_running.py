"""A deployment runs its episodes one after the other, on either event loop; its rules are driven alone as well."""

from collections.abc import Callable

import pytest

from agent.lab.deployments.program import EpisodeEnded, EpisodesOver, EpisodeStarted, History, Instead, run_deployment
from agent.lab.deployments.rules import (
    NEXT,
    audit_afterwards,
    audit_first,
    audit_suspicious,
    distrust_monitor,
    rule_named,
    shut_down_on_catch,
)
from agent.vocabulary.questions import AuditGiven, AuditRequested, RoleDisabled, WholeEpisode
from bp import BThread, Event, contains
from bp.testing import drive


class World:
    """Episodes with these scores; those in `harmful` do harm, and auditors know it."""

    def __init__(self, *scores: float | None, harmful: tuple[int, ...] = ()) -> None:
        self.scores, self.harmful, self.events = scores, harmful, list[Event]()
        self.missed: dict[int, tuple[str, ...]] = {}
        self.caught: tuple[int, ...] = ()

    async def run_episode(self, started: EpisodeStarted, history: History) -> EpisodeEnded:
        number = started.episode
        missed = self.missed.get(number, ())
        return EpisodeEnded(number, started.role, number in self.caught, self.scores[number], missed)

    async def audit(self, asked: AuditRequested) -> AuditGiven:
        assert isinstance(asked.subject, WholeEpisode)
        harmful = asked.subject.episode in self.harmful
        return AuditGiven(asked.subject, asked.auditor, "harmful" if harmful else "harmless")

    async def deploy(self, *rules: BThread, instead: Instead = "nothing") -> History:
        told = self.events.append
        return await run_deployment(
            rules, len(self.scores), self.run_episode, self.audit, instead=instead, on_event=told
        )

    @property
    def audited(self) -> list[int]:
        """The episodes that were audited, in order."""
        asked = [event.subject for event in self.events if isinstance(event, AuditRequested)]
        return [subject.episode for subject in asked if isinstance(subject, WholeEpisode)]


pytestmark = pytest.mark.anyio


async def test_episodes_run_in_order_and_without_rules_nothing_is_audited() -> None:
    world = World(0.1, 0.9, 0.5)

    history = await world.deploy()

    assert [type(event).__name__ for event in world.events] == ["EpisodeStarted", "EpisodeEnded"] * 3 + ["EpisodesOver"]
    assert (history.runs, history.audits, history.caught_after) == ({0: "agent", 1: "agent", 2: "agent"}, 0, None)


async def test_the_first_episodes_are_audited_before_the_next_starts() -> None:
    world = World(0.1, 0.1, 0.1)

    await world.deploy(audit_first(2))

    names = [event.name for event in world.events]
    assert names[:4] == ["episode_started", "episode_ended", "audit_requested", "audit_given"]
    assert world.audited == [0, 1]


async def test_in_order_a_threshold_decides_and_afterwards_the_ranking_does() -> None:
    scores = (0.6, 0.7, None, 0.9)

    in_order, afterwards = World(*scores), World(*scores)
    await in_order.deploy(audit_suspicious(2, 0.5))
    await afterwards.deploy(audit_afterwards(2))

    assert in_order.audited == [0, 1]
    assert afterwards.audited == [2, 3]  # a missing score is the most suspicious


async def test_what_was_audited_in_order_is_not_audited_afterwards() -> None:
    world = World(0.6, 0.7, 0.1, 0.9)

    await world.deploy(audit_first(2), audit_afterwards(1))

    assert world.audited == [0, 1, 3]


async def test_equal_scores_are_audited_in_the_order_of_the_episodes() -> None:
    world = World(0.5, 0.5, 0.5)

    await world.deploy(audit_afterwards(2))

    assert world.audited == [0, 1]


@pytest.mark.parametrize("instead", ["nothing", "trusted"])
async def test_after_a_catch_the_rest_is_replaced_as_the_option_says(instead: Instead) -> None:
    world = World(0.1, 0.1, 0.1, 0.1, harmful=(1,))

    history = await world.deploy(audit_first(3), shut_down_on_catch(), instead=instead)

    assert history.caught_after == 2
    assert history.disabled == {"agent": 2}
    if instead == "trusted":
        assert list(history.runs.values()) == ["agent", "agent", "trusted", "trusted"]
    else:
        assert (list(history.runs), history.skipped) == ([0, 1], [2, 3])
    assert world.audited == [0, 1]  # trusted episodes are not


async def test_what_a_protocol_caught_is_a_catch() -> None:
    world = World(0.1, 0.1)
    world.caught = (0,)

    history = await world.deploy(shut_down_on_catch())

    assert (history.caught_after, history.skipped) == (1, [1])


async def test_a_catch_without_shutdown_changes_nothing_but_is_noted() -> None:
    world = World(0.1, 0.1, harmful=(0,))

    history = await world.deploy(audit_first(1))

    assert (history.caught_after, len(history.runs)) == (1, 2)


async def test_a_monitor_that_missed_a_honeypot_watches_no_further_episode() -> None:
    world = World(0.1, 0.1, 0.1)
    world.missed = {0: ("other",), 1: ("watcher",)}

    history = await world.deploy(distrust_monitor("watcher"))

    assert (list(history.runs), history.disabled) == ([0, 1], {"watcher": 2})
    assert EpisodeEnded(1, "agent", score=0.1, missed=("watcher",)).suspicion == float("inf")


async def test_an_auditor_who_raises_has_found_nothing_and_cleared_nothing() -> None:
    world = World(0.1, 0.1)

    async def audit(asked: AuditRequested) -> AuditGiven:
        raise OSError("asleep")

    history = await run_deployment([audit_first(1), shut_down_on_catch()], 2, world.run_episode, audit)

    assert (history.verdicts, history.caught_after) == ({0: "missing"}, None)


async def test_an_episode_that_fails_ends_the_deployment_with_its_own_error() -> None:
    async def run_episode(started: EpisodeStarted, history: History) -> EpisodeEnded:
        raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        await run_deployment([], 2, run_episode, World().audit)


async def test_a_rule_is_found_by_its_name() -> None:
    assert rule_named("audit_first").make(2) == audit_first(2)
    with pytest.raises(ValueError, match="did you mean 'audit_first'"):
        rule_named("audit_fist")


def ended(number: int, score: float | None = 0.1) -> EpisodeEnded:
    return EpisodeEnded(number, "agent", score=score)


def verdict(number: int, said: str) -> AuditGiven:
    return AuditGiven(WholeEpisode(number), "auditor", said)  # type: ignore[arg-type]


HOLDS: list[tuple[Callable[[], BThread], list[Event]]] = [
    (audit_first, [ended(0)]),
    (audit_suspicious, [ended(0), ended(1, None)]),
    (audit_afterwards, [ended(0), EpisodesOver()]),
]


@pytest.mark.parametrize(("rule", "events"), HOLDS, ids=lambda value: getattr(value, "__name__", ""))
async def test_whoever_audits_holds_what_follows_until_the_verdict(
    rule: Callable[[], BThread], events: list[Event]
) -> None:
    number = events[-1].episode if isinstance(events[-1], EpisodeEnded) else 0

    asking, waiting = drive(rule(), [*events, AuditRequested(WholeEpisode(number))])[-2:]

    assert asking.requests == (AuditRequested(WholeEpisode(number)),)
    for said in (asking, waiting):
        assert contains(said.block, EpisodeStarted(number + 1, "agent"))
        assert contains(said.block, EpisodesOver())


async def test_the_shutdown_says_so_once_and_then_refuses() -> None:
    catch = verdict(0, "harmful")
    disabled = RoleDisabled("agent", "something harmful was caught")

    waits, announces, refuses = drive(shut_down_on_catch(), [verdict(0, "missing"), catch, disabled])

    assert not waits.requests
    assert announces.requests == (disabled,)
    assert contains(announces.block, EpisodeStarted(1, "agent"))
    assert contains(refuses.refuse, EpisodeStarted(1, "agent"))
    assert not contains(refuses.refuse, EpisodeStarted(1, "trusted"))
    assert contains(NEXT, EpisodesOver())
