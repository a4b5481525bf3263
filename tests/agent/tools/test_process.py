"""One command, run to its end, of which nothing is left; and the part of its output that is kept."""

import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tools.output import Retained, Retention, keep_head
from agent.tools.process import Finished, run_process, tool_environment
from agent.vocabulary.errors import CannotStart
from tests.conftest import ROOT
from tests.outside.driving import is_running
from tests.tables import rows

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("leaves_nothing"), pytest.mark.slow]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """The event loop waits for processes: each of both is tried."""
    return str(request.param)


async def run(script: str, *, timeout: float | None = 100, limit: int = 10_000, **options: object) -> Finished:
    return await run_process(
        ["bash", "-c", script],
        cwd="/",
        env=tool_environment(),
        timeout=timeout,
        output=Retention(limit).collector(),
        **options,  # type: ignore[arg-type]
    )


def runs(pid_file: Path) -> bool:
    """Whether the process whose number a script wrote there still runs."""
    return pid_file.exists() and is_running(int(pid_file.read_text() or 0))


async def run_out_of_time(script: str, begun: Path) -> Finished:
    """Run a script until its time is up; with more of it where the machine was too slow for it to write a file."""
    begun.unlink(missing_ok=True)
    for seconds in (0.3, 3, 30):
        finished = await run(script, timeout=seconds)
        if begun.exists():
            break
    return finished


@rows(
    "hide",
    [
        "sleep 60 & echo $! >{pid}; wait",
        "setsid bash -c 'echo $$ >{pid}; exec /bin/sleep 60' & wait; sleep 60",
        "(setsid bash -c 'echo $$ >{pid}; exec /bin/sleep 60' >/dev/null 2>&1 &); sleep 60",
        "env -i setsid -w bash -c 'echo $$ >{pid}; sleep 60; :'",
        "bash -c 'echo $$ >{pid}; kill -STOP $$'; sleep 60",
        "set -m; (echo $BASHPID >{pid}; exec /bin/sleep 60) & wait; sleep 60",
    ],
)
async def test_nothing_survives_a_timeout(hide: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.tools.process.GRACE", 1000)  # which is over as soon as nothing runs
    pid_file = tmp_path / "pid"

    finished = await run_out_of_time(hide.format(pid=pid_file), pid_file)

    assert finished.timed_out
    assert not runs(pid_file)


async def test_a_timeout_keeps_what_was_printed_and_lets_traps_speak(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    script = f"trap 'echo last words; exit 5' TERM; echo begun; touch {begun}; while :; do sleep 0.01; done"

    finished = await run_out_of_time(script, begun)

    assert (finished.timed_out, finished.exit_code) == (True, 5)
    assert finished.output.startswith("begun\n")
    assert finished.output.count("last words\n") == 1


async def test_a_process_that_ignores_term_is_killed_after_the_grace_time(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"

    finished = await run_out_of_time(f"trap '' TERM; echo $$ >{pid_file}; while :; do sleep 1; done", pid_file)

    assert (finished.timed_out, finished.signal) == (True, signal.SIGKILL)
    assert finished.duration > 2
    assert not runs(pid_file)


async def test_a_flood_is_kept_at_both_ends_in_bounded_memory() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    finished = await run("echo first; head -c 200000000 /dev/zero; echo last", limit=1000)

    assert finished.truncated
    assert (finished.output[:6], finished.output[-5:]) == ("first\n", "last\n")
    assert "[output truncated: 199999011 of 200000011 bytes left out here]" in finished.output
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 8 * 1024  # KB


@rows(
    "leave",
    [
        "sleep 60 & echo $! >{pid}",
        "setsid sleep 60 & echo $! >{pid}",
        "(setsid bash -c 'echo $$ >{pid}; exec /bin/sleep 60' >/dev/null 2>&1 &); sleep 0.1",
        "env -i setsid -f bash -c 'echo $$ >{pid}; exec /bin/sleep 60'; sleep 0.1",
        "trap '' TERM; sleep 60 & echo $! >{pid}",
    ],
)
async def test_a_process_that_outlives_its_command_is_ended_and_is_no_timeout(
    leave: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grace = 0.2 if "trap" in leave else 1000  # seconds; it is over as soon as nothing runs
    monkeypatch.setattr("agent.tools.process.LEFT_BEHIND_GRACE", grace)
    pid_file = tmp_path / "pid"

    finished = await run(leave.format(pid=pid_file) + "; echo done", timeout=100)

    assert (finished.output, finished.exit_code, finished.timed_out) == ("done\n", 0, False)
    assert finished.survivors == 1
    assert not runs(pid_file)


async def test_characters_split_over_two_reads_are_whole() -> None:
    pieces: list[str] = []

    finished = await run(r"printf 'a\xe2\x82'; sleep 0.05; printf '\xac\xff'", progress=pieces.append)

    assert finished.output == "a€\ufffd"
    assert "".join(pieces) == "a€\ufffd"


@rows(
    ("argv", "cwd", "problem"),
    [
        (["bash", "-c", "echo \0"], "/", "NUL"),
        (["echo", "\udc80"], "/", "surrogate"),
        (["no-such-program"], "/", "'no-such-program': no such program on PATH"),
        (["true"], "/gone", "working directory '/gone' does not exist"),
    ],
)
async def test_what_cannot_be_started_is_named(argv: list[str], cwd: str, problem: str) -> None:
    with pytest.raises(CannotStart, match=problem):
        await run_process(argv, cwd=cwd, env=tool_environment(), timeout=1)


@rows("ignore", ["", "trap '' TERM; "])
async def test_cancellation_ends_everything_at_once(ignore: str, tmp_path: Path) -> None:
    started = anyio.Event()
    pid_file = tmp_path / "pid"
    script = f"{ignore}(setsid bash -c 'echo $$ >{pid_file}; exec /bin/sleep 60' &); sleep 0.1; echo ready; sleep 600"

    async with anyio.create_task_group() as group:
        group.start_soon(lambda: run(script, progress=lambda _: started.set()))
        await started.wait()
        group.cancel_scope.cancel()

    assert not runs(pid_file)


async def test_a_listener_that_raises_ends_the_command(tmp_path: Path) -> None:
    def refuse(_: str) -> None:
        raise ValueError("enough")

    with pytest.raises(ExceptionGroup) as raised:
        await run(f"echo $$ >{tmp_path}/pid; echo text; sleep 60", progress=refuse)

    assert raised.group_contains(ValueError, match="enough")
    assert not runs(tmp_path / "pid")


def threads() -> list[str]:
    """The threads there are; those in which the test runner has trio wait come and go."""
    return sorted(thread.name for thread in threading.enumerate() if not thread.name.startswith("Trio thread"))


async def test_five_hundred_commands_leave_no_descriptor_thread_zombie_or_file(
    anyio_backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    await run("true")
    descriptors, running = len(os.listdir("/proc/self/fd")), len(threads())

    for _ in range(500 if anyio_backend == "asyncio" else 20):
        await run("echo $$")

    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert len(threads()) <= running
    assert os.listdir(tmp_path) == []


HIDDEN = "env -i setsid sh -c 'echo $$ > {pid}; exec /bin/sleep 60' </dev/null >/dev/null 2>&1 &"
ADOPTING = """
import subprocess, sys
from pathlib import Path
import anyio
from agent.tools.descendants import adopt_orphans
from agent.tools.process import run_process, tool_environment

started = []

def start_one(_):
    started.append(subprocess.Popen(["sleep", "60"], process_group=0))
    Path(sys.argv[2] + ".started").touch()

async def main():
    adopts = adopt_orphans() if "adopt" in sys.argv else False
    script = sys.argv[1] + " echo; while [ ! -s $0 ] || [ ! -e $0.started ]; do sleep 0.01; done"
    argv = ["bash", "-c", script, sys.argv[2]]
    finished = await run_process(argv, cwd="/", env=tool_environment(), timeout=100, progress=start_one)
    print(adopts, finished.survivors, started[0].poll())
    started[0].kill()

anyio.run(main)
"""


@rows("adopt", [True, False])
async def test_where_orphans_are_adopted_not_even_the_best_hidden_survives(tmp_path: Path, adopt: bool) -> None:
    """A process that the program itself has started does."""
    pid = tmp_path / f"pid-{adopt}"
    command = [sys.executable, "-c", ADOPTING, HIDDEN.format(pid=pid), str(pid), *(["adopt"] if adopt else [])]

    done = await anyio.run_process(command, cwd=ROOT)

    try:
        assert done.stdout.decode().split() == (["True", "1", "None"] if adopt else ["False", "0", "None"])
        assert runs(pid) is not adopt
    finally:
        if runs(pid):
            os.kill(int(pid.read_text()), signal.SIGKILL)


PIECES = st.lists(st.binary(max_size=12), max_size=12)
LIMITS = st.integers(1, 20)


def collected(pieces: list[bytes], limit: int) -> Retained:
    output = Retention(limit).collector()
    for piece in pieces:
        output.add(piece)
    return output


@given(PIECES, LIMITS)
def test_an_output_is_whole_up_to_the_limit_and_cut_there_however_it_comes(pieces: list[bytes], limit: int) -> None:
    whole = b"".join(pieces)

    output = collected(pieces, limit)

    assert output.truncated == (len(whole) > limit)
    assert output.text() == collected([whole], limit).text()
    if not output.truncated:
        assert output.text() == whole.decode("utf-8", "replace")
    else:
        assert f"[output truncated: {len(whole) - limit} of {len(whole)} bytes left out here]" in output.text()


@given(st.text(max_size=60), LIMITS)
def test_no_character_is_cut_in_two(text: str, limit: int) -> None:
    content = text.replace("\ufffd", "").encode()

    assert "\ufffd" not in collected([content], limit).text() + keep_head(content, limit, len(text.encode()))


# Files with whole outputs: they belong to the process, and go with it.


SPILLING = """
import os
from agent.tools.output import Retention
output = Retention(10, keep="tail", spill=True).collector()
output.add(b"x" * 100)
output.text()
if os.fork() == 0:
    raise SystemExit
os.wait()
print(output.path, os.path.getsize(output.path), oct(os.stat(os.path.dirname(output.path)).st_mode & 0o777))
"""


def test_the_files_of_a_process_go_when_it_ends_and_not_with_one_that_it_forked(tmp_path: Path) -> None:
    env = {**os.environ, "TMPDIR": str(tmp_path)}

    ended = subprocess.run([sys.executable, "-c", SPILLING], env=env, capture_output=True, text=True, check=True)

    path, size, mode = ended.stdout.split()
    assert path.startswith(f"{tmp_path}/bpagent-outputs-")
    assert (size, mode) == ("100", "0o700")
    assert os.listdir(tmp_path) == []


def spill(content: bytes) -> str:
    output = Retention(10, keep="tail", spill=True, quota=100).collector()
    output.add(content)
    output.text()
    assert output.path is not None
    return output.path


@pytest.mark.usefixtures("temporary")
def test_the_oldest_files_go_when_all_are_too_much_and_a_missing_folder_is_made_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agent.tools.output.MOST_KEPT", 300)

    paths = [spill(b"%d" % number * 100) for number in range(1, 6)]

    assert [os.path.exists(path) for path in paths] == [False, False, True, True, True]
    shutil.rmtree(os.path.dirname(paths[0]))
    assert os.path.exists(spill(b"y" * 20))


def test_where_there_is_no_place_the_answer_says_so(temporary: Path) -> None:
    temporary.rmdir()
    output = Retention(10, keep="tail", spill=True).collector()
    output.add(b"x" * 100)

    assert "all of it could not be kept: No such file or directory" in output.text()
