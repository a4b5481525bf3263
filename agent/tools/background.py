"""Background processes: one call starts them, others read and stop them; none outlives the run or the program.

A daemon thread reads what a process prints, of which a bounded part is kept.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Lock, Thread
from typing import Annotated, Any, Literal

import anyio
from attrs import Factory, define, evolve, field

from agent.tools.definition import PerAgent, Tool, tool
from agent.tools.descendants import GRACE
from agent.tools.output import Retained, Retention
from agent.tools.process import Child, end_at_once, signal_name, start_child
from agent.tools.schemas import Limits
from agent.vocabulary.errors import ToolError
from agent.vocabulary.events import ToolFinished
from agent.vocabulary.messages import ToolResult

MOST_PROCESSES = 16  # that may run in parallel
MOST_ENDED = 16  # whose last output can still be read
SETTLE = 1.0  # seconds to wait for a failure at the start

LONGEST_WAIT = 120  # seconds that a reader waits for more output

_PIECE = 65536
_PAUSE = 0.05  # seconds between two checks
_PATIENCE = 1.0  # seconds for the reader to see the end of the output

Until = Literal["run", "program"]


@define(eq=False)
class Process:
    """A background process. `how`: how it ended, None while it runs; `child`: None for one of an earlier program.

    It may have child processes, and has ended when the last of them has. `new`: the output not yet read by the model; a
    thread adds to it. `over` is called when it has ended.
    """

    id: str
    command: str
    until: Until = "run"
    retention: Retention = Retention()
    how: str | None = None
    child: Child | None = None
    reader: Thread | None = None
    over: Callable[[], object] = tuple
    new: Retained = field(init=False, default=Factory(lambda self: self.retention.collector(), takes_self=True))
    lock: Lock = field(init=False, factory=Lock)

    @property
    def told(self) -> str:
        """The state of the process, in words for the model."""
        return f"{self.id} is running" if self.how is None else f"{self.id} ended: {self.how}"

    def row(self) -> dict[str, str]:
        """Return its entry in the details of a result."""
        row = {"id": self.id, "command": self.command}
        if self.how is None:
            return {**row, "status": "running", "until": self.until}
        return {**row, "status": "ended", "how": self.how}

    def read(self, pipe: int) -> None:
        """Read the output of the process to its end, from a descriptor owned by this thread."""
        with os.fdopen(pipe, "rb", buffering=0) as output, suppress(OSError):
            while piece := output.read(_PIECE):
                with self.lock:
                    self.new.add(piece)

    def take(self) -> str:
        """Return the output since the last call."""
        with self.lock:
            taken, self.new = self.new, self.retention.collector()
        return taken.readable(taken.text())

    def has_exited(self) -> bool:
        """Return whether all of its processes ended by themselves."""
        child = self.child
        return child is not None and child.has_exited() and not child.family.living()

    async def notice(self) -> bool:
        """Read its last output if it has ended by itself; return whether it has."""
        if ended := self.has_exited():
            await self.finish()
        return ended

    async def finish(self, how: str | None = None, *, grace: float = 0.0) -> None:
        """End its remaining processes, and read the last output; `how`: how it ended, by default its exit."""
        child, self.child = self.child, None
        if child is None:
            return
        try:
            if grace:
                await child.end(grace)
        finally:
            with anyio.CancelScope(shield=True):
                await end_at_once(child)
            if self.reader is not None:
                self.reader.join(_PATIENCE)
            child.close()
            self.over()
            self.how = how or ended_by(child.popen.returncode)


def ended_by(code: int | None) -> str:
    """Return in words how a process with this return code ended (negative: a signal; None: it could not be killed)."""
    if code is None:
        return "it was to end, and may run on"
    return f"exit code {code}" if code >= 0 else f"killed by signal {-code} ({signal_name(-code)})"


@define(eq=False)
class _Started:
    """The processes of one agent by id, those whose end the model was not told, and the number of the last one."""

    processes: dict[str, Process] = field(factory=dict)
    untold: list[Process] = field(factory=list)
    number: int = 0


@define(eq=False)
class Processes:
    """The background processes of each agent.

    until: whether they end with the run that started them, or with our program. settle: seconds that a start waits for
    an early end. retention: bounds of unread output.
    """

    until: Until = "run"
    settle: float = SETTLE
    retention: Retention = Retention()
    _started: PerAgent[_Started] = field(init=False, factory=lambda: PerAgent(_Started))

    @property
    def _all(self) -> dict[str, Process]:
        return self._started.own.processes

    @property
    def _untold(self) -> list[Process]:
        return self._started.own.untold

    def running(self) -> tuple[Process, ...]:
        """Return the running processes, by last known state."""
        return tuple(process for process in self._all.values() if process.how is None)

    def mark_alive(self, agents: set[int], *, or_soon: bool = False) -> None:
        """Add this agent to a set, or remove it, by whether processes of it run, or one will `or_soon`."""
        (agents.add if or_soon or self.running() else agents.discard)(id(self._started.own))

    async def start(
        self,
        command: str,
        argv: Sequence[str],
        *,
        cwd: str,
        env: Mapping[str, str],
        pass_fds: Sequence[int] = (),
        over: Callable[[], object] = tuple,
    ) -> ToolResult:
        """Start a process and return the answer to the call; `over` is called at its end.

        Raises CannotStart, and ToolError above the limit.
        """
        if len(self.running()) >= MOST_PROCESSES:
            raise ToolError(f"{MOST_PROCESSES} background processes are running already; stop one with process_stop")
        child = start_child(argv, cwd=cwd, env=env, pass_fds=pass_fds)
        process = self._add(command, child)
        process.over = over
        with anyio.move_on_after(self.settle):
            await child.exit()
        if await process.notice():
            return self._answer(process)
        whole = f"{process.id} runs in the background until {'the run' if self.until == 'run' else 'bpagent'} ends"
        cures = "read its output with process_output, stop it with process_stop"
        return self._answer(process, f"[{whole}; {cures}]", "(no output yet)")

    async def read(self, id: str, wait: float) -> ToolResult:
        """Return the output of a process since the last call; `wait`: seconds to wait for output, or the end."""
        process = self._named(id)
        with anyio.move_on_after(wait):
            while wait and process.new.is_empty and not process.has_exited():
                await anyio.sleep(_PAUSE)
        await process.notice()
        return self._answer(process)

    async def stop(self, id: str) -> ToolResult:
        """End a process: TERM, and KILL two seconds later; return its output since the last call."""
        process = self._named(id)
        await process.notice()
        await process.finish("stopped", grace=GRACE)
        return self._answer(process)

    async def listed(self) -> ToolResult:
        """Return a line for each process."""
        await self.news()
        text = "\n".join(f"{each.told}: {each.command}" for each in self._all.values()) or "(no background processes)"
        return ToolResult(text, details=_details(self._all.values()))

    async def news(self) -> tuple[Process, ...]:
        """Return the processes that ended and were not yet reported to the model."""
        for process in self.running():
            if await process.notice():
                self._untold.append(process)
        ended = tuple(self._untold)
        self._untold.clear()
        return ended

    async def end_run(self) -> None:
        """End the processes that must not outlive a run."""
        if self.until == "run" and (ending := self.running()):
            with anyio.CancelScope(shield=True):
                async with anyio.create_task_group() as group:
                    for process in ending:
                        group.start_soon(process.finish, "with the run")
            self._untold.extend(ending)

    def restore(self, finished: ToolFinished) -> None:
        """Restore the processes of a recorded call; none of them runs any more."""
        for row in finished.result.details.get("background", ()):
            was_running = row["status"] == "running"
            how = "with the program that had started it" if was_running else str(row["how"])
            process = self._all[row["id"]] = Process(str(row["id"]), str(row["command"]), how=how)
            self._untold[:] = [each for each in self._untold if each.id != process.id]
            if was_running:
                self._untold.append(process)
            own = self._started.own
            own.number = max(own.number, int(process.id.removeprefix("bg_")))

    def _add(self, command: str, child: Child) -> Process:
        """Register a started process, start reading its output, and forget old processes."""
        self._started.own.number += 1
        process = Process(f"bg_{self._started.own.number}", command, self.until, self.retention, child=child)
        self._all[process.id] = process
        os.set_blocking(child.pipes[0], True)
        own = os.dup(child.pipes[0])
        process.reader = Thread(target=process.read, args=(own,), daemon=True, name=process.id)
        process.reader.start()
        for old in [each for each in self._all.values() if each.how is not None][:-MOST_ENDED]:
            del self._all[old.id]
        return process

    def _named(self, id: str) -> Process:
        if id not in self._all:
            raise ToolError(f"there is no background process {id!r}; there are: {', '.join(self._all) or 'none'}")
        return self._all[id]

    def _answer(self, process: Process, said: str = "", nothing: str = "(no new output)") -> ToolResult:
        self._untold[:] = [each for each in self._untold if each is not process]
        text = process.take().rstrip("\n") or nothing
        return ToolResult(f"{text}\n{said or f'[{process.told}]'}", details=_details([process]))


async def ended_since(processes: Processes | None) -> tuple[list[str], dict[str, Any]]:
    """Return the report of newly ended processes for an answer: its lines and its details."""
    ended = () if processes is None else await processes.news()
    return [f"[background process {process.told}]" for process in ended], _details(ended) if ended else {}


def _details(processes: Iterable[Process]) -> dict[str, Any]:
    """Return the entries of processes in the details of a result."""
    return {"background": [process.row() for process in processes]}


def make_process_tools(processes: Processes) -> tuple[Tool, Tool]:
    """Return `process_output` and `process_stop`."""

    @tool(category="read")
    async def process_output(
        id: Annotated[str, "of the process, such as bg_1; leave it out for a list of all"] | None = None,
        wait: Annotated[float, Limits(minimum=0, maximum=LONGEST_WAIT), "seconds to wait for output or the end"] = 0,
    ) -> ToolResult:
        """Read what a background process has printed since you last read it, and whether it runs."""
        return await (processes.listed() if id is None else processes.read(id, wait))

    @tool(category="write")
    async def process_stop(id: Annotated[str, "of the process, such as bg_1"]) -> ToolResult:
        """Stop a background process and everything that it started."""
        return await processes.stop(id)

    restores = processes.restore
    return evolve(process_output, polls=True, restores=restores), evolve(process_stop, restores=restores)
