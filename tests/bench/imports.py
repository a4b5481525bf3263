"""What a program does before its first line: imports and the command's help, in CPU time above a bare interpreter."""

import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from tests.bench.rows import Aim, Row
from tests.bench.timing import fastest_command, scaled

__all__ = ["measure"]

MILLI = 1e3
HELP = "import sys; sys.argv = ['bpagent', '--help']; from agent.cli import main; sys.exit(main())"
IMPORTS: Sequence[tuple[str, Aim | None]] = (
    ("import attrs", None),  # what every frozen value needs: the floor of the next ones
    ("import bp", Aim(at_most=60)),
    ("import constitution", Aim(at_most=60)),
    ("import agent", Aim(at_most=60)),
    ("from agent import Agent, ScriptedModel, tool", Aim(at_most=120)),
)


def measure(size: float = 1.0) -> Iterator[Row]:
    """CPU milliseconds above `python -c pass` for each import, and of the command's help as a whole."""
    codes = ["pass", *(code for code, _ in IMPORTS)]
    bare, *seconds = (taken * MILLI for taken in fastest_command(*map(command, codes), rounds=scaled(10, size)))
    for (code, aim), taken in zip(IMPORTS, seconds, strict=True):
        yield Row(code, taken - bare, "ms", bare, "python -c pass", aim)
    yield from help_of_the_command(size)


def command(code: str) -> list[str]:
    """Return the command that runs `code` in a fresh interpreter."""
    return [sys.executable, "-c", code]


def help_of_the_command(size: float) -> Iterator[Row]:
    """Measure `bpagent --help` from start to end, interpreter included."""
    if find_spec("agent.cli") is None:
        yield Row("bpagent --help", None, "ms", note="skipped: there is no agent.cli")
        return
    bare, taken = (taken * MILLI for taken in fastest_command(command("pass"), command(HELP), rounds=scaled(10, size)))
    yield Row("bpagent --help", taken, "ms", bare, "python -c pass", Aim(at_most=200))
