"""What the agent costs: its imports in CPU time above a bare interpreter, a turn, a streamed chunk, its tools."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import anyio
import httpx2
from attrs import evolve

from agent import Agent, ScriptedModel, call, tool
from agent.models.openai_model import WIRES, raw_chunks
from agent.presets import preset_named
from agent.tools.collections import workspace_tools
from agent.tools.sandbox.sandbox import LEVELS, Level, Sandbox, why_not
from agent.tools.search import make_grep
from agent.tools.shell import ShellOptions, make_shell_tool
from agent.tools.snapshots.store import Snapshots
from agent.tools.workspace import Workspace
from tests.bench.measuring import STATUS, Aim, Prepare, Row, fastest, fastest_command, numbers, scaled

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
    bare, taken = (taken * MILLI for taken in fastest_command(command("pass"), command(HELP), rounds=scaled(10, size)))
    yield Row("bpagent --help", taken, "ms", bare, "python -c pass", Aim(at_most=200))


def command(code: str) -> list[str]:
    """Return the command that runs `code` in a fresh interpreter."""
    return [sys.executable, "-c", code]


# What a turn costs beside its model and its tool, which do nothing and are quick; all else is the real agent.


TURNS = (50, 200, 800)


@tool(category="read", quick=True)
def do_nothing() -> str:
    """Do nothing."""
    return "done"


def measure_turns(size: float = 1.0) -> Iterator[Row]:
    """Milliseconds of CPU per turn, one call each, for runs of 50, 200 and 800 turns; and the Python calls of one."""
    counts = [scaled(turns, size) for turns in TURNS]
    logged = [cheapest(turns, log=True) for turns in counts]
    silent = cheapest(counts[1], log=False)
    for turns, cost in zip(TURNS, logged, strict=True):
        yield Row(f"{turns} turns, log on: CPU", cost, "ms/turn", logged[0], f"{TURNS[0]} turns", Aim(at_most=1))
    flat = Aim(at_most=1.2, of="ratio")
    yield Row("flatness", logged[-1], "ms/turn", logged[0], f"{TURNS[0]} turns", flat)
    yield Row(f"{TURNS[1]} turns, log off: CPU", silent, "ms/turn", logged[1], "log on")
    yield Row("Python calls of a turn, log on", calls(20) - calls(19), "calls", aim=Aim(at_most=1800))


def cheapest(turns: int, *, log: bool, rounds: int = 3) -> float:
    """Return the milliseconds of CPU that a turn takes: the least of several runs."""
    return min(run(turns, log=log) for _ in range(rounds))


def calls(turns: int) -> int:
    """Return how many Python functions a run calls, the same on every machine of one version of Python."""
    count = 0

    def see(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(see)
    try:
        run(turns, log=True)
    finally:
        sys.setprofile(None)
    return count


def run(turns: int, *, log: bool) -> float:
    """Return the milliseconds of CPU per turn of an agent that calls the tool once in each."""
    model = ScriptedModel([*[call("do_nothing")] * turns, "Done."])
    unlimited = evolve(preset_named("default"), max_iterations=None, doom_loop=None)
    with ExitStack() as resources:
        folder = Path(resources.enter_context(tempfile.TemporaryDirectory()))
        agent = resources.enter_context(
            Agent(model, [do_nothing], preset=unlimited, workspace=folder, log=folder / "run.jsonl" if log else None)
        )
        begin = process_time()
        ended = agent.run_sync("Go on.")
        cost = (process_time() - begin) / turns * MILLI
    assert ended.status == "completed", ended.text
    return cost


# What a streamed chunk costs on its way from bytes to an answer; the floor is parsing its JSON and nothing else


MICRO = 1e6
CHUNKS = 4_000
PIECE = 1_400  # bytes of a network packet
PER_CHUNK = Aim(at_most=50)


def measure_streaming(size: float = 1.0) -> Iterator[Row]:
    """Microseconds of CPU for each chunk of text, and of a call's arguments, in both wire formats."""
    count = scaled(CHUNKS, size)
    for api, what, chunk in kinds():
        chunks = [chunk(number) for number in range(count)]
        ours, floor = fastest(lambda: assembling(api, chunks), lambda: parsing(chunks))  # noqa: B023, used at once
        yield Row(f"{api}: {what}", ours / count * MICRO, "us/chunk", floor / count * MICRO, "json.loads", PER_CHUNK)


def kinds() -> Iterator[tuple[str, str, Callable[[int], dict[str, Any]]]]:
    """Chunks as servers send them, with all that stands beside the few characters that count."""
    yield "chat", "text", lambda number: chat({"content": f" word{number}"})
    yield "chat", "arguments", lambda number: chat({"tool_calls": [piece_of_a_call(number)]})
    yield "responses", "text", lambda number: delta("output_text", number, content_index=0, logprobs=[])
    yield "responses", "arguments", lambda number: delta("function_call_arguments", number)


def chat(said: dict[str, Any]) -> dict[str, Any]:
    choice = {"index": 0, "delta": said, "logprobs": None, "finish_reason": None}
    facts = {"id": "chatcmpl-8f1c2d3e", "object": "chat.completion.chunk", "created": 1790000000, "model": "m"}
    return {**facts, "system_fingerprint": "fp_44709d6fcb", "choices": [choice], "usage": None}


def piece_of_a_call(number: int) -> dict[str, Any]:
    first = {"id": "call_1", "type": "function"} if number == 0 else {}
    name = {"name": "write_file"} if number == 0 else {}
    return {"index": 0, **first, "function": {**name, "arguments": f" word{number}" if number else '{"content": "'}}


def delta(kind: str, number: int, **facts: Any) -> dict[str, Any]:
    place = {"item_id": "msg_68af4030baa48193b0b43b4c2a176a1a", "output_index": 1, "sequence_number": number}
    return {"type": f"response.{kind}.delta", **place, **facts, "delta": f" word{number}", "obfuscation": "x7Gh2"}


def assembling(api: str, chunks: list[dict[str, Any]]) -> Callable[[], object]:
    """Prepare the whole way: bytes in packets, events, JSON, the answer while it grows."""
    stream = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    packets = [stream[start : start + PIECE] for start in range(0, len(stream), PIECE)]

    async def body() -> AsyncIterator[bytes]:
        for packet in packets:
            yield packet

    async def assemble() -> None:
        assembly = WIRES[api].assembly("m")
        response = httpx2.Response(200, content=body(), request=httpx2.Request("POST", "http://server"))
        async with raw_chunks(response, "") as chunks:
            async for chunk in chunks:
                assembly.feed(chunk)

    return lambda: anyio.run(assemble)


def parsing(chunks: list[dict[str, Any]]) -> Callable[[], object]:
    """Prepare the floor: the same JSON, one text for each chunk."""
    texts = [json.dumps(chunk) for chunk in chunks]
    return lambda: [json.loads(text) for text in texts]


# What tools cost: a command against the bare process, floods and long files in memory, a search against `rg`.


MEGA = 1 << 20
WORDS = "the quick brown fox jumps over the lazy dog while seven wizards watch " * 8

# These run in fresh interpreters and print how much was resident at most before and after, in bytes.
FLOOD = "from tests.bench.agent_costs import flood; flood({count})"
LAST_PAGE = "from tests.bench.agent_costs import last_page; last_page({count})"


def measure_tools(size: float = 1.0) -> Iterator[Row]:
    """Wall time, because processes wait; and memory."""
    with TemporaryDirectory() as folder:
        yield anyio.run(command_row, Path(folder), scaled(40, size))
        for level in (each for each in LEVELS[:-1] if why_not(each) == ""):
            yield anyio.run(confined_row, Path(folder), level, scaled(40, size))
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


async def confined_row(folder: Path, level: Level, rounds: int) -> Row:
    """A command confined at a level, and the same one unconfined; they take turns."""
    free = make_shell_tool(str(folder))
    confined = make_shell_tool(str(folder), ShellOptions(sandbox=Sandbox((str(folder),), level)))

    async def inside() -> None:
        await confined.run({"command": "true"})

    async def outside() -> None:
        await free.run({"command": "true"})

    ours, theirs = await fastest_in_turns(rounds, inside, outside)
    aim = Aim(at_most=15) if level == "bubblewrap" else None
    return Row(f"more for true in {level}", (ours - theirs) * 1e3, "ms", theirs * 1e3, "unconfined", aim)


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
    if not STATUS.exists():
        yield Row("peak memory of tools", None, "MB", note="skipped: this system has no /proc")
        return
    for what, code, count in (
        ("a flood of 1 GB of output", FLOOD, scaled(1 << 30, size)),
        ("read: the last page of 2 GB", LAST_PAGE, scaled(2 << 30, size)),
    ):
        before, after = numbers(code.format(count=count))
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


def measure_snapshots(size: float = 1.0) -> Iterator[Row]:
    """Return what a snapshot of a folder takes in which nothing has changed, beside `git status` in the same run."""
    if shutil.which("git") is None:
        yield Row("snapshot", None, "s", note="skipped: git is not installed")
        return
    for count in (scaled(10_000, size), scaled(100_000, size)):
        with TemporaryDirectory() as folder:
            tree = Path(folder, "tree")
            for number in range(count):
                path = tree / f"{number // 1000}" / f"{number // 20 % 50}" / f"{number}.py"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{number}\n" * 100)
            for words in (["init", "-q"], ["add", "."]):
                subprocess.run(["git", *words], cwd=tree, check=True)
            snapshots = Snapshots(tree, Path(folder, "home"))
            (first,) = fastest(taking(snapshots), rounds=1)
            yield Row(f"first snapshot of {count:,} files", first, "s")
            ours, theirs = [], []
            for _ in range(3):
                ours += fastest(taking(snapshots), rounds=1)
                theirs += fastest_command(["git", "-C", str(tree), "status", "--porcelain"], rounds=1)
            yield Row(
                f"snapshot of {count:,} files, nothing changed", min(ours), "s", min(theirs), "git status",
                Aim(at_most=3, of="ratio"),
            )  # fmt: skip

    yield after_many_calls(scaled(400, size))


def after_many_calls(calls: int) -> Row:
    """Return what the snapshots around the last calls of a run take, beside those around its first ones."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "tree", "file")
        file.parent.mkdir()
        snapshots, costs = Snapshots(file.parent, Path(folder, "home")), []
        for number in range(calls):
            file.write_text(f"{number}\n" * 100)
            costs.append(fastest(taking(snapshots), rounds=1)[0])
    tenth = max(1, calls // 10)
    first, last = (1000 * sum(some) / tenth for some in (costs[:tenth], costs[-tenth:]))
    return Row(f"snapshot after {calls} calls", last, "ms", first, "the first tenth", Aim(at_most=1.5, of="ratio"))


def taking(snapshots: Snapshots) -> Prepare:
    """Return what takes one more snapshot."""
    return lambda: lambda: snapshots.take("run", "before")
