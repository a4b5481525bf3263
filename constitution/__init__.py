"""Pure predicates over described actions: may this tool call run, must a person be asked, or is it refused?

    from constitution import judge_command
    judge_command("rm -rf ~", "/project")      # deny: delete_outside_workspace: rm would delete ~ recursively

An action goes in, a verdict with evidence comes out, in four steps:

- `shell/`: text becomes simple commands with known and unknown words (`syntax`, which the `scanner` has to confirm,
  `words`, `scope`, `blocks`, `commands`, `walk`).
- `analysis/`: a simple command becomes findings. Each analysis returns `steps`, which `examine` carries out: rows of
  the tables (`program_rows`), verbs of any program (`external_effects`), variables and options (`carried_files`), files
  of tools that the script writes (`recipes`), `shells`, `interpreters` with `python_code` and `other_code`, `search`,
  `clients`, `editors`; `output` and `file_flow` follow data through pipes and files.
- `judge`: findings become a verdict by the `rules` of a `policy` and the kinds of places (`zones`).
- `checks`: single predicates on an action or a command.

The vocabulary is in `action`, `effects` and `verdict`; the knowledge about programs is data in `tables/` (`rows`).
"""

from typing import TYPE_CHECKING, Any

from constitution.action import Action, Disk, PathUse
from constitution.checks import (
    Mentions,
    check_safety,
    classify_risk,
    compose,
    flaws_of,
    grants_for,
    is_dangerous_command,
    mentions,
)
from constitution.effects import Deed, Effect, Zone
from constitution.judge import deeds_of, judge, judge_command
from constitution.policy import (
    APPROVAL_LIST,
    DEFAULT,
    DENIED_PATHS,
    GATED,
    NO_RULES,
    PASSTHROUGH,
    POLICIES,
    STRICT,
    WORKSPACE,
    Policy,
)
from constitution.rules import CommandRule, Rule, read_command_rule, read_rule
from constitution.verdict import GRANTED, Evidence, Level, Verdict
from constitution.zones import is_path_safe

if TYPE_CHECKING:
    from constitution.tables.rows import changes_commands

__all__ = [
    "APPROVAL_LIST",
    "DEFAULT",
    "DENIED_PATHS",
    "GATED",
    "GRANTED",
    "NO_RULES",
    "PASSTHROUGH",
    "POLICIES",
    "STRICT",
    "WORKSPACE",
    "Action",
    "CommandRule",
    "Deed",
    "Disk",
    "Effect",
    "Evidence",
    "Level",
    "Mentions",
    "PathUse",
    "Policy",
    "Rule",
    "Verdict",
    "Zone",
    "changes_commands",
    "check_safety",
    "classify_risk",
    "compose",
    "deeds_of",
    "flaws_of",
    "grants_for",
    "is_dangerous_command",
    "is_path_safe",
    "judge",
    "judge_command",
    "mentions",
    "read_command_rule",
    "read_rule",
]


def __getattr__(name: str) -> Any:
    if name == "changes_commands":  # the tables are loaded with the first use
        from constitution.tables.rows import changes_commands

        return changes_commands
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
