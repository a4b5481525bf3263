"""What a person has to say so that an action, which is asked about now, is not asked about again."""

from constitution.action import Action
from constitution.command_rule import DOUBTS, CommandRule
from constitution.effects import Effect
from constitution.judgement import findings_of, judge, verdict_on
from constitution.policies import DEFAULT
from constitution.policy import Policy
from constitution.verdict import Level
from constitution.zones import UNKNOWN

__all__ = ["grants_for"]

MOST = 3
"""Grants that one answer may give; a command that needs more is no simple one."""


def grants_for(action: Action, policy: Policy = DEFAULT) -> tuple[CommandRule, ...]:
    """Return the narrowest grants under which `policy` allows an action that it asks about; none where none can.

    Each is for exactly one argv, the file that it starts and the rule that asks. No grant can lower a denial, a doubt
    about what would run, or what a redirection, a variable or a script within the command does.
    """
    asked: dict[tuple[tuple[str, ...], str], Effect] = {}
    for finding in findings_of(action).findings:
        verdict = verdict_on(finding, action, policy)
        if verdict.level is Level.ask:
            asked[finding.invocation, verdict.rule] = finding.effect
    if not asked or len(asked) > MOST:
        return ()
    if any(not argv or UNKNOWN in "".join(argv) or effect in DOUBTS for (argv, _), effect in asked.items()):
        return ()
    try:
        grants = tuple(
            CommandRule(Level.allow, argv, action.executables.get(argv[0]), rule=rule, exact=True)
            for argv, rule in asked
        )
    except ValueError:  # the file that would start is not known
        return ()
    return grants if judge(action, policy.with_commands(*grants)).allowed else ()
