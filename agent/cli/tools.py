"""`bpagent tools`: what a model may call, with which parameters, and where it comes from."""

import json
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from agent.cli import exit_codes
from agent.cli.build import servers_of, tools_of
from agent.cli.config import chosen_preset
from agent.cli.mcp_servers import McpServer, joined, serving
from agent.cli.screen import Screen, screen_on
from agent.models.scripted import ScriptedModel
from agent.tools.definition import Tool


def execute(arguments: Namespace) -> int:
    """Show the tools of a preset."""
    preset = chosen_preset(arguments)
    own = (*preset.own_tools(), *tools_of(preset, Path.cwd(), ScriptedModel([])))
    tools = joined(own, anyio.run(_served, servers_of(arguments)))
    if arguments.json:
        for tool in tools:
            print(json.dumps(_as_data(tool)))
        return exit_codes.OK
    screen = screen_on(sys.stdout, needed=True)
    for tool in tools:
        _show(tool, screen)
    return exit_codes.OK


async def _served(servers: Sequence[McpServer]) -> tuple[Tool, ...]:
    async with serving(servers) as tools:
        return tools


def _as_data(tool: Tool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "category": tool.category,
        "parallel": tool.parallel,
        "description": tool.description,
        "parameters": tool.parameters,
        "source": _source(tool),
    }


def _show(tool: Tool, screen: Screen) -> None:
    name = screen.painted(f"{tool.name:15} ", "action")
    together = ", several at once" if tool.parallel else ""
    screen.line(f"{name}{tool.category}{together}, from {_source(tool)}")
    screen.line(f"{'':16}{tool.description.splitlines()[0]}")
    required: Any = tool.parameters.get("required", ())
    properties: Any = tool.parameters.get("properties", {})
    for parameter, schema in properties.items():
        screen.line(f"{'':16}- {_parameter(parameter, schema, parameter in required)}", "output")


def _parameter(name: str, schema: Mapping[str, Any], required: bool) -> str:
    kind = schema.get("type") or " or ".join(option.get("type", "any") for option in schema.get("anyOf", ()))
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    about = f": {schema['description']}" if "description" in schema else ""
    return f"{name} ({kind or 'any'}{'' if required else ', optional'}){about}"


def _source(tool: Tool) -> str:
    """Return where a tool comes from: the file that declares it, or the module in which its function was written."""
    if tool.source:
        return tool.source
    return str(getattr(tool.body or tool.function, "__module__", "unknown"))
