"""Pure predicates over described actions: may this tool call run, must a person be asked, or is it refused?

    from constitution import judge_command
    judge_command("rm -rf ~", "/project")      # deny: delete_tree: rm would delete /home/.unknown recursively

Where a call is confined, its text raises no question: what is plainly destructive beyond the workspace is refused, and
what a sandbox lets through is asked about. Where it is not, only what is known to be harmless runs without a question.

In the order of reading: `action` and `verdict`, the vocabulary; `tables`, which reads `places.toml`, `programs.toml`
and `rules.toml`; `places`, what a path is; `rules`, effects, thresholds and policies; `reader`, text to a tree;
`words`, what words expand to; `programs`, the table of what programs do; `walk`, every command in order; `inline_code`
and `special_programs`, the few that need code; `judge`, effects to a verdict; `command_rules` and `grants`, the rules
of the user.
"""

from constitution.action import Action, PathUse
from constitution.command_rules import CommandRule, read_command_rule
from constitution.grants import flaws_of, grants_for
from constitution.judge import (
    check_safety,
    classify_risk,
    commands_of,
    create_gate_check,
    effects_of,
    is_dangerous_command,
    judge,
    judge_command,
)
from constitution.places import Place, is_path_safe
from constitution.programs import changes_commands
from constitution.rules import (
    DEFAULT,
    DENIED_PATHS,
    GATED,
    NO_RULES,
    POLICIES,
    Effect,
    Policy,
    Rule,
    denials,
    read_rule,
)
from constitution.verdict import GRANTED, Evidence, Level, Verdict

__all__ = [
    "DEFAULT",
    "DENIED_PATHS",
    "GATED",
    "GRANTED",
    "NO_RULES",
    "POLICIES",
    "Action",
    "CommandRule",
    "Effect",
    "Evidence",
    "Level",
    "PathUse",
    "Place",
    "Policy",
    "Rule",
    "Verdict",
    "changes_commands",
    "check_safety",
    "classify_risk",
    "commands_of",
    "create_gate_check",
    "denials",
    "effects_of",
    "flaws_of",
    "grants_for",
    "is_dangerous_command",
    "is_path_safe",
    "judge",
    "judge_command",
    "read_command_rule",
    "read_rule",
]
