"""`bpagent runs`: the runs of the folder, one line each."""

import json
import sys
from argparse import Namespace

from agent.cli import exit_codes
from agent.cli.archive import Summary, runs_folder, summaries
from agent.cli.mistakes import say
from agent.cli.screen import Screen, Tone, screen_on, visible

TONES: dict[str, Tone] = {
    "completed": "good",
    "running": "action",
    "waiting": "question",
    "failed": "refused",
    "doom_loop": "refused",
    "interrupted": "question",
}


def execute(arguments: Namespace) -> int:
    """List the runs, the latest last."""
    found, broken = summaries()
    for sentence in broken:
        say(sentence)
    if arguments.json:
        for summary in found:
            print(json.dumps(summary.plain(), ensure_ascii=False))
        return exit_codes.OK
    screen = screen_on(sys.stdout, needed=True)
    if not found:
        screen.line(f"no runs in {runs_folder()} yet: bpagent run PROMPT makes one", "system")
        return exit_codes.OK
    longest = max(len(summary.id) for summary in found)
    screen.line(f"{'id':{longest}}  {'begun':16}  {'preset':11}  {'status':11}  turns  prompt", "title")
    for summary in found:
        _show(summary, longest, screen)
    _say_how_to_go_on(found, screen)
    return exit_codes.OK


def _show(summary: Summary, longest: int, screen: Screen) -> None:
    begun = summary.begun[:16].replace("T", " ")
    status = screen.painted(f"{summary.status:11}", TONES.get(summary.status, "plain"))
    first = f"{summary.id:{longest}}  {begun:16}  {visible(summary.preset):11}  "
    rest = f"  {summary.turns:5}  "
    room = max(screen.width - len(first) - 11 - len(rest), 20)
    prompt = visible(" ".join(summary.prompt.split()))
    screen.line(f"{first}{status}{rest}{prompt if len(prompt) <= room else f'{prompt[: room - 1]}…'}")


def _say_how_to_go_on(found: list[Summary], screen: Screen) -> None:
    for summary in found:
        if summary.status == "waiting":
            screen.line(f"{summary.id} waits for {visible(', '.join(summary.waiting))}:", "question")
            screen.line(f"    bpagent resume {summary.id} --approve {visible(summary.waiting[0])}", "action")
    if any(summary.status == "interrupted" for summary in found):
        screen.line("interrupted runs go on with: bpagent resume ID", "system")
