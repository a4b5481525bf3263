"""The files of a recorded run: the workspace before and at each step, what every call changed, and who did."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from attrs import define, field, frozen

from agent.log.chain import own_folder
from agent.log.reading import RecordedRun
from agent.tools.files import compare
from agent.tools.snapshots.store import Snapshot, Snapshots
from agent.tools.snapshots.trees import SnapshotError
from agent.tools.snapshots.undo import CUT_OFF, Change, changes

LONGEST = 60  # characters of a call
LARGEST = 1_000_000  # bytes of a file that is compared line by line
MOST_KNOWN = 3  # snapshots
BACKGROUND = "background"
NOT_OURS = "not by a call of this run"

Record = Mapping[str, Any]


@frozen
class FileChange:
    """A file that has changed, by whom in words, and the lines of its difference."""

    path: str
    kind: str
    who: str
    lines: tuple[str, ...]


@define
class FileHistory:
    """The snapshots of a run, with its steps; `take` adds a record.

    moments: a step, the call that ended there (empty where a snapshot was taken before calls), and the latest snapshot
    before calls. calls: the calls in words, by id. last_prompt: the step of the latest prompt. begun: the step up to
    which the run was in another workspace.
    """

    snapshots: Snapshots
    begun: int = 0
    moments: list[tuple[int, str, str]] = field(factory=list, init=False)
    calls: dict[str, str] = field(factory=dict, init=False)
    last_prompt: int = field(default=0, init=False)
    _changing: set[str] = field(factory=set, init=False)
    _running: set[str] = field(factory=set, init=False)
    _latest: str = field(default="", init=False)
    _known: dict[str, Snapshot] = field(
        factory=dict, init=False
    )  # the latest that were read: a read takes milliseconds

    def take(self, record: Record) -> None:
        """Take the next record of the log."""
        step, data = record["step"], record["data"]
        match record["name"]:
            case "prompt_given":
                self.last_prompt = step
            case "proposed_action":
                self._learn(data["call"])
            case _ if step <= self.begun:
                pass
            case "snapshot_taken":
                self._latest = data["snapshot"]
                self.moments.append((step, "", self._latest))
            case "tool_started":
                self._running |= {_id_of(data["call"])} & self._changing
            case "tool_finished" | "call_answered" if (call := _id_of(data["call"])) in self._running:
                self._running.remove(call)
                self.moments.append((step, call, self._latest))
            case "run_ended":
                self.moments.append((step, BACKGROUND, self._latest))

    def _learn(self, call: Mapping[str, Any]) -> None:
        self.calls[call["id"]] = str(call["arguments"].get("command") or call["tool"])[:LONGEST]
        if call.get("category") != "read":
            self._changing.add(call["id"])

    @property
    def names(self) -> list[tuple[int, str]]:
        """The snapshots before calls: the step of each, and its name."""
        return [(step, name) for step, call, name in self.moments if not call]

    def before(self, step: int) -> str:
        """Return the name of the first snapshot from a step on. Raises SnapshotError."""
        name = next((name for number, name in self.names if number >= step), None)
        if name is None:
            raise SnapshotError(f"no call that may change files came after step {step}, so there is nothing to undo")
        return name

    def at(self, step: int) -> Snapshot:
        """Return the workspace as the calls that had ended at a step left it.

        That is the latest snapshot up to the step, before calls or after one; if nothing was changed before, the first
        one after it. A call that is under way has changed nothing yet. Raises SnapshotError.
        """
        if step < self.begun:
            raise SnapshotError(f"step {step} was in another workspace: until step {self.begun} this is a branch")
        for _, call, name in reversed([moment for moment in self.moments if moment[0] <= step]):
            if not call:
                return self.snapshots.get(name)
            if after := self.after(name, call):
                return after
            if call != BACKGROUND:  # it was cut off, and what it left stands in the next snapshot
                break
        later = next((name for number, name in self.names if number > step), None)
        if later is None:
            for _, name in self.names:
                self.snapshots.get(name)  # says so if they have gone
            known = ", ".join(str(number) for number, _ in self.names) or "none"
            raise SnapshotError(f"the workspace was not kept at step {step}; it was before the calls of steps {known}")
        return self.snapshots.get(later)

    def _get(self, name: str) -> Snapshot:
        if name not in self._known:
            snapshot = self.snapshots.get(name)
            self._known = {**dict([*self._known.items()][-MOST_KNOWN:]), name: snapshot}
        return self._known[name]

    def after(self, before: str, call: str) -> Snapshot | None:
        """Return the snapshot after a call, of those between one before calls and the next; None if there is none."""
        run, _, number = before.rpartition("/")
        with suppress(SnapshotError, ValueError):
            while (found := self._get(f"{run}/{int(number) + 1:06}")).moment == "after":
                if call in found.calls:
                    return found
                number = found.name.rpartition("/")[2]
        return None

    def changed_at(self, record: Record) -> list[FileChange]:
        """Return what a call changed, at the record of its answer; at that of a snapshot, what others did before it."""
        match record["name"]:
            case "snapshot_taken":
                with suppress(SnapshotError):
                    return self._changed_until(self._get(record["data"]["snapshot"]))
            case "call_answered":
                call = record["data"]["call"]
                name = next((name for number, ended, name in reversed(self.moments) if ended == call), "")
                if name and (found := self.after(name, call)):
                    return self._changed_until(found)
        return []

    def _changed_until(self, end: Snapshot) -> list[FileChange]:
        """Return the changes between a snapshot and the one before it."""
        run, _, number = end.name.rpartition("/")
        try:
            start = self._get(f"{run}/{int(number) - 1:06}")
            who = self.who(_makers(start, end))
            return [
                FileChange(change.path, str(change.kind), who, tuple(difference(change, start, end)))
                for change in shown(changes(start, end))
            ]
        except SnapshotError:  # the first one, or one that has gone
            return []

    def who(self, by: Iterable[str]) -> str:
        """Return in words who changed a file: the calls with these ids; without any, others."""
        return ", ".join(self.calls.get(call, call) for call in by) or NOT_OURS


def history_of(recorded: RecordedRun) -> FileHistory:
    """Return the files of a run whose records are still to be taken; those of a branch begin with its workspace."""
    begun = (recorded.header.get("branch") or {}).get("files", 0)
    options = recorded.header.get("configuration") or {}
    return FileHistory(Snapshots.under(options, str(recorded.header.get("workspace")), own_folder()), begun)


def file_history(recorded: RecordedRun) -> FileHistory:
    """Return the files of a recorded run."""
    history = history_of(recorded)
    for record in recorded.records:
        history.take(record)
    return history


def _id_of(call: Any) -> str:
    return str(call["id"] if isinstance(call, Mapping) else call)


def _makers(start: Snapshot, end: Snapshot) -> tuple[str, ...]:
    """Return who can have changed what differs between two snapshots that follow each other."""
    if end.moment == "after":
        return end.calls
    if start.moment == "before":
        return CUT_OFF
    return ("a background process",) if start.background or end.background else ()


def shown(changed: Iterable[Change]) -> list[Change]:
    """Return the changes of files that users care for: not those within repositories."""
    return [change for change in changed if change.kind and "/.git/" not in f"/{change.path}"]


def difference(change: Change, start: Snapshot, end: Snapshot) -> list[str]:
    """Return the difference of a file between two snapshots as lines."""
    contents = []
    for snapshot, entry in zip((start, end), change.sides, strict=True):
        try:
            contents.append(snapshot.read(change.path) if entry is not None and entry.is_file else b"")
        except SnapshotError:
            return ["  the content was not kept"]
    if any(b"\0" in content or len(content) > LARGEST for content in contents):
        return [f"  {len(contents[0]):,} bytes, then {len(contents[1]):,} bytes"]
    if contents[0] == contents[1]:
        modes = ("" if entry is None else f"{entry.mode & 0o7777:o}" for entry in change.sides)
        return [f"  mode {', then '.join(filter(None, modes))}; the same content"]
    old, new = (content.decode("utf-8", "replace") for content in contents)
    return compare(old, new, change.path)[0].splitlines()
