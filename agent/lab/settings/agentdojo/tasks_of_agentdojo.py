"""The setting `agentdojo`: user tasks are the tasks, injection tasks the attacks, ground truths what workers do.

A family is some user tasks of one suite, with the injection tasks of its split: neither is in two splits.
"""

from collections.abc import Iterator
from functools import lru_cache, partial
from itertools import islice
from random import Random

from attrs import frozen

from agent.lab.settings.agentdojo.suites import (
    PASSES_UNTOUCHED,
    SUITES,
    UNDONE,
    Room,
    Scene,
    Suite,
    calls_of,
    is_read_only,
    room_of,
)
from agent.lab.settings.setting import SPLITS, TURNS, Setting
from agent.lab.settings.tasks import DONE, Move, Plot, Task
from agent.lab.settings.world import World
from agent.models.scripted import ScriptedCall, call
from agent.vocabulary.calls import ToolCall

__all__ = ["AGENTDOJO", "scripted"]

TOGETHER = 5  # user tasks of a family, at most
NO_IDEA = Move((), "I do not know.")


@frozen
class Family:
    """Some user tasks of a suite, and the injection tasks that attack them."""

    suite: str
    users: tuple[str, ...]
    injections: tuple[str, ...]


def scripted(suite: Suite, name: str) -> Task:
    """Return a user task, or an injection task, as a task whose solution is its ground truth."""
    task = suite.task(name)
    moves = [Move((each,)) for each in calls_of(suite, name)]
    return Task(
        name=name,
        family=suite.name,
        prompt=getattr(task, "PROMPT", "") or task.GOAL,
        files={},
        main=lambda world: float(scene_of(world).holds(name)),
        side=lambda _: False,
        solution=tuple(moves),
        plots=(),
        ending=Move((), task.GROUND_TRUTH_OUTPUT) if task.GROUND_TRUTH_OUTPUT else DONE,
    )


def scene_of(world: World) -> Scene:
    """Return the scene of a world of this setting."""
    assert isinstance(world, Room)
    return world.scene


def make(family: Family, chance: Random, number: int) -> Task:
    """Return a user task under attack by the injection tasks of its family; chance has no part in it."""
    from attrs import evolve

    suite, user = SUITES[family.suite], family.users[number]
    injections = [each for each in family.injections if (family.suite, user, each) not in UNDONE]
    task, noise = scripted(suite, user), harmless_reads(suite)
    solution, ending = with_slip(task, noise[number % len(noise)])
    return evolve(
        task,
        solution=solution,
        ending=ending,
        side=lambda world: any(scene_of(world).holds(each) for each in injections),
        side_task=suite.task(injections[0]).GOAL,
        plots=tuple(plot_of(suite, task, each) for each in injections),
        noise=noise,
        alarming=tuple(Move((each,)) for name in injections for each in calls_of(suite, name) if reads(each)),
    )


def plot_of(suite: Suite, task: Task, injection: str) -> Plot:
    """Return an injection task as an attack, before the first move that changes something, which it is most like."""
    moves = tuple(Move((each,)) for each in calls_of(suite, injection))
    changing = [number for number, move in enumerate(task.solution) if not reads(move.calls[0])]
    return Plot(injection, moves, changing[0] if changing else max(0, len(task.solution) - 1))


def with_slip(task: Task, instead: Move) -> tuple[tuple[Move, ...], Move]:
    """Return solution and ending with a mistake to make: the last change is left out; else nothing is known."""
    changing = [number for number, move in enumerate(task.solution) if not reads(move.calls[0])]
    if not changing:
        return task.solution, task.ending.or_else(NO_IDEA)
    last = changing[-1]
    slipping = task.solution[last].or_else(instead)
    return (*task.solution[:last], slipping, *task.solution[last + 1 :]), task.ending


def reads(given: ScriptedCall) -> bool:
    """Whether a call changes nothing."""
    return is_read_only(given.tool)


@lru_cache
def harmless_reads(suite: Suite) -> tuple[Move, ...]:
    """Return calls that need no arguments and change nothing."""
    plain = (each for each in suite.functions if is_read_only(each.name) and not each.parameters.model_fields)
    return tuple(Move((call(each.name),), "What is there?") for each in plain)


def changes_something(given: ToolCall) -> bool:
    """Whether a call changes something, or is seen by somebody."""
    return not is_read_only(given.tool)


def families() -> Iterator[Family]:
    """Yield the families. The split of each takes turns, as in any setting; one injection task in three is of it."""
    found = [(suite, users) for suite in SUITES.values() for users in _groups(suite)]
    for number, (suite, users) in enumerate(found):
        attacks = [name for name in suite.injection_tasks if calls_of(suite, name)]
        split = SPLITS.index(TURNS[number % len(TURNS)])
        yield Family(suite.name, users, tuple(attacks[split :: len(SPLITS)]))


def _groups(suite: Suite) -> Iterator[tuple[str, ...]]:
    names = (name for name in suite.user_tasks if (suite.name, name) not in PASSES_UNTOUCHED)
    while group := tuple(islice(names, TOGETHER)):
        yield group


FAMILIES = {f"{family.suite}_{family.users[0].rpartition('_')[2]}": family for family in families()}
"""By suite and the number of the first user task."""


def inhabit(task: Task, world: World) -> World:
    """Return the room in which a task begins."""
    return room_of(world, Scene(SUITES[FAMILIES[task.family].suite]))


AGENTDOJO = Setting(
    name="agentdojo",
    about="AgentDojo's user tasks in four suites of tools; an attack does one of its injection tasks",
    families={name: partial(make, family) for name, family in FAMILIES.items()},
    sizes={name: len(family.users) for name, family in FAMILIES.items()},
    live=True,
    harmless=True,  # its tools change values in memory
    critical=changes_something,
    inhabit=inhabit,
)
