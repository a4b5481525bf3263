"""`bpagent fork LOG STEP` and `/undo`: a new log with the beginning of another, and files restored. The content of
files before file tools wrote them is kept by digest in the folder `undo` beside the runs, where the constitution allows
no tool, with a list of changes for each log. Changes by commands and subagents are not recorded.
"""

import json
import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from secrets import token_hex
from stat import S_ISREG
from typing import Any

from attrs import asdict, define, field, frozen

from agent.cli.arguments import called
from agent.cli.errors import OK, Mistake
from agent.cli.runs import find_log, runs_folder
from agent.cli.screen import screen_on
from agent.log.reading import RecordedRun, read_log
from agent.log.writing import LogWriter
from agent.vocabulary.events import ActionDescribed, ToolFinished, ToolStarted
from agent.vocabulary.messages import typed
from bp import Step
from constitution import Action


def execute(arguments: Namespace) -> int:
    """Write the new log and show how to continue. Raises Mistake for a step that the log does not have."""
    path = find_log(arguments.log)
    steps = [record["step"] for record in read_log(path).records]
    if arguments.step not in steps:
        raise Mistake(f"{path} has no step {arguments.step}; its last one is {max(steps, default=0)}")
    forked = fork(path, steps.index(arguments.step) + 1, arguments.output)
    screen = screen_on(sys.stderr)
    screen.labelled("system", f"{forked} has the steps up to {arguments.step}; files stay as they are", "system")
    screen.line(f"    {called('chat', '--continue', str(forked))}", "action")
    print(forked)
    return OK


def fork(path: Path, records: int, output: str | None = None, **header: object) -> Path:
    """Write the header and the first `records` of a log to a new one, and return it. `header`: values to replace in it.
    Raises LogError, and Mistake for a changed log: the copy is signed again, so the original must be intact.
    """
    recorded = read_log(path)
    if recorded.misfit or any(place < records for place in recorded.unsigned):
        raise Mistake(recorded.misfit or f"{path} has a yes that is not signed with the key of this user")
    forked = Path(output).expanduser() if output else path.with_name(f"{path.stem}-{token_hex(2)}.jsonl")
    writer = LogWriter(forked, {**recorded.header, **header})
    try:
        for record in recorded.records[:records]:
            writer.record(record)
    finally:
        writer.close()
    copy_changes(path, forked, recorded.records[records - 1]["step"] if records else 0)
    return forked


def before_last_prompt(path: Path) -> tuple[Path, str, "Undone"]:
    """Return a fork of a log that ends before its last prompt, that prompt, and the file changes since. Raises Mistake
    without a prompt.
    """
    recorded = read_log(path)
    records = recorded.records
    prompts = [place for place, record in enumerate(records) if record["name"] == "prompt_given"]
    if not prompts:
        raise Mistake("there is nothing to undo")
    kept = next((place + 1 for place in range(prompts[-1], 0, -1) if records[place]["name"] == "run_ended"), 0)
    prompt = str(records[prompts[-1]]["data"].get("text", ""))
    return fork(path, kept), typed(prompt), undone_after(records[kept - 1]["step"] if kept else 0, recorded)


# Earlier contents of files.

LARGEST = 10_000_000  # bytes; larger files are not kept


@frozen
class Change:
    """A file that a call wrote: the step at which the call ended, and digests of its content; "" means no file."""

    step: int
    path: str
    before: str
    after: str


@define(eq=False)
class Changes:
    """Notes which files the file tools of a run change. A file that cannot be kept is not noted, and never restored."""

    log: Path
    _paths: dict[str, list[str]] = field(factory=dict, init=False)  # by call: the content that it would write
    _before: dict[str, dict[str, str | None]] = field(factory=dict, init=False)  # by call that runs: digests by path

    def see(self, step: Step) -> None:
        """Take a step of the run, before its effects start."""
        match step.event:
            case ActionDescribed(call=call, facts=facts) if _is_of_files(facts):
                self._paths[call.id] = [use.resolved for use in facts.paths if use.access == "write"]
            case ToolStarted(call=call):
                self._before[call.id] = {path: _kept(path) for path in self._paths.pop(call.id, ())}
            case ToolFinished(call=call):
                found = [(path, before, _digest(path)) for path, before in self._before.pop(call.id, {}).items()]
                _note(self.log, [Change(step.number, *each) for each in found if None not in each])  # type: ignore[arg-type]


@frozen
class Undone:
    """The files of undone steps. `restorable`: files without other changes, with their first and last content. changed:
    files with other changes, too. calls: commands, and other calls whose changes are unknown.
    """

    restorable: tuple[Change, ...]
    changed: tuple[str, ...]
    calls: tuple[str, ...]


def undone_after(step: int, recorded: RecordedRun) -> Undone:
    """Return the files that were changed after this step of a log."""
    changes = [change for change in _noted(recorded.path) if change.step > step]
    files: dict[str, list[Change]] = {}
    for change in changes:
        files.setdefault(change.path, []).append(change)
    whole = {path: Change(step, path, found[0].before, found[-1].after) for path, found in files.items()}
    unlike = [each for each in whole.values() if each.before not in (each.after, _digest(each.path))]
    calls = _other_calls(recorded, step, {change.step for change in changes})
    return Undone(
        tuple(change for change in unlike if _is_untouched(files[change.path])),
        tuple(change.path for change in unlike if not _is_untouched(files[change.path])),
        tuple(dict.fromkeys(calls)),
    )


def _is_untouched(changes: Sequence[Change]) -> bool:
    """Return whether a file has no changes but these."""
    in_turn = all(one.after == other.before for one, other in pairwise(changes))
    return in_turn and _digest(changes[-1].path) == changes[-1].after


def _other_calls(recorded: RecordedRun, step: int, noted: set[int]) -> Iterator[str]:
    calls: dict[str, Any] = {}
    for record in recorded.records:
        data = record["data"]
        if record["name"] == "proposed_action":
            calls[data["call"]["id"]] = data["call"]
        elif record["name"] == "tool_finished" and record["step"] > step and record["step"] not in noted:
            call = calls[data["call"]]
            if call["category"] != "read":
                yield str(call["arguments"].get("command") or call["tool"])


def restore(change: Change) -> None:
    """Restore the earlier content of a file, or remove it if it did not exist. Raises OSError."""
    if _digest(change.path) != change.after:
        raise OSError(f"{change.path} has changed")
    if not change.before:
        os.unlink(change.path)
        return
    content = (_folder() / change.before).read_bytes()
    if sha256(content).hexdigest() != change.before:
        raise OSError(f"what was kept of {change.path} is damaged")
    Path(change.path).write_bytes(content)


def copy_changes(log: Path, fork: Path, step: int) -> None:
    """Copy the recorded changes of a log, up to a step, to its fork."""
    _note(fork, [change for change in _noted(log) if change.step <= step])


def _kept(path: str) -> str | None:
    """Keep the content of a file and return its digest; None if that is impossible."""
    with suppress(OSError):
        content, digest = _content(path), _digest(path)
        if content is not None and digest and not (_folder() / digest).exists():
            _write(_folder() / digest, content)
        return digest
    return None


def _is_of_files(facts: Action) -> bool:
    """Return whether a call changes the files that it names, and does nothing else."""
    return facts.command is None and not facts.argv and not facts.opaque


def _digest(path: str) -> str | None:
    """Return the digest of a file, "" without one; None if it is too large, no regular file, or unreadable."""
    try:
        content = _content(path)
    except OSError:
        return None
    return "" if content is None else sha256(content).hexdigest()


def _content(path: str) -> bytes | None:
    """Return the content of a file, None without one. Raises OSError, also for a link."""
    if os.path.realpath(path) != path:
        raise OSError(f"{path} is behind a link")
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not S_ISREG(found.st_mode) or found.st_size > LARGEST:
        raise OSError(f"{path} cannot be kept")
    return Path(path).read_bytes()


def _folder() -> Path:
    return runs_folder().with_name("undo")


def _list_of(log: Path) -> Path:
    return _folder() / f"{sha256(os.path.realpath(log).encode()).hexdigest()[:32]}.jsonl"


def _note(log: Path, changes: Iterable[Change]) -> None:
    if lines := "".join(f"{json.dumps(asdict(change))}\n" for change in changes):
        with suppress(OSError):
            _write(_list_of(log), lines.encode())


def _noted(log: Path) -> list[Change]:
    try:
        return [Change(**json.loads(line)) for line in _list_of(log).read_text().splitlines()]
    except (OSError, ValueError, TypeError):
        return []


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600), "ab") as file:
        file.write(content)
