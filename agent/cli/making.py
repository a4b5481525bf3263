"""The agents of the command line: a new one as its options say, or the one of a log."""

import os
from argparse import Namespace
from collections.abc import Callable, Sequence
from datetime import datetime

from agent.cli.archive import new_log
from agent.cli.equipping import effects_for, models_of_roles
from agent.cli.lacking import tell_unknown_tools
from agent.cli.loading import load_protocols
from agent.cli.reviving import model_of, nameable, secrets_of
from agent.cli.serving import McpServer, joined, servers_of
from agent.cli.session import Maker
from agent.cli.setup import chosen_preset, existing_folder, tools_of
from agent.effects.approval import Approver
from agent.effects.streaming import Watcher
from agent.history.rebuilding import recorded_bthreads
from agent.log.reading import RecordedRun
from agent.models.names import model_from_name
from agent.presets.preset import Preset
from agent.session.agent import Agent
from agent.session.resume import resume
from agent.tools.definition import Tool
from bp import Step

__all__ = ["agent_of_log", "new_agent"]

OnStep = Callable[[Step], None]


def new_agent(arguments: Namespace, *, later: bool = False) -> tuple[Preset, Maker]:
    """Return the preset that the command line means, and what makes the agent. Raises for wrong input.

    `later`: the run rests when a person has to decide.
    """
    preset = chosen_preset(arguments.preset, arguments.option, arguments.config)
    workspace = existing_folder(arguments.workspace)
    threads = load_protocols(arguments.protocol)
    model = model_from_name(arguments.model, os.environ, api=arguments.api)
    secrets = secrets_of(arguments.secret, os.environ)
    models = models_of_roles(arguments.role, os.environ)
    effects = effects_for(threads, arguments, os.environ)
    servers = servers_of(arguments)
    log = new_log(arguments.log, datetime.now())

    def make(approver: Approver, on_step: OnStep, on_text: Watcher | None, more: tuple[Tool, ...] = ()) -> Agent:
        tools = joined(tools_of(preset, workspace, model, log, approver, secrets), more)
        tell_unknown_tools(threads, [tool.name for tool in (*tools, *preset.own_tools())])
        return Agent(
            model,
            tools,
            preset=preset,
            threads=threads,
            approve="later" if later else approver,
            log=log,
            secrets=secrets,
            about={"model": nameable(arguments.model), **_named(servers)},
            on_step=on_step,
            on_text=on_text,
            models=models,
            effects=effects,
        )

    return preset, make


def agent_of_log(arguments: Namespace, recorded: RecordedRun, *, later: bool = False) -> tuple[Preset, Maker]:
    """Return the preset of a log, and what makes its agent anew. Raises for wrong input, and for another program."""
    threads = load_protocols(arguments.protocol)
    preset, beside = recorded_bthreads(recorded, threads)
    workspace = existing_folder(str(recorded.header.get("workspace")), "the log's workspace")
    model = model_of(recorded, arguments.model, os.environ)
    models = models_of_roles(arguments.role, os.environ)
    effects = effects_for((*threads, *beside), arguments, os.environ)
    secrets = secrets_of(recorded.header.get("secrets") or (), os.environ)

    def make(approver: Approver, on_step: OnStep, on_text: Watcher | None, more: tuple[Tool, ...] = ()) -> Agent:
        return resume(
            recorded.path,
            model,
            joined(tools_of(preset, workspace, model, recorded.path, approver, secrets), more),
            threads=threads,
            approve="later" if later else approver,
            secrets=secrets,
            on_step=on_step,
            on_text=on_text,
            models=models,
            effects=effects,
        )

    return preset, make


def _named(servers: Sequence[McpServer]) -> dict[str, str]:
    """Return what a log says of the servers whose tools a run had."""
    return {"mcp": "\n".join(server.row for server in servers)} if servers else {}
