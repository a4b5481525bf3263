"""The judge: the effects of an action, and the verdict of a policy on them, the strictest of all."""

import posixpath
import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import islice
from typing import Literal

from attrs import evolve

from constitution import programs
from constitution.action import NO_HOME, Action, PathUse
from constitution.places import FETCHED, FOUND, UNKNOWN, Places, is_denied, is_within, places
from constitution.rules import DEFAULT, Effect, Policy, effect_rules, group
from constitution.special_programs import special_programs
from constitution.verdict import GRANTED, Evidence, Level, Verdict
from constitution.walk import LOCAL, Surroundings, Walk

Check = Callable[[Action], Verdict]
Risk = Literal["read_only", "side_effects", "high_ambiguity"]

KINDS_OF_ACCESS = {"read": "read", "write": "write", "delete": "delete", "list": "look", "execute": "run"}
SENDING = frozenset({"network", "send"})


# Effects


def effects_of(action: Action, policy: Policy = DEFAULT) -> tuple[Effect, ...]:
    """Return all effects of an action, with places; total, like `judge`."""
    return _walked(action, policy)[0]


def commands_of(action: Action) -> tuple[Evidence, ...]:
    """Return the simple commands that an action runs, at any depth; total."""
    return _walked(action, DEFAULT)[1]


def _walked(action: Action, policy: Policy) -> tuple[tuple[Effect, ...], tuple[Evidence, ...]]:
    home = action.home or NO_HOME
    root = _root(action)
    return _effects_at(action, Places(root, home, policy.denied(root, home), policy.roots(root, home), action.own))


@lru_cache(maxsize=128)
def _effects_at(action: Action, places: Places) -> tuple[tuple[Effect, ...], tuple[Evidence, ...]]:
    walk = Walk(Surroundings(places, action.start, action.resolved, action.executables), special_programs())
    for use in action.paths:
        walk.argv, walk.title = [action.tool], action.tool
        walk.add(KINDS_OF_ACCESS[use.access], use.resolved, use.given)
    for url in action.urls:
        if not LOCAL.match(url):
            walk.argv, walk.title = [action.tool], action.tool
            walk.add("network", note=url)
    walk.argv, walk.title = [], ""
    try:
        _walk_command(walk, action)
    except RecursionError:
        walk.add("unreadable", note="it is nested too deep")
    _add_leaks(walk)
    return tuple(walk.effects), tuple(walk.commands)


def _walk_command(walk: Walk, action: Action) -> None:
    if action.command is not None and not action.command.strip():
        walk.add("empty")
    elif action.command is not None:
        walk.script(action.command)
    elif action.argv:
        walk.text, walk.depth = " ".join(action.argv), 1
        walk.span = 0, len(walk.text)
        walk.invoke(list(action.argv), "")
        walk.effects = [effect for effect in walk.effects if not _is_chosen(effect, action.argv)]


def _is_chosen(effect: Effect, argv: tuple[str, ...]) -> bool:
    """Return whether all that is said is that a program is not known; who declared the tool has chosen it."""
    return effect.kind in ("unknown_program", "undescribed") and effect.words == argv


def _add_leaks(walk: Walk) -> None:
    """Add that what is private is sent, if a secret is read and something goes to another machine."""
    kinds = {effect.kind for effect in walk.effects}
    reads = any(effect.kind in ("read", "handle") and effect.place.secret > 1 for effect in walk.effects)
    if (kinds & SENDING and reads) or {"send", "show_secrets"} <= kinds:
        walk.add("leak")


def _root(action: Action) -> str:
    return posixpath.normpath(action.workspace or "/")


# Verdicts


def judge(action: Action, policy: Policy = DEFAULT) -> Verdict:
    """Return the verdict on an action, the strictest of all effects; total and deterministic.

    Text that cannot be read, is too long or too deep, or is unknown in command position is never allowed, except by a
    policy without rules, or isolated by one that trusts in that.
    """
    verdict = _judged(action, policy)
    return verdict if policy.attended else _without_asking(verdict, action, policy)


def judge_command(
    command: str, workspace: str, *, cwd: str = "", home: str | None = None, policy: Policy = DEFAULT
) -> Verdict:
    """Return the verdict on a shell command that starts in `cwd` (or the workspace); paths are taken lexically."""
    return judge(Action("bash", "write", workspace, cwd or workspace, home or "", command=command), policy)


def _judged(action: Action, policy: Policy) -> Verdict:
    verdicts = [*_of_tool(action, policy), *(_bounds(use, action, policy) for use in action.paths)]
    if policy.rules or policy.blocklist or policy.commands:
        effects, commands = _walked(action, policy)
        verdicts += [verdict_on(effect, action, policy) for effect in effects]
        verdicts += _of_commands(commands, action, policy)
        if len(commands) > 1:  # a grant for one command does not cover the others
            verdicts = [Verdict.allow() if verdict.granted else verdict for verdict in verdicts]
    verdict = Verdict.strictest(verdicts)
    hosts = [need for need in action.needs if need.startswith("network")]
    if verdict == Verdict.allow() and policy.trusts_isolation and action.is_isolated and hosts:
        says = f"the command would fail in the sandbox without a right: {', '.join(hosts)}"
        return Verdict(Level.ask, "beyond_sandbox", "sandbox", (), says)
    return verdict


def _is_held(action: Action, policy: Policy) -> bool:
    """Return whether a call does no harm but by its output: isolated, without a right, and what it changes is kept."""
    is_alone = policy.trusts_isolation and action.is_isolated and not (action.needs or action.rights)
    return is_alone and any(is_within(_root(action), folder) for folder in action.kept)


def verdict_on(effect: Effect, action: Action, policy: Policy) -> Verdict:
    """Return the verdict on one effect, grants considered."""
    if effect.kind == "read" and _is_output(effect.path, action, policy):
        return Verdict.allow()
    if (
        not action.is_confined
        and effect.kind in ("read", "search", "handle")
        and _holds_denied(effect.path, action, policy)
    ):
        effect = evolve(effect, place=places()["denied"])
    levels = [(rule.level(effect, confined=_is_held(action, policy)), rule) for rule in policy.rules_for(effect.kind)]
    levels = [(level, rule) for level, rule in levels if level is not Level.allow]
    if not levels:
        return Verdict.allow()
    level, rule = max(levels, key=lambda each: each[0].rank)
    is_undoable = rule.confined == "lets" and effect.kind in group("undoable")  # not what a specification lists
    if level is Level.ask and is_undoable and _is_kept(effect, action):
        return Verdict.allow()
    verdict = Verdict(level, rule.name, rule.category, (effect.evidence,), sentence(effect))
    return _with_grants(verdict, effect, action, policy) if policy.commands else verdict


def _holds_denied(folder: str, action: Action, policy: Policy) -> bool:
    """Return whether there are denied paths in a folder of the workspace, which is read with all that is in it."""
    root = _root(action)
    is_open = bool(folder) and is_within(folder, root) and not action.is_confined
    denied = policy.denied(root, action.home or NO_HOME) if is_open else ()
    return any(is_within(each, folder) and is_within(each, root) for each in denied)


def sentence(effect: Effect) -> str:
    """Return what an effect is, in words: the program with its subcommand, and what it would do."""
    form = effect_rules()[effect.kind].says
    text = form.format(_shown(effect))
    if effect.path and not form.endswith("}"):
        text = text.replace(" that is not known before it runs", ", not known before it runs,")
    return f"{effect.program or 'the command'} would {text}"


def _shown(effect: Effect) -> str:
    path = effect.path
    if not path:
        return effect.note or "something"
    if UNKNOWN in path or FETCHED in path:
        folder = re.split(f"[{UNKNOWN}{FETCHED}]", effect.note or path, maxsplit=1)[0].rpartition("/")[:2]
        where = f" in {folder[0] or folder[1]}" if any(folder) else ""
        return f"a path{where} that is not known before it runs"
    return f"files in {path[: -len(FOUND) - 1]}" if path.endswith("/" + FOUND) else effect.note or path


def _is_kept(effect: Effect, action: Action) -> bool:
    """Return whether a snapshot holds everything that an effect concerns, so that its loss can be undone."""
    repository = f"{effect.folder}/.git"
    path = effect.path or action.resolved.get(repository, effect.folder)
    if UNKNOWN in path or not any(is_within(path, folder) for folder in action.kept):
        return False
    return not any(_may_hold(path, name, is_all=not effect.path) for name in action.unkept)


def _may_hold(path: str, name: str, *, is_all: bool) -> bool:
    """Return whether a path is a file of this name or path, or in one, or can hold one; is_all: anything around it."""
    if name.startswith("/"):
        folder = path.partition("*")[0].rpartition("/")[0] if "*" in path else path
        return is_all or is_within(path, name) or is_within(name, folder)
    return is_all or name in path.split("/")


def _with_grants(verdict: Verdict, effect: Effect, action: Action, policy: Policy) -> Verdict:
    """Apply the user's rules to a verdict; they never lower a denial or a doubt."""
    if verdict.level is not Level.ask or effect.kind in group("doubts") or not effect.words:
        return verdict
    rules = [rule for rule in policy.commands if rule.rule in (None, verdict.rule)]
    if (granting := next((rule for rule in rules if rule.grants(effect.words, action)), None)) is not None:
        says = f"a rule of the user allows it: {granting.level} {' '.join(granting.argv)}"
        return evolve(GRANTED, evidence=(effect.evidence,), explanation=says)
    if any(rule.is_outdated(effect.words, action) for rule in rules):
        since = f"you allowed {' '.join(effect.words)!r} always, and what it runs has changed since"
        return evolve(verdict, explanation=f"{verdict.explanation}; {since}")
    return verdict


def _of_tool(action: Action, policy: Policy) -> Iterator[Verdict]:
    """Yield the verdicts on a tool by its category, by the rights that a call requests, and by unknown effects."""
    level = {"read": Level.allow, "write": policy.write}.get(action.category, policy.admin)
    if level is not Level.allow and action.tool not in policy.listed:
        says = f"{action.tool} is {'an' if action.category == 'admin' else 'a'} {action.category} tool"
        if level is Level.ask:
            yield Verdict(level, f"{action.category}_needs_approval", "category", (), says)
        else:
            says += ", and no job policy lists it"
            yield Verdict(level, f"{action.category}_not_listed", "category", (), says)
    if action.rights:
        says = f"{action.tool} asks to run beyond the sandbox: {', '.join(action.rights)}"
        yield Verdict(Level.ask, "beyond_sandbox", "sandbox", (), says)
    if action.opaque and policy.asks_about_opaque:  # only its server says what the tool does
        says = f"{action.tool} comes from a server, and nothing tells what it would do"
        yield Verdict(Level.ask, "unknown_tool", "form", (), says)
    for path in (right[len("write ") :] for right in action.rights if right.startswith("write ")):
        if any(is_within(path, own) or is_within(own, path) for own in action.own):
            says = f"{action.tool} asks to change {path}, which is the agent's own"
            yield Verdict(Level.deny, "agents_own", "agent", (), says)


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
    return not is_denied(path, policy.denied(_root(action), action.home or NO_HOME))


def _bounds(use: PathUse, action: Action, policy: Policy) -> Verdict:
    """File tools stay in the workspace and the allowed roots; denied paths win (S6.10 to S6.12)."""
    home, root = action.home or NO_HOME, _root(action)
    path, rule, where = use.resolved, "outside_allowed_paths", "outside the allowed paths"
    if "\0" not in path and policy.allows_path(path, root, home):
        return Verdict.allow()
    if use.access == "read" and _is_output(path, action, policy):
        return Verdict.allow()
    if "\0" not in path and evolve(policy, denied_paths=()).allows_path(path, root, home):
        rule, where = "denied_path", "a denied path"
    explanation = f"{action.tool} would {use.access} {use.given!r}, which is {where}"
    return Verdict(Level.deny, rule, "paths", (Evidence(use.given, argv=(use.resolved,)),), explanation)


def _of_commands(commands: tuple[Evidence, ...], action: Action, policy: Policy) -> Iterator[Verdict]:
    """Yield the verdicts on programs at any depth, not on text that mentions them: by lists, and by the user."""
    for entry in policy.blocklist if action.command is not None else ():
        for found in _first(commands, partial(is_listed, entry=entry)):
            says = f"{entry} is on the list of blocked commands"
            yield Verdict(Level.deny, "blocklist", "blocklist", (found,), says)
    if policy.known_only:
        for found in _first(commands, lambda argv: not is_known(argv)):
            says = f"{found.argv[0]} is not known to be harmless: it may run code of the workspace"
            yield Verdict(Level.ask, "not_known_to_be_harmless", "code", (found,), says)
    for rule in policy.commands:
        for found in _first(commands, rule.concerns) if rule.level is not Level.allow else ():
            says = rule.reason or f"a rule of the user says {rule.level} for {' '.join(rule.argv)!r}"
            yield Verdict(rule.level, "user_rule", "user", (found,), says)


def _first(commands: tuple[Evidence, ...], fits: Callable[[tuple[str, ...]], bool]) -> Iterator[Evidence]:
    return islice((command for command in commands if fits(command.argv)), 1)


def is_listed(argv: tuple[str, ...], entry: str) -> bool:
    """Return whether a command is the program of a blocklist's entry, with its argument if it names one."""
    word, _, argument = entry.partition(" ")
    program = argv[0].rpartition("/")[2]
    return program.partition(".")[0] == word and (not argument or argument in {item.lstrip("0") for item in argv[1:]})


# Single predicates (S3)


def is_known(argv: tuple[str, ...]) -> bool:
    """Return whether a command is a program of the system, all of which is known: it runs no code of the workspace."""
    name = programs.program_name(argv[0])
    is_special = name in special_programs() and name not in programs.interpreters()
    return "/" not in argv[0] and (is_special or programs.is_of_system(name) or only_looks(argv))


def only_looks(argv: tuple[str, ...]) -> bool:
    """Return whether a command is known to change nothing and to run no code of the workspace."""
    program, *arguments = argv
    name = programs.program_name(program)
    if len(argv) == 2 and arguments[0] in programs.ASKS_FOR_HELP:
        return True
    line = programs.read_line(arguments, programs.takes(name))
    names = {name, *(f"{name}/{word}" for word in line.operands[:1])}
    if names & programs.words("looks"):
        return True
    if name in programs.words("asks_services"):
        return any(map(programs.sign("looking_verbs").fullmatch, line.operands[:3]))
    options = programs.words("list_options")
    return bool(names & programs.words("lists")) and (not arguments[1:] or bool({*arguments} & options))


def classify_risk(action: Action) -> Risk:
    """Return the risk class of S3: `high_ambiguity` if the text does not determine the effects.

    An action without command, argv and paths is classed by its category.
    """
    effects, commands = _walked(action, DEFAULT)
    kinds = {effect.kind for effect in effects}
    if kinds & group("ambiguous"):
        return "high_ambiguity"
    if kinds - group("looks") or not all(only_looks(command.argv) for command in commands):
        return "side_effects"
    is_other = action.command is None and not action.argv and action.category != "read"
    return "side_effects" if is_other else "read_only"


def is_dangerous_command(command: str) -> bool:
    """Return whether `default` denies a command, whatever workspace it runs in."""
    return judge_command(command, "/workspace", home="/home/user").level is Level.deny


def check_safety(action: Action, *, workspace: str, policy: Policy = DEFAULT) -> Verdict:
    """Return the verdict on an action with `workspace` as the workspace (S3)."""
    return judge(evolve(action, workspace=workspace), policy)


def create_gate_check(*checks: Check) -> Check:
    """Return one check that gives the strictest verdict of several; of none, it allows (S3)."""

    def check(action: Action) -> Verdict:
        return Verdict.strictest(single(action) for single in checks)

    return check
