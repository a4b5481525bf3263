"""Files of the user: configurations, policies, rules about commands; read strictly, and errors have line and column."""

import os
import shlex
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from attrs import evolve, frozen

from agent.log.chain import own_folder
from agent.presets import PRESETS, preset_named
from agent.presets.preset import OPTIONS, OptionError, Preset, alternatives
from agent.vocabulary.errors import meant
from agent.vocabulary.yaml_nodes import Node, NodeError, fields, read_yaml
from constitution import DEFAULT, POLICIES, CommandRule, Level, Policy, Rule, flaws_of, read_command_rule, read_rule
from constitution.rules import NEVER

# Configurations

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
        others, commands = self._rows
        return evolve(preset, policy_rules=(*preset.policy_rules, *others), commands=(*preset.commands, *commands))

    def added_to(self, policy: Policy) -> Policy:
        """Return a policy with the rules of the file, without its other options."""
        others, commands = self._rows
        return policy.with_rules(*map(read_rule, others)).with_commands(*map(read_command_rule, commands))

    @property
    def _rows(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The rows of `policy_rules`, and those of `commands`."""
        commands = tuple(filter(_is_about_command, self.rules))
        return tuple(row for row in self.rules if row not in commands), commands

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


# Policies

POLICY_KEYS = ("base", "levels", "rules", "allowed_roots", "denied_paths", "blocklist", "bounded", "admin")
LEVELS = tuple(level.value for level in Level)


def load_policy(name: str) -> Policy:
    """Return the policy that `name` names: one that ships, or a YAML file. Raises OptionError, with the place in it."""
    if name in POLICIES:
        return POLICIES[name]
    path = Path(name).expanduser()
    if not path.is_file():
        raise OptionError(f"there is no policy {name!r}; {meant(name, (*POLICIES, 'a YAML file'))}")
    try:
        return _policy(read_yaml(path), path.stem)
    except NodeError as error:
        raise OptionError(str(error)) from error


def _policy(file: Node, name: str) -> Policy:
    readers = {
        "base": lambda base: base.one_of(tuple(POLICIES)),
        "rules": lambda rows: [row.parsed(read_rule) for row in rows.items()],
        **dict.fromkeys(("allowed_roots", "denied_paths", "blocklist"), Node.texts),
        "bounded": Node.boolean,
        "admin": lambda level: Level(level.one_of(LEVELS)),
    }
    file.mapping(*POLICY_KEYS)
    given = fields(file, readers, "base", others=("levels",))
    base, rules = POLICIES[given.pop("base")], given.pop("rules", [])
    return _with_levels(evolve(base, name=name, **given), file.get("levels")).with_rules(*rules)


def _with_levels(policy: Policy, levels: Node | None) -> Policy:
    if levels is None:
        return policy
    names = tuple(dict.fromkeys(rule.name for rule in policy.rules))
    levels.mapping(*names)
    chosen = {name: Level(node.one_of(LEVELS)) for name in names if (node := levels.get(name)) is not None}
    return evolve(policy, rules=tuple(_at_level(rule, chosen.get(rule.name)) for rule in policy.rules))


def _at_level(rule: Rule, level: Level | None) -> Rule:
    """Return a rule at a level that the user chose."""
    if level is None:
        return rule
    least = min(rule.ask, rule.deny)
    ask = NEVER if level is Level.allow else least
    return evolve(rule, ask=ask, deny=least if level is Level.deny else NEVER)


# Rules about commands

RULES_FILE = "~/.bpagent/rules.yaml"
RULE_KEYS = (*LEVELS, "file", "content", "rule", "exact", "reason", "match", "not_match")


def rules_file() -> Path:
    """Return the file to which rules of the user are added: beside the runs, in `BPAGENT_HOME` or ~/.bpagent."""
    return own_folder() / "rules.yaml"


def rules_files() -> tuple[Path, ...]:
    """Return the files with rules of the user: `rules_file`, and with BPAGENT_HOME the one in ~/.bpagent as well."""
    return tuple(dict.fromkeys((rules_file(), Path(RULES_FILE).expanduser())))


def read_user_rules(path: str | os.PathLike[str] | None = None) -> tuple[CommandRule, ...]:
    """Return the rules in a file, none without a file; all of its examples are judged.

    Without a path, those of all `rules_files`. Raises OptionError with file, line and column for an invalid rule, and
    for a wrong example.
    """
    if path is None:
        return tuple(rule for place in rules_files() for rule in read_user_rules(place))
    file = Path(path).expanduser()
    if not file.exists():
        return ()
    try:
        root = read_yaml(file)
        commands = None if root.value is None else root.mapping("commands").get("commands")
        return () if commands is None else tuple(_command_rules(commands))
    except NodeError as error:
        raise OptionError(str(error)) from error


def add_user_rule(rule: CommandRule, path: str | os.PathLike[str]) -> None:
    """Add a rule to a file, which keeps its comments and is made if it is missing. Raises OptionError, OSError."""
    from ruamel.yaml import YAML

    file = Path(path).expanduser()
    read_user_rules(file)  # an invalid file raises before anything is written
    yaml = YAML(typ="rt")
    yaml.preserve_quotes, yaml.width = True, 4096
    content: Any = (yaml.load(file.read_text(encoding="utf-8")) if file.exists() else None) or yaml.map()
    if content.get("commands") is None:
        content["commands"] = yaml.seq()
    content["commands"].append(_rule_row(rule))
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = file.with_name(f".{file.name}.new")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as out:
        yaml.dump(content, out)
    draft.replace(file)


def _command_rules(commands: Node) -> Iterator[CommandRule]:
    for node in commands.items():
        rule = _command_rule(node.mapping(*RULE_KEYS))
        for flaw in flaws_of(rule, DEFAULT):
            raise node.wrong(flaw)
        yield rule


def _command_rule(node: Node) -> CommandRule:
    said = [(level, found) for level in LEVELS if (found := node.get(level)) is not None]
    if len(said) != 1:
        raise node.wrong(f"a rule says one of {', '.join(LEVELS)}, and of which command")
    level, words = said[0]
    texts, lists = dict.fromkeys(("file", "content", "rule", "reason"), Node.text), ("match", "not_match")
    given = fields(node, {**texts, "exact": Node.boolean, **dict.fromkeys(lists, Node.texts)}, others=LEVELS)
    try:
        return CommandRule(Level(level), tuple(shlex.split(words.text())), given.pop("file", None), **given)
    except ValueError as error:
        raise error if isinstance(error, NodeError) else node.wrong(str(error)) from error


def _rule_row(rule: CommandRule) -> dict[str, str | bool]:
    named = {name: getattr(rule, name) for name in ("content", "rule", "exact", "reason")}
    found = {"file": rule.executable, **named}
    return {rule.level.value: shlex.join(rule.argv), **{name: value for name, value in found.items() if value}}
