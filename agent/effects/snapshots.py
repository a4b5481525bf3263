"""Keep the workspace before calls that may change files, and after them."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress

from attrs import define, field

from agent.tools.blocking import run_in_background
from agent.tools.definition import Toolbox
from agent.tools.snapshots.store import Moment, Snapshot, Snapshots
from agent.tools.snapshots.trees import TOO_LARGE, SnapshotError
from agent.vocabulary.events import (
    AbortAsked,
    DeadlineReached,
    SnapshotFailed,
    SnapshotRequested,
    SnapshotTaken,
    StopAsked,
)
from bp.runner import Effect

MOST_TOLD = 20
"""The names of one kind that an event lists."""


@define(eq=False)
class Keeper:
    """Takes the snapshots of one conversation. `has_background`: whether processes of it are alive."""

    snapshots: Snapshots
    has_background: Callable[[], bool]
    run: str
    names: list[str] = field(factory=list, init=False)
    _first: threading.Thread | None = field(default=None, init=False)
    _is_over: threading.Event = field(factory=threading.Event, init=False)

    def begin(self) -> None:
        """Begin the first snapshot of the workspace in a thread: it reads every file, while the model thinks."""
        if self._first is None and not self.snapshots.runs():
            self._first = threading.Thread(target=self._take_first, name="first snapshot", daemon=True)
            self._first.start()

    def _take_first(self) -> None:
        with suppress(SnapshotError):  # told when a call needs one
            self.snapshots.take(self.run, "before", is_cancelled=self._is_over.is_set)

    def close(self) -> None:
        """Break off the first snapshot."""
        self._is_over.set()
        self.wait()

    def wait(self) -> None:
        """Wait for the end of the first snapshot, if it is under way."""
        if self._first is not None:
            self._first.join()

    async def take(self, moment: Moment, calls: tuple[str, ...] = ()) -> Snapshot:
        """Keep the workspace as it is, in a thread. Raises SnapshotError; ends the thread when it is cancelled."""
        cancelled, background = threading.Event(), self.has_background()

        def keep() -> Snapshot:
            self.wait()
            return self.snapshots.take(self.run, moment, calls, background=background, is_cancelled=cancelled.is_set)

        try:
            return await run_in_background(keep)
        finally:
            cancelled.set()

    async def before(self, leave_out: tuple[str, ...] = ()) -> SnapshotTaken | SnapshotFailed:
        """Keep the workspace before calls, from now on without some paths.

        One of which a file is too large to be kept is no snapshot.
        """
        try:
            if leave_out:
                await run_in_background(lambda: self.snapshots.leave_out(leave_out))
            taken = await self.take("before")
        except SnapshotError as error:
            return SnapshotFailed(str(error), getattr(error, "leave_out", ()))
        if large := [each for each in taken.unkept if TOO_LARGE in each]:
            paths = tuple(f"./{each.partition(f': {TOO_LARGE}')[0]}" for each in large)
            cure = f"to leave it out: --option snapshot_exclude={','.join(_some(paths))}"
            return SnapshotFailed(f"{'; '.join(_some(large))}; {cure}", paths)
        self.names.append(taken.name)
        return SnapshotTaken(taken.name, _some(taken.made_again), _some(taken.unkept), taken.told)

    async def after(self, call: str) -> None:
        """Keep the workspace after a call, so that later changes of others can be told from those of the call."""
        if self.names:
            with suppress(SnapshotError):  # then it counts as one that was cut off
                await self.take("after", (call,))

    def take_up(self, taken: SnapshotTaken) -> None:
        """Go on after a snapshot of a recorded run, under the name of that run."""
        self.run = taken.snapshot.rpartition("/")[0]
        self.names.append(taken.snapshot)


def _some(names: Sequence[str]) -> tuple[str, ...]:
    more = len(names) - MOST_TOLD
    return (*names[:MOST_TOLD], f"and {more} more") if more > 0 else tuple(names)


def snapshot_effect(keeper: Keeper | None, toolbox: Toolbox) -> Effect:
    """Return the effect of `snapshot_requested`; the toolbox knows what they leave out."""

    async def keep(requested: SnapshotRequested) -> SnapshotTaken | SnapshotFailed:
        if keeper is None:
            return SnapshotFailed("this agent has no snapshots")
        outcome = await keeper.before(requested.leave_out)
        toolbox.unkept = keeper.snapshots.left_out
        return outcome

    until = AbortAsked | StopAsked | DeadlineReached
    return Effect(
        SnapshotRequested, keep, (SnapshotTaken, SnapshotFailed), lambda _, broken: SnapshotFailed(str(broken)), until
    )
