"""`bpagent run`: a model works on a task, with tools, under the rules of a preset."""

import os
import sys
from argparse import Namespace
from collections.abc import Callable
from datetime import datetime

from agent.agent import Agent
from agent.cli.mistakes import Mistake
from agent.cli.person import STOPS
from agent.cli.protocols import load_protocols
from agent.cli.screen import Screen, screen_on, visible_lines
from agent.cli.session import Outcome, Session, lead
from agent.cli.setup import chosen_preset, existing_folder, log_path, tools_of
from agent.cli.telling import is_error
from agent.effects import Approver
from agent.log import to_record
from agent.log.encoding import dump
from agent.models import model_from_name
from agent.presets import Preset
from bp import Step

__all__ = ["execute"]


def execute(arguments: Namespace) -> int:
    """Run and return the exit code. Raises for wrong input, before anything happens."""
    _check_what_is_not_there_yet(arguments)
    screen = screen_on(sys.stderr)
    preset = chosen_preset(arguments.preset, arguments.option, arguments.config)
    session = Session(
        make=_maker(arguments, preset, screen),
        prompt=arguments.prompt,
        screen=screen,
        stops=STOPS[preset.stop_text],
        watch=_print_record if arguments.json else None,
    )
    outcome = lead(session)
    if not arguments.json:
        _print_final_text(outcome)
    elif outcome.failure is not None:
        print(dump(outcome.failure), flush=True)
    return outcome.code


def _check_what_is_not_there_yet(arguments: Namespace) -> None:
    if arguments.api != "chat":
        raise Mistake(f"--api {arguments.api!r} is not there yet; the wire is chat")
    if not arguments.prompt.strip():
        raise Mistake("the prompt is empty; say what the agent is to do")


def _maker(arguments: Namespace, preset: Preset, screen: Screen) -> Callable[[Approver, Callable[[Step], None]], Agent]:
    workspace = existing_folder(arguments.workspace)
    threads = load_protocols(arguments.protocol)
    model = model_from_name(arguments.model, os.environ)
    log = log_path(arguments.log, datetime.now())

    def make(approver: Approver, on_step: Callable[[Step], None]) -> Agent:
        agent = Agent(
            model,
            tools_of(preset, workspace),
            preset=preset,
            threads=threads,
            approve=approver,
            log=log,
            on_step=on_step,
        )
        screen.labelled(
            "system", f"model {model.name}, preset {preset.name}\nworkspace {workspace}\nlog {log}", "system"
        )
        return agent

    return make


def _print_record(step: Step) -> None:
    print(dump(to_record(step)), flush=True)


def _print_final_text(outcome: Outcome) -> None:
    """Print the last words, unless they are an error: those were told already."""
    run = outcome.run
    if run.text and not is_error(run.status):
        text = "\n".join(visible_lines(run.text)) if sys.stdout.isatty() else run.text
        print(text)
