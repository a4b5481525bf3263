"""Commands in a sandbox attack what lies outside: a canary, a secret file, a listener, processes. Nothing gets through.

Each attack is harmless where it succeeds, and is tried without a sandbox as well: there it has to succeed.
"""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import frozen

from agent.tools.sandbox.sandbox import Level, Sandbox, why_not

LEVELS: tuple[Level, ...] = ("bubblewrap", "landlock")


@frozen
class Outside:
    """What lies outside of the workspace."""

    workspace: Path
    canary: Path
    secret: Path
    listener: socket.socket
    bystander: "subprocess.Popen[bytes]"
    sockets: Path

    @property
    def heard(self) -> bool:
        """Whether a connection arrived."""
        self.listener.setblocking(False)
        try:
            self.listener.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def variables(self) -> dict[str, str]:
        """Where everything is, for the attacks."""
        host, port = self.listener.getsockname()
        return {
            "CANARY": str(self.canary), "SECRET": str(self.secret), "HOST": host, "PORT": str(port),
            "BYSTANDER": str(self.bystander.pid), "SOCKET": str(self.sockets), "PYTHON": sys.executable,
        }  # fmt: skip


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".config" / "gh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    workspace, canary, secret = tmp_path / "workspace", home / "canary.txt", home / ".ssh" / "id_ed25519"
    workspace.mkdir()
    canary.write_text("alive")
    secret.write_text("TOP-SECRET")
    (home / ".config" / "gh" / "hosts.yml").write_text("TOP-SECRET")
    (workspace / "link").symlink_to(canary)
    os.link(canary, workspace / "hard")
    os.unlink(workspace / "hard")  # one that was there already would be the canary itself, inside
    path = Path(os.path.realpath("/tmp")) / f"bpagent-test-{os.getpid()}.sock"
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    bystander = subprocess.Popen(["sleep", "120"])
    with socket.create_server(("127.0.0.1", 0)) as listener, server:
        yield Outside(workspace, canary, secret, listener, bystander, path)
    bystander.kill()
    bystander.wait()
    path.unlink()


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest, needs: Callable[[str], Path]) -> Level:
    chosen: Level = request.param
    if chosen == "bubblewrap":
        needs("bwrap")
    if why := why_not(chosen):
        pytest.skip(f"{chosen}: {why}")
    return chosen


def run(command: str, outside: Outside, sandbox: Sandbox | None, *rights: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as a tool would; without a sandbox as it is."""
    prefix = () if sandbox is None else sandbox.prefix(str(outside.workspace), rights)
    env = {**os.environ, **outside.variables()}
    env = env if sandbox is None else sandbox.environment(env, rights)
    return subprocess.run(
        [*prefix, "bash", "-c", command], cwd=outside.workspace, env=env, capture_output=True, text=True, timeout=60,
        stdin=subprocess.DEVNULL, start_new_session=True, check=False,
    )  # fmt: skip


CHANGES = (
    'echo gone > "$CANARY"',
    "echo gone > link",
    'rm -f "$CANARY"',
    'mv -f "$CANARY" ./mine && echo gone > mine',
    'ln "$CANARY" hard && echo gone > hard',
    'cp /dev/null "$CANARY"',
    'truncate -s 0 "$CANARY"',
    'touch new && mv -f new "$CANARY"',
    '"$PYTHON" -c "import os; os.truncate(os.environ[\'CANARY\'], 0)"',
    "\"$PYTHON\" -c \"import os; os.rename(os.environ['CANARY'], os.environ['CANARY'] + '2')\"",
    'rm -rf "$HOME"',
    'echo gone > "/proc/self/root$CANARY"',
)
READS = (
    'cat "$SECRET"',
    'cat "/proc/self/root$SECRET"',
    'cp "$SECRET" mine && cat mine',
    'ln "$SECRET" mine && cat mine',
    'ln -s "$SECRET" mine; cat mine',
    'tar cf - -C "$HOME" .ssh | tar xOf -',
    'grep -r SECRET "$HOME/.ssh"',
    'cat "$HOME/.config/gh/hosts.yml"',
    '"$PYTHON" -c "import os; print(open(os.environ[\'SECRET\']).read())"',
)
CALLS = (
    'exec 3<>"/dev/tcp/$HOST/$PORT"',
    "\"$PYTHON\" -c \"import os, socket; socket.create_connection((os.environ['HOST'], int(os.environ['PORT'])), 2)\"",
)
AT_PROCESSES = ('kill -9 "$BYSTANDER"', 'kill -9 "$PPID"', "kill -9 -1")
IMPOSSIBLE = (
    '"$PYTHON" -c "import os, socket; socket.socket(socket.AF_UNIX).connect(os.environ[\'SOCKET\'])"',
    'tr "\\0" "\\n" < "/proc/$BYSTANDER/environ" | grep -q .',
    "mount -t tmpfs none /mnt",
    "echo x > /proc/sys/kernel/core_pattern",
    ": >> /etc/passwd",
    ": > /usr/bpagent-was-here",
    ": > /var/lib/bpagent-was-here",
    "unshare -Ur true && mount --bind /tmp /etc",
    "\"$PYTHON\" -c \"import fcntl, termios; fcntl.ioctl(open('/dev/tty'), termios.TIOCSTI, b'x')\"",
)
NOT_ALONE = ("kill -9 -1",)  # what must not be tried without a sandbox


@pytest.mark.parametrize("attack", CHANGES)
def test_nothing_outside_changes(attack: str, outside: Outside, level: Level) -> None:
    run(attack, outside, Sandbox((str(outside.workspace),), level))
    assert outside.canary.read_text() == "alive"
    run(attack, outside, None)
    assert not outside.canary.exists() or outside.canary.read_text() != "alive", "the attack does nothing anyway"


@pytest.mark.parametrize("attack", READS)
def test_no_secret_is_read(attack: str, outside: Outside, level: Level) -> None:
    done = run(attack, outside, Sandbox((str(outside.workspace),), level))
    assert "TOP-SECRET" not in done.stdout + done.stderr
    (outside.workspace / "mine").unlink(missing_ok=True)
    assert "TOP-SECRET" in run(attack, outside, None).stdout, "the attack reads nothing anyway"


@pytest.mark.parametrize("attack", CALLS)
def test_nothing_arrives_at_another_address(attack: str, outside: Outside, level: Level) -> None:
    sandbox = Sandbox((str(outside.workspace),), level)
    assert run(attack, outside, sandbox).returncode != 0
    assert not outside.heard
    assert run(attack, outside, sandbox, "network").returncode == 0
    assert outside.heard


@pytest.mark.parametrize("attack", AT_PROCESSES)
def test_no_process_outside_is_signalled(attack: str, outside: Outside, level: Level) -> None:
    run(attack, outside, Sandbox((str(outside.workspace),), level))
    assert outside.bystander.poll() is None
    if attack.endswith('"$BYSTANDER"'):
        run(attack, outside, None)
        assert outside.bystander.wait(10) == -signal.SIGKILL


@pytest.mark.parametrize("attack", IMPOSSIBLE)
def test_what_would_lead_outside_fails(attack: str, outside: Outside, level: Level) -> None:
    assert run(attack, outside, Sandbox((str(outside.workspace),), level)).returncode != 0
    assert not Path("/usr/bpagent-was-here").exists()


def test_work_in_the_workspace_and_scratch_goes_on(outside: Outside, level: Level) -> None:
    work = 'echo 1 > made && mkdir -p a/b && mv made a/b/ && cat a/b/made && echo 2 > "$TMPDIR/kept" && cat /etc/passwd'
    sandbox = Sandbox((str(outside.workspace),), level)
    done = run(work, outside, sandbox)
    assert (done.returncode, done.stdout[:2], done.stderr) == (0, "1\n", "")
    assert (outside.workspace / "a" / "b" / "made").read_text() == "1\n"
    assert run('cat "$TMPDIR/kept"', outside, sandbox).stdout == "2\n", "scratch lasts as long as the sandbox"


def test_a_right_to_write_is_for_that_path_alone(outside: Outside, level: Level) -> None:
    sandbox = Sandbox((str(outside.workspace),), level)
    other = outside.canary.with_name("other.txt")
    other.write_text("alive")
    command = f'echo changed > "$CANARY"; echo changed > {other}'
    run(command, outside, sandbox, f"write {outside.canary}")
    assert (outside.canary.read_text(), other.read_text()) == ("changed\n", "alive")


def test_unconfined_is_unconfined_and_strict_never_is(outside: Outside, level: Level) -> None:
    everything = ("unconfined", "network", f"write {outside.canary}")
    run(CHANGES[0], outside, Sandbox((str(outside.workspace),), level, strict=True), *everything)
    assert outside.canary.read_text() == "alive"
    run(CHANGES[0], outside, Sandbox((str(outside.workspace),), level), "unconfined")
    assert outside.canary.read_text() == "gone\n"


def test_variables_that_lead_to_servers_of_the_user_are_not_seen(
    outside: Outside, level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMUX", "/tmp/tmux-0/default,1,0")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/tmp/agent.1")
    assert run("env", outside, Sandbox((str(outside.workspace),), level)).stdout.count("/tmp/agent.1") == 0
    assert "TMUX=" not in run("env", outside, Sandbox((str(outside.workspace),), level)).stdout


def test_one_command_reaches_the_server_of_another(outside: Outside, needs: Callable[[str], Path]) -> None:
    needs("bwrap"), needs("nsenter")
    sandbox = Sandbox((str(outside.workspace),), "bubblewrap")
    script = "import socket; s = socket.create_server(('127.0.0.1', 4711)); print('up', flush=True); s.accept()"
    prefix = sandbox.prefix(str(outside.workspace))
    with subprocess.Popen([*prefix, sys.executable, "-c", script], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"up\n"
        assert run("exec 3<>/dev/tcp/127.0.0.1/4711", outside, sandbox).returncode == 0
        assert server.wait(10) == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", 4711), 1)


def test_hooks_of_git_stay_as_they_are(outside: Outside, needs: Callable[[str], Path]) -> None:
    needs("bwrap")
    subprocess.run([needs("git"), "init", "-q", str(outside.workspace)], check=True)
    sandbox = Sandbox((str(outside.workspace),), "bubblewrap")
    assert run("echo 'touch x' > .git/hooks/pre-commit", outside, sandbox).returncode != 0
    done = run("git add -A && git -c user.name=a -c user.email=a@b commit -qm one", outside, sandbox)
    assert (done.returncode, done.stderr) == (0, "")


def test_limits_of_files_and_memory_hold(outside: Outside, level: Level, needs: Callable[[str], Path]) -> None:
    needs("prlimit")
    sandbox = Sandbox((str(outside.workspace),), level)
    said = run("ulimit -d; ulimit -f; ulimit -t; ulimit -c", outside, sandbox).stdout.split()
    assert said == ["8388608", "16777216", "3600", "0"]


def test_where_nothing_confines_commands_run_as_they_are(outside: Outside) -> None:
    sandbox = Sandbox((str(outside.workspace),), "none")
    assert sandbox.prefix(str(outside.workspace)) == ()
    assert run(CHANGES[0], outside, sandbox).returncode == 0
    assert outside.canary.read_text() == "gone\n"
