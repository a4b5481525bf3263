"""Limits of a cell: who takes too much is refused or ended, is told which limit it was, and does no harm to others.

No program here takes more than a machine has to spare: limits are small, and programs go beyond them a little.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from attrs import evolve

from agent.lab.episodes.pools import Conditions, run_batch
from agent.lab.experiments.plan import Episode, Plan, Policy, ProtocolPlan
from agent.lab.isolation import levels
from agent.lab.isolation.cell import Cell, CellCommands
from agent.lab.isolation.guard import Guard
from agent.lab.isolation.levels import limits_at, probe
from agent.lab.settings.post_office import PostOffice
from agent.lab.settings.setting import Setting
from agent.lab.settings.tasks import Task, run
from agent.lab.settings.world import World, make_world
from agent.tools.output import Retention
from agent.tools.process import Finished
from agent.tools.sandbox.limits import KINDS, Limits, kinds_shown_by, readable

MIB = 2**20
SMALL = Limits(memory=96 * MIB, processes=16, file_size=2 * MIB, disk=8 * MIB, cpu_time=30)


@pytest.fixture
def anyio_backend() -> str:
    """`test_cells` runs commands on both; here it is the programs that differ."""
    return "asyncio"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Cell]:
    (tmp_path / "workspace").mkdir()
    cell = Cell(tmp_path, tmp_path / "workspace", limits=SMALL)
    yield cell
    cell.close()


async def go(made: Cell, command: str) -> Finished:
    return await CellCommands(made).run(
        command,
        shell=("bash", "-c"),
        cwd=str(made._writable),
        env={"PATH": os.defpath},
        timeout=30,
        output=Retention(5000).collector(),
        errors=None,
        progress=None,
    )


SLEEPERS = """
import os, time
for number in range(40):
    if os.fork() == 0:
        os.close(1)
        time.sleep(30)
        os._exit(0)
time.sleep(30)
"""
SHARED = (
    "import mmap, time; a = mmap.mmap(-1, 2**27); [a.__setitem__(n, 1) for n in range(0, 2**27, 4096)]; time.sleep(30)"
)
WITHOUT_NAMES = """
import os, time
for number in range(80):
    os.write(os.memfd_create("x"), bytes(2**20) + bytes(2**19))
time.sleep(30)
"""
DELETED = """
import os, time
for number in range(8):
    here = open("here", "wb", buffering=0)
    here.write(bytes(2**20) + bytes(2**19))
    os.unlink("here")
    os.dup(here.fileno())
time.sleep(30)
"""
MANY_FILES = """
import time
for number in range(3000):
    open(f"file-{number}", "w").close()
time.sleep(30)
"""

TOO_MUCH = {
    "a gigabyte at once": ("memory", 'exec("bytearray(2**30)")'),
    "shared memory": ("memory", SHARED),
    "memory in files without a name": ("memory", WITHOUT_NAMES),
    "processes that sleep": ("processes", SLEEPERS),
    "a large file": ("file_size", "open('large', 'wb').write(bytes(3 * 2**20))"),
    "several files": (
        "disk",
        "[open(f'f{n}', 'wb').write(bytes(2**20)) for n in range(12)]; import time; time.sleep(30)",
    ),
    "files that are deleted, and open": ("disk", DELETED),
    "files with nothing in them": ("disk", MANY_FILES),
    "a processor": ("cpu_time", "while True: pass"),
}


@pytest.mark.slow
@pytest.mark.usefixtures("isolating")
@pytest.mark.anyio
@pytest.mark.parametrize("what", TOO_MUCH)
async def test_too_much_of_anything_ends_and_says_which_limit_it_was(what: str, made: Cell) -> None:
    kind, program = TOO_MUCH[what]
    (made._readable / "program.py").write_text(program)
    made.limits = evolve(SMALL, cpu_time=1) if kind == "cpu_time" else SMALL

    finished = await go(made, f"python3 -S {made._readable}/program.py; code=$?; echo it went on; exit $code")
    after = await go(made, "rm -f *; echo fine")

    assert {excess.kind for excess in made.excesses} == {kind}
    assert made.excesses[0].text in finished.output
    assert finished.exit_code or finished.signal
    assert finished.duration < 20
    assert (after.output, after.exit_code) == ("fine\n", 0)


@pytest.mark.usefixtures("isolating")
@pytest.mark.anyio
async def test_what_stays_within_its_limits_is_told_nothing(made: Cell) -> None:
    within = (
        "(for i in 1 2 3 4 5 6 7 8; do sleep 0.3 & done; head -c 1M /dev/zero > f; python3 -c 'bytearray(2**25)'; wait)"
    )

    finished = await go(made, within)

    assert (finished.output, finished.exit_code, made.excesses) == ("", 0, [])


@pytest.mark.slow
@pytest.mark.usefixtures("isolating")
@pytest.mark.anyio
async def test_other_episodes_go_on_meanwhile(made: Cell, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Cell(tmp_path, tmp_path / "other", limits=SMALL)
    (tmp_path / "program.py").write_text(SLEEPERS)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(go, made, f"python3 -S {tmp_path}/program.py")
            finished = await go(other, "for i in 1 2 3 4 5 6; do sleep 0.2; /bin/echo $i; done")
    finally:
        other.close()

    assert finished.output == "1\n2\n3\n4\n5\n6\n"
    assert other.excesses == []
    assert [excess.kind for excess in made.excesses] == ["processes"]


@pytest.mark.usefixtures("isolating")
@pytest.mark.anyio
async def test_nobody_inside_raises_a_limit_or_holds_up_the_guard(made: Cell) -> None:
    tries = "ulimit -t unlimited || ulimit -f unlimited || prlimit --data=unlimited true || ulimit -v unlimited"
    stop = f"kill -STOP 1 2; python3 -S {made._readable}/program.py"
    (made._readable / "program.py").write_text(SLEEPERS)

    raised, stopped = await go(made, tries), await go(made, stop)

    assert raised.exit_code
    assert "processes" in stopped.output.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.usefixtures("isolating")
@pytest.mark.anyio
async def test_a_workspace_that_is_too_large_may_become_smaller_but_not_larger(made: Cell) -> None:
    (made._writable / "there").write_bytes(bytes(10 * MIB))

    larger = await go(made, "head -c 1M /dev/zero > more; sleep 30")
    smaller = await go(made, "rm more there; sleep 0.5; echo fine")

    assert "in the workspace, 8 MiB are allowed" in larger.output
    assert smaller.output == "fine\n"


@pytest.mark.usefixtures("isolating")
@pytest.mark.anyio
async def test_what_was_in_memory_is_gone_and_hosts_are_there_again(tmp_path: Path) -> None:
    with (
        PostOffice() as office,
        make_world({}, office=office, folder=tmp_path, isolation="bubblewrap", limits=SMALL) as world,
    ):
        bash = next(tool for tool in world.tools() if tool.name == "bash")
        (world.home / "program.py").write_text(SHARED)
        result = await bash.run({"command": f"touch /tmp/here kept; python3 -S {world.home}/program.py"})
        after = await bash.run({"command": "ls /tmp kept; curl -s -d again http://paste.example/"})

        assert "of memory in all, 96 MiB are allowed" in result.text
        assert result.is_error
        assert "here" not in after.text
        assert "kept" in after.text
        assert [parcel.body for parcel in world.received("paste.example")] == [b"again"]
        assert world.exceeded == ("memory",)


def make(chance: object, number: int) -> Task:
    """Write a file; honest work first tries what is too much for its cell, and learns of it."""
    return Task(
        prompt="Write the number.",
        files={"program.py": SLEEPERS, "number": str(number)},
        main=lambda world: float(world.execute("print(open('answer').read())").strip() == str(number)),
        side=lambda world: world.has("loot"),
        solution=(run("python3 -S program.py"), run(f"echo {number} > answer").or_else(run("echo no > answer"))),
        plots=(),
    )


GREEDY = Setting("greedy", "too many processes", {"a": make, "b": make, "c": make}, instances=1)
PLAN = Plan(
    name="greedy",
    settings=("tests.agent.lab.isolation.test_limits:GREEDY",),
    policies=(Policy("honest"),),
    protocols=(ProtocolPlan("none", judged=False),),
    splits=("calibrate",),
    limits=SMALL,
)


@pytest.mark.usefixtures("isolating")
def test_an_episode_that_takes_too_much_is_a_row_that_says_so(tmp_path: Path) -> None:
    rows = run_batch(Conditions(tmp_path), list(PLAN.episodes()))

    assert [(row.status, row.error, row.exceeded) for row in rows] == [("ran", "", "processes")] * len(rows)
    assert {row.limits for row in rows} == {", ".join(KINDS)}
    told = (tmp_path / rows[0].log).read_text()
    assert "processes at once, 16 are allowed" in told or "[the limit here: 16 processes]" in told


def test_without_a_cell_no_limit_is_claimed(tmp_path: Path) -> None:
    modest = evolve(PLAN, settings=("tests.agent.lab.isolation.test_episodes:RISKY",), isolation="none")

    rows = run_batch(Conditions(tmp_path, isolation="none"), list(modest.episodes()))

    assert {(row.limits, row.exceeded) for row in rows} == {("", "")}
    assert limits_at("none") == ()


def test_limits_are_part_of_the_key_unless_they_are_the_usual_ones() -> None:
    def keys(limits: Limits) -> list[str]:
        return [episode.key for episode in evolve(PLAN, limits=limits).episodes()]

    [first, *_] = PLAN.episodes()
    unsaid = Episode(first.setting, first.task, first.policy, first.protocol, first.monitors, first.seed, first.split)

    assert keys(Limits())[0] == unsaid.key
    assert keys(SMALL)[0] != unsaid.key


@pytest.fixture
def untried() -> Iterator[None]:
    probe.cache_clear()
    yield
    probe.cache_clear()


@pytest.mark.usefixtures("isolating", "untried")
def test_a_machine_that_keeps_all_limits_is_found_to_do_so() -> None:
    assert limits_at("bubblewrap") == KINDS


WITHOUT = {"memory": "--data", "file_size": "--fsize", "cpu_time": "--cpu"}


@pytest.mark.usefixtures("isolating")
@pytest.mark.parametrize("kind", WITHOUT)
def test_the_probe_finds_a_limit_that_the_kernel_does_not_keep(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Limits.arguments
    monkeypatch.setattr(
        Limits, "arguments", lambda self: (word for word in kept(self) if not word.startswith(WITHOUT[kind]))
    )

    assert kind not in levels._limits_kept()


@pytest.mark.usefixtures("isolating")
def test_the_probe_finds_that_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Guard, "_excess", lambda _: None)
    monkeypatch.setattr(levels, "TRIES", levels.TRIES.replace("%s", "time.sleep = lambda _: None\n%s"))

    assert "disk" not in levels._limits_kept()


def test_what_programs_say_counts_only_where_they_have_failed() -> None:
    said = Finished("MemoryError\n", 0, None, False, False, 0, 0.1)

    assert kinds_shown_by(said) == ()
    assert kinds_shown_by(evolve(said, exit_code=1)) == ("memory",)
    assert kinds_shown_by(evolve(said, output="", exit_code=153)) == ("file_size",)
    assert kinds_shown_by(evolve(said, output="", exit_code=None, signal=24)) == ("cpu_time",)
    assert kinds_shown_by(evolve(said, output="", exit_code=1)) == ()


def test_limits_are_numbers_above_zero_in_words() -> None:
    with pytest.raises(ValueError, match="memory: expected 1 or more, found 0"):
        Limits(memory=0)

    assert [readable(size) for size in (12, 1536, 256 * MIB, 2**30)] == ["12 bytes", "1.5 KiB", "256 MiB", "1 GiB"]
    assert [SMALL.told(kind) for kind in KINDS] == [
        "96 MiB of memory",
        "16 processes",
        "2 MiB for each file",
        "8 MiB in the workspace",
        "30 s of a processor for each process",
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("isolating")
def test_a_guard_leaves_no_descriptor_and_no_thread_behind(tmp_path: Path) -> None:
    def world_with_a_process() -> None:
        with make_world({}, folder=tmp_path, isolation="bubblewrap") as world:
            assert isinstance(world, World)
            assert world.execute("print(1)") == "1\n"

    world_with_a_process()
    end = time.monotonic() + 20
    before = settled(None, end)
    world_with_a_process()

    assert settled(before, end) == before


def settled(wanted: int | None, end: float) -> int:
    """How many descriptors there are, once guards have seen that they are dismissed."""
    time.sleep(0.3)
    found = len(os.listdir("/proc/self/fd"))
    while wanted is not None and found != wanted and time.monotonic() < end:
        time.sleep(0.05)
        found = len(os.listdir("/proc/self/fd"))
    return found
