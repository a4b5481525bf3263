"""Wrong input in one sentence on standard error, with the right exit code and no traceback."""

import io
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from agent.cli.exit_codes import FAILED, USAGE, of_signal

SIGINT = 2
INDENT = "    "


class Mistake(Exception):
    """The command cannot do what it was asked to; the message is one sentence with culprit, finding and cure."""


def say(text: str) -> None:
    """Tell a sentence on standard error, control characters escaped; further lines stand indented below it."""
    from agent.cli.screen import size_of, visible_lines, wrapped

    lines = visible_lines(f"bpagent: {text}")
    if sys.stderr.isatty():
        lines = [part for line in lines for part in wrapped(line, size_of(sys.stderr)[0] - len(INDENT))]
    print(f"\n{INDENT}".join(lines), file=sys.stderr, flush=True)


def guarded(command: Callable[[], int]) -> int:
    """Return the exit code of `command`, turning its errors into sentences. Bugs pass through."""
    _open_closed_streams()
    _tolerate_odd_text()
    try:
        if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:  # from here on it is told
            signal.signal(signal.SIGINT, _interrupt)
        code = command()
        sys.stdout.flush()
        return code
    except SystemExit as leaving:  # argparse has said why
        return leaving.code if isinstance(leaving.code, int) else USAGE
    except KeyboardInterrupt:
        return of_signal(SIGINT)
    except BrokenPipeError:
        return _without_output()
    except OSError as error:
        if error.filename is None:
            _without_output()
        say(f"{error.filename}: {error.strerror}" if error.filename else f"cannot write the output: {error.strerror}")
        return FAILED
    except Exception as error:
        if not _is_mistake(error):
            raise
        say(str(error))
        return USAGE


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, and leave the line on which the terminal shows ^C."""
    terminal = next((stream for stream in (2, 1) if os.isatty(stream)), None)
    if terminal is not None:
        os.write(terminal, b"\n")
    signal.default_int_handler(number, frame)


def _is_mistake(error: Exception) -> bool:
    """Return whether an error tells the user what is wrong; all that the agent raises on purpose do."""
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


def _without_output() -> int:
    """Give up on standard output, whose reader has gone, so that the interpreter does not complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return FAILED
