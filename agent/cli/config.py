"""The configuration of an agent by files, variables and options; `bpagent config` shows the source of each value.

From the weakest to the strongest: the preset, the user's file, the preset's own, the project's, variables, options.
Of a project's file only stricter rules count, until the user trusts its content.
"""

import json
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from attrs import evolve

from agent.cli.errors import FAILED, OK, USAGE, Mistake, say
from agent.cli.prompt import is_terminal
from agent.cli.runs import append_privately, runs_folder
from agent.cli.screen import Screen, screen_on, visible, visible_lines
from agent.presets import preset_named
from agent.presets.configuration import SCHEMA, Configuration, read_configuration, read_user_rules, rules_files, schema
from agent.presets.preset import OptionError, Preset
from agent.tools.sandbox.permissions import agents_own


def execute(arguments: Namespace) -> int:
    """Show the configuration, or trust the project's file; the exit code is 2 where a file is not valid."""
    screen = screen_on(sys.stdout, needed=True)
    if arguments.schema:
        print(json.dumps(schema(), indent=2))
        return OK
    if arguments.trust:
        return _trust(project_config(Path(arguments.workspace)), screen)
    return _show(arguments, screen)


def _show(arguments: Namespace, screen: Screen) -> int:
    mistakes: dict[Path | None, str] = {}

    def read(path: str | os.PathLike[str]) -> Configuration:
        try:
            return read_configuration(path)
        except OptionError as error:
            mistakes[Path(path)] = str(error)
            return Configuration(file=Path(path))

    files = layers(arguments, read)
    screen.line("from the weakest to the strongest", "title")
    screen.line("the preset      see bpagent presets")
    own = user_config()
    if arguments.config is None and all(file.file != own for file in files):
        screen.line(f"                {visible(str(own))} is not there", "output")
    for file in files:
        screen.line(f"a file          {visible(str(file.file))}")
        if file.file in mistakes:
            screen.line(f"{'':16}not valid: {visible(mistakes[file.file])}", "refused")
        if file.unused:
            screen.line(f"{'':16}not used, as you do not trust it: {', '.join(file.unused)}", "question")
    variable = os.environ.get("BPAGENT_MODEL")
    screen.line(f"BPAGENT_MODEL   {visible(variable) if variable else 'not set'}")
    screen.line("the options     --model, --preset, --option NAME=VALUE")
    screen.line(f"for editors     # yaml-language-server: $schema={visible(str(SCHEMA))}", "output")
    screen.line()
    screen.line("what comes of it", "title")
    try:
        _show_outcome(chosen_preset(arguments), model_name(arguments, files), screen)
    except OptionError as error:
        screen.paragraph(f"nothing, until this is right: {'the mistake above' if mistakes else error}")
        return USAGE
    return OK


def _show_outcome(preset: Preset, model: str, screen: Screen) -> None:
    screen.line(f"model           {visible(model) or 'none: name one'}")
    policy = preset.policy or "none: nothing is judged"
    screen.line(f"preset          {preset.name}, policy {policy}, tools {preset.tools}")
    for place in rules_files():
        for rule in read_user_rules(place) if preset.policy else ():
            screen.line(f"your rule       {visible(str(rule))}, in {visible(str(place))}")


def _trust(file: Path | None, screen: Screen) -> int:
    """Show a project's file and ask whether it may do all that it says. Raises Mistake without a terminal."""
    if file is None:
        raise Mistake("there is no .bpagent/config.yaml in this workspace; name one with --workspace DIR")
    read_configuration(file)
    if is_trusted(file):
        screen.line(f"{visible(str(file))} is trusted already", "system")
        return OK
    if not is_terminal():
        raise Mistake("only a person at a terminal can trust a file")
    content = file.read_bytes()
    for line in visible_lines(content.decode("utf-8", "replace")):
        screen.line(f"    {line}")
    screen.paragraph("It can choose the model to which your work is sent, start programs, and weaken the gate.")
    screen.ask("Trust it? (yes/no)")
    if sys.stdin.readline().strip().lower() != "yes":
        return FAILED
    append_privately(runs_folder().with_name("trusted"), f"{_fingerprint(file, content)}\n".encode())
    screen.line("trusted, until it changes", "system")
    return OK


def chosen_preset(arguments: Namespace) -> Preset:
    """Return the preset of the command line and the configuration files; a later one of `layers` wins.

    If it judges commands, it has the user's own rules about them. Raises OptionError and Mistake.
    """
    files = layers(arguments)
    preset = preset_named(arguments.preset or _last(file.preset for file in files) or "default")
    if arguments.config is not None:  # which replaces both files of the preset
        preset = evolve(preset, tools_file=None)
    for file in files:
        preset = file.applied(evolve(preset, tools_file=str(file.file)) if file.declares_tools else preset)
    options = [*arguments.option, *([f"sandbox={arguments.sandbox}"] if getattr(arguments, "sandbox", None) else [])]
    preset = preset.with_options(_parsed(options))
    if preset.policy is None or not (rules := read_user_rules()):
        return preset
    return evolve(preset, commands=(*preset.commands, *map(str, rules)))


def existing_folder(path: str, what: str = "--workspace") -> Path:
    """Return the absolute path of a folder. Raises Mistake for any other path."""
    folder = Path(path).expanduser()
    try:
        if folder.is_dir():
            return folder.resolve()
        found = "is a file" if folder.exists() else "does not exist"
    except (OSError, ValueError) as error:
        found = f"cannot be read ({error})"
    raise Mistake(f"{what} {path!r} {found}; name a folder")


Read = Callable[[str | os.PathLike[str]], Configuration]


def layers(arguments: Namespace, read: Read = read_configuration) -> tuple[Configuration, ...]:
    """Return the configuration files that count, the weakest first: the user's, the preset's own, the project's.

    `--config` replaces them all. Of an untrusted project's file only stricter rules count. Raises OptionError for an
    invalid one.
    """
    if arguments.config is not None:
        return (read(arguments.config),)
    own, project = user_config(), project_config(Path(getattr(arguments, "workspace", ".")))
    files = [read(own)] if own.exists() else []
    named = preset_named(arguments.preset or _last(file.preset for file in files) or "default").config_file
    if named is not None and Path(named).expanduser().exists():
        files.append(read(named))
    if project is not None:
        found = read(project)
        files.append(_checked_project(found) if is_trusted(project) else found.tightening)
    return tuple(files)


def _last(values: Iterable[str | None]) -> str | None:
    return next((value for value in reversed([*values]) if value), None)


def user_config() -> Path:
    """Return the path of the user's own configuration, which may not exist."""
    folder = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(folder).expanduser() / "bpagent" / "config.yaml"


def project_config(workspace: Path) -> Path | None:
    """Return the configuration file of a project, if it has one."""
    file = workspace.expanduser() / ".bpagent" / "config.yaml"
    is_own = os.path.realpath(file.parent) in agents_own(os.path.expanduser("~"))  # true in the home folder
    return file if file.is_file() and not is_own else None


NOT_FOR_PROJECTS = ("tools_file", "config_file")


def _checked_project(configuration: Configuration) -> Configuration:
    """Return the configuration of a trusted project. Raises OptionError if it names another, untrusted file."""
    for name, node in configuration.options:
        if name in NOT_FOR_PROJECTS:
            raise OptionError(str(node.wrong(f"a project cannot set {name}, which names another file")))
    return configuration


def is_trusted(file: Path) -> bool:
    """Return whether the user trusts this file with its present content."""
    with suppress(OSError):
        trusted = runs_folder().with_name("trusted").read_text().splitlines()
        return _fingerprint(file, file.read_bytes()) in trusted
    return False


def _fingerprint(file: Path, content: bytes) -> str:
    return sha256(f"{file.resolve()}\0".encode() + content).hexdigest()


def tell_unused(files: Iterable[Configuration]) -> None:
    """Warn about settings of a project's file that are not used."""
    for file in files:
        if file.unused:
            say(f"{file.file} also sets {', '.join(file.unused)}: not used until you trust it (bpagent config --trust)")


def _parsed(options: Iterable[str]) -> dict[str, str]:
    parsed = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise Mistake(f"--option {option!r} has no value; write NAME=VALUE, such as max_iterations=5")
        parsed[key.strip()] = value
    return parsed


def model_name(arguments: Namespace, files: Iterable[Configuration]) -> str:
    """Return the name of the model: --model, else $BPAGENT_MODEL, else that of the configuration."""
    return arguments.model or os.environ.get("BPAGENT_MODEL") or _last(file.model for file in files) or ""
