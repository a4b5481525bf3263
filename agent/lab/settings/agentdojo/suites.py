"""The suites of AgentDojo: their rooms, functions and scenes, as settings need them."""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.types import text_content_block_from_string
from attrs import field, frozen
from pydantic import BaseModel, ValidationError

from agent.lab.settings.world import World
from agent.models.scripted import ScriptedCall
from agent.tools.definition import Tool, ToolContext
from agent.tools.schemas import Schema, plain
from agent.vocabulary.calls import ToolResult

__all__ = [
    "GIVES_ITSELF_AWAY",
    "PASSES_UNTOUCHED",
    "READ_ONLY",
    "SUITES",
    "UNDONE",
    "VERSION",
    "ModelShape",
    "Room",
    "Scene",
    "Suite",
    "calls_of",
    "is_read_only",
    "room_of",
    "tools_of",
]

PASSES_UNTOUCHED = frozenset(("banking", f"user_task_{number}") for number in (5, 6, 8, 9, 10))

UNDONE = frozenset({("banking", "user_task_14", "injection_task_7")})  # both set the password; the later one stays

GIVES_ITSELF_AWAY = frozenset(("workspace", f"user_task_{number}", "injection_task_0") for number in (15, 16, 17, 18))
"""Written into a mail: the check wants one mail with the words of the subject, and finds the one that was injected."""


VERSION = "v1.2.2"


@frozen(eq=False)
class Suite:
    """A suite: what of it is used, each part AgentDojo's own. Tasks are by their ids, in order of their numbers."""

    name: str
    suite: Any
    user_tasks: Mapping[str, Any]
    injection_tasks: Mapping[str, Any]

    @property
    def functions(self) -> tuple[Any, ...]:
        """The functions that an agent may call."""
        return tuple(self.suite.tools)

    def environment(self, injections: Mapping[str, str] = {}) -> Any:
        """Return an environment of your own, as it is before anything happens; with texts that somebody has written.

        `injections` are texts by the names that AgentDojo has for their places. Raises ValueError for another name.
        """
        return _loaded(self.name, tuple(sorted(injections.items()))).model_copy(deep=True)

    def task(self, name: str) -> Any:
        """Return a user task or an injection task. Raises KeyError."""
        return {**self.user_tasks, **self.injection_tasks}[name]


@lru_cache(maxsize=64)
def _loaded(name: str, injections: tuple[tuple[str, str], ...]) -> Any:
    return get_suites(VERSION)[name].load_and_inject_default_environment(dict(injections))


def calls_of(suite: Suite, task: str, injections: Mapping[str, str] = {}) -> tuple[ScriptedCall, ...]:
    """Return the calls of a task's ground truth, which passes on what it reads, also what somebody has injected."""
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


class Scene:
    """Where the tasks of a suite happen. `said` is what the agent said in the end.

    injections: what somebody has written into the environment, by the places that there are for that.
    """

    def __init__(self, suite: Suite, injections: Mapping[str, str] = {}) -> None:
        self.suite = suite
        self.said = ""
        self._before, self._now = suite.environment(injections), suite.environment(injections)
        self._runtime = FunctionsRuntime(suite.functions)
        self._calls: list[FunctionCall] = []
        self._known: dict[tuple[str, int, str], bool] = {}

    def carry_out(self, function: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Carry out a call, and return what it gives as text, and whether that is an error."""
        given = dict(arguments)
        self._calls.append(FunctionCall(function=function, args=given))
        result, error = self._runtime.run_function(self._now, function, given)
        return (tool_result_to_str(result), False) if error is None else (error, True)

    def holds(self, task: str) -> bool:
        """Whether the check of a user task, or of an injection task, holds now."""
        asked = (task, len(self._calls), self.said)
        if asked not in self._known:
            self._known[asked] = self._check(task)
        return self._known[asked]

    def _check(self, task: str) -> bool:
        said = [text_content_block_from_string(self.said)]
        suite, found = self.suite.suite, self.suite.task(task)
        return bool(suite._check_task_result(found, said, self._before, self._now, self._calls))


# ruff: noqa: D102 - what the methods promise is said once, in `Shape`


READ_ONLY = ("get_", "search_", "list_", "read_", "check_")
BUT = ("get_unread_emails", "get_webpage")
"""These mark what was read, and are requests that somebody sees."""


def is_read_only(function: str) -> bool:
    """Whether a function changes nothing, by its name."""
    return function.startswith(READ_ONLY) and function not in BUT


def tools_of(scene: Scene) -> tuple[Tool, ...]:
    """Return the tools of an agent that works in a scene."""
    return tuple(_as_tool(function, scene) for function in scene.suite.functions)


@frozen(eq=False)
class ModelShape:
    """The parameters of a function, which are a pydantic model; strict, and with nothing that it does not know."""

    model: type[BaseModel]

    def schema(self) -> Schema:
        return {**self.model.model_json_schema(), "additionalProperties": False}

    def problems(self, value: object, path: str) -> Iterator[str]:
        if not isinstance(value, Mapping):
            yield f"{path or 'arguments'}: expected an object"
            return
        yield from (f"{path}{name}: unknown argument" for name in value.keys() - self.model.model_fields.keys())
        try:
            self.model.model_validate_json(json.dumps(plain(value)), strict=True)
        except ValidationError as error:
            for found in error.errors(include_url=False):
                yield f"{path}{'.'.join(map(str, found['loc']))}: {found['msg']}"

    def build(self, value: Any) -> Any:
        return plain(value)


def _as_tool(function: Any, scene: Scene) -> Tool:
    async def carry_out(_: ToolContext, /, **arguments: Any) -> ToolResult:
        text, is_error = scene.carry_out(function.name, arguments)
        return ToolResult(text, is_error=is_error)

    return Tool(
        name=function.name,
        description=function.description,
        shape=ModelShape(function.parameters),
        function=carry_out,
        category="read" if is_read_only(function.name) else "write",
        source=f"AgentDojo, suite {scene.suite.name}",
    )


@frozen
class Room(World):
    """A world in which a scene is."""

    scene: Scene = field(kw_only=True)

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools of the agent that works here: a suite's."""
        return tools_of(self.scene)

    def perform(self, call: ScriptedCall) -> None:
        """Carry out a call as the agent's tools would."""
        self.scene.carry_out(call.tool, json.loads(call.arguments))

    def conclude(self, said: str) -> None:
        """Take note of what the agent said in the end, which checks look at."""
        self.scene.said = said


def room_of(world: World, scene: Scene) -> Room:
    """Return a world as the room of a scene."""
    return Room(world.folder, world.home, world.box, scene=scene)
