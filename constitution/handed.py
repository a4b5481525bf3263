"""Secret files that are handed to a program, whatever it does with them: most programs can be made to show one."""

import re
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.tables import is_a

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["handed", "handed_in_code"]

SHOWN_BY_GIT = frozenset(["diff", "hash-object", "apply", "am", "add"])
GIVEN = re.compile(r"(?:^|[=:@,]|^-\w)((?:/|~)[^,:]*)")
QUOTED = re.compile(r"['\"]((?:/|~/)[^'\"\s\\]{1,200})['\"]")


def handed(examination: "Examination", name: str, argv: list[str], walk: "Walk") -> None:
    """Report each path among the words of a program."""
    if is_a(name, "guards_arguments") and not (name == "git" and SHOWN_BY_GIT.intersection(argv[1:2])):
        return
    elsewhere = walk.scope.cwd != (examination.discoveries.start,)
    for word in argv[1:]:
        if "/" in word or "~" in word or elsewhere:
            for path in _paths(word, elsewhere):
                examination.found(Effect.HANDLE, walk, program=name, path=path)


def _paths(word: str, elsewhere: bool) -> list[str]:
    if len(word) > 400 or " " in word:
        return []
    word = word.removeprefix("file://")
    if "://" in word:
        return []
    return GIVEN.findall(word) or ([word] if elsewhere and word[:1] != "-" else [])


def handed_in_code(examination: "Examination", name: str, code: str, walk: "Walk") -> None:
    """Report each path that stands in quotes within code of another language."""
    for path in QUOTED.findall(code)[:32]:
        examination.found(Effect.HANDLE, walk, program=name, path=path)
