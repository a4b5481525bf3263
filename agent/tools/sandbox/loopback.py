"""One loopback for all commands of an agent: a server that one starts is reached by the next, and by nothing else.

A process holds namespaces for the network, shared memory and the host name until the agent lets go of its standard
input, also by dying. Commands join with `nsenter`. Without that program each command has its own.
"""

import json
import os
import shutil
import subprocess
from contextlib import suppress
from threading import Lock
from weakref import finalize

from agent.tools.descendants import forget_helper, note_helper

__all__ = ["Loopback"]

NAMESPACES = ("user", "net", "ipc", "uts")
HOLDER = (*(f"--unshare-{name}" for name in NAMESPACES), "--cap-drop", "ALL", "--dev-bind", "/", "/")
WAIT = ("/bin/sh", "-c", "echo; exec cat >/dev/null")


class Loopback:
    """The network namespace of an agent, made at the first use, and anew when its holder was killed."""

    def __init__(self) -> None:
        """Begin without one."""
        self._holder: subprocess.Popen[bytes] | None = None
        self._inside = 0
        self._lock = Lock()

    def words(self) -> tuple[str, ...]:
        """Return the words before a command that let it join; none where that cannot be."""
        nsenter = shutil.which("nsenter")
        if nsenter is None:
            return ()
        with self._lock:
            if self._holder is None or self._holder.poll() is not None:
                self._start()
            if not self._inside:
                return ()
            joined = (f"--{name}=/proc/{self._inside}/ns/{name}" for name in NAMESPACES)
            return (nsenter, *joined, "--preserve-credentials", "--")

    def _start(self) -> None:
        self._inside = 0
        told, telling = os.pipe()
        with open(told, "rb", buffering=0) as info:
            try:
                argv = [shutil.which("bwrap") or "bwrap", *HOLDER, "--info-fd", str(telling), "--", *WAIT]
                nowhere = subprocess.DEVNULL
                self._holder = subprocess.Popen(
                    argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=nowhere, pass_fds=(telling,), env={},
                    start_new_session=True,
                )  # fmt: skip
            finally:
                os.close(telling)
            note_helper(self._holder.pid)
            finalize(self, _end, self._holder)
            assert self._holder.stdout is not None
            with self._holder.stdout as said, suppress(ValueError, KeyError):
                if not said.read(1):  # it never came to run
                    return
                self._inside = int(json.loads(info.read(65536))["child-pid"])


def _end(holder: "subprocess.Popen[bytes]") -> None:
    """Let go of the namespace; it goes when the last command in it has ended."""
    if holder.stdin is not None:
        holder.stdin.close()
    holder.kill()
    holder.wait()
    forget_helper(holder.pid)
