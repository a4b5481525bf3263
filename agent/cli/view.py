"""`bpagent view`: a log as one HTML page, to be looked at in a browser."""

import os
import webbrowser
from argparse import Namespace
from pathlib import Path

from agent.cli import exit_codes
from agent.cli.archive import find_log
from agent.cli.loading import load_protocols
from agent.cli.mistakes import Mistake, say
from agent.log import read_log
from agent.page import render_page

__all__ = ["execute"]


def execute(arguments: Namespace) -> int:
    """Write the page beside the log, or where --output says, and say where it is. Raises LogError for no log."""
    log = find_log(arguments.log)
    run = read_log(log)
    path = Path(arguments.output) if arguments.output else log.with_suffix(".html")
    if path.exists() and path.samefile(log):
        raise Mistake(f"{path} is the log itself; name another file with --output")
    page = render_page(run, load_protocols(arguments.protocol), _said_afterwards(log))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)  # it holds what the log holds
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(page)
    print(path)
    if arguments.open:
        webbrowser.open(path.absolute().as_uri())
    return exit_codes.OK


def _said_afterwards(log: Path) -> tuple[tuple[str, str], ...]:
    """Return what the sidecar of a log tells, if there is one."""
    from agent.lab.sidecars import SidecarError, said_afterwards, sidecar_path

    if not sidecar_path(log).exists():
        return ()
    try:
        return said_afterwards(log)
    except SidecarError as error:
        say(str(error))
        return ()
