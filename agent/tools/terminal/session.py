"""A persistent session: commands one after the other, each in a shell that begins where the last one ended."""

import os
from typing import Unpack

from attrs import define

from agent.tools.errors import ToolError
from agent.tools.process import Finished, run_process
from agent.tools.shell.execution import How, encoded
from agent.tools.terminal.script import exchange, script_for
from agent.tools.terminal.snapshot import MOST_BYTES, Snapshot, read_left

__all__ = ["NOTHING_KEPT", "Session"]

# Where they are missing, a shell would set them by itself, each as it was built: that would look like the command's.
OF_A_BARE_SHELL = {"PATH": os.defpath, "SHELL": "/bin/sh", "TERM": "dumb"}

NOTHING_KEPT = "[the session is as it was before this command: directory and variables that it changed are lost]"


@define
class Session:
    """An open session; `snapshot` is where it stands."""

    snapshot: Snapshot

    async def run(self, command: str, **how: Unpack[How]) -> tuple[Finished, tuple[str, ...]]:
        """Run a command; return how it ended, and what the session does not keep of it, in words.

        Raises CannotStart and ToolError when nothing was run.
        """
        now, given = self.snapshot, {**OF_A_BARE_SHELL, **how["env"]}
        if not os.path.isdir(now.cwd):
            raise ToolError(f"the session's directory {now.cwd} is gone; close the session with close=true")
        with exchange(encoded(command)) as (script, out):
            inside: How = {**how, "cwd": now.cwd, "env": now.environment(given)}
            argv = ("bash", "-c", script_for(now.inner, script, out))
            finished = await run_process(argv, pass_fds=(script, out), **inside)
            left = None if finished.timed_out else read_left(os.pread(out, MOST_BYTES + 1, 0), given)
        if left is None:
            return finished, (NOTHING_KEPT,)
        self.snapshot = left.snapshot
        return finished, left.notes
