"""`bpagent undo` and `diff`, and the end of a run in words: the files of a workspace before and after calls."""

import os
import sys
from argparse import Namespace
from collections.abc import Iterable, Sequence
from pathlib import Path

from agent.cli.arguments import called
from agent.cli.errors import FAILED, OK, Mistake
from agent.cli.runs import find_log, runs_folder
from agent.cli.screen import Screen, screen_on, visible
from agent.history.changes import FileHistory, difference, file_history, shown
from agent.log.reading import read_log
from agent.tools.snapshots.trees import SnapshotError, is_below
from agent.tools.snapshots.undo import Change, Undone, changes_since, undo
from constitution.places import is_work_that_runs


def execute(arguments: Namespace) -> int:
    """Undo what a run changed, or show it. Raises Mistake, LogError and SnapshotError."""
    screen = screen_on(sys.stdout, needed=True)
    try:
        return _undo(arguments, screen) if arguments.command == "undo" else _diff(arguments, screen)
    except SnapshotError as error:
        raise Mistake(str(error)) from error


def _undo(arguments: Namespace, screen: Screen) -> int:
    path, files = _log_and_files(arguments.words)
    kept = file_history(read_log(path))
    if arguments.redo:
        name = _latest_undo(kept)
    else:
        name = kept.before(kept.last_prompt if arguments.to is None else arguments.to)
    root = Path(kept.snapshots.root)
    paths = [_kept_path(file, kept.snapshots.roots) for file in files]
    if missing := [each for each in paths if not (os.path.lexists(root / each) or kept.snapshots.get(name).has(each))]:
        raise Mistake(f"there is no {missing[0]} in {root}, and there was none; see {called('diff', str(path))}")
    undone = undo(kept.snapshots, name, paths=paths, force=arguments.force or arguments.redo, git=arguments.git)
    tell(screen, undone)
    if undone.restored:
        screen.line(f"to take this back: {called('undo', '--redo', *([] if arguments.words == [] else [str(path)]))}")
    return FAILED if undone.left else OK


def _log_and_files(words: Sequence[str]) -> tuple[Path, Sequence[str]]:
    """Return the log that the first word names, or the latest one, and the files."""
    if not words:
        return find_log(None), ()
    try:
        return find_log(words[0]), words[1:]
    except Mistake:
        if len(words) == 1 and not words[0].endswith(".jsonl"):
            return find_log(None), words
        raise


def _kept_path(file: str, roots: Sequence[str]) -> str:
    """Return the path of a file in the workspace, or an absolute one in a further root. Raises Mistake for others."""
    path = os.path.abspath(file)
    if not any(is_below(path, root) for root in roots):
        path = os.path.normpath(os.path.join(roots[0], file))
    if not any(is_below(path, root) for root in roots):
        raise Mistake(f"{file} is not in the workspace {roots[0]}")
    return path.removeprefix(roots[0]).strip("/") if is_below(path, roots[0]) else path


def _latest_undo(kept: FileHistory) -> str:
    run = kept.names[-1][1].rpartition("/")[0] if kept.names else ""
    names = kept.snapshots.names(run)
    undos = (name for name in reversed(names) if kept.snapshots.get(name).moment == "undo")
    if (name := next(undos, None)) is None:
        raise Mistake("nothing was undone in this run, so there is nothing to take back")
    return name


def undo_before(log: Path, step: int) -> Undone:
    """Make the workspace of a run what it was before a step. Raises LogError and SnapshotError."""
    kept = file_history(read_log(log))
    return undo(kept.snapshots, kept.before(step))


def tell(screen: Screen, undone: Undone) -> None:
    """Show what an undo did."""
    for path in undone.restored:
        screen.line(f"as before: {visible(path)}")
    for path, why in undone.left.items():
        screen.line(f"left: {visible(path)} ({visible(why)})", "refused")
    for repository in undone.repositories:
        screen.line(f"{visible(repository)} stays as it is; --git moves branches and HEAD back, too", "system")
    for branch in undone.pushed:
        screen.line(f"{visible(branch)} was pushed or fetched; what others have is not undone", "system")
    if not undone.restored and not undone.left:
        screen.line("everything is as it was already", "system")


# What changed.


def _diff(arguments: Namespace, screen: Screen) -> int:
    kept = file_history(read_log(find_log(arguments.log)))
    first = kept.before(arguments.step or 0)
    last = _last_of(kept, first, arguments.step, arguments.until)
    start, end = kept.snapshots.get(first), kept.snapshots.get(last)
    changes = shown(changes_since(kept.snapshots, first, last).values())
    for change in changes:
        screen.line(f"{change.kind} {visible(change.path)} ({visible(kept.who(change.by))})", "title")
        for line in difference(change, start, end):
            screen.line(visible(line))
    screen.line(summary_of(changes) or "no file changed", "system")
    return OK


def _last_of(kept: FileHistory, first: str, step: int | None, until: int | None) -> str:
    """Return the latest snapshot; with a step the last after its calls, or the one before the step `until`."""
    names = kept.snapshots.names(first.rpartition("/")[0])
    if until is not None:
        return kept.before(until)
    later = [name for _, name in kept.names if name > first]
    return names[-1] if step is None or not later else max(name for name in names if name < later[0])


def summary_of(changes: Iterable[Change]) -> str:
    """Return the number of files that changed, in words: "3 files changed, 2 new, 1 deleted"."""
    kinds = [change.kind for change in shown(changes)]
    if not kinds:
        return ""
    counts = (f"{kinds.count(kind)} {kind}" for kind in ("new", "deleted") if kind in kinds)
    return ", ".join([f"{len(kinds)} file{'s' * (len(kinds) > 1)} changed", *counts])


def how_to_undo(changes: Iterable[Change], log: Path | None) -> str:
    """Return what a run changed in words, and the command that takes it back; empty if it changed nothing.

    Files that run when their tool is called next are named.
    """
    ours = [each for each in changes if each.by]
    summary = summary_of(ours)
    run_later = [each.path for each in shown(ours) if is_work_that_runs(each.path)]
    look = f"; look at what runs later: {', '.join(map(visible, run_later))}" if run_later else ""
    named = [] if log is None else [log.stem if log.parent == runs_folder() else str(log)]
    return f"{summary}{look}; {called('undo', *named)} takes it back" if summary else ""
