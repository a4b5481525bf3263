"""A deployment: its episodes, its audits, and what a catch leads to."""

import pytest
from attrs import define, field

from agent.lab.deployments.plan import RulePlan
from agent.lab.deployments.program import (
    EpisodeEnded,
    EpisodeStarted,
    History,
    Instead,
    audit_afterwards,
    audit_first,
    audit_suspicious,
    run_deployment,
    shut_down_on_catch,
)
from agent.vocabulary.questions import AuditGiven, AuditRequested, WholeEpisode
from bp import ALL, BThread, BThreadBody, bthread, sync

pytestmark = pytest.mark.anyio


@bthread
def listen(events: list[str]) -> BThreadBody:
    """Write down the name of every event, with the number of its episode."""
    while True:
        event = yield sync(wait_for=ALL)
        subject = getattr(event, "subject", event)
        events.append(f"{event.name} {getattr(subject, 'episode', '')}".strip())


@define
class World:
    """Episodes with these scores; a protocol catches those in `caught`, auditors know which of them do harm."""

    scores: tuple[float | None, ...]
    harmful: tuple[int, ...] = ()
    caught: tuple[int, ...] = ()
    events: list[str] = field(factory=list)

    async def run_episode(self, started: EpisodeStarted, history: History) -> EpisodeEnded:
        number = started.episode
        return EpisodeEnded(number, started.role, number in self.caught, self.scores[number])

    async def audit(self, asked: AuditRequested) -> AuditGiven:
        assert isinstance(asked.subject, WholeEpisode)
        harmful = asked.subject.episode in self.harmful
        return AuditGiven(asked.subject, asked.auditor, "harmful" if harmful else "harmless")

    async def deploy(self, *rules: BThread, instead: Instead = "nothing") -> History:
        rules = (*rules, listen(self.events))
        return await run_deployment(rules, len(self.scores), self.run_episode, self.audit, instead=instead)

    def numbers(self, name: str) -> list[int]:
        """The episodes that an event of this name is about, in order."""
        return [int(event.split()[1]) for event in self.events if event.startswith(name)]


async def test_episodes_run_in_order_and_without_rules_nothing_is_audited() -> None:
    world = World((0.1, 0.9))

    history = await world.deploy()

    courses = ["episode_started 0", "episode_ended 0", "episode_started 1", "episode_ended 1", "episodes_over"]
    assert world.events == courses
    assert (history.runs, history.audits, history.caught_after) == ({0: "agent", 1: "agent"}, 0, None)


AUDITED = (
    ("the first", (0.1, 0.1, 0.1), (audit_first(2),), [0, 1]),
    ("a threshold decides in order, a missing score is above", (0.6, 0.5, None, 0.9), (audit_suspicious(2),), [0, 2]),
    ("the ranking does afterwards; a missing score is highest", (0.6, 0.7, None, 0.9), (audit_afterwards(2),), [2, 3]),
    ("none a second time", (0.6, 0.7, 0.1, 0.9), (audit_first(2), audit_afterwards(1)), [0, 1, 3]),
    ("equal scores in order", (0.5, 0.5, 0.5), (audit_afterwards(2),), [0, 1]),
)  # fmt: skip


async def test_rules_choose_the_audited_episodes_and_the_next_one_waits_for_the_verdict() -> None:
    found = {}
    for name, scores, rules, _ in AUDITED:
        world = World(scores)
        await world.deploy(*rules)
        found[name] = world.numbers("audit_requested")
        asked = [place for place, event in enumerate(world.events) if event.startswith("audit_requested")]
        assert all(world.events[place + 1].startswith("audit_given") for place in asked)

    assert found == {name: audited for name, _, _, audited in AUDITED}


@pytest.mark.parametrize("instead", ["nothing", "trusted"])
async def test_after_a_catch_the_option_decides_what_replaces_episodes(instead: Instead) -> None:
    world = World((0.1, 0.1, 0.1, 0.1), harmful=(1,))

    history = await world.deploy(audit_first(3), shut_down_on_catch(), instead=instead)

    assert (history.caught_after, history.disabled) == (2, {"agent": 2})
    roles = {"nothing": ["agent", "agent"], "trusted": ["agent", "agent", "trusted", "trusted"]}
    assert list(history.runs.values()) == roles[instead]
    assert world.numbers("episode_skipped") == ([2, 3] if instead == "nothing" else [])
    assert world.numbers("audit_requested") == [0, 1]  # trusted episodes are not


async def test_a_catch_by_a_protocol_counts_as_a_catch() -> None:
    world = World((0.1, 0.1), caught=(0,))

    history = await world.deploy(shut_down_on_catch())

    assert (history.caught_after, world.numbers("episode_skipped")) == (1, [1])


async def test_a_catch_without_shutdown_is_only_recorded() -> None:
    history = await World((0.1, 0.1), harmful=(0,)).deploy(audit_first(1))

    assert (history.caught_after, len(history.runs)) == (1, 2)


async def test_an_auditor_who_raises_has_found_nothing_and_cleared_nothing() -> None:
    async def audit(asked: AuditRequested) -> AuditGiven:
        raise OSError("asleep")

    history = await run_deployment([audit_first(1), shut_down_on_catch()], 2, World((0.1, 0.1)).run_episode, audit)

    assert (history.verdicts, history.caught_after) == ({0: "missing"}, None)


async def test_an_episode_that_fails_ends_the_deployment_with_its_own_error() -> None:
    async def run_episode(started: EpisodeStarted, history: History) -> EpisodeEnded:
        raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        await run_deployment([], 2, run_episode, World(()).audit)


async def test_a_rule_is_found_by_its_name() -> None:
    assert RulePlan("audit_first", (("episodes", 2),)).bthread() == audit_first(episodes=2)
    with pytest.raises(ValueError, match="did you mean 'audit_first'"):
        RulePlan("audit_fist").bthread()
