"""A scene: an AgentDojo environment under way. Calls change it, and its own checks say what has come about.

The checks are those of the benchmark: of what the agent said in the end, of the environment before and after, and of
the calls that were carried out. A call that was refused is none of these.
"""

from collections.abc import Mapping
from typing import Any

from agentdojo.agent_pipeline.tool_execution import tool_result_to_str
from agentdojo.functions_runtime import FunctionCall, FunctionsRuntime
from agentdojo.types import text_content_block_from_string

from agent.lab.settings.agentdojo.suites import Suite

__all__ = ["Scene"]


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
