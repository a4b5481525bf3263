"""`bpagent run`: a model works on a task, with tools, under the rules of a preset."""

import os
import sys
from argparse import Namespace
from collections.abc import Callable
from datetime import datetime

from agent.agent import Agent
from agent.cli.archive import new_log
from agent.cli.mistakes import Mistake
from agent.cli.person import STOPS
from agent.cli.protocols import load_protocols
from agent.cli.reviving import nameable, print_outcome, print_record, secrets_of
from agent.cli.screen import Screen, screen_on
from agent.cli.session import Session, lead
from agent.cli.setup import chosen_preset, existing_folder, tools_of
from agent.effects import Approver
from agent.models import model_from_name
from agent.presets import Preset
from bp import Step

__all__ = ["execute"]


def execute(arguments: Namespace) -> int:
    """Run and return the exit code. Raises for wrong input, before anything happens."""
    _check_prompt(arguments)
    screen = screen_on(sys.stderr)
    preset = chosen_preset(arguments.preset, arguments.option, arguments.config)
    session = Session(
        make=_maker(arguments, preset, screen),
        prompt=arguments.prompt,
        screen=screen,
        stops=STOPS[preset.stop_text],
        watch=print_record if arguments.json else None,
        max_iterations=preset.max_iterations,
    )
    outcome = lead(session)
    print_outcome(outcome, screen, as_json=arguments.json)
    return outcome.code


def _check_prompt(arguments: Namespace) -> None:
    if not arguments.prompt.strip():
        raise Mistake("the prompt is empty; say what the agent is to do")


def _maker(arguments: Namespace, preset: Preset, screen: Screen) -> Callable[[Approver, Callable[[Step], None]], Agent]:
    workspace = existing_folder(arguments.workspace)
    threads = load_protocols(arguments.protocol)
    model = model_from_name(arguments.model, os.environ, api=arguments.api)
    secrets = secrets_of(arguments.secret, os.environ)
    log = new_log(arguments.log, datetime.now())

    def make(approver: Approver, on_step: Callable[[Step], None]) -> Agent:
        agent = Agent(
            model,
            tools_of(preset, workspace),
            preset=preset,
            threads=threads,
            approve="later" if arguments.approvals == "later" else approver,
            log=log,
            secrets=secrets,
            about={"model": nameable(arguments.model)},
            on_step=on_step,
        )
        screen.labelled(
            "system", f"model {model.name}, preset {preset.name}\nworkspace {workspace}\nlog {log}", "system"
        )
        return agent

    return make
