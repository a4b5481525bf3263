"""Finds and signals every process that a command left behind: children, and orphans adopted by a subreaper (Linux).

Not `psutil`: its tree ends at a detached process (0 of 1 found), and a scan of all processes takes 1.7 times as long.
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
FIRST_PAUSE, LONGEST_PAUSE = 0.005, 0.05  # seconds between two scans for running processes
_KILL_ROUNDS = 30

_HOLDERS = frozenset([b"bwrap", b"namespaces"])

_SHORT = 2.0  # seconds; for a young command process IDs have not wrapped around
_NUMBERS_PER_SECOND = 100_000  # a generous upper bound
_NUMBERS_AT_LEAST = 1_000


class _Process(NamedTuple):
    number: int
    parent: int
    group: int
    session: int
    started: int

    def holds_namespaces(self) -> bool:
        """Return whether it only holds the namespaces of a command. By its name, which any process may take."""
        with suppress(OSError), open(f"/proc/{self.number}/comm", "rb", buffering=0) as file:
            return (file.readall() or b"").strip() in _HOLDERS
        return False


def token_value(token: str) -> str:
    """Return the value of `TOKEN_VARIABLE` for a command: outer tokens, then its own.

    Outer tokens are of the command in which this program runs, and of this program if it has a watchdog.
    """
    outer = (os.environ.get(TOKEN_VARIABLE, ""), *_program)
    return "/".join((*filter(None, outer), token))


class Family(NamedTuple):
    """All processes of one command. `leader`: the ID of its first process and session.

    started: seconds on the monotonic clock. outputs: names of pipes as in /proc; processes that hold one belong too,
    but looking for them takes longer.
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
        """End all processes: TERM, also for stopped ones, and KILL after `grace` seconds.

        Yields the seconds to wait before the next step, until nothing runs and the first process `has_exited`.
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
        fields = _fields(self.leader)
        begun = int(fields[19]) if fields else 0
        running = (process for number in self._candidates() if (process := _read(number)) is not None)
        processes = [process for process in running if process.started >= begun]
        belonging = {process.number for process in processes if self._is_own(process)}
        while True:
            found = {each.number for each in processes if each.parent in belonging or each.session in belonging}
            if found <= belonging:
                return tuple(process for process in processes if process.number in belonging)
            belonging |= found

    def send(self, signal_number: int) -> int:
        """Send a signal to each of the command's processes, once; return their number.

        Holders of namespaces get no SIGTERM: all processes inside would be killed with them.
        """
        if signal_number == signal.SIGTERM:
            found = [process for process in self.living() if not process.holds_namespaces()]
            for process in found:
                _send(process, signal_number)
            if found:
                return len(found)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.leader, signal_number)  # without a pause, so that they cannot multiply between two signals
        left = self.living()
        for process in left:
            if process.group != self.leader:
                _send(process, signal_number)
        return len(left)

    def _candidates(self) -> Iterator[int]:
        """Yield the processes that can belong: younger ones have higher IDs, until these wrap around."""
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
        """Return whether a process holds an output; not for our children: a starting one briefly holds all pipes."""
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
    """Signal one process by a handle, checked again so that no other with a reused ID gets the signal."""
    with suppress(OSError):
        handle = os.pidfd_open(process.number)
        try:
            again = _read(process.number)
            if again is not None and again.started == process.started:
                signal.pidfd_send_signal(handle, signal_number)
        finally:
            os.close(handle)


def _read(number: int) -> _Process | None:
    fields = _fields(number)
    if not fields or fields[0] in (b"Z", b"X", b"x"):
        return None
    parent, group, session, started = (int(fields[place]) for place in (1, 2, 3, 19))
    return _Process(number, parent, group, session, started)


def _fields(number: int) -> list[bytes]:
    """Return the fields of a process in /proc, from its state on; empty if it is gone."""
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
_ROUNDS = 20  # each round ends at least one generation of orphans
_adopting: list[bool] = []  # set if this process adopts orphans
_program: list[str] = []  # the token of all commands of this program, once it has a watchdog
_NOBODY = 1 << 30  # never a process ID
own_children: set[int] = set()
"""Children that we started as commands and have not reaped."""
helpers: set[int] = set()
"""Children that are not commands: watchdogs, holders of namespaces."""


def adopt_orphans() -> bool:
    """Make this process the subreaper of its commands' orphans; return whether the system supports it."""
    if done := _prctl(_PR_SET_CHILD_SUBREAPER, 1):
        _adopting.append(True)
    return done


def hide_memory() -> bool:
    """Protect memory, environment and open files of this process from others of the same user (Linux).

    It can then not be debugged and leaves no core file. Root is not affected. Returns whether the system supports it.
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
    """Start a watchdog that ends all commands when this program dies, also by SIGKILL; once, before the first command.

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
    """Return the IDs of this process's children, also dead ones; none if orphans are not adopted."""
    return frozenset(_children()) if _adopting else frozenset()


def end_orphans(known: Iterable[int]) -> int:
    """End the orphans adopted since the children were `known`; return how many still ran.

    While other commands run, orphans cannot be attributed: the last command ends them. Each command has a session of
    its own, so a child in the session of this program is no orphan, but a process that another thread has started.
    """
    if not _adopting or len(own_children) > 1:
        return 0
    spared, found, session = {*known, *own_children, *helpers}, 0, os.getsid(0)
    for _ in range(_ROUNDS):
        left = {number: _fields(number) for number in _children() - spared}
        orphans = [number for number, fields in left.items() if not fields or int(fields[3]) != session]
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
