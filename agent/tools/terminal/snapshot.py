"""What one shell leaves for the next: its directory, variables, functions, aliases and options, as shell text.

A session is no process that lives on but a shell for each command, which begins where the last one ended. So nothing
that a command does can break the session: `exit`, an open quote, `set -e`, `exec >/dev/null`, a killed shell. What
it leaves comes back in a file of its own, never in the output, which a command could imitate.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import F_DUPFD_CLOEXEC, fcntl
from tempfile import TemporaryFile

from attrs import frozen

__all__ = ["Snapshot", "exchange", "read_snapshot", "runner"]

MOST_BYTES = 16 * 1024 * 1024
_HIGH = 200  # descriptors from here on are seldom used in commands

_RUNNER = r"""
__bpagent_leave() {
    local __bpagent_name
    builtin set +eu
    {
        builtin printf '%s\0' "$PWD"
        builtin declare -p IFS
        IFS=$' \t\n'
        builtin shopt -p
        builtin printf 'umask %s\n' "$(builtin umask)"
        for __bpagent_name in $(builtin compgen -v); do
            case $__bpagent_name in
                __bpagent_*|BASH*|BPAGENT_CALL|COMP_*|DIRSTACK|EPOCH*|EUID|FUNCNAME|GROUPS|HISTCMD|LINENO|PIPESTATUS) ;;
                PPID|RANDOM|SECONDS|SHELLOPTS|SHLVL|SRANDOM|UID|_|PWD|FUNCNEST|IFS) ;;
                *) builtin declare -p "$__bpagent_name" ;;
            esac
        done
        builtin unset -f __bpagent_leave
        builtin declare -f
        builtin printf 'declare -fx %s\n' $(builtin declare -Fx | { while read -r _ _ name; do echo "$name"; done; })
        builtin alias -p
        builtin printf '\0'
        for __bpagent_name in ${__bpagent_options//:/ }; do
            case $__bpagent_name in
                noexec|monitor|history|privileged|interactive-comments) ;;
                *) builtin printf 'set -o %s\n' "$__bpagent_name" ;;
            esac
        done
        builtin printf '\0'
    } >&OUT 2>/dev/null
    builtin trap - EXIT
    builtin exit "$__bpagent_code"
}
builtin source /dev/fd/STATE 2>/dev/null
builtin trap '{ __bpagent_code=$? __bpagent_options=$SHELLOPTS; builtin set +x; } 2>/dev/null; __bpagent_leave' EXIT
builtin eval "$(</dev/fd/COMMAND)"; \
{ __bpagent_code=$? __bpagent_options=$SHELLOPTS; builtin set +x; } 2>/dev/null; __bpagent_leave
"""


@frozen
class Snapshot:
    """Where a session stands: its directory, and what makes a new shell like the last one.

    `text` is read first; `options` (`set -e` and such) stand before the command, so that they are about nothing else.
    """

    cwd: str
    text: bytes = b""
    options: bytes = b""


def runner(descriptors: tuple[int, int, int]) -> str:
    """Return the script that reads what the last shell left, then the command, and leaves what there is then."""
    names = ("STATE", "COMMAND", "OUT")
    script = _RUNNER
    for name, descriptor in zip(names, descriptors, strict=True):
        script = script.replace(f"/dev/fd/{name}", f"/dev/fd/{descriptor}").replace(f">&{name}", f">&{descriptor}")
    return script


@contextmanager
def exchange(snapshot: Snapshot, command: bytes) -> Iterator[tuple[int, int, int]]:
    """Give the descriptors of three files without a name: what the last shell left, the command, what will be left."""
    with TemporaryFile() as state, TemporaryFile() as script, TemporaryFile() as left:
        for file, content in ((state, snapshot.text), (script, snapshot.options + command)):
            file.write(content)
            file.flush()
            file.seek(0)
        opened: list[int] = []
        try:
            opened += [fcntl(file.fileno(), F_DUPFD_CLOEXEC, _HIGH) for file in (state, script, left)]
            yield opened[0], opened[1], opened[2]
        finally:
            for descriptor in opened:
                os.close(descriptor)


def read_snapshot(descriptor: int) -> Snapshot | None:
    """Return what a shell left; None when it did not come to that: killed, replaced by `exec`, or too large."""
    content = os.pread(descriptor, MOST_BYTES + 1, 0)
    parts = content.split(b"\0")
    if len(parts) != 4 or parts[3] or len(content) > MOST_BYTES:
        return None
    return Snapshot(os.fsdecode(parts[0]), parts[1], parts[2])
