"""`bpagent check`: the verdict that a command would get at the gate, with its evidence; nothing is run."""

import sys
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path

from attrs import evolve

from agent.cli.config import chosen_preset, existing_folder, layers, tell_unused
from agent.cli.errors import LEVELS, Mistake
from agent.cli.prompt import tell_evidence
from agent.cli.screen import Screen, Tone, screen_on, visible
from agent.effects.execution import describe
from agent.presets.configuration import Configuration, load_policy, read_user_rules, rules_files
from agent.tools.collections import workspace_tools
from agent.tools.definition import Toolbox
from agent.tools.workspace import Workspace
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.encoding import dump, plain
from constitution import Level, Policy, Verdict, judge
from constitution.rules import NO_RULES, read_rule

TONES: dict[str, Tone] = {"allow": "good", "ask": "question", "deny": "refused"}


def execute(arguments: Namespace) -> int:
    """Judge each command, show the verdicts, and return the code of the strictest."""
    workspace = existing_folder(arguments.workspace)
    files = () if arguments.policy else layers(arguments)
    tell_unused(files)
    policy = _policy(arguments)
    toolbox = _toolbox(workspace, policy)
    screen = screen_on(sys.stdout, needed=True)
    strictest = Level.allow
    for command in _commands(arguments):
        verdict = _verdict(command, policy, toolbox)
        strictest = max(strictest, verdict.level)
        file = _file_of(verdict, command, policy, toolbox, files)
        if arguments.json:
            print(dump({"command": command, **plain(verdict), "file": file}))
        else:
            _show(command, verdict, screen, file)
    return LEVELS[strictest]


def show_verdict(command: str, workspace: Path, screen: Screen) -> None:
    """Show the verdict of the default policy, with the user's own rules, on a command in a folder."""
    policy = load_policy("default").with_commands(*read_user_rules())
    _show(command, _verdict(command, policy, _toolbox(workspace, policy)), screen)


def _policy(arguments: Namespace) -> Policy:
    """Return the policy of a run with these options, or the named one with the user's own rules."""
    policy = load_policy(arguments.policy).with_commands(*read_user_rules()) if arguments.policy else None
    try:
        rules = [read_rule(row) for row in arguments.rule]
    except ValueError as error:
        raise Mistake(f"--rule {error}") from error
    return (policy or chosen_preset(arguments).judging_policy() or NO_RULES).with_rules(*rules)


def _file_of(verdict: Verdict, command: str, policy: Policy, toolbox: Toolbox, files: Iterable[Configuration]) -> str:
    """Return the file of the user's rules that gives this verdict; empty for the verdict of a shipped rule."""
    if verdict.category != "user":
        return ""
    shipped = evolve(policy, rules=tuple(rule for rule in policy.rules if rule.category != "user"), commands=())
    alone = [(str(file.file), file.added_to(shipped)) for file in files]
    alone += [(str(file), shipped.with_commands(*read_user_rules(file))) for file in rules_files()]
    return next((file for file, policy in alone if _verdict(command, policy, toolbox) == verdict), "")


def _toolbox(workspace: Path, policy: Policy) -> Toolbox:
    bounds = Workspace(workspace, policy.allowed_roots, policy.denied_paths)
    return Toolbox(workspace_tools(workspace), bounds)


def _verdict(command: str, policy: Policy, toolbox: Toolbox) -> Verdict:
    """Describe and judge a call of `bash` as the loop does; a call that cannot be described is denied."""
    try:
        action = describe(ToolCall("check", "bash", {"command": command}), toolbox)
    except (OSError, ValueError) as error:
        return Verdict(Level.deny, "not_described", "form", explanation=f"what it would touch: {error}")
    return judge(action, policy)


def _commands(arguments: Namespace) -> list[str]:
    """Return the commands to judge. In a file, empty lines and lines that begin with # are none."""
    given, file = arguments.shell_command, arguments.file
    if (given is None) == (file is None):
        raise Mistake("name one command, or a file of commands with --file FILE")
    if file is None and given != "-":
        return [given]
    commands = [line.strip() for line in _lines(file or "-")]
    commands = [command for command in commands if command and not command.startswith("#")]
    if not commands:
        raise Mistake(f"{file or '-'} holds no command; write one per line")
    return commands


def _lines(file: str) -> Iterable[str]:
    try:
        text = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        return text.decode("utf-8", "surrogateescape").split("\n")
    except OSError as error:
        raise Mistake(f"cannot read {file}: {error.strerror}; name a file of commands, one per line") from error


def _show(command: str, verdict: Verdict, screen: Screen, file: str = "") -> None:
    level = screen.painted(f"{verdict.level:6}", TONES[verdict.level])
    screen.line(f"{level}{_marked(command, verdict, screen)}")
    if verdict == Verdict.allow():
        return
    for reason in verdict.reasons or (verdict.explanation,):
        screen.line(f"      {visible(reason)}")
    if verdict.category == "none":
        return
    screen.line(f"      rule {verdict.rule} ({verdict.category}){f', in {visible(file)}' if file else ''}", "output")
    for line in tell_evidence(verdict):
        screen.line(f"      {line}", "output")


def _marked(command: str, verdict: Verdict, screen: Screen) -> str:
    """Return a command with the characters that the verdict rests on highlighted, where there are colors."""
    shown, done = "", 0
    for start, end in sorted({(evidence.start, evidence.end) for evidence in verdict.evidence}):
        if done <= start < end:
            shown += visible(command[done:start]) + screen.painted(visible(command[start:end]), "evidence")
            done = end
    return shown + visible(command[done:])
