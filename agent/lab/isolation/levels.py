"""The level of isolation that this machine achieves: found by trying to get out of a cell, once in a process.

A configuration can say anything, and a kernel, a container or another version of bubblewrap can refuse or forget any
part of it. So a script in a cell tries what must fail, and what must work, and the level is what was seen. Programs
that take a little too much, in a cell with little, try its limits. (To use up a second of a processor takes a second,
in each process of an experiment; so of that limit it is tried whether it is there, and cannot be raised.)
"""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal, get_args

from attrs import frozen

from agent.lab.isolation.cell import PORT, Cell, IsolationError
from agent.tools.sandbox.limits import KINDS, Kind, Limits

__all__ = ["LEVELS", "Level", "Probe", "Wanted", "achieve", "limits_at", "probe"]


Level = Literal["bubblewrap", "none"]
"""`bubblewrap`: a user, process, mount and network namespace of its own for each episode. `none`: no such thing."""

Wanted = Literal["best", "bubblewrap", "none"]
"""The level that a plan asks for. `best`: the best that the machine achieves."""

LEVELS: tuple[Wanted, ...] = get_args(Wanted)

LONGEST = 20.0  # seconds

ATTEMPTS = r"""
try() { name=$1; shift; if "$@" 2>/dev/null; then echo "$name"; fi; }
try workspace eval ': > inside'
try hosts eval 'exec 3<>/dev/tcp/127.0.0.1/%(inside)d'
try memory eval ': > /tmp/x'
try outside test -e %(outside)s
try beside eval ': > ../beside'
try kernel eval ': >> /proc/sys/kernel/core_pattern'
try system eval ': > /usr/bpagent-was-here'
try device chmod 666 /dev/null
try loopback eval 'exec 3<>/dev/tcp/127.0.0.1/%(listening)d'
try processes eval 'grep -qsaE "^sleep.60[.]%(mark)d" /proc/[0-9]*/cmdline'
echo end
"""
"""The attempts: the script prints one word for each that works. Opening a file for writing changes nothing in it."""

MUST_WORK = ("workspace", "hosts", "memory", "end")


LITTLE = Limits(memory=96 * 2**20, processes=12, file_size=2**20, disk=4 * 2**20, cpu_time=5)
TOO_MUCH: tuple[tuple[Kind, str], ...] = (
    ("memory", "a = mmap.mmap(-1, 2**27, mmap.MAP_PRIVATE)"),
    ("memory", "a = mmap.mmap(-1, 2**27); [a.__setitem__(n, 1) for n in range(0, len(a), 4096)]; time.sleep(9)"),
    ("file_size", "open('large', 'wb').write(bytes(2**21))"),
    ("disk", "[open(f'file-{n}', 'wb').write(bytes(2**20)) for n in range(6)]; time.sleep(9)"),
    ("processes", "[os.fork() or wait() for n in range(20)]; time.sleep(9)"),
    ("cpu_time", "resource.setrlimit(resource.RLIMIT_CPU, (99, 99))"),
)
"""For each limit programs in Python that go beyond it, a little; where it is kept none of them comes to its end."""

TRIES = """
import mmap, os, resource, time
def wait():
    os.close(1)
    os.close(2)
    time.sleep(9)
    os._exit(0)
%s
print('came to its end')
"""


@frozen
class Probe:
    """The findings of a probe: the level, and why it is not a better one; the limits that are kept in cells."""

    level: Level
    why: str = ""
    limits: tuple[Kind, ...] = ()


def achieve(wanted: Wanted) -> Level:
    """Return the level that a plan gets. Raises IsolationError where it insists on one that is not achieved."""
    if wanted == "none":
        return "none"
    found = probe()
    if wanted == "bubblewrap" and found.level != wanted:
        raise IsolationError(f"isolation 'bubblewrap' is not achieved here: {found.why}")
    return found.level


def limits_at(level: Level) -> tuple[Kind, ...]:
    """Return the limits that are kept at a level, in cells; none without."""
    return () if level == "none" else probe().limits


@lru_cache(maxsize=1)
def probe() -> Probe:
    """Return which level this machine achieves; tried at the first call."""
    try:
        wrong = list(_differences())
    except (IsolationError, OSError, subprocess.SubprocessError) as error:
        return Probe("none", str(error))
    return Probe("none", "in a cell, " + "; ".join(wrong)) if wrong else Probe("bubblewrap", limits=_limits_kept())


def _differences() -> Iterator[str]:
    """Yield what in a cell is other than it must be."""
    with tempfile.TemporaryDirectory(prefix="bpagent-probe-") as folder, socket.create_server(("127.0.0.1", 0)) as host:
        root = Path(folder).resolve()
        (root / "workspace").mkdir()
        outside = Path(tempfile.gettempdir()) / f"{root.name}-outside"
        worked = _try_everything(root, outside, host.getsockname()[1])
        yield from (f"this does not work: {name}" for name in MUST_WORK if name not in worked)
        yield from (f"this can be reached: {name}" for name in worked if name not in MUST_WORK)


def _try_everything(root: Path, outside: Path, port: int) -> list[str]:
    """Return the names of what worked inside, tried against a file and a process outside, and our loopback."""
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


def _limits_kept() -> tuple[Kind, ...]:
    """Return the limits that are kept in cells, without those that could not be tried."""
    with tempfile.TemporaryDirectory(prefix="bpagent-probe-") as folder, ThreadPoolExecutor(len(TOO_MUCH)) as pool:
        ended = list(pool.map(partial(_is_ended, Path(folder).resolve()), range(len(TOO_MUCH))))
    broken = {kind for (kind, _), is_ended in zip(TOO_MUCH, ended, strict=True) if not is_ended}
    return tuple(kind for kind in KINDS if kind not in broken)


def _is_ended(folder: Path, number: int) -> bool:
    """Return whether a program that takes too much is refused, or ended, in a cell in which a modest one is not."""
    root = folder / str(number)
    (root / "workspace").mkdir(parents=True)
    cell = Cell(root, root / "workspace", limits=LITTLE)
    try:
        return _print_of(cell, root, "pass") != b"" and _print_of(cell, root, TOO_MUCH[number][1]) == b""
    except (IsolationError, OSError, subprocess.SubprocessError):
        return False
    finally:
        cell.close()


def _print_of(cell: Cell, root: Path, program: str) -> bytes:
    command = cell.joined([sys.executable, "-I", "-S", "-c", TRIES % program], str(root / "workspace"))
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=LONGEST, check=False)
    return done.stdout
