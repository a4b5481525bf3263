"""Grants: the narrowest rules of the user that allow what a policy asks about, and the examples of such rules."""

from attrs import evolve

from constitution.action import NO_HOME, Action
from constitution.command_rules import CommandRule, cure_for
from constitution.judge import effects_of, judge, verdict_on
from constitution.places import FETCHED, UNKNOWN
from constitution.rules import DEFAULT, NO_RULES, Policy, group
from constitution.verdict import Level

MOST = 3
"""The highest number of grants from one answer; a command that needs more is not simple."""


def flaws_of(rule: CommandRule, policy: Policy = DEFAULT, *, workspace: str = "/workspace") -> tuple[str, ...]:
    """Return the errors in a rule's examples under a policy, empty without any.

    An error is an example that the rule should concern and does not, or does and should not.
    """
    flaws = [_flaw(rule, policy, workspace, command, wanted=True) for command in rule.match]
    flaws += [_flaw(rule, policy, workspace, command, wanted=False) for command in rule.not_match]
    return tuple(flaw for flaw in flaws if flaw)


def _flaw(rule: CommandRule, policy: Policy, workspace: str, command: str, *, wanted: bool) -> str:
    policy = policy if rule.level is Level.allow else NO_RULES  # a command that is denied anyway counts as concerned
    executables = {rule.argv[0]: rule.executable or ""}
    action = Action("bash", "write", workspace, home=NO_HOME, command=command, executables=executables)
    without, with_it = judge(action, policy), judge(action, policy.with_commands(evolve(rule, content="")))
    if (without != with_it) is wanted:
        return ""
    if not wanted:
        return f"not_match: {command!r} is concerned: {with_it.level} instead of {without.level}"
    reason = f"it would be {without.level} anyway" if without.level is not Level.ask else f"it stays {without}"
    return f"match: {command!r} is not concerned; {reason}"


def grants_for(action: Action, policy: Policy = DEFAULT) -> tuple[CommandRule, ...]:
    """Return the narrowest grants under which `policy` allows an action that it asks about; none if impossible.

    Each is for exactly one argv, the file that it starts, the content of what it runs, and the rule that asks. No grant
    can lower a denial, a doubt about what would run, or what a redirection, a variable or a script within the command
    does.
    """
    asked: dict[tuple[tuple[str, ...], str], str] = {}
    for effect in effects_of(action, policy):
        verdict = verdict_on(effect, action, policy)
        if verdict.level is Level.ask:
            asked[effect.words, verdict.rule] = effect.kind
    if not 0 < len(asked) <= MOST or any(_is_doubtful(argv, kind) for (argv, _), kind in asked.items()):
        return ()
    files = {argv[0]: action.executables.get(argv[0], "") for argv, _ in asked}
    if not all(file.startswith("/") for file in files.values()):  # the file that would start is not known
        return ()
    grants = tuple(
        CommandRule(Level.allow, argv, files[argv[0]], rule=rule, exact=True, content=action.content)
        for argv, rule in asked
        if not cure_for(argv)
    )
    return grants if judge(action, policy.with_commands(*grants)).allowed else ()


def _is_doubtful(argv: tuple[str, ...], kind: str) -> bool:
    text = "".join(argv)
    return not argv or UNKNOWN in text or FETCHED in text or kind in group("doubts")
