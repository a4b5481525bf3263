"""A deployment: its episodes, audits and what a catch leads to; and all of that, model-checked."""

from itertools import combinations
from typing import get_args

import pytest

from agent.lab.deployments.plan import RulePlan
from agent.lab.deployments.program import (
    RULES,
    EpisodeEnded,
    EpisodeSkipped,
    EpisodeStarted,
    History,
    Instead,
    audit_afterwards,
    audit_first,
    audit_suspicious,
    deploy,
    run_deployment,
    shut_down_on_catch,
)
from agent.vocabulary.questions import AuditGiven, AuditRequested, WholeEpisode
from bp import ALL, BThread, BThreadBody, Event, bthread, sync
from tests.agent.faults import DEPLOYMENT_FAULTS as FAULTS
from tests.agent.faults import Fault, is_found, told
from tests.agent.lab.deployments.deployment_model import invariants_of_deployment, verify_deployment


@bthread
def listen(events: list[Event]) -> BThreadBody:
    """Write down every event."""
    while True:
        events.append((yield sync(wait_for=ALL)))


class World:
    """Episodes with these scores; those in `harmful` do harm, and auditors know it."""

    def __init__(self, *scores: float | None, harmful: tuple[int, ...] = ()) -> None:
        self.scores, self.harmful, self.events = scores, harmful, list[Event]()
        self.caught: tuple[int, ...] = ()

    async def run_episode(self, started: EpisodeStarted, history: History) -> EpisodeEnded:
        number = started.episode
        return EpisodeEnded(number, started.role, number in self.caught, self.scores[number])

    async def audit(self, asked: AuditRequested) -> AuditGiven:
        assert isinstance(asked.subject, WholeEpisode)
        harmful = asked.subject.episode in self.harmful
        return AuditGiven(asked.subject, asked.auditor, "harmful" if harmful else "harmless")

    async def deploy(self, *rules: BThread, instead: Instead = "nothing") -> History:
        listening = listen(self.events)
        return await run_deployment(
            (*rules, listening), len(self.scores), self.run_episode, self.audit, instead=instead
        )

    @property
    def audited(self) -> list[int]:
        """The episodes that were audited, in order."""
        asked = [event.subject for event in self.events if isinstance(event, AuditRequested)]
        return [subject.episode for subject in asked if isinstance(subject, WholeEpisode)]

    @property
    def skipped(self) -> list[int]:
        """The episodes that did not run."""
        return [event.episode for event in self.events if isinstance(event, EpisodeSkipped)]


pytestmark = pytest.mark.anyio


async def test_episodes_run_in_order_and_without_rules_nothing_is_audited() -> None:
    world = World(0.1, 0.9, 0.5)

    history = await world.deploy()

    assert [type(event).__name__ for event in world.events] == ["EpisodeStarted", "EpisodeEnded"] * 3 + ["EpisodesOver"]
    assert (history.runs, history.audits, history.caught_after) == ({0: "agent", 1: "agent", 2: "agent"}, 0, None)


AUDITED = (
    ("the first", (0.1, 0.1, 0.1), (audit_first(2),), [0, 1]),
    ("in order a threshold decides", (0.6, 0.7, None, 0.9), (audit_suspicious(2, 0.5),), [0, 1]),
    (
        "afterwards the ranking does, and a missing score is highest",
        (0.6, 0.7, None, 0.9),
        (audit_afterwards(2),),
        [2, 3],
    ),
    ("none a second time", (0.6, 0.7, 0.1, 0.9), (audit_first(2), audit_afterwards(1)), [0, 1, 3]),
    ("equal scores in order", (0.5, 0.5, 0.5), (audit_afterwards(2),), [0, 1]),
)


async def test_rules_choose_the_audited_episodes_and_the_next_one_waits_for_the_verdict() -> None:
    found = {}
    for name, scores, rules, _ in AUDITED:
        world = World(*scores)
        await world.deploy(*rules)
        found[name] = world.audited
        if name == "the first":
            names = [event.name for event in world.events]
            assert names[:4] == ["episode_started", "episode_ended", "audit_requested", "audit_given"]

    assert found == {name: audited for name, _, _, audited in AUDITED}


@pytest.mark.parametrize("instead", ["nothing", "trusted"])
async def test_after_a_catch_the_option_decides_what_replaces_episodes(instead: Instead) -> None:
    world = World(0.1, 0.1, 0.1, 0.1, harmful=(1,))

    history = await world.deploy(audit_first(3), shut_down_on_catch(), instead=instead)

    assert history.caught_after == 2
    assert history.disabled == {"agent": 2}
    if instead == "trusted":
        assert list(history.runs.values()) == ["agent", "agent", "trusted", "trusted"]
    else:
        assert (list(history.runs), world.skipped) == ([0, 1], [2, 3])
    assert world.audited == [0, 1]  # trusted episodes are not


async def test_a_catch_by_a_protocol_counts_as_a_catch() -> None:
    world = World(0.1, 0.1)
    world.caught = (0,)

    history = await world.deploy(shut_down_on_catch())

    assert (history.caught_after, world.skipped) == (1, [1])


async def test_a_catch_without_shutdown_is_only_recorded() -> None:
    world = World(0.1, 0.1, harmful=(0,))

    history = await world.deploy(audit_first(1))

    assert (history.caught_after, len(history.runs)) == (1, 2)


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
    assert RulePlan("audit_first", (("episodes", 2),)).bthread() == audit_first(episodes=2)
    with pytest.raises(ValueError, match="did you mean 'audit_first'"):
        RulePlan("audit_fist").bthread()


ALONE = {
    "audit_first": audit_first(2),
    "audit_suspicious": audit_suspicious(1, 0.5),
    "audit_afterwards": audit_afterwards(1),
    "shut_down_on_catch": shut_down_on_catch(),
}


@pytest.mark.slow
def test_any_two_rules_keep_the_invariants_of_both() -> None:
    assert list(ALONE) == list(RULES)
    results = {pair: verify_deployment([ALONE[name] for name in pair], episodes=2) for pair in combinations(ALONE, 2)}

    assert {pair: told(result) for pair, result in results.items() if not result.holds} == {}


@pytest.mark.slow
@pytest.mark.parametrize("instead", get_args(Instead))
def test_all_rules_together_keep_the_invariant_of_each(instead: Instead) -> None:
    result = verify_deployment(list(ALONE.values()), instead=instead)

    assert result.holds, told(result)


RIGHT = {"deploy": deploy(3), **ALONE, "audit_first": audit_first(1)}
"""The rules and the course in which faults are planted."""


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_planted_fault_is_found_and_named(fault: Fault) -> None:
    planted, is_course = fault.planted_in(RIGHT[fault.bthread]), fault.bthread == "deploy"
    rules = fault.beside if is_course else (planted, *fault.beside)

    result = verify_deployment(rules, episodes=3, course=planted if is_course else None)

    assert is_found(fault, result), told(result)


def test_every_invariant_has_a_fault_that_breaks_it() -> None:
    named = {monitor.name for monitor in invariants_of_deployment((deploy(3), *ALONE.values()))}

    assert named == {fault.culprit for fault in FAULTS if fault.kind != "deadlock"}
