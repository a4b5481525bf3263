"""`bpagent replay`: the program of a log, run again on what came from outside, must give the same records."""

import sys
from argparse import Namespace

from agent.cli import exit_codes
from agent.cli.build import load_protocols
from agent.cli.runs import find_log
from agent.cli.screen import Screen, screen_on, visible
from agent.history.playback import Difference, replay
from agent.history.rebuilding import rebuild
from agent.log.reading import LogError, RecordedRun, read_log
from agent.vocabulary.encoding import dump
from bp import BProgram


def execute(arguments: Namespace) -> int:
    """Replay and say what came of it. Raises LogError for what is no log, or one of another program."""
    run = read_log(find_log(arguments.log))
    program = rebuild(run, load_protocols(arguments.protocol))
    screen = screen_on(sys.stdout, needed=True)
    if run.torn:
        screen.line(f"the last line ({len(run.records) + 2}) is torn; it was left out")
    code = _replayed(run, program, screen)
    if run.integrity:
        screen.line(visible(run.integrity))
    return exit_codes.DIFFERENT if run.misfit else code


def _replayed(run: RecordedRun, program: BProgram, screen: Screen) -> int:
    try:
        result = replay(run, program)
    except LogError as error:  # a record that no run could have written
        screen.line(f"different: {visible(str(error))}")
        return exit_codes.DIFFERENT
    if result.difference is not None:
        for line in told_difference(run, result.difference):
            screen.line(line)
        return exit_codes.DIFFERENT
    screen.line(f"equal: {_count(result.equal)}, replayed without model, tools or network; {_end(run)}")
    return exit_codes.OK


def told_difference(run: RecordedRun, difference: Difference) -> list[str]:
    """Return the first difference with both sides, and what is not the same in them."""
    recorded, replayed = difference.recorded, difference.replayed
    equal = _count(difference.number - 1)
    lines = [f"different: after {equal} that are equal, line {difference.number + 1} of {run.path} is not"]
    lines += [f"  recorded: {_side(recorded)}", f"  replayed: {_side(replayed)}"]
    if recorded is not None and replayed is not None:
        keys = [key for key in {**recorded, **replayed} if recorded.get(key) != replayed.get(key)]
        lines.append(f"  in: {', '.join(keys)}")
    return lines


def _side(record: object) -> str:
    return "nothing: the record is missing" if record is None else visible(dump(record))


def _end(run: RecordedRun) -> str:
    last = run.records[-1] if run.records else None
    if last is None or last["name"] != "run_ended":
        return "the log ends before its run does"
    return f"the run {last['data']['status']} ({last['data']['reason']})"


def _count(number: int) -> str:
    return f"{number} record{'' if number == 1 else 's'}"
