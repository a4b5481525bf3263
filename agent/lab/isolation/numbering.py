"""Numbers of processes in a cell that root made: so few that the kernel runs out of them.

Of root the kernel counts no processes. But from Linux 6.14 on each process namespace has a `pid_max` of its own, which
only root lowers; numbers below 300 are used once. Before that it is one for the whole machine, and left alone.
"""

import os
import shutil
import subprocess
from contextlib import suppress

from agent.tools.sandbox.limits import linux

__all__ = ["number_at_most"]

OF_EACH_NAMESPACE = (6, 14)
USED_ONCE = 300
LONGEST = 10.0  # seconds


def number_at_most(namespace: int, processes: int) -> None:
    """Let the kernel have numbers for about so many processes in a namespace, given by its descriptor, if it can."""
    nsenter = shutil.which("nsenter")
    if nsenter is None or linux() < OF_EACH_NAMESPACE:
        return
    inside = [nsenter, f"--pid=/proc/{os.getpid()}/fd/{namespace}", "--"]
    script = f"echo {USED_ONCE + 8 + processes} > /proc/sys/kernel/pid_max"
    with suppress(OSError, subprocess.SubprocessError):  # the guard counts, too
        subprocess.run(
            [*inside, "sh", "-c", script], env={"PATH": os.defpath}, capture_output=True, timeout=LONGEST, check=False
        )
