"""What to type to call this program again, from the shell that it was called from."""

import os
import shlex
import shutil
import sys

__all__ = ["OWN_NAME", "called"]

OWN_NAME = "bpagent"


def called(*words: str) -> str:
    """Return a command line of ours for the shell: by name where that finds us, else by the path that was typed."""
    typed = sys.argv[0]
    by_path = os.path.basename(typed) == OWN_NAME and os.path.exists(typed) and not _is_found(typed)
    return shlex.join((typed if by_path else OWN_NAME, *words))


def _is_found(typed: str) -> bool:
    found = shutil.which(OWN_NAME)
    return found is not None and os.path.samefile(found, typed)
