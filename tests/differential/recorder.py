"""What bash really runs: a restricted shell in an empty folder, in which every program is only written down.

Nothing can be started: `PATH` names an empty folder, a restricted shell refuses names with a slash, output into files,
`exec`, `cd` and `source`, builtins that reach beyond the shell are disabled, no file may grow, and time is short.
"""

import os
import signal
import subprocess
from pathlib import Path

__all__ = ["Ran", "run"]

Ran = list[tuple[str, ...]]

DISABLED = (
    ". bg bind caller cd compgen complete compopt dirs disown enable exec fc fg hash help history jobs kill logout"
    " mapfile popd pushd readarray source suspend times trap type ulimit umask"
    " wait"
)
PREAMBLE = f"""
command_not_found_handle() {{ builtin printf '%s\\0' "$#" "$@" >&9; return 0; }}
ulimit -f 0 -t 3 -c 0
builtin enable -n {DISABLED}
set -r
"""


def run(script: str, folder: Path) -> Ran:
    """Return the argv of every program that bash would start for a script, in order. Its own folder must be empty."""
    assert not any(folder.iterdir())
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    environment = {"PATH": str(folder), "HOME": "/home/me", "LANG": "C.UTF-8"}
    program = subprocess.Popen(
        ["/bin/bash", "--norc", "--noprofile", "-c", f"exec 9>&{writing}\n{PREAMBLE}{script}"],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=[writing],
        start_new_session=True,
    )
    os.close(writing)
    try:
        program.wait(10)
    finally:
        if program.poll() is None:
            os.killpg(program.pid, signal.SIGKILL)
            program.wait()
    return _parsed(_all_of(reading))


def _all_of(reading: int) -> bytes:
    with open(reading, "rb") as pipe:
        return pipe.read() or b""


def _parsed(recorded: bytes) -> Ran:
    fields = recorded.decode("utf-8", "surrogateescape").split("\0")[:-1]
    ran, index = Ran(), 0
    while index < len(fields):
        count = int(fields[index])
        ran.append(tuple(fields[index + 1 : index + 1 + count]))
        index += 1 + count
    return ran
