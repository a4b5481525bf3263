"""AgentDojo's functions as tools of ours: its parameters are checked strictly, its code runs in the scene."""

# ruff: noqa: D102 - what the methods promise is said once, in `Shape`

import json
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen
from pydantic import BaseModel, ValidationError

from agent.lab.settings.agentdojo.scenes import Scene
from agent.tools.definition import Tool, ToolContext
from agent.tools.schemas import Schema, plain
from agent.vocabulary.calls import ToolResult

__all__ = ["READ_ONLY", "ModelShape", "is_read_only", "tools_of"]

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
