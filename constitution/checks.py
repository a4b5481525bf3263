"""The questions that a gate asks, as single predicates (S3): risk class, safe path, dangerous command, composition."""

from collections.abc import Callable
from typing import Literal

from attrs import evolve

from constitution.action import Action
from constitution.effects import Effect
from constitution.judgement import findings_of, judge, judge_command
from constitution.policies import DEFAULT
from constitution.policy import Policy
from constitution.verdict import Level, Verdict

__all__ = ["Check", "Risk", "check_safety", "classify_risk", "compose", "is_dangerous_command"]

Check = Callable[[Action], Verdict]
Risk = Literal["read_only", "side_effects", "high_ambiguity"]

LOOKS = frozenset({Effect.READ, Effect.LIST, Effect.SHOW_ENVIRONMENT})
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
    effects = {finding.effect for finding in findings_of(action).findings}
    if effects & AMBIGUOUS:
        return "high_ambiguity"
    if effects - LOOKS or (action.command is None and not action.argv and action.category != "read"):
        return "side_effects"
    return "read_only"


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
