"""A configuration file: model, preset, options, paths. It is read strictly; errors have line and column.

model: gpt-5-mini
preset: workspace
options:
  max_iterations: 5
  allow: [deploy_app]
security:                       # as in ~/.agent/config.yaml (S0 6.4)
  allowed_paths: [~/.agent/workspace, /tmp/agent]
  denied_paths: [~/.ssh]
rules:                          # what the gate asks about or denies besides, and what it allows
  - deny upload network
  - deny -- make deploy
mcp:                            # servers whose tools the command offers too, each a command line
  - npx -y some-server
"""

import os
import shlex
from collections.abc import Iterable
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from attrs import evolve, frozen

from agent.presets.preset import OPTIONS, OptionError, Preset, alternatives
from agent.presets.shipped import PRESETS, preset_named
from agent.vocabulary.yaml_nodes import Node, NodeError, read_yaml
from constitution import Level, Policy, read_command_rule, read_rule

KEYS = ("model", "preset", "options", "security", "rules", "tools", "mcp")  # tools: declared ones, as in tools.yaml
PATHS = ("allowed_paths", "denied_paths")

SCHEMA = Path(__file__).with_name("configuration.schema.json")
"""The schema of such files, for editors."""


@frozen
class Configuration:
    """The content of a file: a model and a preset, if it names them, options with their places, tools and more.

    rules: rows of `policy_rules`, and with `--` those of `commands`. servers: commands of MCP servers. file: its path.
    unused: keys that are ignored, since the user does not trust the file.
    """

    preset: str | None = None
    options: tuple[tuple[str, Node], ...] = ()
    declares_tools: bool = False
    servers: tuple[str, ...] = ()
    model: str | None = None
    rules: tuple[str, ...] = ()
    file: Path | None = None
    unused: tuple[str, ...] = ()

    def applied(self, preset: Preset) -> Preset:
        """Return `preset` with the options of the file. Raises OptionError."""
        for name, node in self.options:
            try:
                preset = preset.with_value(name, _value(node, OPTIONS[name]))
            except NodeError as error:
                raise OptionError(str(error)) from error
            except ValueError as error:
                cure = "; write null" if node.value == "none" and NoneType in alternatives(OPTIONS[name]) else ""
                raise OptionError(str(node.wrong(f"option {name}: {error}{cure}"))) from error
        commands = tuple(row for row in self.rules if _is_about_command(row))
        others = tuple(row for row in self.rules if not _is_about_command(row))
        return evolve(preset, policy_rules=(*preset.policy_rules, *others), commands=(*preset.commands, *commands))

    def added_to(self, policy: Policy) -> Policy:
        """Return a policy with the rules of the file, without its other options."""
        rules = [read_rule(row) for row in self.rules if not _is_about_command(row)]
        commands = [read_command_rule(row) for row in self.rules if _is_about_command(row)]
        return policy.with_rules(*rules).with_commands(*commands)

    @property
    def tightening(self) -> "Configuration":
        """Return the part of an untrusted file that counts: rules that ask or deny, which only add strictness."""
        stricter = tuple(row for row in self.rules if shlex.split(row)[0] != Level.allow)
        said = {
            "model": self.model,
            "preset": self.preset,
            "options": self.options,
            "tools": self.declares_tools,
            "mcp": self.servers,
            "rules that allow": len(stricter) < len(self.rules),
        }
        return Configuration(
            rules=stricter, file=self.file, unused=tuple(name for name, value in said.items() if value)
        )


def read_configuration(path: str | os.PathLike[str]) -> Configuration:
    """Read a configuration file; one without content configures nothing.

    Raises OptionError with file, line and column, and the nearest valid name for an unknown one.
    """
    try:
        root = read_yaml(Path(path).expanduser())
        if root.value is None:
            return Configuration(file=Path(path))
        root.mapping(*KEYS)
        paths = root.read("security", lambda node: _members(node, PATHS), ())
        return Configuration(
            root.read("preset", _preset, None),
            (*paths, *root.read("options", lambda node: _members(node, OPTIONS), ())),
            root.get("tools") is not None,
            root.read("mcp", Node.texts, ()),
            root.read("model", Node.text, None),
            root.read("rules", lambda node: tuple(item.parsed(_rule) for item in node.items()), ()),
            Path(path),
        )
    except NodeError as error:
        raise OptionError(str(error)) from error
    except RecursionError as error:
        raise OptionError(f"{path}: no configuration: values are nested too deeply, or within themselves") from error


def _is_about_command(row: str) -> bool:
    return "--" in shlex.split(row)


def _rule(row: str) -> str:
    """Return a row if it is a valid rule. Raises ValueError otherwise."""
    (read_command_rule if _is_about_command(row) else read_rule)(row)
    return row


def _preset(node: Node) -> str:
    try:
        return preset_named(node.text()).name
    except OptionError as error:
        raise node.wrong(str(error)) from error


def _members(node: Node, keys: Iterable[str]) -> tuple[tuple[str, Node], ...]:
    node.mapping(*keys)
    return tuple((str(name), node.required(name)) for name in node.value)


def _value(node: Node, hint: Any) -> Any:
    """Return a YAML value as the value of an option; nothing is coerced."""
    is_list = any(get_origin(part) is tuple for part in alternatives(hint))
    return node.texts() if is_list and isinstance(node.value, list) else node.value


def schema() -> dict[str, Any]:
    """Return the JSON schema of configuration files, for editors that check them while they are written."""
    options = {name: {"anyOf": [_schema_of(part) for part in alternatives(hint)]} for name, hint in OPTIONS.items()}
    texts = {"type": "array", "items": {"type": "string"}}
    keys = {
        "model": {"type": "string", "description": "such as gpt-5-mini, or http://127.0.0.1:8080/v1"},
        "preset": {"enum": [*PRESETS]},
        "options": {"type": "object", "properties": options, "additionalProperties": False},
        "security": {"type": "object", "properties": dict.fromkeys(PATHS, texts), "additionalProperties": False},
        "rules": {**texts, "description": "such as deny upload network, or ask -- make deploy"},
        "tools": {"type": "array", "description": "tools of your own, as in tools.yaml"},
        "mcp": {**texts, "description": "command lines of MCP servers"},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of bpagent",
        "type": "object",
        "properties": keys,
        "additionalProperties": False,
    }


def _schema_of(hint: Any) -> dict[str, Any]:
    if get_origin(hint) is Literal:
        return {"enum": [*get_args(hint)]}
    if get_origin(hint) is tuple:
        return {"type": "array", "items": {"type": "string"}}
    return {"type": {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}[hint]}
