"""The end of a command, in the words that the model reads: its output, then how it ended."""

import signal
from collections.abc import Sequence
from typing import Any

from agent.tools.process import Finished
from agent.tools.shell.options import ShellOptions
from agent.vocabulary.calls import ToolResult

__all__ = ["beside_the_exit_code", "details_of", "ending_of", "is_failure", "tell"]


def tell(finished: Finished, timeout: float | None, options: ShellOptions, notes: Sequence[str] = ()) -> ToolResult:
    """Return what the model is told about a command that has ended."""
    output = _output(finished, separate=options.separate)
    ending = [*ending_of(finished, timeout), *notes]
    text = "\n".join([output.rstrip("\n"), *ending]) if ending else output
    return ToolResult(text, is_error=is_failure(finished, options), details=details_of(finished))


def is_failure(finished: Finished, options: ShellOptions) -> bool:
    """A timeout and a death by signal are errors; an exit code other than 0 is one where the options say so."""
    failed = bool(finished.exit_code) and options.nonzero_is_error
    return finished.timed_out or finished.signal is not None or failed


def details_of(finished: Finished) -> dict[str, Any]:
    """Return how a command ended, for programs."""
    return {
        "exit_code": finished.exit_code,
        "signal": finished.signal,
        "timed_out": finished.timed_out,
        "truncated": finished.truncated,
        "survivors": finished.survivors,
    }


def ending_of(finished: Finished, timeout: float | None) -> list[str]:
    """Return how a command ended, in lines for the model; none for one that ended well."""
    if finished.timed_out:
        return [f"[timed out after {timeout or 0:g} seconds; the command was killed]"]
    if finished.exit_code:
        return [f"[exit code {finished.exit_code}]", *beside_the_exit_code(finished)]
    return beside_the_exit_code(finished)


def beside_the_exit_code(finished: Finished) -> list[str]:
    """Return what an exit code does not say: the signal that killed a command, and what it had left behind."""
    if finished.timed_out:
        return []
    said = []
    if finished.signal is not None:
        said.append(f"[killed by signal {finished.signal} ({_signal_name(finished.signal)})]")
    if finished.survivors:
        processes = "1 process" if finished.survivors == 1 else f"{finished.survivors} processes"
        said.append(f"[{processes} still running after the command had ended; killed]")
    return said


def _output(finished: Finished, *, separate: bool) -> str:
    if not separate:
        return finished.output if finished.output.strip() else "(no output)"
    if not finished.errors.strip():
        return finished.output if finished.output.strip() else "(no output)"
    parts = [("stdout", finished.output), ("stderr", finished.errors)]
    return "".join(f"{name}:\n{text.rstrip(chr(10))}\n" for name, text in parts if text.strip())


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unnamed"
