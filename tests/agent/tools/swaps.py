"""Another process that exchanges two names as fast as it can: what holds then holds against every race."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SWAP = """
import ctypes, os, signal, sys
directory, link = map(os.fsencode, sys.argv[1:])
running = True
def stop(*_):
    global running
    running = False
signal.signal(signal.SIGTERM, stop)
exchange, here, both = ctypes.CDLL(None).renameat2, -100, 2
print("ready", flush=True)
swaps = 0
while running:
    assert exchange(here, directory, here, link, both) == 0
    swaps += 1
print(swaps)
"""


@contextmanager
def swapping(directory: Path, link: Path) -> Iterator[list[int]]:
    """Exchange two names in another process; give the number of times, once that is over."""
    swaps: list[int] = []
    swapper = subprocess.Popen([sys.executable, "-c", SWAP, directory, link], stdout=subprocess.PIPE)
    assert swapper.stdout is not None
    swapper.stdout.readline()
    try:
        yield swaps
    finally:
        swapper.terminate()
        swaps.append(int(swapper.communicate()[0]))
