"""`bpagent resume`: goes on with a run whose process ended, or which waits for a decision."""

import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from agent.cli import exit_codes
from agent.cli.arguments import called
from agent.cli.build import agent_of_log
from agent.cli.display import is_error
from agent.cli.mistakes import Mistake
from agent.cli.prompt import is_terminal
from agent.cli.replay import told_difference
from agent.cli.runs import find_log
from agent.cli.screen import Screen, screen_on, visible_lines
from agent.cli.session import Desk, Maker, introduction, lead, print_end, printing
from agent.history.playback import LogDiffers, broke_off
from agent.log.reading import RecordedRun, read_log
from agent.log.writing import check_free
from agent.session.agent import Agent
from agent.session.approvals import UndecidableError


def execute(arguments: Namespace) -> int:
    """Go on and return the exit code. Raises for a log that is in use, of another program, or no log at all."""
    path = find_log(arguments.log)
    check_free(path)
    recorded = read_log(path)
    over = _how_it_ended(recorded)
    if over and (arguments.approve or arguments.reject):
        raise Mistake(f"the run is over: {over}; no call waits for a decision")
    if over:
        return _say_that_it_is_over(recorded, over)
    if not any(record["name"] == "prompt_given" for record in recorded.records):
        raise Mistake(f"{path} holds no prompt: it was undone, or none was given; begin a new run")
    return _go_on(arguments, recorded)


def _go_on(arguments: Namespace, recorded: RecordedRun) -> int:
    prints = printing(arguments, recorded.header.get("secrets") or ())
    screen = screen_on(sys.stderr)
    later = recorded.header.get("approvals") == "later" and not is_terminal()
    preset, make, servers = agent_of_log(arguments, recorded, later=later)
    desk = Desk(screen, preset, **prints)
    try:
        lead(desk, _deciding(make, arguments, recorded, screen), None, servers)
    except LogDiffers as differs:
        print("\n".join(told_difference(recorded, differs.difference)))
        return exit_codes.DIFFERENT
    return print_end(desk, arguments)


def _how_it_ended(recorded: RecordedRun) -> str:
    """Return how the last run of a log ended; nothing when it has not."""
    begun = [number for number, record in enumerate(recorded.records) if record["name"] == "prompt_given"]
    ends = [record for record in recorded.records[begun[-1] if begun else 0 :] if record["name"] == "run_ended"]
    if not ends:
        return ""
    data = ends[-1]["data"]
    broke = ": it broke off" if broke_off(recorded) else ""
    return f"{data['status']} ({data['reason']}){broke}"


def _say_that_it_is_over(recorded: RecordedRun, how: str) -> int:
    again = called("chat", "--continue", str(recorded.path))
    screen_on(sys.stderr).labelled("system", f"the run is over: {how}; {again} goes on with the conversation", "system")
    ended = recorded.records[-1]["data"]
    text = ended.get("text")
    if text and not is_error(str(ended.get("status"))):
        print("\n".join(visible_lines(text)) if sys.stdout.isatty() else text)
    return exit_codes.OK


def _deciding(make: Maker, arguments: Namespace, recorded: RecordedRun, screen: Screen) -> Maker:
    """Make the decisions of the command line, and show with which run it goes on."""

    def decided(*tools: Any, **options: Any) -> Agent:
        agent = make(*tools, **options)
        try:
            for call in arguments.approve:
                agent.decide(call, True)
            for call in arguments.reject:
                agent.decide(call, False, arguments.because)
        except UndecidableError:
            agent.close()
            raise
        _introduce(recorded, agent, screen)
        return agent

    return decided


def _introduce(recorded: RecordedRun, agent: Agent, screen: Screen) -> None:
    torn = f"\nthe last line ({len(recorded.records) + 2}) was torn, and is cut off" if recorded.torn else ""
    cut = f"\n{recorded.cut}" if recorded.cut else ""
    log = f"log {Path(recorded.path)}, after {len(recorded.records)} records{torn}{cut}"
    gone = "".join(
        f"\n{process.id} ended with the program that had started it: {process.command}"
        for process in agent.lost_processes
    )
    screen.labelled("system", f"{introduction(agent)}\n{log}{gone}", "system")
