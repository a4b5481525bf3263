"""How much memory it takes: after the imports, for each waiting b-thread, and over a super-step of a million events."""

from collections.abc import Iterator
from pathlib import Path

from tests.bench.rows import Aim, Row
from tests.bench.timing import output_of, scaled

__all__ = ["measure"]

MEGA = 1 << 20
STATUS = Path("/proc/self/status")  # Linux

# These run in fresh interpreters and print how many bytes are resident, before and after something.
AFTER_IMPORT = (
    "resident = lambda: int(open('/proc/self/status').read().partition('VmRSS:')[2].split()[0]) * 1024; "
    "before = resident(); {code}; print(before, resident())"
)
WAITING = "from tests.bench.memory import waiting; waiting({count})"
LONG_SUPER_STEP = "from tests.bench.memory import long_super_step; long_super_step({times})"


def measure(size: float = 1.0) -> Iterator[Row]:
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
    from tests.bench.waiting import parked

    BProgram(*parked(1)).step()
    before = resident()
    program = BProgram(*parked(count))
    program.step()
    print(before, resident())


def long_super_step(times: int) -> None:
    """Print the memory after the first hundredth, and after all of `2 * times` events."""
    from bp import BProgram
    from tests.bench.hot_cold import COLD, HOT, add, alternate

    program = BProgram(alternate(), add(HOT, times), add(COLD, times))
    early = 0
    for step in program.run():
        if step.number == times // 50:
            early = resident()
    print(early, resident())
