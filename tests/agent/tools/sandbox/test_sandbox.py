"""Commands in a sandbox: a part of what `make adversary` runs does no harm, work goes on, and a yes lifts one thing."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from agent.tools.background import Processes
from agent.tools.definition import ToolContext
from agent.tools.sandbox import permissions
from agent.tools.sandbox.permissions import hidden_places
from agent.tools.sandbox.sandbox import LEVELS, Level, Sandbox, why_not
from agent.tools.shell import TO_STAY, ShellOptions, make_shell_tool
from tests.agent.tools.sandbox.adversary import OWN, Outside, broken_by, missed, outside_home, sandbox_of

EVERY = 12
CHANGE = 'echo gone > "$CANARY"'


@pytest.fixture
def outside() -> Iterator[Outside]:
    with outside_home() as outside:
        yield outside


@pytest.fixture(params=LEVELS[:-1])
def level(request: pytest.FixtureRequest) -> Level:
    chosen: Level = request.param
    if why := why_not(chosen):
        pytest.skip(f"{chosen}: {why}")
    return chosen


@pytest.fixture
def sandbox(outside: Outside, level: Level) -> Sandbox:
    return Sandbox((str(outside.workspace),), level)


def run(command: str, outside: Outside, sandbox: Sandbox, *rights: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as a tool would."""
    env = sandbox.environment({**os.environ, **outside.variables()}, rights)
    return subprocess.run(
        [*sandbox.prefix(str(outside.workspace), rights), "bash", "-c", command], cwd=outside.workspace, env=env,
        capture_output=True, text=True, timeout=100, stdin=subprocess.DEVNULL, start_new_session=True, check=False,
    )  # fmt: skip


def canary(outside: Outside) -> str:
    return (outside.home / "canary.txt").read_text()


@pytest.mark.slow
def test_the_levels_are_achieved_where_our_memory_is_hidden(level: Level, needs: Callable[[str], Path]) -> None:
    """As the program hides it: then no child of an ordinary user opens our descriptors by their paths in /proc."""
    code = "import ctypes, sys; from agent.tools.descendants import hide_memory; assert hide_memory()"
    closed = "assert ctypes.CDLL(None).prctl(3, 0, 0, 0, 0) == 0"
    asked = f"{code}; {closed}; from agent.tools.sandbox.sandbox import why_not; print(why_not(sys.argv[1]))"
    ordinary = () if os.geteuid() else (needs("setpriv"), "--bounding-set=-sys_ptrace")

    done = subprocess.run([*ordinary, sys.executable, "-c", asked, level], capture_output=True, text=True, check=True)

    assert done.stdout == "\n"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_attack_changes_reads_reaches_or_ends_anything_outside(outside: Outside, level: Level) -> None:
    sandbox = sandbox_of(outside, level)
    got_through = {each: what for each in (*missed(), *OWN)[::EVERY] if (what := broken_by(each, outside, sandbox))}

    assert got_through == {}


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user already")
def test_a_level_is_achieved_for_an_ordinary_user_where_it_is_for_root(
    level: Level, needs: Callable[[str], Path]
) -> None:
    ordinary = (needs("setpriv"), "--reuid=1000", "--regid=1000", "--clear-groups")
    if subprocess.run([*ordinary, sys.executable, "-c", "import anyio"], capture_output=True, check=False).returncode:
        pytest.skip("Python is not readable by other users")
    asked = "import sys; from agent.tools.sandbox.sandbox import why_not; print(why_not(sys.argv[1]))"
    with TemporaryDirectory(dir="/srv") as home:
        os.chown(home, 1000, 1000)
        env = {"PATH": os.environ["PATH"], "HOME": home}
        command = [*ordinary, sys.executable, "-c", asked, level]
        done = subprocess.run(command, env=env, cwd="/", capture_output=True, text=True, check=True)

    assert done.stdout == "\n"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_in_a_disposable_root_no_attack_changes_anything(needs: Callable[[str], Path]) -> None:
    """The short form of `make adversary`; also commands that every policy denies run there."""
    needs("unshare"), needs("bwrap")
    env = {**os.environ, "EVERY": "600"}
    command = [sys.executable, "-m", "tests.agent.tools.sandbox.adversary"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "changed outside: 0")
    assert done.stdout.count(", 0 got through") == len(LEVELS[:-1])


def test_the_attacks_succeed_without_a_sandbox(outside: Outside) -> None:
    """Without a sandbox they get through."""
    tried = ("echo gone > link", "cat keys", "exec 3<>/dev/tcp/$HOST/$PORT")

    assert [broken_by(each, outside, None) for each in tried] == ["changed", "read", "arrived"]
    broken_by("kill -9 $BYSTANDER", outside, None)
    assert outside.bystander.wait(100) == -signal.SIGKILL


@pytest.mark.slow
def test_work_in_the_workspace_and_scratch_goes_on(
    outside: Outside, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/tmp/agent.1")
    work = 'echo 1 > made && mkdir -p a/b && mv made a/b/ && cat a/b/made && echo 2 > "$TMPDIR/kept"'
    done = run(f"{work} && head -1 /etc/passwd", outside, sandbox)
    seen = run('cat "$TMPDIR/kept"; env; "$PYTHON" -c "print(4)" > /dev/null && echo 5', outside, sandbox)
    limits = run("ulimit -d; ulimit -f; ulimit -t; ulimit -c", outside, sandbox)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1\nroot:")
    assert seen.stdout.startswith("2\n")
    assert seen.stdout.endswith("5\n")
    assert "TMUX=" not in seen.stdout
    assert "/tmp/agent.1" not in seen.stdout
    assert limits.stdout.split() == ["8388608", "16777216", "3600", "0"]


@pytest.mark.slow
def test_a_right_lifts_only_the_limit_that_it_names(outside: Outside, sandbox: Sandbox) -> None:
    other = outside.home / "other.txt"
    other.write_text("alive")
    reach = 'exec 3<>"/dev/tcp/$HOST/$PORT"'

    run(f"{CHANGE}; echo changed > {other}", outside, sandbox, f"write {outside.home}/canary.txt")
    assert (canary(outside), other.read_text()) == ("gone\n", "alive")
    assert (run(reach, outside, sandbox).returncode != 0, outside.heard()) == (True, False)
    assert (run(reach, outside, sandbox, "network").returncode, outside.heard()) == (0, True)


def test_unconfined_is_unconfined_and_strict_never_is(outside: Outside, sandbox: Sandbox) -> None:
    strict = Sandbox(sandbox.writable, sandbox.level, strict=True)

    run(CHANGE, outside, strict, "unconfined", "network", f"write {outside.home}/canary.txt")
    assert canary(outside) == "alive"
    run(CHANGE, outside, sandbox, "unconfined")
    assert canary(outside) == "gone\n"
    assert Sandbox(sandbox.writable, "none").prefix(sandbox.writable[0]) == ()


PROGRAM = """
import asyncio, sys
from agent.tools.background import Processes
from agent.tools.definition import ToolContext
from agent.tools.sandbox.sandbox import Sandbox
from agent.tools.shell import ShellOptions, make_shell_tool
root, rights = sys.argv[1], tuple(sys.argv[2:])
bash = make_shell_tool(root, ShellOptions(sandbox=Sandbox((root,), "bubblewrap")))
hidden = "(env -i setsid sh -c 'exec 3>line; echo >&3; exec sleep 300' </dev/null >/dev/null 2>&1 &); exec sleep 300"
asyncio.run(bash.run({"command": hidden}, ToolContext(rights=rights)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("right", [(), ("network",), ("network other.example",)])
def test_a_process_that_hides_ends_with_an_agent_that_is_killed(
    outside: Outside, right: tuple[str, ...], needs: Callable[[str], Path]
) -> None:
    """It cleared its environment, left its session and has no parent: a pipe tells when the last of it is gone."""
    needs("bwrap")
    os.mkfifo(outside.workspace / "line")
    argv = [sys.executable, "-c", PROGRAM, str(outside.workspace), *right]
    with subprocess.Popen(argv) as program, open(outside.workspace / "line", "rb") as line:
        assert line.readline() == b"\n"
        program.send_signal(signal.SIGKILL)
        assert line.read() == b""


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("rights", [(), ("network other.example",)])
async def test_a_trap_has_its_time_when_a_command_is_ended(
    outside: Outside, rights: tuple[str, ...], needs: Callable[[str], Path]
) -> None:
    needs("bwrap")
    where = str(outside.workspace)
    bash = make_shell_tool(where, ShellOptions(sandbox=Sandbox((where,), "bubblewrap")))
    command = "trap 'sleep 0.3; echo bye; exit' TERM; touch begun; sleep 60 & wait"

    for seconds in (2, 20):  # more of them where the machine is too slow
        told = await bash.run({"command": command, "timeout": seconds}, ToolContext(rights=rights))
        if (outside.workspace / "begun").exists():
            break

    assert told.text.startswith(f"bye\n[timed out after {seconds} seconds")


def test_a_secret_that_appears_is_hidden_from_the_next_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only folders that have changed are looked into again."""
    monkeypatch.setattr(permissions, "SETTLED", 0)
    before, state = hidden_places("/nowhere", str(tmp_path)), tmp_path.stat().st_ctime_ns
    again, seen = hidden_places("/nowhere", str(tmp_path)), permissions._look.cache_info().misses
    while tmp_path.stat().st_ctime_ns == state:  # the clock of a file system goes in steps
        (tmp_path / ".ssh").mkdir(exist_ok=True)
        (tmp_path / ".ssh").rename(tmp_path / ".gnupg")
    after = hidden_places("/nowhere", str(tmp_path))

    assert again == before
    assert set(after) - set(before) == {str(tmp_path / ".gnupg")}
    assert permissions._look.cache_info().misses == seen + 1


@pytest.mark.slow
def test_hooks_of_git_stay_as_they_are(outside: Outside, needs: Callable[[str], Path]) -> None:
    needs("bwrap")
    subprocess.run([needs("git"), "init", "-q", str(outside.workspace)], check=True)
    sandbox = Sandbox((str(outside.workspace),), "bubblewrap")

    assert run("echo 'touch x' > .git/hooks/pre-commit", outside, sandbox).returncode != 0
    done = run("git add own.txt && git -c user.name=a -c user.email=a@b commit -qm one", outside, sandbox)
    assert (done.returncode, done.stderr) == (0, "")
    (outside.workspace / ".git/hooks").rename(outside.home / "hooks")
    (outside.workspace / ".git/hooks").symlink_to(outside.home / "hooks")
    assert run("git status && touch .git/hooks/x", outside, sandbox).stderr.endswith("Read-only file system\n")


STAY = ("[1 process still running after the command had ended; killed]", TO_STAY)


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("level", LEVELS)
async def test_the_model_is_told_of_a_process_that_outlives_its_command(outside: Outside, level: Level) -> None:
    if level != "none" and (why := why_not(level)):
        pytest.skip(why)
    where = str(outside.workspace)
    bash = make_shell_tool(where, ShellOptions(sandbox=Sandbox((where,), level)), processes=Processes())
    ways = ("{} &", "nohup {} &", "setsid {} &", "setsid -f {}", "{} & disown", "({} > /dev/null 2>&1 < /dev/null &)")

    told = {way: (await bash.run({"command": way.format("sleep 300")})).text for way in ways}

    assert told == {way: "\n".join(("(no output)", *STAY)) for way in ways}


WITHOUT_NAMESPACES = """
import ctypes, os, platform, socket
add, keyctl = {"x86_64": (248, 250), "aarch64": (217, 219)}[platform.machine()]
call, of_the_session = ctypes.CDLL(None).syscall, -3
if os.environ.get("ADD"):
    call(add, b"user", b"bpagent:test", b"TOP-SECRET", 10, of_the_session)
if call(keyctl, 10, of_the_session, b"user", b"bpagent:test", 0) > 0:
    print("key")
for family, reach in ((40, lambda it: None), (1, lambda it: it.connect("\\0" + os.environ["ABSTRACT"]))):
    try:
        reach(socket.socket(family))
        print(family)
    except OSError:
        pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("rights", [(), ("network",)])
def test_what_has_no_namespace_is_closed(outside: Outside, sandbox: Sandbox, rights: tuple[str, ...]) -> None:
    """Keys of the kernel, sockets of virtual machines, and with the network those of Unix that have no file."""
    (outside.workspace / "try.py").write_text(WITHOUT_NAMESPACES)
    bare = run('ADD=1 "$PYTHON" try.py', outside, Sandbox(sandbox.writable, "none"))

    confined = run('"$PYTHON" try.py', outside, sandbox, *rights)

    assert (bare.stdout.split()[0], bare.stdout.split()[-1]) == ("key", "1")
    assert (confined.stdout, confined.stderr) == ("", "")
