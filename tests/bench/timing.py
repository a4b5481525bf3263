"""How long things take, so that the figures of one run can be compared although the machine is not ours alone."""

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import process_time

__all__ = ["ROOT", "Prepare", "fastest", "fastest_command", "output_of", "scaled"]

ROOT = Path(__file__).parent.parent.parent

# An installed program finds its modules compiled; so do these, from the second start on.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

Prepare = Callable[[], Callable[[], object]]
"""Sets something up, untimed, and returns what is to be timed."""


def fastest(*preparations: Prepare, rounds: int = 5) -> list[float]:
    """Return the CPU seconds of the fastest run of each; they take turns, so that a noisy minute hits all alike."""
    best = [float("inf")] * len(preparations)
    for _ in range(rounds):
        for position, prepare in enumerate(preparations):
            best[position] = min(best[position], _cpu_seconds(prepare()))
    return best


def _cpu_seconds(timed: Callable[[], object]) -> float:
    gc.collect()
    begin = process_time()
    timed()
    return process_time() - begin


def fastest_command(*commands: Sequence[str], rounds: int = 10) -> list[float]:
    """Return the CPU seconds of the fastest run of each command, in turns. Raises CalledProcessError."""
    best = [float("inf")] * len(commands)
    for _ in range(rounds):
        for position, command in enumerate(commands):
            begin = _childrens_cpu_seconds()
            subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
            best[position] = min(best[position], _childrens_cpu_seconds() - begin)
    return best


def _childrens_cpu_seconds() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def output_of(code: str) -> str:
    """Return what `code` prints in a fresh interpreter that can import this project. Raises CalledProcessError."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, check=True, stdout=subprocess.PIPE, text=True).stdout


def scaled(count: int, size: float) -> int:
    """Return `count` for a run of `size` (1 is the whole benchmark), at least 2."""
    return max(2, round(count * size))
