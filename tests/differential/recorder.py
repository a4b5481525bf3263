"""Records which programs bash would start: a real shell in an empty folder, in which every program is only noted.

Nothing can be started: `PATH` names an empty folder, a restricted shell refuses names with a slash, output into files,
`exec`, `cd` and `source`, builtins that reach beyond the shell are disabled, no file may grow, and time is short. Text
without a slash can name no file elsewhere, and so may redirect into empty files of the folder, which are removed.
"""

import contextlib
import os
import select
import signal
import subprocess
import time
from pathlib import Path

__all__ = ["Ran", "run"]

Ran = list[tuple[str, ...]]

LONGEST = 60.0
"""Seconds for one text."""

DISABLED = (
    ". bg bind caller cd compgen complete compopt dirs disown enable exec fc fg hash help history jobs kill logout"
    " mapfile popd pushd readarray source suspend times trap type ulimit umask"
    " wait"
)
PREAMBLE = f"""
command_not_found_handle() {{ builtin printf '%s\\0' "$#" "$@" >&9; return 0; }}
ulimit -f 0 -t 3 -c 0
builtin enable -n {DISABLED}
"""
RESTRICTED = "set -r\n"


def run(script: str, folder: Path) -> Ran:
    """Return the argv of every program that bash would start for a script, in order. Its own folder must be empty."""
    assert not any(folder.iterdir())
    reading, writing = os.pipe()
    environment = {"PATH": str(folder), "HOME": "/home/me", "LANG": "C.UTF-8"}
    program = subprocess.Popen(
        [
            "/bin/bash",
            "--norc",
            "--noprofile",
            "-c",
            f"exec 9>&{writing}\n{PREAMBLE}{RESTRICTED if '/' in script else ''}{script}",
        ],
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
        recorded = _all_of(reading, time.monotonic() + LONGEST)
    finally:
        _end(program)
        for file in folder.iterdir():
            file.unlink()
    return _parsed(recorded)


def _all_of(reading: int, deadline: float) -> bytes:
    """Return what is written until the last process of the shell, also one in the background, has ended."""
    parts = list[bytes]()
    with open(reading, "rb", buffering=0) as pipe:
        while select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
            part = pipe.read(65_536)
            if not part:
                break
            parts.append(part)
    return b"".join(parts)


def _end(program: "subprocess.Popen[bytes]") -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(program.pid, signal.SIGKILL)
    program.wait()


def _parsed(recorded: bytes) -> Ran:
    fields = recorded.decode("utf-8", "surrogateescape").split("\0")[:-1]
    ran, index = Ran(), 0
    while index < len(fields):
        if not fields[index].isdigit():  # two processes wrote at once
            index += 1
            continue
        count = int(fields[index])
        ran.append(tuple(fields[index + 1 : index + 1 + count]))
        index += 1 + count
    return ran
