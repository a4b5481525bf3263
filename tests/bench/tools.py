"""What tools cost: a command against the bare process, floods and long files in memory, a search against `rg`."""

import os
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import anyio

from agent.tools.collections import workspace_tools
from agent.tools.search import make_grep
from agent.tools.workspace import Workspace
from tests.bench.measuring import Aim, Row, output_of, scaled
from tests.bench.starting import STATUS

MEGA = 1 << 20
WORDS = "the quick brown fox jumps over the lazy dog while seven wizards watch " * 8

# These run in fresh interpreters and print how much was resident at most before and after, in bytes.
FLOOD = "from tests.bench.tools import flood; flood({count})"
LAST_PAGE = "from tests.bench.tools import last_page; last_page({count})"


def measure_tools(size: float = 1.0) -> Iterator[Row]:
    """Wall time, because processes wait; and memory."""
    with TemporaryDirectory() as folder:
        yield anyio.run(command_row, Path(folder), scaled(40, size))
        yield from memory_rows(size)
        yield from search_rows(Path(folder), scaled(1000, size))


async def command_row(folder: Path, rounds: int) -> Row:
    """A command through the tool, and the same one as a bare process; they take turns."""
    bash = workspace_tools(folder)[0]

    async def bare() -> None:
        async with await anyio.open_process(["bash", "-c", "true"], cwd=folder) as process:
            await process.wait()

    async def tool() -> None:
        await bash.run({"command": "true"})

    ours, theirs = await fastest_in_turns(rounds, tool, bare)
    aim = Aim(at_most=2, of="ratio")
    return Row("bash -c true through the tool", ours * 1e3, "ms", theirs * 1e3, "anyio.open_process", aim)


async def fastest_in_turns(rounds: int, *functions: Callable[[], Awaitable[None]]) -> list[float]:
    best = [float("inf")] * len(functions)
    for _ in range(rounds):
        for position, function in enumerate(functions):
            begin = perf_counter()
            await function()
            best[position] = min(best[position], perf_counter() - begin)
    return best


def memory_rows(size: float) -> Iterator[Row]:
    """Peaks of interpreters of their own."""
    if not os.path.exists(STATUS):
        yield Row("peak memory of tools", None, "MB", note="skipped: this system has no /proc")
        return
    for what, code, count in (
        ("a flood of 1 GB of output", FLOOD, scaled(1 << 30, size)),
        ("read: the last page of 2 GB", LAST_PAGE, scaled(2 << 30, size)),
    ):
        before, after = map(int, output_of(code.format(count=count)).split())
        yield Row(f"{what}, more at the peak", (after - before) / MEGA, "MB", aim=Aim(at_most=64))


def search_rows(folder: Path, count: int) -> Iterator[Row]:
    """The tool on a tree of 50 MB, and the program `rg` by itself."""
    plant(folder / "tree", count)
    took = min(searched(folder / "tree") for _ in range(3))
    rg = shutil.which("rg")
    if rg is None:
        yield Row("grep in 50 MB", took, "s", note="rg, to compare with, is missing")
        return
    command = [rg, "--no-config", "--hidden", "-n", "needle", str(folder / "tree")]
    alone = min(wall(lambda: subprocess.run(command, stdout=subprocess.DEVNULL)) for _ in range(3))
    yield Row("grep in 50 MB", took, "s", alone, "rg by itself", Aim(at_most=10, of="ratio"))


def plant(tree: Path, count: int) -> None:
    """Make a tree of `count` files of 50 KB, in which the last one has what is looked for."""
    page = (WORDS + "\n") * (50 * 1024 // len(WORDS))
    for number in range(count):
        path = tree / f"part{number % 20}" / f"{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page + ("needle\n" if number == count - 1 else ""))


def searched(tree: Path) -> float:
    grep = make_grep(Workspace(tree))

    async def search() -> None:
        assert "needle" in (await grep.run({"pattern": "needle"})).text

    return wall(lambda: anyio.run(search))


def wall(function: Callable[[], object]) -> float:
    begin = perf_counter()
    function()
    return perf_counter() - begin


# In the fresh interpreters.


def peak() -> int:
    """Return how many bytes were resident at most."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


def flood(count: int) -> None:
    """Print the peak before and after a command that prints `count` bytes."""
    bash = workspace_tools(".")[0]

    async def run(command: str) -> None:
        assert not (await bash.run({"command": command, "timeout": 600})).is_error

    anyio.run(run, "true")
    before = peak()
    anyio.run(run, f"head -c {count} /dev/zero")
    print(before, peak())


def last_page(count: int) -> None:
    """Print the peak before and after the last page of a file of `count` bytes is read."""
    from agent.tools.files import make_read

    async def run(folder: str, offset: int) -> None:
        result = await make_read(Workspace(folder)).run({"path": "long", "offset": offset})
        assert not result.is_error, result.text

    with TemporaryDirectory() as folder:
        with open(f"{folder}/long", "wb") as file:
            file.write(b"first\n")
            file.truncate(count + 6)
            file.seek(0, os.SEEK_END)
            file.write(b"\nlast\n")
        anyio.run(run, folder, 1)
        before = peak()
        anyio.run(run, folder, 3)
    print(before, peak())
