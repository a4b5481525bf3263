"""The shell tool of an agent in a cell: commands run inside, watched and ended from outside like any other."""

from typing import Unpack

import anyio.to_thread
from attrs import frozen

from agent.lab.isolation.cell import Cell
from agent.tools.process import Finished
from agent.tools.shell import LocalCommands
from agent.tools.shell.execution import How

__all__ = ["CellCommands"]


@frozen
class CellCommands:
    """Runs commands in a cell, as `Commands` says."""

    cell: Cell

    async def run(self, command: str, *, shell: tuple[str, ...], **how: Unpack[How]) -> Finished:
        """Run `command` inside. Raises IsolationError where there is no inside."""
        await anyio.to_thread.run_sync(self.cell.open)
        inside: How = {**how, "cwd": "/"}
        return await LocalCommands().run(command, shell=self.cell.joined(shell, how["cwd"]), **inside)
