"""Find what hid from its command completely: orphans, which the command line program adopts, and so knows.

A process that cleans its environment, leaves its session, loses its parent and closes its output cannot be told from
any other one, except by whom it is handed to when its parent ends: to us, where `adopt_orphans` was called. That is
a property of the whole process, so only a program of its own may call it, never a library within another program.
"""

import os
import signal
from collections.abc import Iterable
from contextlib import suppress

__all__ = ["adopt_orphans", "end_orphans", "note_end", "note_start", "our_children"]

_PR_SET_CHILD_SUBREAPER = 36
_ROUNDS = 20  # each ends one generation of orphans at least
_adopting: list[bool] = []  # not empty: this process adopts orphans
_started: set[int] = set()  # children that we started ourselves and have not reaped


def adopt_orphans() -> bool:
    """Have orphans of our commands handed to this process, from now on; return whether the system does that."""
    import ctypes

    try:
        done: bool = ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    except (OSError, AttributeError):
        return False
    if done:
        _adopting.append(True)
    return done


def our_children() -> frozenset[int]:
    """Return the numbers of this process's children, the dead ones too; none where orphans are not adopted."""
    return frozenset(_children()) if _adopting else frozenset()


def note_start(number: int) -> None:
    """Remember a child that was started, not adopted."""
    _started.add(number)


def note_end(number: int) -> None:
    """Forget a child that was reaped."""
    _started.discard(number)


def end_orphans(known: Iterable[int]) -> int:
    """End what was adopted since the children were those `known`; return how many still ran.

    While other commands run, nobody can tell whose orphans they are: the last one ends them.
    """
    if not _adopting or len(_started) > 1:
        return 0
    spared, found = {*known, *_started}, 0
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
