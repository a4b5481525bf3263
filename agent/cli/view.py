"""`bpagent view`: a log as one HTML page, to be looked at in a browser; or all runs, with an index."""

import os
import webbrowser
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from agent.cli import exit_codes
from agent.cli.build import load_protocols
from agent.cli.mistakes import Mistake, say
from agent.cli.runs import find_log, find_logs, runs_folder, summaries
from agent.history.playback import shadow_of
from agent.log.reading import RecordedRun, read_log
from agent.page import render_page
from agent.page.tables import index_page
from bp import BThread

BEGINNING = b"<!doctype html>"


def execute(arguments: Namespace) -> int:
    """Write the page beside the log, or where --output says, and say where it is. Raises LogError for no log."""
    if not arguments.all and (len(arguments.log) > 1 or any(map(os.path.isdir, arguments.log))):
        return _several(arguments)
    if arguments.follow:
        return _follow(arguments)
    path = _index(arguments) if arguments.all else _page_of_run(arguments)
    print(path)
    if arguments.open and not webbrowser.open(path.absolute().as_uri()):
        say("no browser could be opened here")
    return exit_codes.OK


def _several(arguments: Namespace) -> int:
    """Write the pages of several logs beside them; each is given those of the b-threads that its run had."""
    if arguments.output or arguments.open or arguments.follow:
        raise Mistake("--output, --open and --follow are for one log; name one")
    threads = load_protocols(arguments.protocol)
    for log in find_logs(arguments.log):
        run = read_log(log)
        there = {entry.get("name") for entry in run.header.get("bthreads") or ()}
        print(_written(run, [bthread for bthread in threads if bthread.name in there], log.with_suffix(".html")))
    return exit_codes.OK


def _follow(arguments: Namespace) -> int:
    """Serve the page of a run that may go on, until Ctrl-C."""
    from agent.cli.follow import Following, Server

    if arguments.all or arguments.output:
        raise Mistake("--follow serves the page of one run; leave --all and --output out")
    with Server(Following(find_log(*arguments.log), load_protocols(arguments.protocol))) as server:
        print(server.address, flush=True)
        say("this address is for you alone: who has it can approve, steer and stop; Ctrl-C ends it")
        if arguments.open and not webbrowser.open(server.address):
            say("no browser could be opened here")
        with suppress(KeyboardInterrupt):
            server.serve_forever()
    return exit_codes.OK


def _page_of_run(arguments: Namespace) -> Path:
    log = find_log(*arguments.log)
    path = Path(arguments.output) if arguments.output else log.with_suffix(".html")
    run = read_log(log)
    if path.exists() and path.samefile(log):
        raise Mistake(f"{path} is the log itself; name another file with --output")
    return _written(run, load_protocols(arguments.protocol), path)


def _written(run: RecordedRun, threads: Sequence[BThread], path: Path) -> Path:
    """Write the page of a run, tell what it lacks, and return where it is."""
    shadow = shadow_of(run, threads)
    shadow.close()
    for problem in filter(None, (run.integrity, shadow.problem)):
        say(problem)
    write_page(path, render_page(run, threads))
    return path


def _index(arguments: Namespace) -> Path:
    """Write the page of every run whose log is newer than its page, and one that leads to them."""
    if arguments.log or arguments.output:
        raise Mistake("--all writes the pages of all runs beside their logs; leave LOG and --output out")
    found, broken = summaries()
    for sentence in broken:
        say(sentence)
    if not found:
        raise Mistake(f"there is no run yet in {runs_folder()}; make one: bpagent run PROMPT")
    threads = load_protocols(arguments.protocol)
    for summary in found:
        page = summary.path.with_suffix(".html")
        if not page.exists() or page.stat().st_mtime_ns <= summary.path.stat().st_mtime_ns:
            write_page(page, render_page(read_log(summary.path), threads))
    index = runs_folder() / "index.html"
    write_page(index, index_page([summary.plain() for summary in found], str(runs_folder())))
    return index


def write_page(path: Path, page: str) -> None:
    """Write a page that only its owner reads, as the log, over nothing but an older page. Raises Mistake."""
    if not _is_free(path):
        raise Mistake(f"{path} is there and is no page; name another file")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(page)
    except OSError as error:
        raise Mistake(f"cannot write the page {path}: {error.strerror}; name another file") from error


def _is_free(path: Path) -> bool:
    """Return whether nothing would be lost: there is no such file, or an older page, or nothing in it."""
    if not path.is_file():
        return True
    with path.open("rb") as file:
        return file.read(len(BEGINNING)).lower() in (BEGINNING, b"")
