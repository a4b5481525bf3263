"""Limits of a cell: how much memory, how many processes, how large files, how long; and in which words that is told.

| limit | of | kept by |
| --- | --- | --- |
| memory | each process; and all of a cell, with what its folders in memory hold | the kernel; and the guard |
| processes | all of a cell, threads counted | the kernel, and the guard |
| file_size | each file | the kernel |
| disk | the workspace, with files that are open and have no name | the guard |
| cpu_time | each process | the kernel |

The kernel counts processes for each user in each user namespace, from Linux 5.14 on: so a cell's own are counted. Of
root it counts none; there it is the guard who does, and from Linux 6.14 on the kernel runs out of numbers a little
above.
"""

import os
import signal
from collections.abc import Iterator
from typing import Literal, get_args

from attrs import field, frozen, validators

from agent.tools.process import Finished

__all__ = ["KINDS", "Kind", "Limits", "kinds_shown_by", "linux", "readable"]

Kind = Literal["memory", "processes", "file_size", "disk", "cpu_time"]
KINDS: tuple[Kind, ...] = get_args(Kind)

MIB = 1024 * 1024
RESERVED = 4  # processes of our own in a cell: those that keep it, and who is about to become a command
COUNTED_FOR_EACH_CELL = (5, 14)  # the Linux from which on processes are

WORDS: dict[Kind, tuple[str, ...]] = {
    "memory": ("MemoryError", "annot allocate memory", "out of memory", "memory exhausted"),
    "processes": ("Resource temporarily unavailable",),
    "file_size": ("File too large", "File size limit exceeded"),
    "cpu_time": ("CPU time limit exceeded",),
}
"""Messages of programs to which the kernel refused a resource."""

SIGNALS: dict[int, Kind] = {signal.SIGXFSZ: "file_size", signal.SIGXCPU: "cpu_time"}
AND_SIGNAL = 128  # what shells add to the number of the signal that ended a command


def _above_zero(_: object, attribute: object, value: int) -> None:
    if value < 1:
        raise ValueError(f"{getattr(attribute, 'name', '')}: expected 1 or more, found {value}")


def _limit(default: int) -> int:
    made: int = field(default=default, validator=[validators.instance_of(int), _above_zero])
    return made


@frozen
class Limits:
    """Limits of a cell: bytes, processes, and seconds of a processor.

    addresses: how many times its memory a process may reserve; None: as much as it likes, as some runtimes do.
    """

    memory: int = _limit(1024 * MIB)
    processes: int = _limit(128)
    file_size: int = _limit(256 * MIB)
    disk: int = _limit(1024 * MIB)
    cpu_time: int = _limit(60)
    addresses: int | None = 4

    def arguments(self) -> Iterator[str]:
        """Yield the arguments of `prlimit` that have the kernel keep them."""
        yield f"--data={self.memory}"
        yield from () if self.addresses is None else (f"--as={self.addresses * self.memory}",)
        yield f"--fsize={self.file_size}"
        yield f"--cpu={self.cpu_time}:{self.cpu_time + 1}"  # a warning (SIGXCPU), which says why, and then the end
        yield "--core=0"
        if linux() >= COUNTED_FOR_EACH_CELL:
            yield f"--nproc={self.processes + RESERVED}"

    def told(self, kind: Kind) -> str:
        """Return a limit in words."""
        match kind:
            case "processes":
                return f"{self.processes} processes"
            case "cpu_time":
                return f"{self.cpu_time} s of a processor for each process"
            case "file_size":
                return f"{readable(self.file_size)} for each file"
            case "memory":
                return f"{readable(self.memory)} of memory"
            case "disk":
                return f"{readable(self.disk)} in the workspace"


def kinds_shown_by(finished: Finished) -> tuple[Kind, ...]:
    """Return which limits of the kernel a command has met with, as far as its end and its last words show it."""
    if not finished.exit_code and finished.signal is None:
        return ()
    ended = finished.signal if finished.signal is not None else (finished.exit_code or 0) - AND_SIGNAL
    said = finished.output + finished.errors
    spoken = (kind for kind, words in WORDS.items() if any(word in said for word in words))
    return tuple(dict.fromkeys([*([SIGNALS[ended]] if ended in SIGNALS else []), *spoken]))


def readable(size: int) -> str:
    """Return a number of bytes as people read it."""
    for name, bytes_of_one in (("GiB", 1024 * MIB), ("MiB", MIB), ("KiB", 1024)):
        if size >= bytes_of_one:
            return f"{size / bytes_of_one:.4g} {name}"
    return f"{size} bytes"


def linux() -> tuple[int, ...]:
    """Return the version of the kernel: two numbers."""
    numbers = os.uname().release.split("-")[0].split(".")[:2]
    return tuple(int(number) for number in numbers if number.isdecimal())
