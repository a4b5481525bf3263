"""`bpagent replay`: the program of a log must give the same records for the same external events."""

import sys
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from attrs import asdict

from agent.cli.arguments import called
from agent.cli.build import load_protocols
from agent.cli.errors import DIFFERENT, OK
from agent.cli.runs import find_log
from agent.cli.screen import Screen, screen_on, visible
from agent.history.playback import Difference, replay
from agent.history.rebuilding import rebuild
from agent.log.reading import LogError, RecordedRun, read_log
from agent.page.wording import counted
from agent.vocabulary.encoding import dump
from agent.vocabulary.messages import one_line
from bp import BProgram

LONGEST = 80  # characters of a value that differs


def execute(arguments: Namespace) -> int:
    """Replay and print the result. Raises LogError for an invalid log, or one of another program."""
    run = read_log(find_log(arguments.log))
    program = rebuild(run, load_protocols(arguments.protocol))
    screen = screen_on(sys.stdout, needed=True)
    if run.torn and not arguments.json:
        screen.line(f"the last line ({len(run.records) + 2}) is torn; it was left out")
    code = _replayed(run, program, screen, as_json=arguments.json)
    if run.integrity and not arguments.json:
        screen.line(visible(run.integrity))
    return DIFFERENT if run.misfit else code


def _replayed(run: RecordedRun, program: BProgram, screen: Screen, *, as_json: bool) -> int:
    try:
        result = replay(run, program)
    except LogError as error:  # an invalid record
        screen.line(f"different: {visible(str(error))}")
        return DIFFERENT
    if as_json:
        difference = None if result.difference is None else asdict(result.difference)
        print(dump({"equal": result.equal, "difference": difference}))
    elif result.difference is not None:
        for line in told_difference(run, result.difference):
            screen.line(line)
    else:
        screen.line(f"equal: {counted(result.equal, 'record')}, replayed without model, tools or network; {_end(run)}")
    return OK if result.difference is None else DIFFERENT


def told_difference(run: RecordedRun, difference: Difference) -> list[str]:
    """Return the first difference in words: the record of the log, and that of its b-threads."""
    then, now = said_differently(difference)
    equal = counted(difference.number - 1, "record")
    return [
        f"different: after {equal} that are equal, line {difference.number + 1} says {then}; its b-threads say {now}",
        f"  both sides: {called('replay', str(run.path), '--json')}",
    ]


def said_differently(difference: Difference) -> tuple[str, str]:
    """Return the parts of the recorded side of a difference that the replayed one lacks, and the reverse."""
    recorded, replayed = difference.recorded, difference.replayed
    if recorded is None or replayed is None or recorded["name"] != replayed["name"]:
        return _kind(recorded), _kind(replayed)
    sides = [{**side, **side["data"]} for side in (recorded, replayed)]
    keys = [key for key in {**sides[0], **sides[1]} if key != "data" and sides[0].get(key) != sides[1].get(key)]
    then, now = (", ".join(f"{key} {one_line(dump(side.get(key)), LONGEST)}" for key in keys) for side in sides)
    return f"{_kind(recorded)} with {then}", now


def _kind(record: Mapping[str, Any] | None) -> str:
    return "nothing" if record is None else visible(record["name"])


def _end(run: RecordedRun) -> str:
    last = run.records[-1] if run.records else None
    if last is None or last["name"] != "run_ended":
        return "the log ends before its run does"
    return f"the run {last['data']['status']} ({last['data']['reason']})"
