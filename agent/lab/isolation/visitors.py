"""The shell tool of an agent in a cell: commands run inside, watched and ended from outside like any other.

A command that meets with a limit of its cell says so at the end of its output; what it says is also kept by the cell.
"""

from typing import Unpack

import anyio.to_thread
from attrs import evolve, frozen

from agent.lab.isolation.cell import Cell
from agent.lab.isolation.guarding import Excess
from agent.tools.process import Finished
from agent.tools.sandbox.limits import kinds_shown_by
from agent.tools.shell import How, LocalCommands

__all__ = ["CellCommands"]


@frozen
class CellCommands:
    """Runs commands in a cell, as `Commands` says."""

    cell: Cell

    async def run(self, command: str, *, shell: tuple[str, ...], **how: Unpack[How]) -> Finished:
        """Run `command` inside. Raises IsolationError where there is no inside."""
        await anyio.to_thread.run_sync(self.cell.open)
        inside: How = {**how, "cwd": "/"}
        before = len(self.cell.excesses)
        finished = await LocalCommands().run(command, shell=self.cell.joined(shell, how["cwd"]), **inside)
        return self._with_limits(finished, self.cell.excesses[before:])

    def _with_limits(self, finished: Finished, ended_by: list[Excess]) -> Finished:
        """Return how a command ended with a line for each limit that it met with."""
        if ended_by:
            end = "everything that ran here was ended, and what was in memory is gone"
            return _with_lines(finished, [f"[{excess.text}; {end}]" for excess in ended_by])
        shown = [Excess(kind, self.cell.limits.told(kind)) for kind in kinds_shown_by(finished)]
        self.cell.excesses += shown
        return _with_lines(finished, [f"[the limit here: {excess.text}]" for excess in shown])


def _with_lines(finished: Finished, lines: list[str]) -> Finished:
    if not lines:
        return finished
    parts = [finished.output.rstrip("\n"), *lines] if finished.output.strip() else lines
    return evolve(finished, output="\n".join(parts) + "\n")
