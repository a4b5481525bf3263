"""Leaving: a worker process ends with the process that started it, also when that was killed and could not say so."""

import os
import threading
from multiprocessing import parent_process

__all__ = ["leave_with_the_parent"]


def leave_with_the_parent() -> None:
    """Watch the parent from a thread, and end this process when it has ended: nobody else would."""
    threading.Thread(target=_leave_when_it_ends, name="leave with the parent", daemon=True).start()


def _leave_when_it_ends() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)  # whatever this process is doing, nobody waits for it
