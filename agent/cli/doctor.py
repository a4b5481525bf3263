"""`bpagent doctor`: what this machine can do for an agent, found by trying, and what to do about what is missing."""

import json
import os
import shutil
import sys
from argparse import Namespace
from typing import Any

from agent.cli import exit_codes
from agent.cli.runs import runs_folder
from agent.cli.screen import Screen, screen_on
from agent.tools.sandbox.sandbox import LEVELS, LIMITS, achieved, why_not

PROGRAMS = {
    "bash": "the shell of tools",
    "git": "version control",
    "rg": "searching; without it, slower",
    "bwrap": "the sandbox",
    "prlimit": "limits of memory, processes and files in the sandbox",
    "nsenter": "one loopback for all commands of an agent in the sandbox",
}


def execute(arguments: Namespace) -> int:
    """Tell it; the exit code is 1 where commands cannot be confined."""
    found = {
        "sandbox": achieved(),
        "why_not": {level: why for level in LEVELS if level != "none" and (why := why_not(level))},
        "limits": [LIMITS.told(kind) for kind in ("memory", "processes", "file_size", "cpu_time")],
        "programs": {name: shutil.which(name) for name in PROGRAMS},
        "runs": str(runs_folder()),
        "python": sys.version.split()[0],
        "key": bool(os.environ.get("OPENAI_API_KEY")),
    }
    if arguments.json:
        print(json.dumps(found))
    else:
        _tell(screen_on(sys.stdout, needed=True), found)
    return exit_codes.FAILED if found["sandbox"] == "none" else exit_codes.OK


def _tell(screen: Screen, found: dict[str, Any]) -> None:
    confined = found["sandbox"] != "none"
    screen.line(f"sandbox: {found['sandbox']}" if confined else "sandbox: none; commands run unconfined", "title")
    for level, why in found["why_not"].items():
        screen.line(f"  {level}: no: {why}", "system")
    if confined:
        screen.paragraph(f"  limits: {', '.join(found['limits'])}", "  ")
    screen.line("programs", "title")
    for name, place in found["programs"].items():
        screen.line(f"  {name}: {place or 'missing'} ({PROGRAMS[name]})", "system")
    screen.line("agent", "title")
    screen.line(f"  runs in {found['runs']}, Python {found['python']}", "system")
    screen.line(f"  OPENAI_API_KEY is {'set' if found['key'] else 'not set'}", "system")
