"""Devices of a cell that root made: mounted read only, so that their modes are not to be changed from inside.

Whoever runs experiments as root owns the devices of the machine, also inside, where they are the same ones; and what
an owner does to the mode of a file needs no capability. bubblewrap can mount read only, but then they are no devices
any more. So a thread of ours goes into the mount namespace, as only root can, and mounts them once more.
"""

import ctypes
import os
from collections.abc import Iterable
from threading import Thread

__all__ = ["protect"]

CLONE_FS, CLONE_NEWNS = 0x200, 0x20000
READ_ONLY = 1 | 2 | 8 | 32 | 4096  # MS_RDONLY, MS_NOSUID, MS_NOEXEC, MS_REMOUNT, MS_BIND


def protect(mounts: int, places: Iterable[str]) -> None:
    """Mount `places` read only in a mount namespace, given by its descriptor. Raises OSError."""
    failed: list[OSError] = []

    def go_in() -> None:
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            _succeed(libc.unshare(CLONE_FS))  # this thread has a root and a folder of its own from here on
            _succeed(libc.setns(mounts, CLONE_NEWNS))
            for place in places:
                _succeed(libc.mount(None, os.fsencode(place), None, ctypes.c_ulong(READ_ONLY), None))
        except OSError as error:
            failed.append(error)

    thread = Thread(target=go_in, name="into a cell")  # and never comes back: it ends in there
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def _succeed(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
