"""A persistent session: commands one after the other, each in a shell that begins where the last one ended."""

import os
from typing import Unpack

from attrs import define

from agent.tools.errors import ToolError
from agent.tools.process import Finished, run_process
from agent.tools.shell.execution import How, encoded
from agent.tools.terminal.snapshot import Snapshot, exchange, read_snapshot, runner

__all__ = ["Session"]


@define
class Session:
    """An open session; `snapshot` is where it stands."""

    snapshot: Snapshot

    async def run(self, command: str, **how: Unpack[How]) -> tuple[Finished, bool]:
        """Run a command; return how it ended, and whether the session knows what it changed.

        Raises CannotStart and ToolError when nothing was run.
        """
        if not os.path.isdir(self.snapshot.cwd):
            raise ToolError(f"the session's directory {self.snapshot.cwd} is gone; close the session with close=true")
        with exchange(self.snapshot, encoded(command)) as descriptors:
            where = self.snapshot.cwd
            inside: How = {**how, "cwd": where, "env": {**how["env"], "PWD": where}}
            finished = await run_process(("bash", "-c", runner(descriptors)), pass_fds=descriptors, **inside)
            left = read_snapshot(descriptors[2])
        if left is not None and not finished.timed_out:
            self.snapshot = left
            return finished, True
        return finished, False
