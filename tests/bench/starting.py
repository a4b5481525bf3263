"""What a program does before its first line: imports and the command's help, in CPU time above a bare interpreter."""

import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from tests.bench.measuring import Aim, Row, fastest_command, output_of, scaled

MILLI = 1e3
HELP = "import sys; sys.argv = ['bpagent', '--help']; from agent.cli import main; sys.exit(main())"
IMPORTS: Sequence[tuple[str, Aim | None]] = (
    ("import attrs", None),  # what every frozen value needs: the floor of the next ones
    ("import bp", Aim(at_most=60)),
    ("import constitution", Aim(at_most=60)),
    ("import agent", Aim(at_most=60)),
    ("from agent import Agent, ScriptedModel, tool", Aim(at_most=120)),
)


def measure_imports(size: float = 1.0) -> Iterator[Row]:
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


# How much memory it takes: after the imports, for each waiting b-thread, and over a super-step of a million events


MEGA = 1 << 20
STATUS = Path("/proc/self/status")  # Linux


# These run in fresh interpreters and print how many bytes are resident, before and after something.
AFTER_IMPORT = (
    "resident = lambda: int(open('/proc/self/status').read().partition('VmRSS:')[2].split()[0]) * 1024; "
    "before = resident(); {code}; print(before, resident())"
)

WAITING = "from tests.bench.starting import waiting; waiting({count})"

LONG_SUPER_STEP = "from tests.bench.starting import long_super_step; long_super_step({times})"


def measure_memory(size: float = 1.0) -> Iterator[Row]:
    """Resident memory, each figure from an interpreter of its own."""
    if not STATUS.exists():
        yield Row("resident memory", None, "MB", note="skipped: this system has no /proc")
        return
    for code, aim in (("import bp", None), ("from agent import Agent, ScriptedModel, tool", Aim(at_most=40))):
        bare, resident = numbers(AFTER_IMPORT.format(code=code))
        yield Row(f"resident after {code}", resident / MEGA, "MB", bare / MEGA, "bare interpreter", aim)
    count = scaled(20_000, size)
    before, after = numbers(WAITING.format(count=count))
    yield Row("one more waiting b-thread", (after - before) / count, "bytes")
    early, late = numbers(LONG_SUPER_STEP.format(times=scaled(500_000, size)))
    constant = Aim(at_most=1.1, of="ratio")
    yield Row("after 1,000,000 events in a super-step", late / MEGA, "MB", early / MEGA, "after 10,000", constant)


def numbers(code: str) -> tuple[int, int]:
    """Return the two numbers that `code` prints."""
    first, second = output_of(code).split()
    return int(first), int(second)


# In the fresh interpreters.


def resident() -> int:
    """Return how many bytes of this process are in memory."""
    return int(STATUS.read_text().partition("VmRSS:")[2].split()[0]) * 1024


def waiting(count: int) -> None:
    """Print the memory before and after `count` b-threads came to their synchronization points."""
    from bp import BProgram
    from tests.bench.engine import parked

    BProgram(*parked(1)).step()
    before = resident()
    program = BProgram(*parked(count))
    program.step()
    print(before, resident())


def long_super_step(times: int) -> None:
    """Print the memory after the first hundredth, and after all of `2 * times` events."""
    from bp import BProgram
    from tests.bp.programs import COLD, HOT, alternate, requests

    program = BProgram(alternate(), requests(HOT, times), requests(COLD, times))
    early = 0
    for step in program.run():
        if step.number == times // 50:
            early = resident()
    print(early, resident())
