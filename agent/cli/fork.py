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
from agent.log.reading import read_log
from agent.log.writing import LogWriter


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
            writer.append(record)
    finally:
        writer.close()
    return forked


def before_last_prompt(path: Path) -> tuple[Path, str]:
    """Return a fork of a log that ends before its last prompt, and that prompt. Raises Mistake when there is none."""
    records = read_log(path).records
    prompts = [place for place, record in enumerate(records) if record["name"] == "prompt_given"]
    if not prompts:
        raise Mistake("there is nothing to undo")
    ends = [place for place in range(prompts[-1]) if records[place]["name"] == "run_ended"]
    undone = " ".join(str(records[prompts[-1]]["data"].get("text", "")).split())
    return fork(path, ends[-1] + 1 if ends else 0), undone
