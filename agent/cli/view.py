"""`bpagent view`: a log as one HTML page, to be looked at in a browser."""

import os
import webbrowser
from argparse import Namespace
from pathlib import Path

from agent.cli import exit_codes
from agent.cli.build import load_protocols
from agent.cli.mistakes import Mistake, say
from agent.cli.runs import find_log
from agent.log.reading import read_log
from agent.page import render_page

BEGINNING = b"<!doctype html>"


def execute(arguments: Namespace) -> int:
    """Write the page beside the log, or where --output says, and say where it is. Raises LogError for no log."""
    log = find_log(arguments.log)
    run = read_log(log)
    if run.integrity:
        say(run.integrity)
    path = Path(arguments.output) if arguments.output else log.with_suffix(".html")
    if path.exists() and path.samefile(log):
        raise Mistake(f"{path} is the log itself; name another file with --output")
    if not _is_free(path):
        raise Mistake(f"{path} is there and is no page; name another file with --output")
    from agent.cli.score import said_afterwards  # the laboratory is loaded where it is asked for

    _write(path, render_page(run, load_protocols(arguments.protocol), said_afterwards(log)))
    print(path)
    if arguments.open:
        webbrowser.open(path.absolute().as_uri())
    return exit_codes.OK


def _is_free(path: Path) -> bool:
    """Return whether nothing would be lost: there is no such file, or an older page, or nothing in it."""
    if not path.is_file():
        return True
    with path.open("rb") as file:
        return file.read(len(BEGINNING)).lower() in (BEGINNING, b"")


def _write(path: Path, page: str) -> None:
    """Write a page that only its owner reads, as the log. Raises Mistake."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(page)
    except OSError as error:
        raise Mistake(f"cannot write the page {path}: {error.strerror}; name a file with --output") from error
