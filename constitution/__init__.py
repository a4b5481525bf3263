"""Pure predicates over described actions: may this tool call run, must a person be asked, or is it refused?

Nothing here does I/O. Reading order:

- `verdict`: levels, evidence, verdicts. `action`: what is judged. `paths`: how paths compare.
- `tables/`: what is known about programs, variables, verbs, places and rules, as TOML files; `programs` reads rows.
- `effects`, `zones`: the words of the rules. `rule`: one of them.
- `command_rule`: what a person said about a command. `policy`, `policies`: which rules apply; the policies that ship.
- `shell/`: `syntax` (text to tree), `second_reading`, `scope` (what is known), `escapes`, `parameters`, `words` (nodes
  to words), `flow` (pipes), `heredoc`, `redirections`, `endless` (loops), `blocks`, `commands`, `walk` (every
  simple command, wherever it stands). `written`: files that a command writes and runs.
- `spoken`: what words speak of. `interpreters`, `python_text`, `python_code`, `lexicon`, `any_code`: inline
  code. `variables`: those that change what commands do. `lookers`: programs that only look. `handed`: secret files
  among the words of any program.
- `special/`: forms that no table can say: `exhaustion`, `fetched`, `serving`, `sending`, `search`, `output`,
  `builtins`, `shells`, `code`, `editors`, `contents`, `later`, `settings`, `consoles`, and their
  `table`.
- `phrases` (how an effect is said), `discoveries` (what was found), `file_contents` (files that a command makes),
  `rows` (applying the tables), `strangers` (programs without rows), `subjects`, `outward` (laws about words),
  `assignments`, `examination`: one simple command becomes findings.
- `judgement`: findings become a verdict.
- `granting`: what a person has to say so that something is allowed.
- `checks`, `mentioned`: single questions about an action or a command.
"""

from constitution.action import Action, PathUse
from constitution.checks import check_safety, classify_risk, compose, flaws_of, is_dangerous_command
from constitution.command_rule import CommandRule, read_command_rule
from constitution.effects import Deed, Effect, Zone
from constitution.granting import grants_for
from constitution.judgement import deeds_of, judge, judge_command
from constitution.mentioned import Mentions, mentions
from constitution.paths import is_path_safe
from constitution.policies import APPROVAL_LIST, DEFAULT, GATED, NO_RULES, PASSTHROUGH, POLICIES, STRICT, WORKSPACE
from constitution.policy import DENIED_PATHS, Policy
from constitution.rule import Rule, read_rule
from constitution.variables import changes_commands
from constitution.verdict import Evidence, Level, Verdict

__all__ = [
    "APPROVAL_LIST",
    "DEFAULT",
    "DENIED_PATHS",
    "GATED",
    "NO_RULES",
    "PASSTHROUGH",
    "POLICIES",
    "STRICT",
    "WORKSPACE",
    "Action",
    "CommandRule",
    "Deed",
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
