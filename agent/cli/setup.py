"""What the command line names besides b-threads: presets with options, folders."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from attrs import evolve

from agent.cli.mistakes import Mistake
from agent.effects.approval import Approver
from agent.models.model import Model
from agent.presets.configuration import Configuration, read_configuration
from agent.presets.equipment import equip
from agent.presets.preset import Preset
from agent.presets.shipped import preset_named
from agent.presets.user_rules import read_user_rules
from agent.tools.definition import Tool
from agent.tools.workspace import Workspace

__all__ = ["chosen_preset", "configuration_of", "existing_folder", "tools_of", "with_user_rules"]


def chosen_preset(name: str | None, options: Iterable[str] = (), config: str | None = None) -> Preset:
    """Return a preset with the options of a configuration file, and then with `NAME=VALUE` options.

    Without a name it is the preset of the file `config`, else `default`. Without `config` the preset's own file
    counts, if it is there. Raises OptionError and Mistake.
    """
    configuration = configuration_of(name, config)
    preset = preset_named(name or configuration.preset or "default")
    if config is not None:  # which replaces both files of the preset
        preset = evolve(preset, tools_file=config if configuration.declares_tools else None)
    return with_user_rules(configuration.applied(preset).with_options(_parsed(options)))


def configuration_of(name: str | None, config: str | None) -> Configuration:
    """Return what the configuration file says: `config`, or without that the preset's own, if it is there.

    Raises OptionError.
    """
    if config is not None:
        return read_configuration(config)
    own = preset_named(name or "default").config_file
    there = own is not None and Path(own).expanduser().exists()
    return read_configuration(own) if own is not None and there else Configuration()


def with_user_rules(preset: Preset) -> Preset:
    """Return a preset with what the user said about commands, if it judges them at all. Raises OptionError."""
    if preset.policy is None or not (rules := read_user_rules()):
        return preset
    return evolve(preset, commands=(*preset.commands, *map(str, rules)))


def _parsed(options: Iterable[str]) -> dict[str, str]:
    parsed = {}
    for option in options:
        key, equals, value = option.partition("=")
        if not equals:
            raise Mistake(f"--option {option!r} has no value; write NAME=VALUE, such as max_iterations=5")
        parsed[key.strip()] = value
    return parsed


def existing_folder(path: str, what: str = "--workspace") -> Path:
    """Return a folder, absolute. Raises Mistake when it is none."""
    folder = Path(path).expanduser()
    try:
        if folder.is_dir():
            return folder.resolve()
        found = "is a file" if folder.exists() else "does not exist"
    except (OSError, ValueError) as error:
        found = f"cannot be looked at ({error})"
    raise Mistake(f"{what} {path!r} {found}; name a folder")


def tools_of(
    preset: Preset,
    workspace: Path,
    model: Model,
    log: Path | None = None,
    approve: Approver | None = None,
    secrets: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Tool, ...]:
    """Return the tools of a preset over a workspace; `task` among them if the preset has it.

    The subagents of `task` have the other tools, ask `model`, and keep their logs beside `log`. Raises OptionError for
    a file of tools that is not valid.
    """
    tools = equip(preset, workspace)
    if preset.tools != "coding":
        return tools
    from agent.session.subagents import SubagentStore, make_task

    store = SubagentStore(
        model,
        preset,
        lambda: equip(preset, workspace),
        logs=None if log is None else log.with_name(f"{log.stem}-tasks"),
        parent="" if log is None else str(log),
        approve=approve,
        secrets=secrets,
    )
    return (*tools, evolve(make_task(store), workspace=Workspace(workspace)))
