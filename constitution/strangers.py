"""Programs that no table knows: what their words say all the same."""

import re
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.shell.flow import NOTHING
from constitution.tables import is_a
from constitution.tables.programs import is_known, program_name
from constitution.zones import is_private

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["stranger"]

DESTROYS = re.compile(
    r"^(delete|destroy|purge|wipe|erase|terminate|nuke|drop|flush(all|db)?|obliterate|factory[-_]?reset"
    r"|decommission|teardown"
    r"|deprovision|shred|force[-_]delete|rm[-_]all|(delete|destroy|drop|purge|wipe|remove)[-_:].+"
    r"|.+[-_:](delete|destroy|purge|wipe))$",
    re.I,
)
FORCES = re.compile(r"^--?(delete-all|destroy|purge|wipe(-all)?|erase|drop-database|force-delete|nuke)$")


def stranger(examination: "Examination", name: str, argv: list[str], walk: "Walk") -> None:
    """What a program does with its words is unknown: paths among them, commands, and words that mean destruction."""
    examination.found(Effect.UNKNOWN_PROGRAM, walk, program=name, says="do something that no table knows")
    for word in argv[1:]:
        value = word.partition("=")[2] if word.startswith("-") or "=" in word else word
        if value and not value.startswith("-") and _looks_like_path(value):
            examination.found(Effect.UNKNOWN_PROGRAM, walk, program=name, path=value)
    if any("stratum+" in word for word in argv[1:]):
        examination.found(Effect.ATTACK, walk, program=name, says="earn with somebody else's machine")
    if "/" not in argv[0]:
        _destructive_words(examination, name, argv, walk)
    _started_words(examination, argv, walk)


def _destructive_words(examination: "Examination", name: str, argv: list[str], walk: "Walk") -> None:
    verbs = [word for word in argv[1:] if not word.startswith("-")][:3]
    if any(map(DESTROYS.match, verbs)) or any(map(FORCES.match, argv[1:])):
        examination.found(Effect.STRANGER_DESTROYS, walk, program=name, says="destroy something that no table knows")


def _started_words(examination: "Examination", argv: list[str], walk: "Walk") -> None:
    """`frob -- rm -rf x`, `frob --exec 'rm -rf x'`: a command among the words may be run."""
    for index, word in enumerate(argv[1:-1], 1):
        if is_a(word.rpartition("/")[2], "starts_commands"):
            examination.examine(argv[index:], NOTHING, walk)
            return
    for word in argv[1:]:
        text = word.partition("=")[2] if word.startswith("--") else word
        if " " in text and is_known(program_name(text.partition(" ")[0])):
            walk.nested(text)


def _looks_like_path(word: str) -> bool:
    if is_private(word):
        return True
    return (word.startswith(("/", "~", "..", "./")) or "/" in word or word == ".") and "://" not in word
