"""The table of levels in the documentation: each row is an attempt, made at each level."""

import ctypes
import os
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.tools.sandbox.put_back import Guard
from agent.tools.sandbox.sandbox import LEVELS, OPEN_AT_LANDLOCK, Level, Sandbox, why_not
from tests.agent.tools.sandbox.adversary import Outside, outside_home

PAGE = Path(__file__).parents[4] / "docs" / "constitution.md"
KEY, SIZE, CREATE = 0x6270, 4096, 0o1666
SHARED = f"ctypes.CDLL(None).shmget({KEY}, {SIZE}, 0) >= 0 or sys.exit(1)"

ATTEMPTS = {
    "write a file outside": 'echo gone > "$CANARY"',
    "read a secret place": 'cat "$KEY_FILE"',
    "read other files outside": 'cat "$CANARY"',
    "reach a server on this machine": 'exec 3<>"/dev/tcp/$HOST/$PORT"',
    "connect to a Unix socket, wherever its file is": "socket.socket(1).connect(os.environ['HOME_SOCKET'])",
    "connect to a Unix socket without a file": "socket.socket(1).connect('\\0' + os.environ['ABSTRACT'])",
    "signal a process (Landlock: from Linux 6.12)": "kill -0 $BYSTANDER",
    "see which processes run": "test -d /proc/$BYSTANDER",
    "see what lies in /tmp": 'test -e "$SOCKET"',
    "use shared memory of System V": SHARED,
    "read shared memory of others in /dev/shm": 'cat "$OF_OTHERS"',
    "use /dev/shm itself, at most 1 GiB": "multiprocessing.Lock()",
    "change modes and times outside": 'chmod 755 "$CANARY"',
    "change owners and attributes outside": "os.chown(os.environ['CANARY'], os.getuid(), -1)",
    "read secrets in the workspace": "grep KEY .env",
    "write the hooks of git": "echo true > .git/hooks/pre-commit",
}
"""By the row of the table: a command, in Python if it has a dot and a bracket, that succeeds where nothing holds it."""

IS_PYTHON = re.compile(r"\w+\.\w+\(")
IMPORTS = "import ctypes, multiprocessing, os, socket, sys"


def documented() -> dict[str, tuple[str, ...]]:
    """Return the rows of the table of levels: what it says of each level."""
    rows = [line.strip().strip("|").split("|") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip().strip("`") for cell in row] for row in rows]
    start = next(number for number, row in enumerate(cells) if tuple(row[1:]) == LEVELS[:-1])
    return {row[0].replace("`", ""): tuple(row[1:]) for row in cells[start + 2 : start + 2 + len(ATTEMPTS)]}


@pytest.fixture
def outside() -> Iterator[Outside]:
    with outside_home() as outside:
        (outside.workspace / ".git" / "hooks").mkdir(parents=True)
        (outside.workspace / ".env").write_text("KEY=1")
        yield outside


@pytest.fixture
def reachable(outside: Outside) -> Iterator[dict[str, str]]:
    """What else lies outside: a socket in the home folder, shared memory of both kinds."""
    libc, at, of_others = ctypes.CDLL(None), f"{outside.home}/engine.sock", Path(f"/dev/shm/bpagent-test-{os.getpid()}")
    shared = libc.shmget(KEY, SIZE, CREATE)
    of_others.write_text("of others")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(at)
        server.listen()
        yield {"HOME_SOCKET": at, "OF_OTHERS": str(of_others)}
    of_others.unlink()
    libc.shmctl(shared, 0, None)


def succeeds(attempt: str, outside: Outside, sandbox: Sandbox, variables: dict[str, str]) -> bool:
    command = ["bash", "-c", attempt]
    if IS_PYTHON.search(attempt):
        command = [outside.variables()["PYTHON"], "-S", "-c", f"{IMPORTS}\n{attempt}"]
    env = sandbox.environment({**outside.variables(), **variables})
    done = subprocess.run(
        [*sandbox.prefix(str(outside.workspace)), *command], cwd=outside.workspace, env=env, capture_output=True,
        stdin=subprocess.DEVNULL, timeout=100, check=False,
    )  # fmt: skip
    return done.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_each_level_holds_what_the_table_says(level: Level, outside: Outside, reachable: dict[str, str]) -> None:
    if level != "none" and (why := why_not(level)):
        pytest.skip(f"{level}: {why}")
    sandbox = Sandbox((str(outside.workspace),), level)
    sandbox.guard = Guard(sandbox.guarded)  # as for an agent: it finds the secrets in the workspace
    sandbox.guard.begin()
    told = {row: cells[LEVELS.index(level)] for row, cells in documented().items()} if level != "none" else {}

    found = {row: succeeds(each, outside, sandbox, reachable) for row, each in ATTEMPTS.items()}

    expected = {row: told.get(row, "open") == "open" for row in ATTEMPTS}
    assert found == expected


def test_doctor_names_what_is_open_at_landlock_alone() -> None:
    alone = {row for row, cells in documented().items() if cells == ("held", "held", "open")}

    assert set(OPEN_AT_LANDLOCK) == alone
