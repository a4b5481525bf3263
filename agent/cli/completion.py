"""`bpagent completion SHELL`: a script that has a shell complete commands, options and files.

bash, zsh: eval "$(bpagent completion bash)"    fish: bpagent completion fish | source
"""

import argparse
import shlex
from argparse import Namespace
from collections.abc import Iterator

from agent.cli import exit_codes
from agent.cli.arguments import OWN_NAME, make_parser

BASH = """\
_{name}() {{
    local words
    case "${{COMP_WORDS[1]}}" in
{cases}
        *) words={commands} ;;
    esac
    [ "$COMP_CWORD" -eq 1 ] && words={commands}
    COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _{name} {name}
"""
ZSH = "autoload -U +X compinit bashcompinit && compinit && bashcompinit\n"


def execute(arguments: Namespace) -> int:
    """Print the script."""
    parsers = dict(sorted(_commands().items()))
    if arguments.shell == "fish":
        print("\n".join(_fish(parsers)))
    else:
        print((ZSH if arguments.shell == "zsh" else "") + _bash(parsers), end="")
    return exit_codes.OK


def _commands() -> dict[str, argparse.ArgumentParser]:
    actions = make_parser()._actions
    return next(dict(action.choices) for action in actions if isinstance(action, argparse._SubParsersAction))


def _bash(parsers: dict[str, argparse.ArgumentParser]) -> str:
    cases = (f"        {name}) words={shlex.quote(' '.join(_options(parser)))} ;;" for name, parser in parsers.items())
    return BASH.format(name=OWN_NAME, cases="\n".join(cases), commands=shlex.quote(" ".join(parsers)))


def _fish(parsers: dict[str, argparse.ArgumentParser]) -> Iterator[str]:
    for name, parser in parsers.items():
        yield f"complete -c {OWN_NAME} -n __fish_use_subcommand -a {name} -d {shlex.quote(parser.description or '')}"
        for action in parser._actions:
            for option in (option for option in action.option_strings if option.startswith("--")):
                takes = "" if action.nargs == 0 else " -r"
                about = shlex.quote((action.help or "").replace("%%", "%"))
                seen = f"'__fish_seen_subcommand_from {name}'"
                yield f"complete -c {OWN_NAME} -n {seen} -l {option[2:]}{takes} -d {about}"


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return [option for action in parser._actions for option in action.option_strings if option.startswith("--")]
