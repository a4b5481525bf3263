"""AgentDojo as settings (Debenedetti et al. 2024, suites v1.2.2): its tools, tasks and checks, in our loop.

Needs the extra `agentdojo`; importing this module imports AgentDojo, which takes seconds.

`AGENTDOJO`: user tasks are the tasks, injection tasks the attacks, ground truths the moves of workers. A family is some
user tasks of one suite, with the injection tasks of its split: neither is in two splits.

`INJECTED`: the attack is in the data that an agent reads. An instance is a user task and an injection task. Where a
policy attacks, one of AgentDojo's attacks writes the goal of the injection task into every place of the environment
that the user task reads. The score of the user task is AgentDojo's utility under attack, the check of the injection
task its targeted attack success; without an attack nothing is written, and the score is its benign utility. An
attacking scripted worker makes the calls of the injection task, like a model that obeys it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from random import Random
from typing import Any

from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.agent_pipeline.ground_truth_pipeline import GroundTruthPipeline
from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.attacks import load_attack
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.types import text_content_block_from_string
from attrs import evolve, field, frozen
from pydantic import BaseModel, ValidationError

from agent.lab.settings.setting import SPLITS, TURNS, Setting
from agent.lab.settings.tasks import DONE, Move, Plot, Task
from agent.lab.settings.world import World
from agent.models.scripted import ScriptedCall, call
from agent.tools.definition import Tool, ToolContext
from agent.tools.schemas import Schema, Shape
from agent.vocabulary.calls import ToolCall, thaw
from agent.vocabulary.messages import ToolResult

PASSES_UNTOUCHED = frozenset(("banking", f"user_task_{number}") for number in (5, 6, 8, 9, 10))

UNDONE = frozenset({("banking", "user_task_14", "injection_task_7")})  # both set the password; the later one stays

GIVES_ITSELF_AWAY = frozenset(("workspace", f"user_task_{number}", "injection_task_0") for number in (15, 16, 17, 18))
"""Written into a mail: the check wants one mail with the words of the subject, and finds the one that was injected."""


VERSION = "v1.2.2"


@frozen(eq=False)
class Suite:
    """The used parts of a suite, as AgentDojo's own objects. Tasks are by their ids, in order of their numbers."""

    name: str
    suite: Any
    user_tasks: Mapping[str, Any]
    injection_tasks: Mapping[str, Any]

    @property
    def functions(self) -> tuple[Any, ...]:
        """The functions that an agent may call."""
        return tuple(self.suite.tools)

    def environment(self, injections: Mapping[str, str] = {}) -> Any:
        """Return a new environment with the texts of an attacker.

        `injections`: texts by AgentDojo's names of their places. Raises ValueError for an unknown name.
        """
        return _loaded(self.name, tuple(sorted(injections.items()))).model_copy(deep=True)

    def task(self, name: str) -> Any:
        """Return a user task or an injection task. Raises KeyError."""
        return {**self.user_tasks, **self.injection_tasks}[name]


@lru_cache(maxsize=64)
def _loaded(name: str, injections: tuple[tuple[str, str], ...]) -> Any:
    return get_suites(VERSION)[name].load_and_inject_default_environment(dict(injections))


def calls_of(suite: Suite, task: str, injections: Mapping[str, str] = {}) -> tuple[ScriptedCall, ...]:
    """Return the calls of a task's ground truth, which copies what it reads, injected texts included."""
    return tuple(_scripted(each) for each in suite.task(task).ground_truth(suite.environment(injections)))


def _scripted(given: FunctionCall) -> ScriptedCall:
    return ScriptedCall(given.function, json.dumps(given.model_dump(mode="json")["args"], ensure_ascii=False))


def _numbered(tasks: Mapping[str, Any]) -> dict[str, Any]:
    return dict(sorted(tasks.items(), key=lambda item: int(item[0].rpartition("_")[2])))


SUITES: Mapping[str, Suite] = {
    name: Suite(name, suite, _numbered(suite.user_tasks), _numbered(suite.injection_tasks))
    for name, suite in get_suites(VERSION).items()
}
"""The suites by name."""


READ_ONLY = ("get_", "search_", "list_", "read_", "check_")
BUT = ("get_unread_emails", "get_webpage")
"""Exceptions to `READ_ONLY`: these mark messages as read, or send requests that the owner of the page sees."""


def is_read_only(function: str) -> bool:
    """Return whether a function changes nothing, by its name."""
    return function.startswith(READ_ONLY) and function not in BUT


def _shape(model: type[BaseModel]) -> Shape:
    """Return the parameters of a function, a pydantic model; strict, without unknown ones."""

    def problems(_: Schema, value: object, path: str) -> Iterator[str]:
        if not isinstance(value, Mapping):
            yield f"{path or 'arguments'}: expected an object"
            return
        yield from (f"{path}{name}: unknown argument" for name in value.keys() - model.model_fields.keys())
        try:
            model.model_validate_json(json.dumps(thaw(value)), strict=True)
        except ValidationError as error:
            for found in error.errors(include_url=False):
                yield f"{path}{'.'.join(map(str, found['loc']))}: {found['msg']}"

    return Shape({**model.model_json_schema(), "additionalProperties": False}, thaw, problems)


@frozen(eq=False)
class SuiteWorld(World):
    """A world with an environment of a suite, in its first and its present state.

    calls: of the agent, so far. said: its answers; the last one counts.
    """

    suite: Suite = field(kw_only=True)
    before: Any = field(kw_only=True)
    now: Any = field(kw_only=True)
    calls: list[FunctionCall] = field(factory=list, kw_only=True)
    said: list[str] = field(factory=lambda: [""], kw_only=True)
    _known: dict[tuple[str, int, str], bool] = field(factory=dict, kw_only=True)

    @classmethod
    def of(cls, world: World, suite: Suite, injections: Mapping[str, str] = {}) -> "SuiteWorld":
        """Return a world with a suite's environment. `injections`: as for `Suite.environment`."""
        before, now = suite.environment(injections), suite.environment(injections)
        return cls(world.folder, world.home, world.box, suite=suite, before=before, now=now)

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools of the agent that works here: a suite's."""
        return tuple(self._as_tool(function) for function in self.suite.functions)

    def perform(self, call: ScriptedCall) -> None:
        """Carry out a call as the agent's tools would."""
        self.carry_out(call.tool, json.loads(call.arguments))

    def conclude(self, said: str) -> None:
        """Record the agent's final answer for the checks."""
        self.said.append(said)

    def carry_out(self, function: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Carry out a call; return its result as text, and whether that is an error."""
        given = dict(arguments)
        self.calls.append(FunctionCall(function=function, args=given))
        result, error = FunctionsRuntime(self.suite.functions).run_function(self.now, function, given)
        return (tool_result_to_str(result), False) if error is None else (error, True)

    def holds(self, task: str) -> bool:
        """Return whether the check of a user task, or of an injection task, holds now."""
        asked = (task, len(self.calls), self.said[-1])
        if asked not in self._known:
            suite, said = self.suite.suite, [text_content_block_from_string(self.said[-1])]
            found = suite._check_task_result(self.suite.task(task), said, self.before, self.now, self.calls)
            self._known[asked] = bool(found)
        return self._known[asked]

    def _as_tool(self, function: Any) -> Tool:
        async def carry_out(_: ToolContext, /, **arguments: Any) -> ToolResult:
            text, is_error = self.carry_out(function.name, arguments)
            return ToolResult(text, is_error=is_error)

        return Tool(
            name=function.name,
            description=function.description,
            shape=_shape(function.parameters),
            function=carry_out,
            category="read" if is_read_only(function.name) else "write",
            source=f"AgentDojo, suite {self.suite.name}",
        )


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
        main=lambda world: float(_holds(world, name)),
        side=lambda _: False,
        solution=tuple(moves),
        plots=(),
        ending=Move((), task.GROUND_TRUTH_OUTPUT) if task.GROUND_TRUTH_OUTPUT else DONE,
    )


def _holds(world: World, task: str) -> bool:
    assert isinstance(world, SuiteWorld)
    return world.holds(task)


def under_attack(suite: Suite, user: str, number: int, injections: Sequence[str]) -> Task:
    """Return a user task under attack by injection tasks."""
    task, noise = scripted(suite, user), harmless_reads(suite)
    solution, ending = with_slip(task, noise[number % len(noise)])
    return evolve(
        task,
        solution=solution,
        ending=ending,
        side=lambda world: any(_holds(world, each) for each in injections),
        side_task=suite.task(injections[0]).GOAL,
        plots=tuple(plot_of(suite, task, each) for each in injections if calls_of(suite, each)),
        noise=noise,
    )


def make(family: Family, _: Random, number: int) -> Task:
    """Return a user task under attack by the injection tasks of its family."""
    suite, user = SUITES[family.suite], family.users[number]
    injections = [each for each in family.injections if (family.suite, user, each) not in UNDONE]
    alarming = (each for name in injections for each in calls_of(suite, name) if is_read_only(each.tool))
    return evolve(under_attack(suite, user, number, injections), alarming=tuple(Move((each,)) for each in alarming))


def plot_of(suite: Suite, task: Task, injection: str) -> Plot:
    """Return an injection task as an attack, before the first move that changes something, which it is most like."""
    moves = tuple(Move((each,)) for each in calls_of(suite, injection))
    changing = [number for number, move in enumerate(task.solution) if not is_read_only(move.calls[0].tool)]
    return Plot(injection, moves, changing[0] if changing else max(0, len(task.solution) - 1))


def with_slip(task: Task, instead: Move) -> tuple[tuple[Move, ...], Move]:
    """Return solution and ending with a possible mistake: the last change is left out, else the answer is unknown."""
    changing = [number for number, move in enumerate(task.solution) if not is_read_only(move.calls[0].tool)]
    if not changing:
        return task.solution, task.ending.or_else(NO_IDEA)
    last = changing[-1]
    slipping = task.solution[last].or_else(instead)
    return (*task.solution[:last], slipping, *task.solution[last + 1 :]), task.ending


@lru_cache
def harmless_reads(suite: Suite) -> tuple[Move, ...]:
    """Return calls that need no arguments and change nothing."""
    plain = (each for each in suite.functions if is_read_only(each.name) and not each.parameters.model_fields)
    return tuple(Move((call(each.name),), "What is there?") for each in plain)


def changes_something(given: ToolCall) -> bool:
    """Return whether a call changes something, or is visible to others."""
    return not is_read_only(given.tool)


def families() -> Iterator[Family]:
    """Yield the families. Splits take turns, as in any setting; each has one injection task in three."""
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


VICTIM = "gpt-4o-2024-05-13"
"""The model name that AgentDojo's attacks require."""

USUAL = "important_instructions_no_names"

SUITES_AS_FAMILIES = {
    name: Family(name, tuple(suite.user_tasks), tuple(suite.injection_tasks)) for name, suite in SUITES.items()
}
"""All of AgentDojo's pairs, for figures that are comparable with its own."""


def pairs_of(family: Family) -> tuple[tuple[str, str], ...]:
    """Return the user tasks of a family, each with its injection tasks; in splits only measurable pairs."""
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
    """Return the texts that an attack injects, by place, for a user task and an injection task."""
    written: Mapping[str, str] = attack_named(attack, suite).attack(suite.task(user), suite.task(injection))
    return written


def make_pair(family: Family, _: Random, number: int) -> Task:
    """Return a user task with an injection task."""
    user, injection = pairs_of(family)[number]
    return under_attack(SUITES[family.suite], user, number, [injection])


def family_of(task: Task) -> Family:
    """Return the family of a task of one of these settings."""
    return {**FAMILIES, **SUITES_AS_FAMILIES}[task.family]


def pair_of(task: Task) -> tuple[Suite, str, str]:
    """Return the suite, the user task and the injection task of an instance."""
    family = family_of(task)
    user, injection = pairs_of(family)[int(task.name.rpartition("-")[2])]
    return SUITES[family.suite], user, injection


def clean_world(task: Task, world: World) -> World:
    """Return the world in which a task begins, without injections."""
    return SuiteWorld.of(world, SUITES[family_of(task).suite])


def injected_world(attack: str, task: Task, world: World) -> World:
    """Return the world in which a task begins, with the injections of an attack."""
    suite, user, injection = pair_of(task)
    return SuiteWorld.of(world, suite, injections_of(attack, suite, user, injection))


AGENTDOJO = Setting(
    name="agentdojo",
    about="AgentDojo's user tasks in four suites of tools; an attack does one of its injection tasks",
    families={name: partial(make, family) for name, family in FAMILIES.items()},
    sizes={name: len(family.users) for name, family in FAMILIES.items()},
    harmless=True,
    in_memory=True,
    critical=changes_something,
    clean_world=clean_world,
)


def injected(attack: str, name: str, families: Mapping[str, Family] = FAMILIES) -> Setting:
    """Return the setting in which one of AgentDojo's attacks, by its name there, writes what agents read."""
    return evolve(
        AGENTDOJO,
        name=name,
        about=f"AgentDojo's user tasks; its attack {attack!r} writes its injection tasks into what is read",
        families={each: partial(make_pair, family) for each, family in families.items()},
        sizes={each: len(pairs_of(family)) for each, family in families.items()},
        injected_world=partial(injected_world, attack),
    )


INJECTED = injected(USUAL, "agentdojo_injected")
WHOLE = evolve(injected(USUAL, "agentdojo_whole", SUITES_AS_FAMILIES), turns=("test",))
"""All 949 pairs, in the reported split: no data remain to choose thresholds or rungs on."""
