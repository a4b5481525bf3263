"""The judge: the verdict is the strictest rule of the policy for the findings of an action and their zones."""

import posixpath
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import islice, product
from typing import TYPE_CHECKING

from attrs import evolve

from constitution.action import NO_HOME, Action, PathUse
from constitution.effects import UNKNOWN, Deed, Effect, Finding, Zone
from constitution.policy import DEFAULT, Policy
from constitution.rules import Rule, effects_called
from constitution.verdict import GRANTED, Evidence, Level, Verdict
from constitution.zones import Places, is_denied, is_within, zone_of, zones_of

if TYPE_CHECKING:
    from constitution.analysis.examine import Examination

TARGET = re.compile(r"\S+ [A-Za-z][\w:-]{0,30}")


def judge(action: Action, policy: Policy = DEFAULT) -> Verdict:
    """Return the verdict on an action, the strictest of all findings; total and deterministic.

    Text that cannot be parsed, is too long or too deep, or is unknown in command position is never allowed, except by a
    policy without rules, or isolated by one that trusts in that.
    """
    verdict = _judged(action, policy)
    return verdict if policy.attended else _without_asking(verdict, action, policy)


def _judged(action: Action, policy: Policy) -> Verdict:
    verdicts = _of_tool(action, policy)
    if action.command is not None and not action.command.strip():
        finding = Finding(Effect.EMPTY, says="do nothing", program="the command")
        return Verdict.strictest([*verdicts, _verdict(finding, (Zone.NOWHERE,), policy)])
    verdicts += [_bounds(use, action, policy) for use in action.paths]
    is_examined = bool(action.command or action.argv or action.paths or action.urls)
    examination = findings_of(action) if is_examined and (policy.rules or policy.blocklist or policy.commands) else None
    if examination is not None:
        places = _places(policy, action)
        verdicts += [_found(finding, action, policy, places) for finding in examination.findings]
        if policy.blocklist or policy.known_only or policy.commands:
            verdicts += _of_invocations(examination.invocations, action, policy)
        if len(examination.invocations) > 1:  # a grant for one command does not cover the others
            verdicts = [Verdict.allow() if verdict.granted else verdict for verdict in verdicts]
    verdict = Verdict.strictest(verdicts)
    hosts = [need for need in action.needs if need.startswith("network")]
    if verdict == Verdict.allow() and policy.trusts_isolation and action.is_isolated and hosts:
        says = f"the command would fail in the sandbox without a right: {', '.join(hosts)}"
        return Verdict(Level.ask, "beyond_sandbox", "sandbox", (), says)
    return _by_facts(verdict, examination, policy) if examination is not None and examination.because else verdict


def _by_facts(verdict: Verdict, examination: "Examination", policy: Policy) -> Verdict:
    """Return the verdict; if it allows, with the facts that made questions of this policy unnecessary."""
    asked = (told for told, effect in examination.because.items() if policy.rules_for(effect, Zone.NOWHERE))
    reasons = tuple(asked) if verdict == Verdict.allow() else ()
    return evolve(verdict, explanation=reasons[0], reasons=reasons if len(reasons) > 1 else ()) if reasons else verdict


def verdict_on(finding: Finding, action: Action, policy: Policy) -> Verdict:
    """Return the verdict on one finding, grants considered."""
    places = _places(policy, action)
    return _found(finding, action, policy, places)


def _found(finding: Finding, action: Action, policy: Policy, places: Places) -> Verdict:
    if finding.effect is Effect.READ and _is_output(finding.path, action, policy):
        return Verdict.allow()
    zones = zones_of(finding.path, places) if finding.path else (Zone.NOWHERE,)
    if finding.effect is Effect.READ_TREE and not action.is_confined and _holds_denied(finding.path, places):
        zones = (*zones, Zone.DENIED)
    passes = finding.effect in effects_called("shows") or not PUT_BACK.isdisjoint(zones)
    is_held = _is_held(action, policy) and not passes
    verdict = _verdict(finding, zones, policy, is_kept=_is_kept(finding, action), is_held=is_held)
    return _with_grants(verdict, finding, action, policy) if policy.commands else verdict


def _holds_denied(folder: str, places: Places) -> bool:
    """Return whether there are denied paths in a folder of the workspace."""
    return any(is_within(each, folder) and is_within(each, places.workspace) for each in places.denied)


def _places(policy: Policy, action: Action) -> Places:
    return _places_of(policy, action.workspace, action.home or NO_HOME, action.own)


@lru_cache(maxsize=64)
def _places_of(policy: Policy, workspace: str, home: str, own: tuple[str, ...]) -> Places:
    root = _root(workspace)
    return Places(root, home, policy.denied(root, home), policy.roots(root, home), own)


def judge_command(
    command: str, workspace: str, *, cwd: str = "", home: str | None = None, policy: Policy = DEFAULT
) -> Verdict:
    """Return the verdict on a shell command that starts in `cwd` (or the workspace); paths are taken lexically."""
    return judge(Action("bash", "write", workspace, cwd or workspace, home or "", command=command), policy)


def deeds_of(action: Action, policy: Policy = DEFAULT) -> tuple[Deed, ...]:
    """Return all effects of an action, with zones; total, like `judge`."""
    places = _places(policy, action)
    found = findings_of(action).findings
    zones = (zone_of(each.path, places) if each.path else Zone.NOWHERE for each in found)
    return tuple(
        Deed(each.effect, each.path, zone, each.program, each.invocation)
        for each, zone in zip(found, zones, strict=True)
    )


def findings_of(action: Action) -> "Examination":
    """Return the findings of an action: of its command, argv, paths and URLs."""
    from constitution.analysis.examine import examined  # the tables and the parser are loaded with the first use

    return examined(action)


def _is_kept(finding: Finding, action: Action) -> bool:
    """Return whether a snapshot holds everything that is concerned, so that its loss can be undone."""
    path = finding.path or finding.repository
    if UNKNOWN in path or not any(is_within(path, folder) for folder in action.kept if path):
        return False
    return not any(_may_hold(path, name, is_all=not finding.path) for name in action.unkept)


def _may_hold(path: str, name: str, *, is_all: bool) -> bool:
    """Return whether a path is a file of this name or path, or in one, or can hold one; is_all: anything around it."""
    if name.startswith("/"):
        folder = path.partition("*")[0].rpartition("/")[0] if "*" in path else path
        return is_all or is_within(path, name) or is_within(name, folder)
    return is_all or name in path.split("/")


PUT_BACK = frozenset([Zone.VERSION_CONTROL, Zone.RUNS_LATER, Zone.AUTOSTART])
"""Zones in the workspace of which a change is undone without a right."""


def _is_held(action: Action, policy: Policy) -> bool:
    """Return whether a call does no harm but by its output: isolated, without a right, and what it changes is kept."""
    is_alone = policy.trusts_isolation and action.is_isolated and not (action.needs or action.rights)
    return is_alone and any(is_within(_root(action.workspace), folder) for folder in action.kept)


def _verdict(
    finding: Finding, zones: tuple[Zone, ...], policy: Policy, *, is_kept: bool = False, is_held: bool = False
) -> Verdict:
    rules = [
        rule
        for zone in zones
        for rule in policy.rules_for(finding.effect, zone)
        if not (is_kept if rule.undoable else is_held and rule.level is Level.ask and rule.category != "user")
    ]
    return _by(max(rules, key=lambda rule: rule.level.rank), finding) if rules else Verdict.allow()


def _with_grants(verdict: Verdict, finding: Finding, action: Action, policy: Policy) -> Verdict:
    """Apply the user's rules to a verdict; they never lower a denial or a doubt."""
    if verdict.level is not Level.ask or finding.effect in effects_called("doubts") or not finding.invocation:
        return verdict
    argv, rules = finding.invocation, [rule for rule in policy.commands if rule.rule in (None, verdict.rule)]
    if (granting := next((rule for rule in rules if rule.grants(argv, action)), None)) is not None:
        said = f"a rule of the user allows it: {granting.level} {' '.join(granting.argv)}"
        return evolve(GRANTED, evidence=(finding.evidence,), explanation=said)
    if any(rule.is_outdated(argv, action) for rule in rules):
        since = f"you allowed {' '.join(argv)!r} always, and what it runs has changed since"
        return evolve(verdict, explanation=f"{verdict.explanation}; {since}")
    return verdict


def _by(rule: Rule, finding: Finding) -> Verdict:
    return Verdict(rule.level, rule.name, rule.category, (finding.evidence,), _sentence(finding))


def _sentence(finding: Finding) -> str:
    """Return the sentence of a finding: the program with its subcommand, and what it would do."""
    program = finding.program or "the command"
    if finding.says.startswith("is "):
        return f"{program} {finding.says}"
    return f"{program}{'' if finding.path else _subcommand(program, finding.evidence.argv)} would {finding.says}"


def _subcommand(program: str, argv: tuple[str, ...]) -> str:
    """Return the subcommand known to the tables, or the target of a task runner: ` push`."""
    from constitution.tables import is_a  # the tables are loaded with the first use
    from constitution.tables.rows import is_subcommand, subcommands, wrapper_of

    if not argv or posixpath.basename(argv[0]) != program or wrapper_of(program) is not None:
        return ""
    words = islice(subcommands(program, list(argv[1:])), 2)
    runs = is_a(program, "runner")
    named = [name for name, _ in words if is_subcommand(name) or (runs and TARGET.fullmatch(name))]
    return named[-1][len(program) :] if named else ""


def _of_tool(action: Action, policy: Policy) -> list[Verdict]:
    """Return the verdicts on a tool by its category, by the rights that a call requests, and by unknown effects."""
    verdicts = []
    level = {"read": Level.allow, "write": policy.write}.get(action.category, policy.admin)
    if level is not Level.allow and action.tool not in policy.listed:
        says = f"{action.tool} is {'an' if action.category == 'admin' else 'a'} {action.category} tool"
        if level is Level.ask:
            verdicts.append(Verdict(level, f"{action.category}_needs_approval", "category", (), says))
        else:
            says += ", and no job policy lists it"
            verdicts.append(Verdict(level, f"{action.category}_not_listed", "category", (), says))
    if action.rights:
        says = f"{action.tool} asks to run beyond the sandbox: {', '.join(action.rights)}"
        verdicts.append(Verdict(Level.ask, "beyond_sandbox", "sandbox", (), says))
    if action.opaque and policy.asks_about_opaque:  # only its server says what the tool does
        says = f"{action.tool} comes from a server, and nothing tells what it would do"
        verdicts.append(Verdict(Level.ask, "unknown_tool", "form", (), says))
    for path in (right[len("write ") :] for right in action.rights if right.startswith("write ")):
        if any(is_within(path, own) or is_within(own, path) for own in action.own):
            says = f"{action.tool} asks to change {path}, which is the agent's own"
            verdicts.append(Verdict(Level.deny, "agents_own", "agent", (), says))
    return verdicts


def _without_asking(verdict: Verdict, action: Action, policy: Policy) -> Verdict:
    """Answer an ask verdict without a user: yes for listed tools, else no.

    A listing does not cover the commands of a shell tool, so these are denied.
    """
    if verdict.level is not Level.ask:
        return verdict
    if action.tool in policy.listed and action.command is None:
        return Verdict.allow()
    return evolve(verdict, level=Level.deny, explanation=f"{verdict.explanation}; a job has no user to ask")


def _is_output(path: str, action: Action, policy: Policy) -> bool:
    """Return whether a path is a long output of a command of this run, and not denied."""
    if not action.outputs or not is_within(path, action.outputs):
        return False
    home = action.home or NO_HOME
    return not is_denied(path, policy.denied(_root(action.workspace), home))


def _bounds(use: PathUse, action: Action, policy: Policy) -> Verdict:
    """File tools stay in the workspace and the allowed roots; denied paths win (S6.10 to S6.12)."""
    home = action.home or NO_HOME
    path, root = use.resolved, _root(action.workspace)
    rule, where = "outside_allowed_paths", "outside the allowed paths"
    if "\0" not in path and policy.allows_path(path, root, home):
        return Verdict.allow()
    if use.access == "read" and _is_output(path, action, policy):
        return Verdict.allow()
    if "\0" not in path and evolve(policy, denied_paths=()).allows_path(path, root, home):
        rule, where = "denied_path", "a denied path"
    explanation = f"{action.tool} would {use.access} {use.given!r}, which is {where}"
    return Verdict(Level.deny, rule, "paths", (Evidence(use.given, argv=(use.resolved,)),), explanation)


def _of_invocations(invocations: list[Evidence], action: Action, policy: Policy) -> list[Verdict]:
    """Return the verdicts on programs at any depth, not on text that mentions them: by lists, and by the user."""

    def first(judged: Callable[[tuple[str, ...]], object]) -> Iterator[Evidence]:
        return islice((invocation for invocation in invocations if judged(invocation.argv)), 1)

    verdicts: list[Verdict] = []
    for invocation, entry in product(invocations, policy.blocklist if action.command is not None else ()):
        if not verdicts and _is_listed(invocation.argv, entry):  # S0's list of words
            says = f"{entry} is on the list of blocked commands"
            verdicts.append(Verdict(Level.deny, "blocklist", "blocklist", (invocation,), says))
    if policy.known_only:
        from constitution.analysis.program_rows import is_harmless  # the tables are loaded with the first use

        for found in first(lambda argv: not is_harmless(argv)):
            says = f"{found.argv[0]} is not known to be harmless: it may run code of the workspace"
            verdicts.append(Verdict(Level.ask, "not_known_to_be_harmless", "code", (found,), says))
    for rule in policy.commands:
        for found in first(rule.concerns) if rule.level is not Level.allow else ():
            says = rule.reason or f"a rule of the user says {rule.level} for {' '.join(rule.argv)!r}"
            verdicts.append(Verdict(rule.level, "user_rule", "user", (found,), says))
    return verdicts


def _is_listed(argv: tuple[str, ...], entry: str) -> bool:
    """Return whether a command is the program of a blocklist's entry, with its argument if it names one."""
    from constitution.tables.rows import program_name

    word, _, argument = entry.partition(" ")
    return program_name(argv[0]) == word and (not argument or argument in {item.lstrip("0") for item in argv[1:]})


def _root(workspace: str) -> str:
    return posixpath.normpath(workspace) if workspace else "/"
