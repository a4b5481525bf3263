"""`bpagent fork LOG STEP`: a new log with the beginning of another, to go on from there; the other stays as it is."""

import sys
from argparse import Namespace
from pathlib import Path
from secrets import token_hex

from agent.cli import exit_codes
from agent.cli.arguments import called
from agent.cli.mistakes import Mistake
from agent.cli.runs import find_log
from agent.cli.screen import screen_on
from agent.cli.undo import Undone, copy_changes, undone_after
from agent.log.reading import read_log
from agent.log.writing import LogWriter
from agent.vocabulary.messages import typed


def execute(arguments: Namespace) -> int:
    """Write the new log and say how to go on. Raises Mistake for a step that the log does not have."""
    path = find_log(arguments.log)
    steps = [record["step"] for record in read_log(path).records]
    if arguments.step not in steps:
        raise Mistake(f"{path} has no step {arguments.step}; its last one is {max(steps, default=0)}")
    forked = fork(path, steps.index(arguments.step) + 1, arguments.output)
    screen = screen_on(sys.stderr)
    screen.labelled("system", f"{forked} has the steps up to {arguments.step}; files stay as they are", "system")
    screen.line(f"    {called('chat', '--continue', str(forked))}", "action")
    print(forked)
    return exit_codes.OK


def fork(path: Path, records: int, output: str | None = None, **header: object) -> Path:
    """Write the header and the first `records` of a log to a new one, and return it. `header`: what it says instead.

    Raises LogError, and Mistake for a log that was changed: what is copied is signed again, so it has to be true.
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


def before_last_prompt(path: Path) -> tuple[Path, str, Undone]:
    """Return a fork of a log that ends before its last prompt, that prompt, and what became of files since.

    Raises Mistake when there is none.
    """
    recorded = read_log(path)
    records = recorded.records
    prompts = [place for place, record in enumerate(records) if record["name"] == "prompt_given"]
    if not prompts:
        raise Mistake("there is nothing to undo")
    kept = next((place + 1 for place in range(prompts[-1], 0, -1) if records[place]["name"] == "run_ended"), 0)
    prompt = str(records[prompts[-1]]["data"].get("text", ""))
    return fork(path, kept), typed(prompt), undone_after(records[kept - 1]["step"] if kept else 0, recorded)
