"""The exit codes of all commands, and errors as one sentence on standard error, without a traceback."""

import io
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

OK, FAILED, USAGE, LIMIT, DIFFERENT, UNREACHED = 0, 1, 2, 3, 6, 7

STATUSES = {
    "completed": OK,
    "failed": FAILED,
    "doom_loop": FAILED,
    "limit": LIMIT,
    "stopped": 4,
    "waiting": 5,
    "aborted": 130,
}

LEVELS = {"allow": 0, "ask": 10, "deny": 11}
"""The exit codes of `check`."""


MISSED_OBJECTIVE = ("partial", "failure")
"""Statuses that an agent declares for an objective that it did not reach."""

INDENT = "    "


class Mistake(Exception):
    """The command cannot be carried out; the message is one sentence with culprit, finding and cure."""


def say(text: str) -> None:
    """Write a sentence to standard error, control characters escaped; further lines are indented."""
    from agent.cli.screen import size_of, visible_lines, wrapped

    lines = visible_lines(f"bpagent: {text}")
    if sys.stderr.isatty():
        lines = [part for line in lines for part in wrapped(line, size_of(sys.stderr)[0] - len(INDENT))]
    with suppress(BrokenPipeError):  # then no user reads it
        print(f"\n{INDENT}".join(lines), file=sys.stderr, flush=True)


def guarded(command: Callable[[], int]) -> int:
    """Return the exit code of `command`, turning its errors into sentences. Bugs pass through."""
    _open_closed_streams()
    _tolerate_odd_text()
    try:
        return _exit_code(command)
    finally:
        _discard_what_cannot_be_written()


def _exit_code(command: Callable[[], int]) -> int:
    handled = signal.getsignal(signal.SIGINT) == signal.SIG_DFL
    try:
        if handled:
            signal.signal(signal.SIGINT, signal.default_int_handler)  # the one that event loops replace: they cancel
        code = _returned_or_left(command)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt as interrupt:
        return _interrupted(interrupt, handled)
    except BrokenPipeError:
        return FAILED
    except OSError as error:
        if error.filename is None:
            _discard_what_cannot_be_written()
        say(f"{error.filename}: {error.strerror}" if error.filename else f"cannot write the output: {error.strerror}")
        return FAILED
    except Exception as error:
        if not _is_mistake(error):
            raise
        say(str(error))
        return USAGE


def _returned_or_left(command: Callable[[], int]) -> int:
    try:
        return command()
    except SystemExit as leaving:  # argparse has reported it
        return leaving.code if isinstance(leaving.code, int) else USAGE


def _interrupted(interrupt: KeyboardInterrupt, handled: bool) -> int:
    """Say what the interrupt says; if it was handled here, another one ends the program before what it waits for."""
    if handled:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    leave_the_line_of_the_key()
    if interrupt.args:
        say(str(interrupt))
    return of_signal(signal.SIGINT)


def leave_the_line_of_the_key() -> None:
    """Begin a new line on the terminal, which shows ^C."""
    terminal = next((stream for stream in (2, 1) if os.isatty(stream)), None)
    if terminal is not None:
        os.write(terminal, b"\n")


def _is_mistake(error: Exception) -> bool:
    """Return whether an error has a message for the user, as all that the agent raises on purpose."""
    from agent.vocabulary.errors import AgentError

    return isinstance(error, Mistake | AgentError)


def _open_closed_streams() -> None:
    """Open missing standard streams on /dev/null; otherwise a log could get their descriptor numbers."""
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _tolerate_odd_text() -> None:
    """Escape text that the encoding cannot represent (from file names and models) instead of raising."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_what_cannot_be_written() -> None:
    """Open streams whose reader has gone on /dev/null; otherwise the interpreter fails at its last flush, with 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def of_run(status: str, interrupted_by: int | None = None, reason: str = "") -> int:
    """Return the exit code for the end of a run; `interrupted_by` is the signal that aborted it, if any."""
    if status == "aborted" and interrupted_by is not None:
        return of_signal(interrupted_by)
    if status == "completed" and reason in MISSED_OBJECTIVE:
        return FAILED
    return STATUSES.get(status, FAILED)


def of_signal(number: int) -> int:
    """Return the exit code for a process that a signal ended, as shells do."""
    return 128 + number
