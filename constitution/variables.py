"""Variables whose value makes programs do something: a table, and what an assignment to one of them means."""

from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.zones import UNKNOWN

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["assigned"]

PRELOADS = frozenset(
    "LD_PRELOAD LD_AUDIT DYLD_INSERT_LIBRARIES BASH_ENV ENV PYTHONSTARTUP PERL5OPT RUBYOPT".split()  # noqa: SIM905
)
"""Their value names files that every program loads."""

COMMANDS = frozenset(
    """
    PAGER GIT_PAGER MANPAGER EDITOR VISUAL GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_SSH_COMMAND GIT_SSH GIT_EXTERNAL_DIFF
    GIT_ASKPASS SSH_ASKPASS SUDO_ASKPASS PROMPT_COMMAND LESSOPEN LESSCLOSE BROWSER RSYNC_RSH
    """.split()  # noqa: SIM905
)
"""Their value is a command."""


def assigned(examination: "Examination", name: str, values: tuple[str, ...], walk: "Walk") -> None:
    """Take an assignment to a variable; some make other programs run what they hold."""
    if name in PRELOADS:
        for value in values:
            says = f"make programs load {value.replace(UNKNOWN, '…')} ({name})"
            examination.found(Effect.PRELOAD, walk, program="the command", path=value, says=says)
    elif name == "PATH":
        for value in values:
            _search_path(examination, value, walk)
    elif name in COMMANDS:
        for value in values:
            walk.nested(value)


def _search_path(examination: "Examination", value: str, walk: "Walk") -> None:
    """Programs are looked for in these folders first."""
    for folder in value.split(":")[:16]:
        if folder and not folder.startswith(UNKNOWN):
            examination.found(Effect.SEARCH_PATH, walk, program="the command", path=folder)
