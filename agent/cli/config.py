"""`bpagent config`: which files and variables configure the command, and trust for the file of a project."""

import json
import os
import sys
from argparse import Namespace
from pathlib import Path

from agent.cli import exit_codes
from agent.cli.build import chosen_preset, is_trusted, layers, model_name, project_config, trust, user_config
from agent.cli.mistakes import Mistake
from agent.cli.prompt import is_terminal
from agent.cli.screen import Screen, screen_on, visible, visible_lines
from agent.presets.configuration import Configuration, read_configuration, schema


def execute(arguments: Namespace) -> int:
    """Show the configuration, or trust the project's file. Raises OptionError for a file that is not valid."""
    screen = screen_on(sys.stdout, needed=True)
    if arguments.schema:
        print(json.dumps(schema(), indent=2))
        return exit_codes.OK
    if arguments.trust:
        return _trust(project_config(Path(arguments.workspace)), screen)
    _show(arguments, screen)
    return exit_codes.OK


def _show(arguments: Namespace, screen: Screen) -> None:
    files = layers(arguments)
    screen.line("from the weakest to the strongest", "title")
    screen.line("the preset      see bpagent presets")
    own = user_config()
    for file in files:
        _show_file(file, screen)
    if arguments.config is None and all(file.file != own for file in files):
        screen.line(f"                {visible(str(own))} is not there", "output")
    variable = os.environ.get("BPAGENT_MODEL")
    screen.line(f"BPAGENT_MODEL   {visible(variable) if variable else 'not set'}")
    screen.line("the options     --model, --preset, --option NAME=VALUE")
    screen.line()
    preset = chosen_preset(arguments)
    screen.line("what comes of it", "title")
    screen.line(f"model           {visible(model_name(arguments, files)) or 'none: name one'}")
    policy = preset.policy or "none: nothing is judged"
    screen.line(f"preset          {preset.name}, policy {policy}, tools {preset.tools}")


def _show_file(file: Configuration, screen: Screen) -> None:
    said = {
        "model": file.model,
        "preset": file.preset,
        "options": ", ".join(name for name, _ in file.options),
        "rules": "; ".join(file.rules),
        "mcp": "; ".join(file.servers),
        "tools": "declared" if file.declares_tools else "",
    }
    screen.line(f"a file          {visible(str(file.file))}")
    for name, value in said.items():
        if value:
            screen.line(f"{'':16}{name}: {visible(value)}", "output")
    if file.unused:
        screen.line(f"{'':16}not used, as you do not trust it: {', '.join(file.unused)}", "question")


def _trust(file: Path | None, screen: Screen) -> int:
    """Show a project's file and ask whether it may do all that it says. Raises Mistake where nobody can answer."""
    if file is None:
        raise Mistake("there is no .bpagent/config.yaml in this workspace; name one with --workspace DIR")
    read_configuration(file)
    if is_trusted(file):
        screen.line(f"{visible(str(file))} is trusted already", "system")
        return exit_codes.OK
    if not is_terminal():
        raise Mistake("only a person at a terminal can trust a file")
    content = file.read_bytes()
    for line in visible_lines(content.decode("utf-8", "replace")):
        screen.line(f"    {line}")
    screen.paragraph("It can choose the model to which your work is sent, start programs, and weaken the gate.")
    screen.ask("Trust it? (yes/no)")
    if sys.stdin.readline().strip().lower() != "yes":
        return exit_codes.FAILED
    trust(file, content)
    screen.line("trusted, until it changes", "system")
    return exit_codes.OK
