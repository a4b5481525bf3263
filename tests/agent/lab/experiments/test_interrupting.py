"""Experiments as processes that are interrupted and killed: finished episodes are kept."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.cli import main
from agent.lab.episodes.results import Results
from tests.outside.driving import is_running

ROOT = Path(__file__).parents[4]
PATIENCE = 100.0  # seconds
COMMAND = "import sys; from agent.cli import main; sys.exit(main())"
SEEDS, EPISODES = 4, 16
Start = Callable[..., "subprocess.Popen[str]"]
PLAN = """\
settings: ['tests.agent.lab.experiments.settings:INTERRUPTING']
policies: [honest, always]
protocols: [constitution_only]
splits: [test]
seeds: {seeds}
replicates: 20
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN.format(seeds=SEEDS))
    return path


@pytest.fixture
def start(plan: Path, popen: Start) -> Start:
    """`start(...)` starts the experiment with these words."""

    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a test run in the background of a script would ignore it

    return lambda *words: popen(
        [sys.executable, "-c", COMMAND, "experiment", plan.name, *words],
        cwd=plan.parent,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=prepare,
    )


def finished(plan: Path) -> int:
    path = plan.with_suffix(".results") / "episodes.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def wait_for(happened: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.01)


def ended(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_finished_and_the_same_command_goes_on(
    plan: Path, start: Start, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (plan.parent / "press").touch()

    code, _, err = ended(start())

    kept = len(Results(plan.with_suffix(".results")).rows())
    assert (code, err.count("\n")) == (130, 1), err
    assert "finished episodes are kept in plan.results, the same command goes on" in err
    assert 5 <= kept < EPISODES

    monkeypatch.chdir(plan.parent)
    assert main(["experiment", plan.name]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert f"{EPISODES} episodes; {EPISODES - kept} of them run now" in out


def workers_of(process: "subprocess.Popen[str]") -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(child) for child in children if b"spawn_main" in command_of(child)]


def command_of(process: str) -> bytes:
    """Return the command line of a process; empty for one that has just ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc")
def test_a_killed_worker_loses_no_finished_episode(plan: Path, start: Start) -> None:
    (plan.parent / "hold").touch()
    process = start("--workers", "1")
    wait_for(lambda: finished(plan) >= 3)
    os.kill(workers_of(process)[0], signal.SIGKILL)
    (plan.parent / "hold").unlink()

    code, out, err = ended(process)

    assert (code, err) == (0, "")
    assert f"{EPISODES} episodes; {EPISODES} of them run now" in out
    assert {row.status for row in Results(plan.with_suffix(".results")).rows().values()} == {"ran"}


@pytest.mark.slow
def test_an_interrupt_that_only_the_command_hears_begins_no_further_batch(plan: Path, start: Start) -> None:
    """As of `timeout -s INT`: what workers have taken already they finish, and no more."""
    plan.write_text(PLAN.format(seeds=60))
    (plan.parent / "hold").touch()
    process = start("--workers", "1")
    wait_for(lambda: finished(plan) >= 3)

    process.send_signal(signal.SIGINT)
    (plan.parent / "hold").unlink()

    assert ended(process)[0] == 130
    assert finished(plan) < 120


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc")
def test_workers_end_with_a_command_that_is_killed(plan: Path, start: Start) -> None:
    (plan.parent / "hold").touch()
    process = start("--workers", "1")
    wait_for(lambda: finished(plan) >= 3)
    workers = workers_of(process)
    assert workers

    process.kill()
    process.communicate(timeout=PATIENCE)

    wait_for(lambda: not any(map(is_running, workers)))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_a_second_ctrl_c_ends_the_command_while_it_waits_for_an_episode(plan: Path, start: Start, workers: int) -> None:
    (plan.parent / "hold").touch()
    process = start("--workers", str(workers))
    wait_for(lambda: finished(plan) >= 3)

    press(process)
    time.sleep(0.1)
    press(process)

    code, _, err = ended(process)
    assert code in {130, -signal.SIGINT}
    assert "Traceback" not in err


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="children are found in /proc")
@pytest.mark.parametrize("delay", [0.0, 0.1, 0.3, 0.6])
def test_ctrl_c_while_workers_start_prints_no_traceback(plan: Path, start: Start, delay: float) -> None:
    process = start("--workers", "2")
    wait_for(lambda: workers_of(process))
    time.sleep(delay)

    press(process)

    code, _, err = ended(process)
    assert code == 130
    assert "Traceback" not in err


def press(process: "subprocess.Popen[str]") -> None:
    """Send what Ctrl-C sends to everything in the foreground."""
    os.killpg(process.pid, signal.SIGINT)
