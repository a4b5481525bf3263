"""AgentDojo's suites, version 1.2.2: workspace, travel, banking, slack; their tasks by number, as it has them."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from agentdojo.functions_runtime import FunctionCall
from agentdojo.task_suite.load_suites import get_suites
from attrs import frozen

from agent.models.scripted import ScriptedCall

__all__ = ["SUITES", "VERSION", "Suite", "calls_of"]

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
