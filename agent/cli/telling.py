"""Events of a run in words, for people: pure functions from values to text."""

import json
from collections.abc import Callable

from agent.cli.screen import visible_lines
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.encoding import plain
from agent.vocabulary.messages import Usage
from agent.vocabulary.reasons import Declined
from bp import Refusal, Refusals
from constitution import Verdict

__all__ = ["action_of", "because", "command_of", "excerpt", "is_error", "refused_by", "spent"]

HEAD, TAIL = 8, 4  # lines of a result that are shown
LONGEST_ARGUMENT = 60  # characters

SHELLS = ("bash", "run_command", "terminal")
"""Tools whose call is told as its command alone (S1 6.3)."""


def command_of(call: ToolCall) -> str:
    """Return what a call would do, whole: a shell command as proposed, else the tool with its arguments."""
    return _as_command(call, lambda value: json.dumps(value, ensure_ascii=False))


def action_of(call: ToolCall) -> str:
    """Return what a call would do, for looking on: a shell command as proposed, long arguments by their length."""
    return _as_command(call, _abbreviated)


def _as_command(call: ToolCall, shown: Callable[[object], str]) -> str:
    """Return a shell command, or a tool with its arguments; a short text as the only argument stands alone."""
    command = call.arguments.get("command")
    if call.tool in SHELLS and isinstance(command, str):
        return command
    match [*call.arguments.items()]:
        case [(_, str(text))] if text and len(text) < LONGEST_ARGUMENT:
            return f"{call.tool} {text}"
        case arguments:
            return " ".join([call.tool, *(f"{name}={shown(plain(value))}" for name, value in arguments)])


def _abbreviated(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < LONGEST_ARGUMENT else f"({len(value if isinstance(value, str) else text)} characters)"


def because(refusal: Refusal) -> str:
    """Return why a b-thread refused."""
    match refusal.because:
        case Verdict() as verdict:
            return _verdict(verdict)
        case Declined(verdict=verdict, text=text, present=present):
            said = "the answer was no" + (f" ({text})" if text else "")
            return f"{said if present else 'no person present'} ({verdict.rule}: {verdict.explanation})"
        case reason:
            return str(reason)


def _verdict(verdict: Verdict) -> str:
    return f"{verdict.explanation} (rule {verdict.rule})"


def refused_by(refusals: Refusals) -> list[str]:
    """Return one line for each b-thread that refused: who, and why."""
    return sorted(f"b-thread {refusal.bthread}: {because(refusal)}" for refusal in refusals)


def excerpt(text: str, width: int) -> list[str]:
    """Return the first and last lines of a result, each at most `width` characters long."""
    lines = [line if len(line) <= width else f"{line[: width - 1]}…" for line in visible_lines(text.rstrip("\n"))]
    if len(lines) <= HEAD + TAIL + 1:
        return lines
    return [*lines[:HEAD], f"… {len(lines) - HEAD - TAIL} more lines", *lines[-TAIL:]]


def is_error(status: str) -> bool:
    """Whether the text of a run with this status tells what went wrong, and nothing that was asked for."""
    return status in ("failed", "aborted")


def spent(turns: int, calls: int, usage: Usage) -> str:
    """Return what a run took."""
    tokens = ("about " if usage.is_estimate else "") + _count(usage.tokens, "token")
    cost = [] if usage.cost is None else [f"${usage.cost:.4f}"]
    return ", ".join([_count(turns, "turn"), _count(calls, "call"), *([tokens] if usage.tokens else []), *cost])


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
