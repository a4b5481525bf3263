"""Limits of what runs inside, kept by the kernel: memory, processes, file sizes, time; and in which words that is told.

Those of memory, file size and time hold for each process. Processes are counted, threads too, for each user in each
user namespace, from Linux 5.14 on; of root none are, so for an episode the kernel has numbers for about as many.
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
RESERVED = 4  # processes of our own: those that keep an episode, and who is about to become a command
COUNTED = (5, 14)  # the Linux from which on processes are

WORDS: dict[Kind, tuple[str, ...]] = {
    "memory": ("MemoryError", "annot allocate memory", "out of memory", "memory exhausted"),
    "processes": ("Resource temporarily unavailable",),
    "file_size": ("File too large", "File size limit exceeded"),
    "cpu_time": ("CPU time limit exceeded",),
}
"""Messages of programs to which the kernel refused a resource."""

SIGNALS: dict[int, Kind] = {signal.SIGXFSZ: "file_size", signal.SIGXCPU: "cpu_time"}
AND_SIGNAL = 128  # what shells add to the number of the signal that ended a command


def _limit(default: int) -> int:
    made: int = field(default=default, validator=[validators.instance_of(int), validators.ge(1)])
    return made


@frozen
class Limits:
    """Limits: bytes, processes, and seconds of a processor.

    addresses: how many times its memory a process may reserve; None: as much as it likes, as some runtimes do.
    """

    memory: int = _limit(1024 * MIB)
    processes: int = _limit(128)
    file_size: int = _limit(256 * MIB)
    cpu_time: int = _limit(60)
    addresses: int | None = 4

    def arguments(self) -> Iterator[str]:
        """Yield the arguments of `prlimit` that have the kernel keep them."""
        yield f"--data={self.memory}"
        yield from () if self.addresses is None else (f"--as={self.addresses * self.memory}",)
        yield f"--fsize={self.file_size}"
        yield f"--cpu={self.cpu_time}:{self.cpu_time + 1}"  # a warning (SIGXCPU), which says why, and then the end
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
    """Return which limits of the kernel a command has met with, as far as its end and its last words show it."""
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
