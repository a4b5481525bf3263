"""Cells: opened by the first process that goes in, ended with everything inside, and never replaced by the machine."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from agent.lab.isolation import cell
from agent.lab.isolation.cell import Cell, CellCommands, IsolationError, listeners_of
from agent.lab.isolation.levels import Probe, achieve, limits_at, probe
from agent.lab.settings.world import make_world
from agent.tools.output import Retention
from agent.tools.process import Finished
from agent.tools.sandbox.bubblewrap import episode_arguments
from agent.tools.sandbox.sandbox import RESOURCES, ResourceLimits, exhausted_by

Popen = Callable[..., Any]
MIB = 2**20
SMALL = ResourceLimits(memory=96 * MIB, processes=16, file_size=2 * MIB, cpu_time=1)
PRINT_AND_WAIT = """
import subprocess, sys
from pathlib import Path
from agent.lab.isolation.cell import Cell

root = Path(sys.argv[1])
made = Cell(root, root / "workspace")
inside = subprocess.Popen(made.joined(["sleep", "300"], "/"))
print("inside", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Cell]:
    (tmp_path / "workspace").mkdir()
    made = Cell(tmp_path, tmp_path / "workspace", limits=SMALL)
    yield made
    made.close()


def run_inside(made: Cell, text: str) -> "subprocess.CompletedProcess[str]":
    command = made.joined(["bash", "-c", text], str(made.writable))
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


async def go(made: Cell, command: str) -> Finished:
    return await CellCommands(made).run(
        command, shell=("bash", "-c"), cwd=str(made.writable), env={"PATH": os.environ["PATH"]}, timeout=100,
        output=Retention(5000).collector(), errors=None, progress=None,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.usefixtures("isolating")
def test_a_cell_is_made_once_by_the_first_process_and_ends_with_all_inside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, popen: Popen
) -> None:
    heard: list[object] = []
    (tmp_path / "workspace").mkdir()
    made = Cell(tmp_path, tmp_path / "workspace", heard.append)
    listeners_of(os.getpid())  # which stays
    descriptors = len(os.listdir("/proc/self/fd"))
    assert heard == []
    first = run_inside(made, "readlink /proc/self/ns/net; echo x > kept")
    monkeypatch.setattr(cell, "_enters_folders", lambda: False)  # an nsenter from before util-linux 2.38
    second = run_inside(made, "readlink /proc/self/ns/net; cat kept")
    inside = popen(made.joined(["sleep", "300"], "/"))
    made.close()

    assert second.stdout == f"{first.stdout}x\n"
    assert first.stdout.strip() != os.readlink("/proc/self/ns/net")
    assert len(heard) == 1
    assert inside.wait(100) != 0
    assert len(os.listdir("/proc/self/fd")) == descriptors
    with pytest.raises(IsolationError, match="closed"):
        made.joined(["true"], "/")


@pytest.mark.slow
@pytest.mark.usefixtures("isolating")
def test_a_cell_ends_with_the_program_that_made_it_however_that_ends(tmp_path: Path, popen: Popen) -> None:
    (tmp_path / "workspace").mkdir()
    outer = popen(
        [sys.executable, "-c", PRINT_AND_WAIT, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert outer.stdout.readline() == b"inside\n"
    assert keepers_of(tmp_path)

    outer.kill()
    outer.wait()

    while keepers_of(tmp_path):  # the time limit of a test ends it
        time.sleep(0.02)


def keepers_of(place: Path) -> list[str]:
    """The processes of bubblewrap that have made a cell around a folder."""
    found = subprocess.run(["pgrep", "-f", f"^/.*bwrap .*--ro-bind {place} "], capture_output=True, text=True)
    return found.stdout.split()


@pytest.mark.slow
@pytest.mark.usefixtures("isolating")
@pytest.mark.anyio
async def test_commands_are_watched_from_outside_as_any_other(made: Cell) -> None:
    finished = await go(made, "echo begun; setsid sleep 50 & exit 3")

    assert (finished.output, finished.exit_code, finished.survivors >= 1) == ("begun\n", 3, True)
    assert run_inside(made, "pgrep -c --runstates D,R,S,T sleep").stdout == "0\n"  # else one not reaped yet counts


def test_without_bubblewrap_nothing_runs_and_the_level_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, untried: None
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert (achieve("none"), achieve("best"), limits_at("none")) == ("none", "none", ())
    with pytest.raises(IsolationError, match=r"not achieved here.*no program '(prlimit|bwrap)'"):
        achieve("bubblewrap")
    with make_world({}, folder=tmp_path, isolation="bubblewrap") as world, pytest.raises(IsolationError):
        world.execute("print(1)")


@pytest.mark.usefixtures("isolating")
def test_a_bubblewrap_that_fails_is_quoted(made: Cell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell, "episode_arguments", lambda *_: ["--no-such-option"])

    for _ in range(2):  # it is not tried again
        with pytest.raises(IsolationError, match="no-such-option"):
            made.open()


def _with_settings(given: list[str]) -> list[str]:
    at = given.index("/proc", given.index("--proc") + 2)
    return [*given[: at - 1], *given[at + 1 :]]


HOLES = {
    "beside": lambda given, root: [*given, "--bind", str(root), str(root)],
    "processes": lambda given, root: [*given, "--ro-bind", "/proc", "/proc"],
    "outside": lambda given, root: [*given, "--ro-bind", "/tmp", "/tmp"],
    "workspace": lambda given, root: [*given, "--ro-bind", str(root), str(root)],
    "net": lambda given, root: [word for word in given if word != "--unshare-net"],
    "pid": lambda given, root: [word for word in given if word != "--unshare-pid"],
    **({"kernel": lambda given, root: _with_settings(given)} if os.geteuid() == 0 else {}),
}


@pytest.mark.slow
@pytest.mark.usefixtures("isolating", "untried")
def test_the_probe_finds_each_hole_and_nothing_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is planted in the arguments of bubblewrap; the machine then achieves nothing."""
    assert probe() == Probe("bubblewrap")
    assert (achieve("best"), achieve("bubblewrap"), achieve("none")) == ("bubblewrap", "bubblewrap", "none")
    descriptors = len(os.listdir("/proc/self/fd"))
    unnoticed = []
    for name, hole in HOLES.items():
        planted = lambda readable, writable, hole=hole: hole([*episode_arguments(readable, writable)], readable)  # noqa: E731
        monkeypatch.setattr(cell, "episode_arguments", planted)
        probe.cache_clear()
        if probe().level != "none" or name not in probe().why:
            unnoticed.append(name)

    assert unnoticed == []
    assert len(os.listdir("/proc/self/fd")) == descriptors


SLEEPERS = """
import os, time
for number in range({}):
    if os.fork() == 0:
        os.close(1)
        time.sleep(30)
        os._exit(0)
"""
TOO_MUCH = {
    "memory": 'exec("bytearray(2**30)")',
    "processes": SLEEPERS.format(2000),
    "file_size": "open('large', 'wb').write(bytes(3 * 2**20))",
    "cpu_time": "while True: pass",
}


@pytest.mark.slow
@pytest.mark.usefixtures("isolating")
@pytest.mark.anyio
async def test_exceeding_a_limit_fails_and_the_answer_names_the_limit(made: Cell) -> None:
    within = await go(made, "(for i in 1 2 3 4; do sleep 0.3 & done; head -c 1M /dev/zero > f; wait)")
    assert (within.output, within.exit_code, made.limits_reached) == ("", 0, set())
    wrong = {}
    for kind, program in TOO_MUCH.items():
        (made.readable / "program.py").write_text(program)
        made.limits_reached.clear()
        finished = await go(made, f"python3 -S {made.readable}/program.py; exit $?")
        if made.limits_reached != {kind} or "[the limit here: " not in finished.output:
            wrong[kind] = (made.limits_reached, finished)

    assert wrong == {}
    raised = await go(made, "ulimit -t unlimited || ulimit -f unlimited || prlimit --data=unlimited true")
    assert raised.exit_code
    assert (await go(made, "rm -f *; echo fine")).output == "fine\n"


def test_the_output_of_a_program_counts_only_if_it_failed() -> None:
    said = Finished("MemoryError\n", 0, None, False, False, 0, 0.1)

    assert exhausted_by(said) == ()
    assert exhausted_by(evolve(said, exit_code=1)) == ("memory",)
    assert exhausted_by(evolve(said, output="", exit_code=153)) == ("file_size",)
    assert exhausted_by(evolve(said, output="", exit_code=None, signal=24)) == ("cpu_time",)


def test_limits_are_numbers_above_zero_in_words() -> None:
    with pytest.raises(ValueError, match="'memory' must be >= 1"):
        ResourceLimits(memory=0)
    assert [SMALL.told(kind) for kind in RESOURCES] == [
        "96 MB of memory", "16 processes", "2 MB for each file", "1 s of a processor for each process",
    ]  # fmt: skip
