"""Guess whether a command waits for a person: an editor, a pager, a password. A label, nothing is refused for it (S4).

Commands get an empty input, so that what waits ends at once or does nothing until its time is up.
"""

import re
import shlex

__all__ = ["is_interactive"]

_ALWAYS = frozenset(
    """vi vim nvim view emacs nano pico joe less more most man info top htop btop watch passwd login telnet ftp sftp
    screen tmux dialog whiptail fzf mc lynx w3m elinks gdb lldb visudo vipw crontab-e chsh""".split()  # noqa: SIM905
)
_WITHOUT_ARGUMENTS = frozenset(
    "bash sh zsh fish dash ksh python python3 ipython node irb ghci lua bc sqlite3 mysql psql redis-cli".split()  # noqa: SIM905
)
_WITH_OPTION = {
    "docker": ("-it", "-ti", "--interactive"), "kubectl": ("-it", "-ti", "--stdin"), "python": ("-i",),
    "python3": ("-i",), "bash": ("-i",), "read": ("-p",), "git": ("rebase -i", "add -p", "add -i", "commit --patch"),
}  # fmt: skip
_BEFORE_A_PROGRAM = frozenset(["sudo", "env", "nohup", "time", "exec", "command", "nice"])
_LOOKED_AT = 10_000  # characters of a command
_ASSIGNMENT = re.compile(r"\w+=")


def is_interactive(command: str) -> bool:
    """Tell whether one of the programs at the beginning of `command` is likely to wait for a person."""
    return any(_waits(part) for part in re.split(r"&&|\|\||[;|&\n()]", command[:_LOOKED_AT]))


def _waits(part: str) -> bool:
    try:
        words = shlex.split(part, comments=True)
    except ValueError:
        words = part.split()
    while words and (words[0] in _BEFORE_A_PROGRAM or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    if not words:
        return False
    program, arguments = words[0].rpartition("/")[2], words[1:]
    if "--help" in arguments or "--version" in arguments:
        return False
    if program == "ssh":
        return len([word for word in arguments if not word.startswith("-")]) < 2
    asked = any(option in f" {' '.join(arguments)} " for option in _WITH_OPTION.get(program, ()))
    return program in _ALWAYS or asked or (program in _WITHOUT_ARGUMENTS and not arguments and "<" not in part)
