"""Find and signal every process that a command left behind: children, and orphans that a subreaper adopts (Linux).

Ours: the tree that `psutil` gives ends at a process that was detached (0 of 1 found), and a look at all takes 1.7 times
as long with it.
"""

import atexit
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

TOKEN_VARIABLE = "BPAGENT_CALL"

GRACE = 2.0  # seconds between TERM and KILL
FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.05  # seconds between two looks at what still runs
_KILL_ROUNDS = 30

_KEEPERS = frozenset([b"bwrap"])

_SHORT = 2.0  # seconds; the younger a command, the surer it is that numbers have not gone round since
_NUMBERS_PER_SECOND = 100_000  # that a system can use up, generously
_NUMBERS_AT_LEAST = 1_000


class _Process(NamedTuple):
    number: int
    parent: int
    group: int
    session: int
    started: int

    def is_keeper(self) -> bool:
        """Tell whether it only keeps the namespaces of a command. Its name says so, which any process may take."""
        with suppress(OSError), open(f"/proc/{self.number}/comm", "rb", buffering=0) as file:
            return (file.readall() or b"").strip() in _KEEPERS
        return False


def token_value(token: str) -> str:
    """Return the value of `TOKEN_VARIABLE` for a command, in which other tokens stand before its own.

    These are of the command in which we run ourselves, and of this program, where a watchdog is to end all with it.
    """
    outer = (os.environ.get(TOKEN_VARIABLE, ""), *_program)
    return "/".join((*filter(None, outer), token))


class Family(NamedTuple):
    """All processes of one command: `leader` is the number of its first process, which also names its session.

    started: when that was, on the monotonic clock in seconds. With `outputs`, as links in /proc name pipes, processes
    that hold one belong too; looking for them takes longer.
    """

    leader: int
    token: str
    started: float = -math.inf
    outputs: frozenset[str] = frozenset()

    @property
    def age(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def ending(self, grace: float, has_exited: Callable[[], bool] = lambda: True) -> Iterator[float]:
        """End all of the processes: TERM, also for stopped ones, and KILL after `grace` seconds.

        Yields how long to wait before it goes on, in seconds, until nothing runs and the first process `has_exited`.
        """
        self.send(signal.SIGTERM)
        self.send(signal.SIGCONT)
        until, pause = time.monotonic() + grace, FIRST_PAUSE
        while (left := until - time.monotonic()) > 0 and not (has_exited() and not self.living()):
            yield min(pause, left)
            pause = min(2 * pause, LONGEST_PAUSE)
        for _ in range(_KILL_ROUNDS):
            if not self.send(signal.SIGKILL) and has_exited():
                return
            yield FIRST_PAUSE

    def living(self) -> tuple[_Process, ...]:
        """Return the processes that belong to the command and still run."""
        begun = _started(self.leader)
        running = (process for number in self._candidates() if (process := _read(number)) is not None)
        processes = [process for process in running if process.started >= begun]
        belonging = {process.number for process in processes if self._is_own(process)}
        while True:
            found = {each.number for each in processes if each.parent in belonging or each.session in belonging}
            if found <= belonging:
                return tuple(process for process in processes if process.number in belonging)
            belonging |= found

    def send(self, signal_number: int) -> int:
        """Send a signal to each of the command's processes, once; return how many were found.

        SIGTERM is not for those that keep its namespaces: with them all of it would end at once.
        """
        if signal_number == signal.SIGTERM:
            found = tuple(process for process in self.living() if not process.is_keeper())
            if found:
                for process in found:
                    _send(process, signal_number)
                return len(found)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.leader, signal_number)  # at once, so that they cannot multiply between two signals
        found = self.living()
        for process in found:
            if process.group != self.leader:
                _send(process, signal_number)
        return len(found)

    def _candidates(self) -> Iterator[int]:
        """Yield the processes that can belong: younger ones have higher numbers, until the numbers go round."""
        try:
            numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        except OSError:
            return
        reach = self.leader + _NUMBERS_AT_LEAST + self.age * _NUMBERS_PER_SECOND
        only_newer = self.age < _SHORT and reach < _highest_number()
        ours = os.getpid()
        for number in numbers:
            if number != ours and not (only_newer and number < self.leader):
                yield number

    def _is_own(self, process: _Process) -> bool:
        return process.session == self.leader or self._carries_token(process.number) or self._holds_output(process)

    def _carries_token(self, number: int) -> bool:
        prefix = f"{TOKEN_VARIABLE}=".encode()
        try:
            with open(f"/proc/{number}/environ", "rb", buffering=0) as file:
                variables = (file.readall() or b"").split(b"\0")
        except OSError:
            return False
        own = (variable for variable in variables if variable.startswith(prefix))
        return any(self.token.encode() in variable[len(prefix) :].split(b"/") for variable in own)

    def _holds_output(self, process: _Process) -> bool:
        """Our own children are not asked: one that is being started holds all our pipes for a moment."""
        if not self.outputs or process.parent == os.getpid():
            return False
        with suppress(OSError):
            folder = f"/proc/{process.number}/fd"
            return any(_link(f"{folder}/{name}") in self.outputs for name in os.listdir(folder))
        return False


def _link(path: str) -> str | None:
    with suppress(OSError):
        return os.readlink(path)
    return None


def _send(process: _Process, signal_number: int) -> None:
    """Signal one process, and no other that got its number meanwhile: a handle first, then a second look."""
    with suppress(OSError):
        handle = os.pidfd_open(process.number)
        try:
            again = _read(process.number)
            if again is not None and again.started == process.started:
                signal.pidfd_send_signal(handle, signal_number)
        finally:
            os.close(handle)


def _started(number: int) -> int:
    """Return when a process was started, one that has ended too; 0 where that is not known."""
    fields = _fields(number)
    return int(fields[19]) if fields else 0


def _read(number: int) -> _Process | None:
    """Return a process that runs, or None for one that has ended (reaped or not)."""
    fields = _fields(number)
    if not fields or fields[0] in (b"Z", b"X", b"x"):
        return None
    return _Process(
        number, parent=int(fields[1]), group=int(fields[2]), session=int(fields[3]), started=int(fields[19])
    )


def _fields(number: int) -> list[bytes]:
    """Return what /proc says of a process, from its state on; nothing when it is gone."""
    try:
        with open(f"/proc/{number}/stat", "rb", buffering=0) as file:
            text = file.readall() or b""
    except OSError:
        return []
    fields = text[text.rfind(b")") + 2 :].split()
    return fields if len(fields) >= 20 else []


def _highest_number() -> int:
    try:
        with open("/proc/sys/kernel/pid_max", "rb") as file:
            return int(file.read())
    except (OSError, ValueError):
        return 0


_PR_SET_CHILD_SUBREAPER, _PR_SET_DUMPABLE = 36, 4
_ROUNDS = 20  # each ends one generation of orphans at least
_adopting: list[bool] = []  # not empty: this process adopts orphans, and is a program of ours
_program: list[str] = []  # the token of all commands of this program, once it has a watchdog
_NOBODY = 1 << 30  # no process has this number
own_children: set[int] = set()
"""Children that we started as commands and have not reaped."""
helpers: set[int] = set()
"""Children that are no commands, and whose orphans need not be looked for: watchdogs, keepers of namespaces."""


def adopt_orphans() -> bool:
    """Have orphans of our commands handed to this process, from now on; return whether the system does that."""
    if done := _prctl(_PR_SET_CHILD_SUBREAPER, 1):
        _adopting.append(True)
    return done


def hide_memory() -> bool:
    """Have no process of this user look into this one from now on: its memory, its environment, its open files (Linux).

    It can then not be debugged and leaves no core file. Root may look all the same. Returns whether the system does it.
    """
    return _prctl(_PR_SET_DUMPABLE, 0)


def _prctl(option: int, value: int) -> bool:
    import ctypes

    try:
        done: bool = ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) == 0
    except (OSError, AttributeError):
        return False
    return done


def end_commands_with_us() -> None:
    """Have a watchdog end all commands when this program dies, also by SIGKILL; started once, before the first command.

    What left its session and cleared its environment is found in a sandbox alone, by the process that keeps that.
    Raises OSError.
    """
    if not _program:
        token, nowhere = os.urandom(8).hex(), subprocess.DEVNULL
        watchdog = subprocess.Popen(
            [sys.executable, "-I", "-S", __file__, token], stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere,
            cwd="/", start_new_session=True,
        )  # fmt: skip
        _program.append(token)
        helpers.add(watchdog.pid)
        atexit.register(_end_commands, os.getpid(), watchdog)


def _end_commands(program: int, watchdog: "subprocess.Popen[bytes]") -> None:
    """End what still runs when the program ends in peace, and its watchdog; nothing in a copy that was forked."""
    if os.getpid() == program:
        if own_children:
            watch(_program[0])
        watchdog.kill()
        watchdog.communicate()


def watch(program: str) -> None:
    """End all commands of a program."""
    for pause in Family(_NOBODY, program).ending(GRACE):
        time.sleep(pause)


def our_children() -> frozenset[int]:
    """Return the numbers of this process's children, the dead ones too; none where orphans are not adopted."""
    return frozenset(_children()) if _adopting else frozenset()


def end_orphans(known: Iterable[int]) -> int:
    """End what was adopted since the children were those `known`; return how many still ran.

    While other commands run, orphans cannot be told apart: the last one ends them.
    """
    if not _adopting or len(own_children) > 1:
        return 0
    spared, found = {*known, *own_children, *helpers}, 0
    for _ in range(_ROUNDS):
        orphans = set(_children()) - spared
        if not orphans:
            break
        found += sum(_end(number) for number in orphans)
    return found


def _end(number: int) -> bool:
    """Kill and reap an orphan; return whether it still ran."""
    with suppress(ChildProcessError):
        if os.waitpid(number, os.WNOHANG)[0] == number:
            return False
    with suppress(ProcessLookupError, PermissionError):
        os.kill(number, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitpid(number, 0)
    return True


def _children() -> set[int]:
    found: set[int] = set()
    for task in os.listdir("/proc/self/task"):
        with suppress(OSError), open(f"/proc/self/task/{task}/children", "rb", buffering=0) as file:
            found.update(map(int, (file.readall() or b"").split()))
    return found


if __name__ == "__main__":  # the watchdog: its input, to which nothing is written, ends with our program
    while os.read(0, 1):
        pass
    watch(sys.argv[1])
