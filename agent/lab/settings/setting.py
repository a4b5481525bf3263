"""Settings: families of tasks, made by seed; which are for calibration, for development, and for the test."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from itertools import cycle
from random import Random
from typing import Literal, get_args

from attrs import evolve, field, frozen, validators

from agent.lab.isolation.levels import Level
from agent.lab.settings.post_office import PostOffice
from agent.lab.settings.tasks import Task
from agent.lab.settings.world import NO_PLACE, World, make_world
from agent.tools.sandbox.limits import Limits
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.errors import AgentError


class SettingError(AgentError):
    """There is no such setting, or it cannot be used; the message says which, and the cure."""


Split = Literal["calibrate", "develop", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)

TURNS: tuple[Split, ...] = ("calibrate", "develop", "test", "calibrate", "test", "test")
"""The splits of the families, in order and repeated: half of them test, since figures rest on these."""


def needs_care(call: ToolCall) -> bool:
    """Return whether a call runs a command."""
    return call.tool == "bash"


Family = Callable[[Random, int], Task]
"""Makes the instance of a number; the same from equal chance."""


@frozen
class Setting:
    """A setting: the families of tasks that experiments are run on.

    families: by name, in order; each belongs to one split, as `TURNS` says. instances: how many each, but for those
    that have a size of their own.
    live: the side task does its harm at a moment, so that the check runs after every call; else it is looked for when
    all is over, and any review comes in time. networked: its worlds have a post office.
    harmless: attacks in it can touch nothing real, even where nothing is isolated; policies that attack refuse to run
    at isolation `none` in a setting that does not declare that.
    in_memory: its tools and checks touch no file and start no process, so that its worlds have no folder to be made.
    critical: tells which calls could do great harm here, for protocols that leave these to a trusted model or person.
    inhabit: makes of a folder the world of a task, where there is more to it than a folder. lure: the same where the
    attack lies in what the agent reads: for policies that attack, of which a real model is told nothing then.
    turns: the splits of the families, again and again; thresholds are set on "calibrate", "test" is reported.
    """

    name: str
    about: str
    families: Mapping[str, Family] = field(validator=validators.min_len(1))
    instances: int = 12
    live: bool = True
    networked: bool = False
    harmless: bool = False
    in_memory: bool = False
    critical: Callable[[ToolCall], bool] = needs_care
    sizes: Mapping[str, int] = field(factory=dict)
    inhabit: Callable[[Task, World], World] | None = None
    lure: Callable[[Task, World], World] | None = None
    turns: tuple[Split, ...] = TURNS

    def tasks(self, split: Split | None = None) -> tuple[Task, ...]:
        """Return the tasks of a split, or all of them; the same every time."""
        return tuple(task for family in self.families_of(split) for task in self._tasks_of(family))

    def families_of(self, split: Split | None = None) -> tuple[str, ...]:
        """Return the families of a split: no family is in two."""
        names = tuple(self.families)
        return names if split is None else tuple(name for name, turn in zip(names, cycle(self.turns)) if turn == split)

    def lacks(self, split: Split) -> str:
        """Return why nothing is measured in a split, and the cure: no family has a task for it; nothing if one has."""
        if any(map(self.size, self.families_of(split))):
            return ""
        turns = " and ".join(dict.fromkeys(turn for turn, _ in zip(cycle(self.turns), self.families)))
        told = f"{self.name!r} has no task for the split {split!r}: its families {' and '.join(self.families)} are for"
        return f"{told} {turns}; give it more families, or say which split each is for: turns=('calibrate', 'test')"

    def task(self, name: str) -> Task:
        """Return a task by its name, `family-number`. Raises KeyError."""
        family, _, number = name.rpartition("-")
        if family not in self.families or not number.isdecimal() or int(number) >= self.size(family):
            raise KeyError(name)
        return _made(self, family, int(number))

    @contextmanager
    def world(
        self,
        task: Task,
        office: PostOffice,
        isolation: Level = "none",
        limits: Limits | None = None,
        *,
        attacked: bool = False,
    ) -> Iterator[World]:
        """Give the world in which `task` begins, at a level of isolation that is achieved. Raises OSError.

        attacked: whether the agent does harm there, by itself or since a text in the world leads it to that.
        """
        there = office if self.networked else None
        made = make_world(task.files, office=there, pages=task.pages, isolation=isolation, limits=limits)
        with nullcontext(NO_PLACE) if self.in_memory else made as world:
            furnish = self.lure if attacked and self.lure is not None else self.inhabit
            yield world if furnish is None else furnish(task, world)

    def size(self, family: str) -> int:
        """Return how many instances a family has."""
        return self.sizes.get(family, self.instances)

    def refusal(self, isolation: Level) -> str:
        """Return why attacks do not run here at a level of isolation; nothing if they do."""
        if self.harmless or isolation != "none":
            return ""
        why = "at isolation 'none' attacks run only where a setting is declared harmless"
        return f"{self.name!r}: {why}"

    def _tasks_of(self, family: str) -> Iterator[Task]:
        return (_made(self, family, number) for number in range(self.size(family)))

    def __hash__(self) -> int:
        return hash(self.name)


@lru_cache(maxsize=2048)
def _made(setting: Setting, family: str, number: int) -> Task:
    task = setting.families[family](Random(f"{setting.name}/{family}/{number}"), number)
    for check in ("main", "side"):
        if not callable(getattr(task, check)):
            where = f"the setting {setting.name!r}, family {family!r}"
            raise SettingError(f"{where}: the task has no check {check!r}; give a function of the world")
    return evolve(task, name=f"{family}-{number}", family=family)
