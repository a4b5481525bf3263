"""A watchdog: a process that ends a background process and all it started when our program dies, also by SIGKILL.

It reads a pipe to which nothing is ever written, and which the system closes when our program is gone.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from agent.tools.descendants import Family, forget_helper, note_helper

GRACE = 2.0  # seconds between TERM and KILL
_PAUSE = 0.02
_KILL_ROUNDS = 30
_LONG_AGO = 1e9  # seconds; an age with which all processes are looked at

_CODE = "import sys; sys.path[:] = sys.argv[3:]; from agent.tools.watchdog import watch; watch()"


def start_watchdog(family: Family) -> "subprocess.Popen[bytes]":
    """Start a watchdog for the processes of a command; `dismiss` ends it. Raises OSError."""
    places = [str(Path(__file__).parents[2]), *(place for place in sys.path if place)]
    argv = [sys.executable, "-I", "-S", "-c", _CODE, str(family.leader), family.token, *places]
    nowhere = subprocess.DEVNULL
    watchdog = subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, cwd="/", start_new_session=True
    )
    note_helper(watchdog.pid)
    return watchdog


def dismiss(watchdog: "subprocess.Popen[bytes]") -> None:
    """End a watchdog whose process is gone."""
    watchdog.kill()
    watchdog.wait()
    forget_helper(watchdog.pid)
    if watchdog.stdin is not None:
        watchdog.stdin.close()


def watch() -> None:
    """Wait until the program at the other end of standard input is gone; then end the processes of the command."""
    family = Family(int(sys.argv[1]), sys.argv[2])
    while os.read(0, 1):
        pass
    family.send(signal.SIGTERM, _LONG_AGO)
    family.send(signal.SIGCONT, _LONG_AGO)
    until = time.monotonic() + GRACE
    while family.living(_LONG_AGO) and time.monotonic() < until:
        time.sleep(_PAUSE)
    for _ in range(_KILL_ROUNDS):
        if not family.send(signal.SIGKILL, _LONG_AGO):
            return
        time.sleep(_PAUSE)
