"""What one command of a session leaves for the next: its directory and its plain variables, read as data.

A session is no process that lives on but a shell for each command, which begins where the last one ended. So nothing
that a command does can break the session: `exit`, an open quote, `set -e`, `exec >/dev/null`, a killed shell.

What a shell leaves is names and values between NUL characters. A command can write there whatever it likes; so nothing
of it is ever read by a shell, and what it can make the session believe is what it could have set in plain sight. What
would change the meaning of later commands, which the gate judges by their words, is not kept, and that is said.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from attrs import field, frozen

from constitution import changes_commands

__all__ = ["Left", "Snapshot", "read_left"]

MOST_BYTES = 16 * 1024 * 1024  # of all that a shell leaves
LONGEST_VALUE = 64 * 1024  # characters
LONGEST_VALUES = 512 * 1024  # bytes, all together: programs have to start with them
SHOWN = 8  # names in a note

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
COMPUTED = ("$(", "`", "${", "$[")  # arithmetic runs what stands in there, though the variable was only compared
OF_EVERY_SHELL = re.compile(
    r"_|__bpagent_\w+|(?!BASH_ENV$)BASH\w*|BPAGENT_CALL|COMP_\w+|DIRSTACK|EPOCH\w+|EUID|FUNCNAME|GROUPS|HISTCMD"
    r"|HOSTNAME|HOSTTYPE|LINENO|MACHTYPE|OPTARG|OPTERR|OPTIND|OSTYPE|PIPESTATUS|PPID|PWD|RANDOM|SECONDS|SHELLOPTS|SHLVL"
    r"|SRANDOM|UID"
)
AT_FIRST = {"IFS": " \t\n", "PS4": "+ "}  # what a shell sets by itself

FOR_A_CHANGE = "they change what other commands do; set them in the command that needs them"
FOR_A_FORM = "a session keeps its directory and plain variables; define them in the command that uses them"
FOR_A_VALUE = "they are too long, no text, or hold a command; set them in the command that needs them"


@frozen
class Snapshot:
    """Where a session stands: its directory, and how its variables differ from those that every command is given.

    Those in `inner` are variables of the shell alone: its programs do not see them.
    """

    cwd: str
    exported: Mapping[str, str] = field(factory=dict)
    inner: Mapping[str, str] = field(factory=dict)
    unset: frozenset[str] = frozenset()

    def environment(self, given: Mapping[str, str]) -> dict[str, str]:
        """Return what the next shell starts with; it has to be told which of it is its own (`inner`)."""
        kept = {name: value for name, value in given.items() if name not in self.unset}
        return {**kept, **self.exported, **self.inner, "PWD": self.cwd}


@frozen
class Left:
    """What a command left: where the session stands now, and what of it is not kept, in words."""

    snapshot: Snapshot
    notes: tuple[str, ...] = ()


@frozen
class _Fields:
    """What a shell wrote, sorted. `others` are its functions and arrays."""

    cwd: str
    exported: dict[str, str] = field(factory=dict)
    inner: dict[str, str] = field(factory=dict)
    others: list[str] = field(factory=list)

    @property
    def variables(self) -> dict[str, str]:
        return {**self.exported, **self.inner}


def read_left(content: bytes, given: Mapping[str, str]) -> Left | None:
    """Return what a shell left, which had been given these variables and those of the session.

    None when it did not come to that: killed, replaced by `exec`, too large, or nonsense.
    """
    fields = _read(content)
    if fields is None:
        return None
    changed = _changes(fields, {name: value for name, value in given.items() if _is_kept(name)})
    plain = [name for name in changed if not changes_commands(name)]
    kept = _those_that_fit({name: fields.variables[name] for name in plain if name in fields.variables})
    snapshot = Snapshot(
        fields.cwd,
        exported={name: value for name, value in kept.items() if name in fields.exported},
        inner={name: value for name, value in kept.items() if name in fields.inner},
        unset=frozenset(name for name in plain if name not in fields.variables),
    )
    changing = [name for name in changed if changes_commands(name)]
    unfit = [name for name in plain if name in fields.variables and name not in kept]
    notes = ((changing, FOR_A_CHANGE), (fields.others, FOR_A_FORM), (unfit, FOR_A_VALUE))
    return Left(snapshot, tuple(_note(names, why) for names, why in notes if names))


def _read(content: bytes) -> _Fields | None:
    """Sort what a shell wrote: its directory, then kind, name and value of everything, then `end`."""
    parts = content.split(b"\0")
    if len(content) > MOST_BYTES or len(parts) % 3 != 2 or parts[-4:] != [b"end", b"", b"", b""]:
        return None
    cwd = os.fsdecode(parts[0])
    if not os.path.isabs(cwd) or not _is_text(cwd):
        return None
    fields = _Fields(cwd)
    for kind, name, value in _in_threes(map(os.fsdecode, parts[1:-4])):
        if kind in ("function", "array"):
            fields.others.extend([f"{kind} {name}"] if OF_EVERY_SHELL.fullmatch(name) is None else [])
        elif kind not in ("exported", "inner") or not NAME.fullmatch(name):
            return None
        elif _is_kept(name):
            (fields.exported if kind == "exported" else fields.inner)[name] = value
    return fields


def _in_threes(parts: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """Return parts in threes."""
    one = iter(parts)
    return zip(one, one, one, strict=True)


def _is_kept(name: str) -> bool:
    return NAME.fullmatch(name) is not None and OF_EVERY_SHELL.fullmatch(name) is None


def _changes(fields: _Fields, given: Mapping[str, str]) -> list[str]:
    """Return the variables that are not as every command is given them: another value, gone, exported or no longer."""
    found, at_first = fields.variables, {**AT_FIRST, **given}
    names = found.keys() | given.keys()
    return sorted(
        name
        for name in names
        if found.get(name) != at_first.get(name) or (name in given and name not in fields.exported)
    )


def _those_that_fit(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that may be carried, as many as programs can start with; the short ones first."""
    kept, size = dict[str, str](), 0
    for name, value in sorted(variables.items(), key=lambda item: len(item[1])):
        size += len(name) + len(value.encode("utf-8", "replace"))
        if size <= LONGEST_VALUES and _may_be_carried(value):
            kept[name] = value
    return kept


def _may_be_carried(value: str) -> bool:
    return len(value) <= LONGEST_VALUE and _is_text(value) and not any(mark in value for mark in COMPUTED)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _note(names: Sequence[str], why: str) -> str:
    shown = [(name if name.isascii() and name.isprintable() else repr(name))[:60] for name in names[:SHOWN]]
    more = [f"{len(names) - SHOWN} more"] if len(names) > SHOWN else []
    return f"[not kept: {', '.join([*shown, *more])}: {why}]"
