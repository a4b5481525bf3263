"""Cells: opened by the first process that goes in, ended with everything inside, and never replaced by the machine."""

import os
import signal
import subprocess
import sys
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

import agent
from agent.lab.isolation import cell, levels
from agent.lab.isolation.cell import Cell, CellCommands, IsolationError
from agent.lab.isolation.levels import achieve, probe
from agent.lab.settings.world import make_world
from agent.tools.output import Retention
from agent.tools.sandbox.limits import KINDS
from agent.tools.sandbox.mounts import arguments

PRINT_AND_WAIT = """
import subprocess, sys
from pathlib import Path
from agent.lab.isolation import Cell

root = Path(sys.argv[1])
made = Cell(root, root / "workspace")
inside = subprocess.Popen(made.joined(["sleep", "300"], "/"))
print(made._first is not None, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "workspace").mkdir()
    return tmp_path


@pytest.fixture
def untried() -> Iterator[None]:
    """A machine whose level nobody has found out yet, and afterwards neither."""
    probe.cache_clear()
    yield
    probe.cache_clear()


def run_inside(made: Cell, text: str) -> "subprocess.CompletedProcess[str]":
    command = made.joined(["bash", "-c", text], str(made._writable))
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.usefixtures("isolating")
def test_a_cell_is_made_when_somebody_goes_in_and_only_once(place: Path) -> None:
    heard: list[object] = []
    made = Cell(place, place / "workspace", heard.append)
    try:
        assert heard == []
        first = run_inside(made, "readlink /proc/self/ns/net; echo x > kept")
        second = run_inside(made, "readlink /proc/self/ns/net; cat kept")

        assert second.stdout == f"{first.stdout}x\n"
        assert first.stdout.strip() != os.readlink("/proc/self/ns/net")
        assert len(heard) == 1
    finally:
        made.close()


@pytest.mark.usefixtures("isolating")
def test_whatever_runs_inside_ends_with_the_cell(place: Path) -> None:
    made = Cell(place, place / "workspace")
    inside = subprocess.Popen(made.joined(["sleep", "300"], "/"))

    made.close()

    assert inside.wait(20) != 0
    with pytest.raises(IsolationError, match="closed"):
        made.joined(["true"], "/")


@pytest.mark.usefixtures("isolating")
def test_a_cell_ends_with_whoever_made_it_however_that_one_ends(place: Path) -> None:
    outer = subprocess.Popen(
        [sys.executable, "-c", PRINT_AND_WAIT, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert outer.stdin is not None
    assert outer.stdout is not None
    with outer.stdin, outer.stdout:
        assert outer.stdout.readline() == b"True\n"
        assert keepers_of(place)

        outer.send_signal(signal.SIGKILL)
        outer.wait()

        end = time.monotonic() + 20
        while keepers_of(place) and time.monotonic() < end:
            time.sleep(0.02)
        assert keepers_of(place) == []


def keepers_of(place: Path) -> list[str]:
    """The processes of bubblewrap that have made a cell around a folder."""
    found = subprocess.run(["pgrep", "-f", f"^/.*bwrap .*--ro-bind {place} "], capture_output=True, text=True)
    return found.stdout.split()


@pytest.mark.usefixtures("isolating")
@pytest.mark.anyio
async def test_commands_are_watched_from_outside_as_any_other(place: Path) -> None:
    made, heard = Cell(place, place / "workspace"), list[str]()
    output = Retention(1000).collector()
    try:
        finished = await CellCommands(made).run(
            "echo begun; setsid sleep 50 & exit 3",
            shell=("bash", "-c"),
            cwd=str(place / "workspace"),
            env={"PATH": os.defpath},
            timeout=20,
            output=output,
            errors=None,
            progress=heard.append,
        )
        left = run_inside(made, "pgrep -c sleep")
    finally:
        made.close()

    assert (finished.output, finished.exit_code, finished.survivors >= 1) == ("begun\n", 3, True)
    assert "".join(heard) == "begun\n"
    assert left.stdout == "0\n"


def test_without_bubblewrap_nothing_runs_and_the_level_says_so(
    place: Path, monkeypatch: pytest.MonkeyPatch, untried: None
) -> None:
    monkeypatch.setenv("PATH", str(place))

    assert achieve("none") == "none"
    assert achieve("best") == "none"
    with pytest.raises(IsolationError, match=r"not achieved here.*no program 'bwrap'"):
        achieve("bubblewrap")
    with make_world({}, folder=place, isolation="bubblewrap") as world, pytest.raises(IsolationError):
        world.execute("print(1)")


@pytest.mark.usefixtures("isolating")
def test_a_bubblewrap_that_fails_is_quoted(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell, "arguments", lambda *_: ["--no-such-option"])
    made = Cell(place, place / "workspace")

    with pytest.raises(IsolationError, match="no-such-option"):
        made.open()
    with pytest.raises(IsolationError, match="no-such-option"):  # it is not tried again
        made.open()


HOLES = {
    "beside": lambda given, root: [*given, "--bind", str(root), str(root)],
    "processes": lambda given, root: [*given, "--ro-bind", "/proc", "/proc"],
    "outside": lambda given, root: [*given, "--ro-bind", "/tmp", "/tmp"],
    "workspace": lambda given, root: [*given, "--ro-bind", str(root), str(root)],
    "net": lambda given, root: [word for word in given if word != "--unshare-net"],
    "pid": lambda given, root: [word for word in given if word != "--unshare-pid"],
}


@pytest.mark.usefixtures("isolating", "untried")
@pytest.mark.parametrize("hole", HOLES)
def test_the_probe_finds_a_hole(hole: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is planted in what bubblewrap is told; the machine then achieves nothing."""

    def with_hole(readable: Path, writable: Path) -> list[str]:
        return HOLES[hole](list(arguments(readable, writable)), readable)

    monkeypatch.setattr(cell, "arguments", with_hole)

    found = probe()

    assert found.level == "none"
    assert hole in found.why


@pytest.mark.usefixtures("isolating", "untried")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root owns the kernel's settings and devices")
@pytest.mark.parametrize("hole", ["kernel", "device"])
def test_the_probe_finds_what_root_could_change(hole: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def with_hole(readable: Path, writable: Path) -> list[str]:
        given = list(arguments(readable, writable))
        at = given.index("/proc", given.index("--proc") + 2)
        return [*given[: at - 1], *given[at + 1 :]]

    if hole == "kernel":
        monkeypatch.setattr(cell, "arguments", with_hole)
    else:
        monkeypatch.setattr(cell, "protect", lambda *_: None)

    found = probe()

    assert (found.level, hole in found.why) == ("none", True)


@pytest.mark.slow
@pytest.mark.usefixtures("isolating")
def test_a_python_among_temporary_files_is_there_too(tmp_path: Path) -> None:
    """Inside, /tmp is empty but for what is needed."""
    venv.create(tmp_path / "python", symlinks=True)
    path = os.pathsep.join([str(Path(agent.__file__).parent.parent), *(place for place in sys.path if place)])
    program = "from agent.lab.isolation import probe; print(probe())"

    done = subprocess.run(
        [tmp_path / "python/bin/python", "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )

    assert (done.stdout, done.stderr) == (
        "Probe(level='bubblewrap', why='', limits=('memory', 'processes', 'file_size', 'disk', 'cpu_time'))\n",
        "",
    )


@pytest.mark.slow
@pytest.mark.usefixtures("isolating", "untried")
def test_a_machine_that_makes_namespaces_achieves_the_level() -> None:
    assert probe() == levels.Probe("bubblewrap", limits=KINDS)
    assert (achieve("best"), achieve("bubblewrap"), achieve("none")) == ("bubblewrap", "bubblewrap", "none")
