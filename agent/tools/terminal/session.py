"""A persistent session: commands one after the other, each in a shell that begins where the last one ended."""

import os
from collections.abc import Callable

from attrs import define

from agent.tools.errors import ToolError
from agent.tools.process import Finished, run_process
from agent.tools.retention import Collector
from agent.tools.terminal.snapshot import Snapshot, exchange, read_snapshot, runner

__all__ = ["Session"]


@define
class Session:
    """An open session; `snapshot` is where it stands."""

    snapshot: Snapshot

    async def run(
        self,
        command: str,
        *,
        env: dict[str, str],
        timeout: float | None,
        output: Collector,
        errors: Collector | None,
        progress: Callable[[str], None] | None,
    ) -> tuple[Finished, bool]:
        """Run a command; return how it ended, and whether the session knows what it changed.

        Raises CannotStart and ToolError when nothing was run.
        """
        if not os.path.isdir(self.snapshot.cwd):
            raise ToolError(f"the session's directory {self.snapshot.cwd} is gone; close the session with close=true")
        with exchange(self.snapshot, _encoded(command)) as descriptors:
            finished = await run_process(
                ("bash", "-c", runner(descriptors)),
                cwd=self.snapshot.cwd,
                env={**env, "PWD": self.snapshot.cwd},
                timeout=timeout,
                output=output,
                errors=errors,
                progress=progress,
                pass_fds=descriptors,
            )
            left = read_snapshot(descriptors[2])
        if left is not None and not finished.timed_out:
            self.snapshot = left
            return finished, True
        return finished, False


def _encoded(command: str) -> bytes:
    try:
        encoded = command.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ToolError(f"command: a lone surrogate at position {error.start}; leave it out") from error
    if b"\0" in encoded:
        raise ToolError(f"command: a NUL character at byte {encoded.index(0)}; leave it out")
    return encoded
