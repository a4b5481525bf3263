"""`bpagent fork`: a new run with the first steps of another, in its workspace or in a copy of it as it was then."""

import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent.cli.arguments import called
from agent.cli.build import load_protocols, model_of, nameable
from agent.cli.errors import FAILED, OK, Mistake
from agent.cli.prompt import is_terminal, read_answer
from agent.cli.runs import find_log
from agent.cli.screen import Screen, screen_on, visible
from agent.cli.undo import summary_of, tell
from agent.history.branching import Branch, beside, branch, fork
from agent.history.changes import FileHistory, file_history
from agent.log.reading import RecordedRun, read_log
from agent.tools.snapshots.trees import SnapshotError
from agent.tools.snapshots.undo import changes_since, undo
from agent.vocabulary.messages import typed


def execute(arguments: Namespace) -> int:
    """Write the new log, bring the files back if that is wanted, and show how to continue. Raises Mistake, LogError."""
    path = find_log(arguments.log)
    if arguments.files and arguments.worktree:
        raise Mistake("--files is for the files of the workspace itself; leave it out, or --worktree")
    recorded, threads = read_log(path), load_protocols(arguments.protocol)
    header = {}
    if arguments.model:
        about = {**(recorded.header.get("about") or {}), "model": nameable(arguments.model)}
        header = {"model": model_of(recorded, arguments.model, os.environ).name, "about": about}
    try:
        if arguments.files:
            file_history(recorded).at(arguments.step)  # raises before a log is made
        made = branch(
            path, arguments.step, worktree=arguments.worktree, threads=threads, output=arguments.output, **header
        )
    except SnapshotError as error:
        raise Mistake(str(error)) from error
    screen = screen_on(sys.stderr)
    screen.labelled("system", f"{made.log} has the steps up to {arguments.step}", "system")
    is_whole = True if arguments.worktree else _bring_back(recorded, arguments, screen)
    _say_how_to_continue(made, arguments, screen)
    print(made.log)
    return OK if is_whole else FAILED


def _bring_back(recorded: RecordedRun, arguments: Namespace, screen: Screen) -> bool:
    """Make the files what they were, with --files or when a user says yes; return False if some are left."""
    history, summary = file_history(recorded), ""
    if arguments.files:
        return restore(history, arguments.step, screen)
    with suppress(SnapshotError):  # then nothing can be brought back
        changed = changes_since(history.snapshots, history.at(arguments.step).name)
        summary = summary_of(each for each in changed.values() if each.by)
    if summary and is_terminal():
        screen.ask(f"since then {summary}. Make them what they were? (yes/no)")
        if read_answer(sys.stdin.readline()) is True:
            return restore(history, arguments.step, screen)
    cure = "; --files makes them what they were, --worktree FOLDER a copy" if summary else ""
    screen.labelled("system", f"files stay as they are{cure}", "system")
    return True


def restore(history: FileHistory, step: int, screen: Screen) -> bool:
    """Make the files what they were at a step, as undo does; return False if some are left. Raises Mistake."""
    try:
        undone = undo(history.snapshots, history.at(step).name)
    except SnapshotError as error:
        raise Mistake(str(error)) from error
    tell(screen, undone)
    return not undone.left


def _say_how_to_continue(made: Branch, arguments: Namespace, screen: Screen) -> None:
    records = read_log(made.log).records
    if arguments.worktree:
        screen.labelled("system", f"workspace {made.workspace}", "system")
    if made.unkept:
        screen.line(f"not in it, since it was not kept: {visible(', '.join(made.unkept))}", "system")
    states = [record["name"] for record in records if record["name"] in DRAFTING]
    if arguments.protocol and states[-1:] == ["inference_requested"]:
        said = "this turn's draft was requested before, and what joins does not see it; turns begin where an"
        screen.line(f"{said} inference_requested follows the step", "system")
    own = [word for name in arguments.protocol if ":" in name for word in ("--protocol", name)]
    is_over = not any(record["name"] == "prompt_given" for record in _since_the_end(records))
    words = ("chat", "--continue", str(made.log)) if is_over else ("resume", str(made.log))
    screen.line(f"    {called(*words, *own)}", "action")


DRAFTING = ("inference_requested", "answer_committed", "run_ended")


def _since_the_end(records: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
    ends = [place for place, record in enumerate(records) if record["name"] == "run_ended"]
    return records[ends[-1] + 1 if ends else 0 :]


def before_last_prompt(path: Path) -> tuple[Path, str, int]:
    """Return a fork of a log that ends before its last prompt, that prompt, and the first step that it leaves out.

    Raises Mistake without a prompt.
    """
    recorded = read_log(path)
    records = recorded.records
    prompts = [place for place, record in enumerate(records) if record["name"] == "prompt_given"]
    if not prompts:
        raise Mistake("there is nothing to undo")
    kept = next((place + 1 for place in range(prompts[-1], 0, -1) if records[place]["name"] == "run_ended"), 0)
    prompt = str(records[prompts[-1]]["data"].get("text", ""))
    return fork(recorded, kept, beside(path), recorded.header), typed(prompt), records[kept]["step"]
