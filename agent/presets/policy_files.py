"""Policies in YAML files, which change rows of a shipped one, and the user's own rules about commands."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import evolve

from agent.log.chain import own_folder
from agent.presets.preset import OptionError
from agent.vocabulary.errors import AgentError, meant
from agent.vocabulary.yaml_nodes import Node, NodeError, read_yaml
from constitution import DEFAULT, POLICIES, CommandRule, Level, Policy, flaws_of, read_rule

KEYS = ("base", "levels", "rules", "allowed_roots", "denied_paths", "blocklist", "bounded", "admin")
LEVELS = tuple(level.value for level in Level)
LISTS = ("allowed_roots", "denied_paths", "blocklist")


class PolicyError(AgentError):
    """The policy does not exist, or its file is invalid; the message has the place and the cure."""


def load_policy(name: str) -> Policy:
    """Return the policy that `name` names: one that ships, or a YAML file. Raises PolicyError."""
    if name in POLICIES:
        return POLICIES[name]
    path = Path(name).expanduser()
    if not path.is_file():
        raise PolicyError(f"there is no policy {name!r}; {meant(name, (*POLICIES, 'a YAML file'))}")
    try:
        return _read(read_yaml(path), path)
    except NodeError as error:
        raise PolicyError(str(error)) from error


def _read(file: Node, path: Path) -> Policy:
    file.mapping(*KEYS)
    base = file.required("base").one_of(tuple(POLICIES))
    changes: dict[str, Any] = {"name": path.stem}
    for key in LISTS:
        if (node := file.get(key)) is not None:
            changes[key] = node.texts()
    if (bounded := file.get("bounded")) is not None:
        changes["bounded"] = bounded.boolean()
    if (admin := file.get("admin")) is not None:
        changes["admin"] = Level(admin.one_of(LEVELS))
    policy = _with_levels(evolve(POLICIES[base], **changes), file.get("levels"))
    return policy.with_rules(*file.read("rules", lambda rows: [row.parsed(read_rule) for row in rows.items()], []))


def _with_levels(policy: Policy, levels: Node | None) -> Policy:
    if levels is None:
        return policy
    names = tuple(dict.fromkeys(rule.name for rule in policy.rules))
    levels.mapping(*names)
    chosen = {name: Level(node.one_of(LEVELS)) for name in names if (node := levels.get(name)) is not None}
    return evolve(policy, rules=tuple(evolve(rule, level=chosen.get(rule.name, rule.level)) for rule in policy.rules))


RULES_FILE = "~/.bpagent/rules.yaml"

RULE_KEYS = (*LEVELS, "file", "content", "rule", "exact", "reason", "match", "not_match")


def rules_file() -> Path:
    """Return the file to which rules of the user are added: beside the runs, in `BPAGENT_HOME` or ~/.bpagent."""
    return own_folder() / "rules.yaml"


def rules_files() -> tuple[Path, ...]:
    """Return the files with rules of the user: that one, and with BPAGENT_HOME the one in ~/.bpagent as well."""
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
        return () if commands is None else tuple(_rules(commands))
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


def _rules(commands: Node) -> Iterator[CommandRule]:
    for node in commands.items():
        rule = _rule(node.mapping(*RULE_KEYS))
        for flaw in flaws_of(rule, DEFAULT):
            raise node.wrong(flaw)
        yield rule


def _rule(node: Node) -> CommandRule:
    said = [(level, found) for level in LEVELS if (found := node.get(level)) is not None]
    if len(said) != 1:
        raise node.wrong(f"a rule says one of {', '.join(LEVELS)}, and of which command")
    level, words = said[0]
    given: dict[str, Any] = {
        "executable": node.read("file", Node.text, None),
        "reason": node.read("reason", Node.text, ""),
        "rule": node.read("rule", Node.text, None),
        "exact": node.read("exact", Node.boolean, False),
        "match": node.read("match", Node.texts, ()),
        "not_match": node.read("not_match", Node.texts, ()),
        "content": node.read("content", Node.text, ""),
    }
    try:
        return CommandRule(Level(level), tuple(shlex.split(words.text())), **given)
    except ValueError as error:
        raise error if isinstance(error, NodeError) else node.wrong(str(error)) from error


def _rule_row(rule: CommandRule) -> dict[str, str | bool]:
    bound = {"file": rule.executable, "content": rule.content}
    named = {**bound, "rule": rule.rule, "exact": rule.exact, "reason": rule.reason}
    return {rule.level.value: shlex.join(rule.argv), **{name: value for name, value in named.items() if value}}
