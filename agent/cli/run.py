"""`bpagent run` and `bpagent resume`: a run from its prompt, or from the end of its log, to an exit code."""

import shlex
import sys
from argparse import Namespace
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agent.cli.arguments import called
from agent.cli.build import agent_of_log, new_agent
from agent.cli.display import Lanes, is_error, question_of
from agent.cli.errors import DIFFERENT, OK, Mistake, of_run
from agent.cli.fork import restore
from agent.cli.history import told_difference
from agent.cli.prompt import is_terminal, read_prompt
from agent.cli.runs import find_log
from agent.cli.screen import Screen, screen_on, visible
from agent.cli.session import UserInterface, drive, introduction, print_final_text, print_text
from agent.history.changes import file_history
from agent.history.playback import LogDiffers, broke_off
from agent.log.reading import LogError, RecordedRun, read_log
from agent.log.writing import check_free
from agent.models.model import Delta
from agent.page.wording import command_of, ending
from agent.projections.narration import StreamEvent
from agent.session.agent import Agent, Run
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.encoding import dump


def execute(arguments: Namespace) -> int:
    """Run or resume, and return the exit code. Raises for wrong input, before the run starts."""
    return _run(arguments) if arguments.command == "run" else _resume(arguments)


def _run(arguments: Namespace) -> int:
    prompt = read_prompt(arguments.prompt)
    prints = _printing(arguments, arguments.secret)
    screen = screen_on(sys.stderr)
    preset, make, servers = new_agent(arguments, later=arguments.approvals == "later")

    interface = UserInterface(
        screen,
        preset,
        **prints,
        elsewhere=arguments.approvals == "page",
        draws=(lambda agent: Lanes(screen, agent.bthreads).show) if arguments.lanes else None,
    )
    drive(interface, make, prompt, servers, lambda agent: screen.labelled("system", introduction(agent), "system"))
    return _print_end(interface, arguments)


def _resume(arguments: Namespace) -> int:
    """Resume a run. Raises for a log that is in use, of another program, or invalid."""
    path = find_log(arguments.log)
    check_free(path)
    recorded = read_log(path)
    over = _how_it_ended(recorded)
    if over and recorded.misfit:
        raise LogError(recorded.misfit)
    if over and (arguments.approve or arguments.reject):
        raise Mistake(f"the run is over: {over}; no call waits for a decision")
    if over:
        return _say_that_it_is_over(recorded, over)
    if not any(record["name"] == "prompt_given" for record in recorded.records):
        raise Mistake(f"{path} holds no prompt: it was undone, or none was given; begin a new run")
    return _go_on(arguments, recorded)


def _go_on(arguments: Namespace, recorded: RecordedRun) -> int:
    prints = _printing(arguments, recorded.header.get("secrets") or ())
    later = recorded.header.get("approvals") == "later" and not is_terminal()
    preset, make, servers = agent_of_log(arguments, recorded, later=later)
    about = recorded.header.get("about") or {}
    interface = UserInterface(screen_on(sys.stderr), preset, elsewhere=about.get("approvals") == "page", **prints)
    if arguments.files:
        restore(file_history(recorded), recorded.records[-1]["step"], interface.screen)

    def decide(agent: Agent) -> None:
        for call in arguments.approve:
            agent.decide(call, True)
        for call in arguments.reject:
            agent.decide(call, False, arguments.because)
        _introduce(recorded, agent, interface.screen)

    try:
        drive(interface, make, None, servers, decide)
    except LogDiffers as differs:
        print("\n".join(told_difference(recorded, differs.difference)))
        return DIFFERENT
    return _print_end(interface, arguments)


def _how_it_ended(recorded: RecordedRun) -> str:
    """Return the end of the last run of a log in words; empty without one."""
    begun = [number for number, record in enumerate(recorded.records) if record["name"] == "prompt_given"]
    ends = [record for record in recorded.records[begun[-1] if begun else 0 :] if record["name"] == "run_ended"]
    if not ends:
        return ""
    data = ends[-1]["data"]
    broke = ": it broke off" if broke_off(recorded) else ""
    return f"{ending(data)}{broke}"


def _say_that_it_is_over(recorded: RecordedRun, how: str) -> int:
    again = called("chat", "--continue", str(recorded.path))
    screen_on(sys.stderr).labelled("system", f"the run is over: {how}; {again} continues the conversation", "system")
    ended = recorded.records[-1]["data"]
    if ended.get("text") and not is_error(str(ended.get("status"))):
        print_text(ended["text"])
    return OK


def _introduce(recorded: RecordedRun, agent: Agent, screen: Screen) -> None:
    torn = f"\nthe last line ({len(recorded.records) + 2}) was torn, and is cut off" if recorded.torn else ""
    cut = f"\n{recorded.cut}" if recorded.cut else ""
    after = f"after {len(recorded.records)} records{torn}{cut}"
    gone = "".join(
        f"\n{process.id} ended with the program that had started it: {process.command}"
        for process in agent.lost_processes
    )
    screen.labelled("system", f"{introduction(agent)}, {after}{gone}", "system")


# Output.


def _printing(arguments: Namespace, secrets: Iterable[str]) -> dict[str, Any]:
    """Return the options of a user interface for --json and --partials. Raises Mistake."""
    if arguments.partials and (list(secrets) or not arguments.json):
        raise Mistake("--partials goes with --json, and not with --secret: a secret in two pieces could not be masked")
    return {"watch": _print_record if arguments.json else None, "tells": _print_partial if arguments.partials else None}


def _print_record(agent: Agent) -> None:
    print(agent.journal.last_record, flush=True)


def _print_partial(event: StreamEvent) -> None:
    """Print a piece of the model's text, reasoning or calls, or of a tool's output, as it comes."""
    match event:
        case StreamEvent("message_update", piece=Delta(text, "arguments", number, tool)):
            print(dump({"partial": "arguments", "number": number, "tool": tool, "text": text}), flush=True)
        case StreamEvent("message_update", piece=Delta(text, kind)):
            print(dump({"partial": kind, "text": text}), flush=True)
        case StreamEvent("tool_execution_update", call=ToolCall(id=call), text=piece):
            print(dump({"partial": "output", "call": call, "text": piece}), flush=True)
        case _:
            pass


def _print_end(interface: UserInterface, arguments: Namespace) -> int:
    """Print the end of a run, its final text or the open decisions; return the exit code."""
    run = interface.runs[-1]
    if run.status == "waiting":
        _say_what_it_waits_for(run, interface.screen, _options_again(arguments))
    broke_off = run.ended is not None and (not run.steps or run.steps[-1].event != run.ended)
    if not arguments.json:
        print_final_text(run, was_shown=interface.display.has_streamed(run.text))
    elif broke_off:  # the last record comes from no step
        print(run.agent.journal.last_record, flush=True)
    return of_run(run.status, interface.interrupted_by, run.reason)


def _say_what_it_waits_for(run: Run, screen: Screen, again: str) -> None:
    """Show the waiting calls, with reasons and the commands to decide them."""
    for asked in run.waiting_for:
        screen.labelled("question", f"{asked.call.id}: {command_of(asked.call)}\n{question_of(asked)}", "question")
    log, call = shlex.quote(str(run.log)), shlex.quote(run.waiting_for[0].call.id)
    log = f"{log} {again}" if again else log
    screen.labelled("system", "the run rests until a user decides:", "system")
    screen.line(f"    bpagent resume {visible(log)} --approve {visible(call)}", "action")
    screen.line(f"    bpagent resume {visible(log)} --reject {visible(call)} --because TEXT", "action")


def _options_again(arguments: Namespace) -> str:
    """Return the options that are not in the log: own b-threads, monitors, other models, servers."""
    own = [name for name in arguments.protocol if ":" in name]
    given = {"protocol": own, **{name: getattr(arguments, name) for name in ("monitor", "auditor", "role", "mcp")}}
    return " ".join(f"--{name} {shlex.quote(_anywhere(value))}" for name, values in given.items() for value in values)


def _anywhere(name: str) -> str:
    """Return `FILE.py:NAME`, or a pair `NAME=FILE.py:NAME`, with an absolute path; others unchanged."""
    key, equals, what = name.rpartition("=")
    file, _, attribute = what.rpartition(":")
    return f"{key}{equals}{Path(file).absolute()}:{attribute}" if file.endswith(".py") else name
