"""Limits enforced by the kernel inside the sandbox: memory, processes, file sizes, time; with their messages.

Limits of memory, file size and time apply to each process. Processes and threads are counted per user and user
namespace, from Linux 5.14 on, except those of root; so an episode's PID namespace has about as many IDs.
"""

import os
import signal
from collections.abc import Iterator
from typing import Literal, get_args

from attrs import field, frozen, validators

from agent.tools.output import size_in_words
from agent.tools.process import Finished

Kind = Literal["memory", "processes", "file_size", "cpu_time"]
KINDS: tuple[Kind, ...] = get_args(Kind)

MIB = 1024 * 1024
RESERVED = 4  # our processes: keepers of an episode, and one that becomes a command
COUNTED = (5, 14)  # the first version of Linux that counts processes

WORDS: dict[Kind, tuple[str, ...]] = {
    "memory": ("MemoryError", "annot allocate memory", "out of memory", "memory exhausted"),
    "processes": ("Resource temporarily unavailable",),
    "file_size": ("File too large", "File size limit exceeded"),
    "cpu_time": ("CPU time limit exceeded",),
}
"""Messages of programs to which the kernel refused a resource."""

SIGNALS: dict[int, Kind] = {signal.SIGXFSZ: "file_size", signal.SIGXCPU: "cpu_time"}
AND_SIGNAL = 128  # shells add this to the number of the signal that ended a command


def _limit(default: int) -> int:
    made: int = field(default=default, validator=[validators.instance_of(int), validators.ge(1)])
    return made


@frozen
class Limits:
    """Limits in bytes, processes, and seconds of CPU time.

    addresses: the address space of a process, in multiples of its memory; None: unlimited, as some runtimes need.
    """

    memory: int = _limit(1024 * MIB)
    processes: int = _limit(128)
    file_size: int = _limit(256 * MIB)
    cpu_time: int = _limit(60)
    addresses: int | None = 4

    def arguments(self) -> Iterator[str]:
        """Yield the arguments of `prlimit` that set them."""
        yield f"--data={self.memory}"
        yield from () if self.addresses is None else (f"--as={self.addresses * self.memory}",)
        yield f"--fsize={self.file_size}"
        yield f"--cpu={self.cpu_time}:{self.cpu_time + 1}"  # first SIGXCPU, which shows the reason, then SIGKILL
        yield "--core=0"
        if linux() >= COUNTED:
            yield f"--nproc={self.processes + RESERVED}"

    def told(self, kind: Kind) -> str:
        """Return a limit in words."""
        return {
            "memory": f"{size_in_words(self.memory)} of memory",
            "processes": f"{self.processes} processes",
            "file_size": f"{size_in_words(self.file_size)} for each file",
            "cpu_time": f"{self.cpu_time} s of a processor for each process",
        }[kind]


def kinds_shown_by(finished: Finished) -> tuple[Kind, ...]:
    """Return the kernel limits that a command ran into, by its exit and its last output."""
    if not finished.exit_code and finished.signal is None:
        return ()
    ended = finished.signal if finished.signal is not None else (finished.exit_code or 0) - AND_SIGNAL
    said = finished.output + finished.errors
    spoken = (kind for kind, words in WORDS.items() if any(word in said for word in words))
    return tuple(dict.fromkeys([*([SIGNALS[ended]] if ended in SIGNALS else []), *spoken]))


def linux() -> tuple[int, ...]:
    """Return the version of the kernel: two numbers."""
    numbers = os.uname().release.split("-")[0].split(".")[:2]
    return tuple(int(number) for number in numbers if number.isdecimal())
