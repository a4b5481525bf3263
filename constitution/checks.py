"""The questions that a gate asks, as single predicates (S3): risk class, safe path, dangerous command, composition."""

from collections.abc import Callable
from typing import Literal

from attrs import evolve

from constitution.action import Action
from constitution.command_rule import CommandRule
from constitution.effects import Effect
from constitution.judgement import NOWHERE_HOME, findings_of, judge, judge_command
from constitution.policies import DEFAULT, NO_RULES
from constitution.policy import Policy
from constitution.verdict import Level, Verdict

__all__ = ["Check", "Risk", "check_safety", "classify_risk", "compose", "flaws_of", "is_dangerous_command"]

Check = Callable[[Action], Verdict]
Risk = Literal["read_only", "side_effects", "high_ambiguity"]

NO_POLICY = Policy("none", (), denied_paths=(), bounded=False)

LOOKS = frozenset({Effect.READ, Effect.READ_TREE, Effect.HANDLE, Effect.LIST, Effect.SHOW_ENVIRONMENT})
AMBIGUOUS = frozenset(
    {
        Effect.UNKNOWN_COMMAND,
        Effect.UNKNOWN_PROGRAM,
        Effect.UNREADABLE,
        Effect.RUN_UNKNOWN_CODE,
        Effect.RUN_FETCHED_CODE,
        Effect.RISKY_CODE,
        Effect.EXECUTE,
    }
)


def classify_risk(action: Action) -> Risk:
    """Return the risk class of S3: `high_ambiguity` where the effects cannot be told from what is written.

    An action without command, argv and paths is classed by its category.
    """
    examination = findings_of(action)
    effects = {finding.effect for finding in examination.findings}
    if effects & AMBIGUOUS:
        return "high_ambiguity"
    if effects - LOOKS or not all(_only_looks(invocation.argv) for invocation in examination.invocations):
        return "side_effects"
    if action.command is None and not action.argv and action.category != "read":
        return "side_effects"
    return "read_only"


def _only_looks(argv: tuple[str, ...]) -> bool:
    from constitution.lookers import only_looks  # with the tables, which a judgement loads

    return only_looks(argv)


def is_dangerous_command(command: str) -> bool:
    """Return whether `DEFAULT` denies a command, whatever workspace it runs in."""
    return judge_command(command, "/workspace", home="/home/user").level is Level.deny


def check_safety(action: Action, *, workspace: str, policy: Policy = DEFAULT) -> Verdict:
    """Return the verdict on an action with `workspace` as the workspace (S3)."""
    return judge(evolve(action, workspace=workspace), policy)


def compose(*checks: Check) -> Check:
    """Return one check that gives the strictest verdict of several; of none, it allows."""

    def check(action: Action) -> Verdict:
        return Verdict.strictest(single(action) for single in checks)

    return check


def flaws_of(rule: CommandRule, policy: Policy = DEFAULT, *, workspace: str = "/workspace") -> tuple[str, ...]:
    """Return what is wrong with a rule's examples under a policy: those that it should concern and does not, or does
    and should not. Empty when all are right.
    """
    flaws = [_flaw(rule, policy, workspace, command, wanted=True) for command in rule.match]
    flaws += [_flaw(rule, policy, workspace, command, wanted=False) for command in rule.not_match]
    return tuple(flaw for flaw in flaws if flaw)


def _flaw(rule: CommandRule, policy: Policy, workspace: str, command: str, *, wanted: bool) -> str:
    """Say what is wrong with one example, if anything."""
    policy = policy if rule.level is Level.allow else NO_RULES  # what is denied anyway is concerned all the same
    executables = {rule.argv[0]: rule.executable or ""}
    action = Action("bash", "write", workspace, home=NOWHERE_HOME, command=command, executables=executables)
    without, with_it = judge(action, policy), judge(action, policy.with_commands(rule))
    concerned = without != with_it
    if concerned is wanted:
        return ""
    if not wanted:
        return f"not_match: {command!r} is concerned: {with_it.level} instead of {without.level}"
    reason = f"it would be {without.level} anyway" if without.level is not Level.ask else f"it stays {without}"
    return f"match: {command!r} is not concerned; {reason}"
