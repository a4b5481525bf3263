"""Labelled commands, one per line behind its class and a tab; `⏎` is a newline."""

from functools import cache
from pathlib import Path

from constitution import Level, judge_command

HERE = Path(__file__).parent / "corpora"
GATED = ("dangerous", "doubtful", "attacks")
"""Files with commands that should be asked about or denied; those in `harmless` should run."""


@cache
def rows(name: str) -> tuple[tuple[str, str], ...]:
    """The classes and commands of a file."""
    lines = (HERE / f"{name}.tsv").read_text(encoding="utf-8").splitlines()
    found = (line.split("\t", 1) for line in lines if not line.startswith("#"))
    return tuple((kind, command.replace("⏎", "\n")) for kind, command in found)


def commands(name: str) -> tuple[str, ...]:
    """The commands of a file."""
    return tuple(command for _, command in rows(name))


@cache
def level(command: str) -> Level:
    """What is said about a command where nothing but its text is known."""
    return judge_command(command, "/ws", home="/home/me").level
