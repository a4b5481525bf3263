"""The constitution as a gate for agents of other frameworks: a call by name and arguments in, a verdict out.

    Agent(model, tools=[bash], capabilities=[pydantic_ai_hooks(Gate(workspace="/project"))])       # pydantic-ai
    function_tool(bash, tool_input_guardrails=[openai_agents_guardrail(Gate(workspace="/project"))])  # openai-agents

The gate infers what a tool does from the names of its parameters (`ARGUMENTS`). A tool with none of these names is
opaque and needs approval, unless `harmless` names it. Paths are judged lexically: links inside a container cannot be
followed from here.
"""

import json
import posixpath
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal

from attrs import frozen

from constitution import GATED, Action, Level, Policy, Verdict, judge
from constitution.action import PathUse

Meaning = Literal["shell", "python", "path", "url"]

ARGUMENTS: Mapping[str, Meaning] = {
    **dict.fromkeys(("cmd", "command", "script", "shell_command"), "shell"),
    **dict.fromkeys(("code", "python_code"), "python"),
    **dict.fromkeys(("path", "file", "file_path", "filename", "filepath", "directory", "folder"), "path"),
    **dict.fromkeys(("url", "uri"), "url"),
}
"""The meaning of parameters by name. Beside a path, `command` is an editor's command and not a shell command."""

READING = ("read", "view", "get", "list", "search", "find", "cat", "ls")
"""First words in the names of tools that only read the paths in their arguments."""


def meaning_of(names: Mapping[str, object]) -> dict[str, Meaning]:
    """Return the known ones of these parameters, each with its meaning."""
    found = {name: ARGUMENTS[name] for name in names if name in ARGUMENTS}
    if "path" in found.values():
        return {name: meaning for name, meaning in found.items() if meaning != "shell"}
    return found


@frozen
class Gate:
    """Judges calls by a policy. `workspace`: where relative paths begin; `harmless`: tools that need no judging."""

    policy: Policy = GATED
    workspace: str = "/"
    home: str = "/root"
    harmless: frozenset[str] = frozenset({"submit"})

    def verdict(self, tool: str, arguments: Mapping[str, Any]) -> Verdict:
        """Return the verdict on a call; never raises, like `judge`."""
        if tool in self.harmless:
            return Verdict(Level.allow, "harmless", explanation=f"{tool} is named as harmless")
        return judge(self._action(tool, arguments), self.policy)

    def refusal(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return why a call may not run when no user can be asked; None if it may."""
        verdict = self.verdict(tool, arguments)
        return "" if verdict.level is Level.allow else f"{verdict.explanation} ({verdict.rule})"

    def _action(self, tool: str, arguments: Mapping[str, Any]) -> Action:
        given = {name: str(arguments[name]) for name in meaning_of(arguments)}
        by_meaning = [(meaning, given[name]) for name, meaning in meaning_of(arguments).items()]
        reads = tool.startswith(READING) or arguments.get("command") in READING
        shell = "\n".join(text for meaning, text in by_meaning if meaning == "shell")
        code = [text for meaning, text in by_meaning if meaning == "python"]
        return Action(
            tool,
            "read" if reads and not shell and not code else "write",
            self.workspace,
            home=self.home,
            command=shell or None,
            argv=("python3", "-c", "\n".join(code)) if code else (),
            urls=tuple(text for meaning, text in by_meaning if meaning == "url"),
            paths=tuple(self._path(text, reads) for meaning, text in by_meaning if meaning == "path"),
            opaque=not given,
        )

    def _path(self, text: str, reads: bool) -> PathUse:
        whole = text.replace("~", self.home, 1) if text.startswith("~") else text
        resolved = posixpath.normpath(posixpath.join(self.workspace, whole))
        return PathUse(text, resolved, "read" if reads else "write")


def pydantic_ai_hooks(gate: Gate) -> Any:
    """Return hooks for `capabilities=[...]` of pydantic-ai: a refused call does not run, and the model reads why."""
    hooks, skip = import_module("pydantic_ai.capabilities").Hooks(), import_module("pydantic_ai").SkipToolExecution

    async def judged(_: Any, *, call: Any, tool_def: Any, args: dict[str, Any]) -> dict[str, Any]:
        if told := gate.refusal(tool_def.name, args):
            raise skip(f"refused: {told}")
        return args

    hooks.on.before_tool_execute(judged)
    return hooks


def openai_agents_guardrail(gate: Gate) -> Any:
    """Return a guardrail for tools of openai-agents, in `tool_input_guardrails=[...]`."""
    agents = import_module("agents")

    def judged(data: Any) -> Any:
        told = gate.refusal(data.context.tool_name, json.loads(data.context.tool_arguments or "{}"))
        result = agents.ToolGuardrailFunctionOutput
        return result.reject_content(f"refused: {told}") if told else result.allow()

    return agents.tool_input_guardrail(judged)
