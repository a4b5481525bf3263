"""The level of isolation that this machine achieves: found by attempts to escape a cell, once per process.

A kernel, a container or another version of bubblewrap may ignore any part of a configuration. So a script in a cell
tries what must fail and what must work, and the level follows from what it observed.
"""

import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, get_args

from attrs import frozen

from agent.lab.isolation.cell import OF_EACH_NAMESPACE, PORT, Cell, IsolationError
from agent.tools.sandbox.sandbox import COUNTED, RESOURCES, Resource, kernel_version
from agent.tools.temporary import make_folder

Level = Literal["bubblewrap", "none"]
"""`bubblewrap`: a user, process, mount and network namespace for each episode. `none`: no isolation."""

Wanted = Literal["best", "bubblewrap", "none"]
"""The level that a plan asks for. `best`: the best that the machine achieves."""

LEVELS: tuple[Wanted, ...] = get_args(Wanted)

LONGEST = 60.0  # seconds, on a busy machine

ATTEMPTS = r"""
try() { name=$1; shift; if "$@" 2>/dev/null; then echo "$name"; fi; }
try workspace eval ': > inside'
try hosts eval 'exec 3<>/dev/tcp/127.0.0.1/%(inside)d'
try memory eval ': > /tmp/x'
try outside test -e %(outside)s
try beside eval ': > ../beside'
try kernel eval ': >> /proc/sys/kernel/core_pattern'
try system eval ': > /usr/bpagent-was-here'
try loopback eval 'exec 3<>/dev/tcp/127.0.0.1/%(listening)d'
try processes eval 'grep -qsaE "^sleep.60[.]%(mark)d" /proc/[0-9]*/cmdline'
echo end
"""
"""The attempts: the script prints one word for each that works. Opening a file for writing changes nothing in it."""

MUST_WORK = ("workspace", "hosts", "memory", "end")


@frozen
class Probe:
    """The result of a probe: the level, and why it is not better."""

    level: Level
    why: str = ""


def achieve(wanted: Wanted) -> Level:
    """Return the level that a plan gets. Raises IsolationError if it requires one that is not achieved."""
    if wanted == "none":
        return "none"
    found = probe()
    if wanted == "bubblewrap" and found.level != wanted:
        raise IsolationError(f"isolation 'bubblewrap' is not achieved here: {found.why}")
    return found.level


@cache
def limits_at(level: Level) -> tuple[Resource, ...]:
    """Return the resources that the kernel limits at a level: none without cells."""
    counts = kernel_version() >= (OF_EACH_NAMESPACE if os.geteuid() == 0 else COUNTED)
    return () if level == "none" else tuple(each for each in RESOURCES if counts or each != "processes")


@lru_cache(maxsize=1)
def probe() -> Probe:
    """Return the level that this machine achieves; probed at the first call."""
    try:
        wrong = list(_differences())
    except (IsolationError, OSError, subprocess.SubprocessError) as error:
        return Probe("none", str(error))
    return Probe("none", "in a cell, " + "; ".join(wrong)) if wrong else Probe("bubblewrap")


def _differences() -> Iterator[str]:
    """Yield the differences between a cell's behavior and its promises."""
    with make_folder("probe") as folder, socket.create_server(("127.0.0.1", 0)) as host:
        root = Path(folder)
        (root / "workspace").mkdir()
        outside = Path(tempfile.gettempdir()) / f"{root.name}-outside"
        worked = _try_everything(root, outside, host.getsockname()[1])
        yield from (f"this does not work: {name}" for name in MUST_WORK if name not in worked)
        yield from (f"this can be reached: {name}" for name in worked if name not in MUST_WORK)


def _try_everything(root: Path, outside: Path, port: int) -> list[str]:
    """Return the names of the attempts that worked inside, against a file, a process and a port outside."""
    cell, mark = Cell(root, root / "workspace"), int.from_bytes(os.urandom(6))
    script = ATTEMPTS % {"inside": PORT, "outside": outside, "listening": port, "mark": mark}
    command = cell.joined(["bash", "-c", script], str(root / "workspace"))
    bystander = subprocess.Popen(["sleep", f"60.{mark}"])
    try:
        outside.touch()
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST, check=False
        )
    finally:
        bystander.kill()
        bystander.wait()
        cell.close()
        outside.unlink(missing_ok=True)
    return done.stdout.split()
