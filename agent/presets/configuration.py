"""A configuration file: which preset, which options, which paths. Read strictly; mistakes have line and column.

preset: workspace
options:
  max_iterations: 5
  allow: [deploy_app]
security:                       # as in ~/.agent/config.yaml (S0 6.4)
  allowed_paths: [~/.agent/workspace, /tmp/agent]
  denied_paths: [~/.ssh]
mcp:                            # servers whose tools the command offers too, each a command line
  - npx -y some-server
"""

import os
from collections.abc import Mapping
from pathlib import Path
from types import NoneType
from typing import Any, get_origin

from attrs import fields, frozen

from agent.presets.preset import OptionError, Preset, alternatives, expected, fits, option_type, with_value
from agent.presets.shipped import preset_named
from agent.vocabulary.yaml_nodes import Node, NodeError, read_yaml

KEYS = ("preset", "options", "security", "tools", "mcp")  # tools: declared ones, as in tools.yaml
PATHS = ("allowed_paths", "denied_paths")
OPTIONS = {field.name: field.type for field in fields(Preset) if field.name != "name"}


@frozen
class Configuration:
    """What a file says: a preset, if it names one, options with their places, tools, and commands of MCP servers."""

    preset: str | None = None
    options: tuple[tuple[str, Node], ...] = ()
    declares_tools: bool = False
    servers: tuple[str, ...] = ()

    def applied(self, preset: Preset) -> Preset:
        """Return `preset` with the options of the file. Raises OptionError."""
        for name, node in self.options:
            try:
                preset = with_value(preset, name, _value(node, OPTIONS[name]))
            except NodeError as error:
                raise OptionError(str(error)) from error
            except ValueError as error:
                raise OptionError(str(node.wrong(f"option {name}: {error}"))) from error
        return preset


def preset_from_file(path: str | os.PathLike[str]) -> Preset:
    """Return the preset that a configuration file describes, `default` if it names none. Raises OptionError."""
    configuration = read_configuration(path)
    return configuration.applied(preset_named(configuration.preset or "default"))


def read_configuration(path: str | os.PathLike[str]) -> Configuration:
    """Read a configuration file; one without content configures nothing.

    Raises OptionError with file, line and column, and the nearest valid name where one is not.
    """
    try:
        root = read_yaml(Path(path).expanduser())
        if root.value is None:
            return Configuration()
        root.mapping(*KEYS)
        options = (*_paths(root.get("security")), *_options(root))
        declares, servers = root.get("tools") is not None, root.get("mcp")
        rows = () if servers is None else tuple(item.text() for item in servers.items())
        return Configuration(_preset(root.get("preset")), options, declares, rows)
    except NodeError as error:
        raise OptionError(str(error)) from error
    except RecursionError as error:
        raise OptionError(f"{path}: no configuration: values are nested too deeply, or within themselves") from error


def save_options(path: str | os.PathLike[str], options: Mapping[str, object]) -> Preset:
    """Set options in a configuration file and keep everything else in it, comments included; return its preset.

    A file that is not there yet is made. Raises OptionError, and then the file is as it was.
    """
    from ruamel.yaml import YAML

    file = Path(path).expanduser()
    configuration = read_configuration(file) if file.exists() else Configuration()
    preset = configuration.applied(preset_named(configuration.preset or "default"))
    for name, value in options.items():
        preset = _checked(preset, name, value)
    yaml = YAML(typ="rt")
    yaml.preserve_quotes, yaml.width = True, 4096
    content = (yaml.load(file.read_text(encoding="utf-8")) if file.exists() else None) or yaml.map()
    content.setdefault("options", yaml.map()).update(
        {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
    )
    draft = file.with_name(f".{file.name}.new")
    with draft.open("w", encoding="utf-8") as out:
        yaml.dump(content, out)
    draft.replace(file)
    return preset


def _checked(preset: Preset, name: str, value: object) -> Preset:
    option_type(preset, name)
    try:
        return with_value(preset, name, value)
    except ValueError as error:
        raise OptionError(f"option {name}: {error}") from error


def _preset(node: Node | None) -> str | None:
    if node is None:
        return None
    try:
        return preset_named(node.text()).name
    except OptionError as error:
        raise node.wrong(str(error)) from error


def _paths(security: Node | None) -> tuple[tuple[str, Node], ...]:
    return () if security is None else _members(security.mapping(*PATHS))


def _options(root: Node) -> tuple[tuple[str, Node], ...]:
    options = root.get("options")
    return () if options is None else _members(options.mapping(*OPTIONS))


def _members(node: Node) -> tuple[tuple[str, Node], ...]:
    return tuple((str(name), node.required(name)) for name in node.value)


def _value(node: Node, hint: Any) -> Any:
    """Return a YAML value as the value of an option; nothing is coerced."""
    is_list = any(get_origin(part) is tuple for part in alternatives(hint))
    value = tuple(item.text() for item in node.items()) if is_list and isinstance(node.value, list) else _plain(node)
    if not fits(value, hint):
        cure = "; write null" if value == "none" and NoneType in alternatives(hint) else ""
        raise node.wrong(f"expected {expected(hint)}, found {_shown(value)}{cure}")
    return value


def _plain(node: Node) -> Any:
    """Return a YAML value without what its parser added to it."""
    value = node.value
    match value:
        case bool() | str() | float():
            return next(kind(value) for kind in (bool, str, float) if isinstance(value, kind))
        case int():
            return bool(value) if type(value).__name__ == "ScalarBoolean" else int(value)  # &anchor true
    return value


def _shown(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case Mapping():
            return "a mapping"
        case list():
            return "a list"
    return f"{value!r:.60}"
