"""The checks of a gate as single predicates (S3): risk class, safe path, dangerous command, composition."""

from collections.abc import Callable
from typing import Literal

from attrs import evolve, frozen

from constitution.action import NO_HOME, Action
from constitution.effects import UNKNOWN, Effect
from constitution.judge import findings_of, judge, judge_command, verdict_on
from constitution.policy import DEFAULT, NO_RULES, Policy
from constitution.rules import CommandRule, effects_called
from constitution.verdict import Level, Verdict
from constitution.zones import FOUND, GLOB, is_within

Check = Callable[[Action], Verdict]
Risk = Literal["read_only", "side_effects", "high_ambiguity"]


def classify_risk(action: Action) -> Risk:
    """Return the risk class of S3: `high_ambiguity` if the text does not determine the effects.

    An action without command, argv and paths is classed by its category.
    """
    from constitution.analysis.program_rows import only_looks  # the tables are loaded with the first use

    examination = findings_of(action)
    effects = {finding.effect for finding in examination.findings}
    if effects & effects_called("ambiguous"):
        return "high_ambiguity"
    if effects - effects_called("looks") or not all(
        only_looks(invocation.argv) for invocation in examination.invocations
    ):
        return "side_effects"
    if action.command is None and not action.argv and action.category != "read":
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
    concerned = without != with_it
    if concerned is wanted:
        return ""
    if not wanted:
        return f"not_match: {command!r} is concerned: {with_it.level} instead of {without.level}"
    reason = f"it would be {without.level} anyway" if without.level is not Level.ask else f"it stays {without}"
    return f"match: {command!r} is not concerned; {reason}"


MOST = 3
"""The highest number of grants from one answer; a command that needs more is not simple."""


def grants_for(action: Action, policy: Policy = DEFAULT) -> tuple[CommandRule, ...]:
    """Return the narrowest grants under which `policy` allows an action that it asks about; none if impossible.

    Each is for exactly one argv, the file that it starts, the content of what it runs, and the rule that asks. No grant
    can lower a denial, a doubt about what would run, or what a redirection, a variable or a script within the command
    does.
    """
    asked: dict[tuple[tuple[str, ...], str], Effect] = {}
    for finding in findings_of(action).findings:
        verdict = verdict_on(finding, action, policy)
        if verdict.level is Level.ask:
            asked[finding.invocation, verdict.rule] = finding.effect
    if not asked or len(asked) > MOST:
        return ()
    if any(
        not argv or UNKNOWN in "".join(argv) or effect in effects_called("doubts")
        for (argv, _), effect in asked.items()
    ):
        return ()
    try:
        grants = tuple(
            CommandRule(
                Level.allow, argv, action.executables.get(argv[0]), rule=rule, exact=True, content=action.content
            )
            for argv, rule in asked
        )
    except ValueError:  # the file that would start is not known
        return ()
    return grants if judge(action, policy.with_commands(*grants)).allowed else ()


HOME = "/~"
"""Placeholder for the home folder until the caller knows it."""


@frozen
class Mentions:
    """`programs`: program words, to look up in `PATH`.

    `paths`: words to resolve from the command's folder (`~` is unchanged); a `cd` in the command has been followed.
    `patterns`: words with wildcards. `repositories`: folders in which it would lose history or work of version control.
    `installs`: whether it names packages to install.
    """

    programs: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    repositories: tuple[str, ...] = ()
    installs: bool = False


def mentions(command: str) -> Mentions:
    """Return the program words and literal paths of a command. Total; from an unreadable text, the readable parts."""
    from constitution.analysis.examine import Examination  # the tables and the parser are loaded with the first use
    from constitution.shell import begin
    from constitution.shell.scope import Scope

    scope = Scope(("",), HOME)
    examination = Examination(scope, {}, {})
    try:
        begin(examination, scope).run(command)
    except RecursionError:
        return Mentions()
    words = [word for word in examination.words if word and UNKNOWN not in word and FOUND not in word]
    return Mentions(
        tuple(examination.programs),
        tuple(_below_home(word) for word in words if "*" not in word),
        tuple(_below_home(word) for word in words if GLOB.search(word)),
        tuple(dict.fromkeys(_below_home(each.repository) for each in examination.findings if each.repository)),
        any(finding.effect is Effect.INSTALL for finding in examination.findings),
    )


def _below_home(path: str) -> str:
    return "~" + path[len(HOME) :] if is_within(path, HOME) else path
