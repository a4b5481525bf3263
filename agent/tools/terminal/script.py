"""The shell of one command in a session: what it is given, and the lines of ours around the command.

What the session knows comes in as the environment of the process, as data; the command and what is left go through
files without a name. What is left is read by `snapshot`, never by a shell.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fcntl import F_DUPFD_CLOEXEC, fcntl
from tempfile import TemporaryFile

__all__ = ["exchange", "script_for"]

_HIGH = 200  # descriptors from here on are seldom used in commands

_SCRIPT = r"""
__bpagent_leave_one() {
    [[ -v $__bpagent_name ]] && builtin printf "$1"'\0%s\0%s\0' "$__bpagent_name" "${!__bpagent_name}"
}
__bpagent_leave() {
    builtin set +euf
    {
        builtin printf '%s\0' "$PWD"
        builtin printf 'inner\0IFS\0%s\0' "$IFS"
        builtin local IFS=$' \t\n' __bpagent_name
        for __bpagent_name in $(builtin compgen -v); do
            [[ $__bpagent_name = IFS || $__bpagent_name = __bpagent_* ]] && continue
            case ${!__bpagent_name@a} in
                *[aA]*) builtin printf 'array\0%s\0\0' "$__bpagent_name" ;;
                *x*) __bpagent_leave_one exported ;;
                *) __bpagent_leave_one inner ;;
            esac
        done
        builtin unset -f __bpagent_leave __bpagent_leave_one
        for __bpagent_name in $(builtin compgen -A function); do
            builtin printf 'function\0%s\0\0' "$__bpagent_name"
        done
        builtin printf 'end\0\0\0'
    } >&OUT 2>/dev/null
    builtin trap - EXIT
    builtin exit "$__bpagent_code"
}
builtin trap '{ __bpagent_code=$?; builtin set +x; } 2>/dev/null; __bpagent_leave' EXIT
INNER
builtin eval "$(</dev/fd/COMMAND)"; \
{ __bpagent_code=$?; builtin set +x; } 2>/dev/null; __bpagent_leave
"""


def script_for(inner: Iterable[str], command: int, out: int) -> str:
    """Return the lines for a shell that reads its command from one descriptor and leaves what there is in another.

    Nothing of the session stands in it but names: of the variables that programs are not to see.
    """
    names = " ".join(sorted(inner))
    own = f"builtin declare +x {names}" if names else ""
    return _SCRIPT.replace("INNER", own).replace("/dev/fd/COMMAND", f"/dev/fd/{command}").replace(">&OUT", f">&{out}")


@contextmanager
def exchange(command: bytes) -> Iterator[tuple[int, int]]:
    """Give the descriptors of two files without a name: the command, and what will be left."""
    with TemporaryFile() as script, TemporaryFile() as left:
        script.write(command)
        script.flush()
        script.seek(0)
        opened: list[int] = []
        try:
            opened += [fcntl(file.fileno(), F_DUPFD_CLOEXEC, _HIGH) for file in (script, left)]
            yield opened[0], opened[1]
        finally:
            for descriptor in opened:
                os.close(descriptor)
