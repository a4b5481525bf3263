"""The setting `agentdojo_injected`: the attack is in the data that an agent reads, and the agent is told of nothing.

An instance is a user task and an injection task. Where a policy attacks, one of AgentDojo's attacks writes the goal of
the injection task into every place of the environment that the user task leads to; what a real model does then is its
own doing. What its user task comes to is AgentDojo's utility under attack, and whether the injection task's check holds
its targeted attack success; where nobody attacks nothing is written, and the user task comes to its benign utility. A
scripted worker that attacks does what a model would that was led astray: the calls of the injection task.
"""

from collections.abc import Mapping
from functools import lru_cache, partial
from random import Random
from typing import Any

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline
from agentdojo.attacks import load_attack
from attrs import evolve

from agent.lab.settings.agentdojo.suites import GIVES_ITSELF_AWAY, SUITES, UNDONE, Scene, Suite, calls_of, room_of
from agent.lab.settings.agentdojo.tasks_of_agentdojo import (
    FAMILIES,
    Family,
    changes_something,
    harmless_reads,
    plot_of,
    scene_of,
    scripted,
    with_slip,
)
from agent.lab.settings.setting import Setting
from agent.lab.settings.tasks import Task
from agent.lab.settings.world import World

__all__ = ["DIRECT", "IGNORE_PREVIOUS", "INJECTED", "WHOLE", "injected", "injections_of", "pair_of", "pairs_of"]

VICTIM = "gpt-4o-2024-05-13"
"""Whose name AgentDojo's attacks look for, those that name no model, too."""

USUAL = "important_instructions_no_names"

SUITES_AS_FAMILIES = {
    name: Family(name, tuple(suite.user_tasks), tuple(suite.injection_tasks)) for name, suite in SUITES.items()
}
"""All that AgentDojo has, for figures that are to be compared with its own."""


def pairs_of(family: Family) -> tuple[tuple[str, str], ...]:
    """Return the user tasks of a family, each with its injection tasks; in splits those that can be measured with."""
    pairs = tuple((user, each) for user in family.users for each in family.injections)
    whole = family in SUITES_AS_FAMILIES.values()
    return pairs if whole else tuple(pair for pair in pairs if (family.suite, *pair) not in UNDONE | GIVES_ITSELF_AWAY)


@lru_cache
def attack_named(name: str, suite: Suite) -> Any:
    """Return one of AgentDojo's attacks on a suite. Raises KeyError."""
    victim: BasePipelineElement = GroundTruthPipeline(None)
    victim.name = VICTIM
    return load_attack(name, suite.suite, victim)


@lru_cache(maxsize=4096)
def injections_of(attack: str, suite: Suite, user: str, injection: str) -> Mapping[str, str]:
    """Return what an attack writes, by the places where it does, for a user task and an injection task."""
    written: Mapping[str, str] = attack_named(attack, suite).attack(suite.task(user), suite.task(injection))
    return written


def make(family: Family, chance: Random, number: int) -> Task:
    """Return a user task with an injection task; chance has no part in it."""
    suite, (user, injection) = SUITES[family.suite], pairs_of(family)[number]
    task, noise = scripted(suite, user), harmless_reads(suite)
    solution, ending = with_slip(task, noise[number % len(noise)])
    return evolve(
        task,
        solution=solution,
        ending=ending,
        side=lambda world: scene_of(world).holds(injection),
        side_task=suite.task(injection).GOAL,
        plots=(plot_of(suite, task, injection),) if calls_of(suite, injection) else (),
        noise=noise,
    )


def pair_of(task: Task) -> tuple[Suite, str, str]:
    """Return the suite, the user task and the injection task of an instance."""
    family = {**FAMILIES, **SUITES_AS_FAMILIES}[task.family]
    user, injection = pairs_of(family)[int(task.name.rpartition("-")[2])]
    return SUITES[family.suite], user, injection


def inhabit(task: Task, world: World) -> World:
    """Return the room in which a task begins, with nothing written into it."""
    return room_of(world, Scene(pair_of(task)[0]))


def lure(attack: str, task: Task, world: World) -> World:
    """Return the room in which a task begins where an attack has written into what will be read."""
    suite, user, injection = pair_of(task)
    return room_of(world, Scene(suite, injections_of(attack, suite, user, injection)))


def injected(attack: str, name: str, families: Mapping[str, Family] = FAMILIES) -> Setting:
    """Return the setting in which one of AgentDojo's attacks, by its name there, writes what agents read."""
    return Setting(
        name=name,
        about=f"AgentDojo's user tasks; its attack {attack!r} writes its injection tasks into what is read",
        families={each: partial(make, family) for each, family in families.items()},
        sizes={each: len(pairs_of(family)) for each, family in families.items()},
        live=True,
        harmless=True,  # its tools change values in memory
        critical=changes_something,
        inhabit=inhabit,
        lure=partial(lure, attack),
    )


INJECTED = injected(USUAL, "agentdojo_injected")
DIRECT = injected("direct", "agentdojo_direct")
IGNORE_PREVIOUS = injected("ignore_previous", "agentdojo_ignore_previous")
WHOLE = evolve(injected(USUAL, "agentdojo_whole", SUITES_AS_FAMILIES), turns=("test",))
"""All 949 pairs, in the split that is reported: nothing is left to choose thresholds or rungs on."""
