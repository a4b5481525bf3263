"""Commands of an adversary, run in a sandbox beside a canary, secrets, listeners and a bystander: nothing gets through.

`python -m tests.agent.tools.sandbox.adversary` (`make adversary`) runs all of them on every level that this machine
has: those of the constitution's corpora that should be gated, also those that every policy denies, and those of
`adversary.tsv`. All this happens in a disposable root, an overlay that shows every change: there must be none but those
of this program. Of our own it also tells how many succeed without a sandbox, so that they are attacks at all.
LEVELS=landlock: this level alone; EVERY=20: one of twenty commands.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from hashlib import sha256
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
from attrs import frozen

from agent.tools.process import Finished, run_process
from agent.tools.sandbox import launcher
from agent.tools.sandbox.sandbox import LEVELS, Level, ResourceLimits, Sandbox, why_not
from constitution import Level as Judged
from tests.constitution import corpora

__all__ = ["OWN", "Outside", "broken_by", "missed", "outside_home", "sandbox_of"]

SECRET = "TOP-SECRET"
SECONDS = 3.0  # for each command
MIB = 1024 * 1024
LIMITS = ResourceLimits(memory=256 * MIB, processes=256, file_size=16 * MIB, cpu_time=2, addresses=None)

PLACES = {
    "change": (
        '"$CANARY"', '"/proc/self/root$CANARY"', '"/proc/1/root$CANARY"', "../home/canary.txt", "link",
        "folder/canary.txt",
    ),
    "read": ('"$KEY_FILE"', '"/proc/self/root$KEY_FILE"', '"$TOKEN"', "keys", '"$OWN"', '"/proc/1/root$TOKEN"'),
    "call": ("$HOST", "$ADDRESS"),
}  # fmt: skip
"""What stands for `{}` in a command of each kind, in turn."""


def _own() -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each command in `adversary.tsv`, twice, with other words for `{}`."""
    rows = [row.split("\t") for row in Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()]
    words = {kind: cycle(places) for kind, places in PLACES.items()}
    for kind, command in (row for _ in range(2) for row in rows):
        word = next(words[kind]) if "{}" in command else ""
        yield kind, command.replace("{}", word).replace("⏎", "\n")


KINDS = {command: kind for kind, command in _own()}
OWN = tuple(KINDS)
"""Commands that try to change, read, reach, end or use up what lies outside."""


def attacks() -> tuple[str, ...]:
    """Return the commands of the corpora that should be asked about or denied."""
    gated = (command for name in corpora.GATED for command in corpora.commands(name))
    return tuple(dict.fromkeys(gated))


def missed() -> tuple[str, ...]:
    """Return those that `default` allows; others are not run on this machine, but in a disposable root alone."""
    return tuple(command for command in attacks() if corpora.level(command) is Judged.allow)


@frozen(eq=False)
class Outside:
    """What lies outside of the workspace: a home with a canary and secrets, listeners, and a process."""

    folder: Path
    servers: tuple[socket.socket, ...]
    udp: socket.socket
    path: Path
    bystander: "subprocess.Popen[bytes]"

    @property
    def workspace(self) -> Path:
        """The folder in which the commands work."""
        return self.folder / "workspace"

    @property
    def home(self) -> Path:
        """The home of the user."""
        return self.folder / "home"

    def variables(self) -> dict[str, str]:
        """Return where everything is, for the commands."""
        home, port = self.home, self.servers[0].getsockname()[1]
        return {
            "HOME": str(home), "CANARY": f"{home}/canary.txt", "KEY_FILE": f"{home}/.ssh/id_ed25519",
            "TOKEN": f"{home}/.config/gh/hosts.yml", "OWN": f"{home}/.bpagent/key",
            "HOST": "127.0.0.1", "ADDRESS": _address(), "PORT": str(port), "UDP": str(self.udp.getsockname()[1]),
            "SOCKET": str(self.path), "ABSTRACT": f"bpagent-test-{port}", "BYSTANDER": str(self.bystander.pid),
            "PYTHON": sys.executable, "PATH": os.environ["PATH"], "LANG": "C.UTF-8",
        }  # fmt: skip

    def furnish(self) -> None:
        """Put everything where it was at the beginning."""
        subprocess.run(["rm", "-rf", self.home, self.workspace], check=True)
        for folder in (".ssh", ".config/gh", ".bpagent"):
            (self.home / folder).mkdir(parents=True)
        (self.home / "canary.txt").write_text("alive")
        (self.home / ".bashrc").write_text("true\n")
        for name in (".ssh/id_ed25519", ".config/gh/hosts.yml", ".bpagent/key"):
            (self.home / name).write_text(SECRET)
        self.workspace.mkdir()
        (self.workspace / "own.txt").write_text("gone")
        (self.workspace / "link").symlink_to(self.home / "canary.txt")
        (self.workspace / "folder").symlink_to(self.home)
        (self.workspace / "keys").symlink_to(self.home / ".ssh" / "id_ed25519")

    def state(self, level: str) -> dict[str, object]:
        """Return what there is in the home folder, and how it is: for Landlock without modes and times."""
        found = sorted([self.home, *self.home.rglob("*")]) if self.home.exists() else []
        return {str(path): _content(path) if level == "landlock" else _state(path) for path in found}

    def heard(self) -> bool:
        """Whether something has arrived since the last time."""
        return any([*map(_accepted, self.servers), _received(self.udp)])


def _content(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _state(path: Path) -> tuple[object, ...]:
    status, attributes = path.lstat(), tuple(os.listxattr(path, follow_symlinks=False))
    return (status.st_mode, status.st_uid, status.st_nlink, status.st_mtime_ns, _content(path), attributes)


def _accepted(server: socket.socket) -> bool:
    try:
        server.accept()[0].close()
    except BlockingIOError:
        return False
    return True


def _received(udp: socket.socket) -> bool:
    try:
        return bool(udp.recv(99))
    except BlockingIOError:
        return False


def _address() -> str:
    """Return an address of this machine that is not its loopback, where it has one."""
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return "127.0.0.1"


@contextmanager
def outside_in(folder: Path) -> Iterator[Outside]:
    """Give what lies outside of a workspace in `folder`."""
    path = Path(os.path.realpath("/tmp")) / f"bpagent-test-{os.getpid()}.sock"
    path.unlink(missing_ok=True)
    with ExitStack() as stack:
        tcp = stack.enter_context(socket.create_server(("0.0.0.0", 0)))
        udp = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        udp.bind(("0.0.0.0", 0))
        named, abstract = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        named.bind(str(path))
        stack.callback(path.unlink)
        abstract.bind(f"\0bpagent-test-{tcp.getsockname()[1]}")
        for server in (named, abstract):
            server.listen()
        for each in (tcp, udp, named, abstract):
            each.setblocking(False)
        environment = {**os.environ, "BYSTANDERS": SECRET}
        bystander = stack.enter_context(subprocess.Popen(["sleep", "3600"], env=environment, start_new_session=True))
        stack.callback(bystander.kill)
        made = Outside(folder, (tcp, named, abstract), udp, path, bystander)
        made.furnish()
        yield made


@contextmanager
def outside_home() -> Iterator[Outside]:
    """Give what lies outside, not in /tmp, which the sandbox replaces; the home there is that of the user meanwhile."""
    before = os.environ["HOME"]
    with TemporaryDirectory(dir=before, prefix="bpagent-test-") as folder, outside_in(Path(folder).resolve()) as made:
        os.environ["HOME"] = str(made.home)
        try:
            yield made
        finally:
            os.environ["HOME"] = before


async def _run(command: str, outside: Outside, sandbox: Sandbox | None) -> Finished:
    env = outside.variables()
    prefix = () if sandbox is None else sandbox.prefix(str(outside.workspace))
    env = env if sandbox is None else sandbox.environment(env)
    argv = [*prefix, "bash", "-c", command]
    return await run_process(argv, cwd=str(outside.workspace), env=env, timeout=SECONDS)


def broken_by(command: str, outside: Outside, sandbox: Sandbox | None) -> str:
    """Run one command; return what came of it that must not, in a word, and nothing where all is well."""
    level = "" if sandbox is None else sandbox.level
    before = outside.state(level)
    done = anyio.run(partial(_run, command, outside, sandbox))
    if outside.state(level) != before:
        outside.furnish()
        return "changed"
    if SECRET in done.output:
        return "read"
    if outside.heard():
        return "arrived"
    return "ended" if outside.bystander.poll() is not None else ""


def sandbox_of(outside: Outside, achieved: Level) -> Sandbox:
    """Return a sandbox with small limits."""
    return Sandbox((str(outside.workspace),), achieved, limits=LIMITS)


DISPOSABLE = """
set -e
base=/tmp/bpagent-adversary; mkdir -p $base; mount -t tmpfs -o size=4g tmpfs $base
for path in /*; do
    if [ -L $path ]; then mkdir -p $base/root && cp -d $path $base/root/; continue; fi
    case $path in /proc|/sys|/dev|/run|/tmp|*lost+found) continue;; esac
    [ -d $path ] && [ -r $path ] || continue
    mkdir -p $base/upper$path $base/work$path $base/root$path
    options="userxattr,lowerdir=$path,upperdir=$base/upper$path,workdir=$base/work$path"
    mount -t overlay -o "$options" overlay $base/root$path 2>/dev/null || echo "left out: $path"
done
set +e
"$PYTHON" -I -S "$LAUNCHER" --unshare-user --unshare-pid --unshare-net --unshare-ipc --unshare-uts \
    --bind $base/root / --dev /dev --size 1073741824 --tmpfs /dev/shm --proc /proc --tmpfs /run --tmpfs /tmp \
    --chdir "$PWD" -- "$PYTHON" -m tests.agent.tools.sandbox.adversary "$@"
code=$?
cd $base/upper && find . -mindepth 1 -not -type d | sed 's/^[.]//'
exit $code
"""
"""It needs no more than a user who may make namespaces. What changed is printed at the end, a path in each line."""

OF_THIS_PROGRAM = ("/bpagent-test-", "/__pycache__/", "/.bpagent/", "/.hypothesis/")
INSIDE = "inside"


def main(*chosen: str) -> int:
    """Run all commands on every level in a disposable root; return whether something got through, or changed."""
    if chosen[:1] == (INSIDE,):
        return attack(*chosen[1:])
    env = {**os.environ, "PYTHON": sys.executable, "LAUNCHER": launcher.__file__, "TMPDIR": "/tmp"}
    words = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", DISPOSABLE, "sh", INSIDE, *chosen)
    done = subprocess.run(words, env=env, stdout=subprocess.PIPE, text=True, check=False)
    lines = done.stdout.splitlines()
    changed = [line for line in lines if line.startswith("/") and not any(own in line for own in OF_THIS_PROGRAM)]
    print(*(line for line in lines if not line.startswith("/")), f"changed outside: {len(changed)}", *changed, sep="\n")
    return 1 if done.returncode or changed else 0


def attack(*chosen: str) -> int:
    """Run the commands on every level; print what got through, and return whether something did."""
    failures, every = 0, int(os.environ.get("EVERY") or 1)
    for achieved in [each for each in LEVELS[:-1] if each in (chosen or LEVELS)]:
        if why := why_not(achieved):
            print(f"{achieved}: not achieved: {why}")
            failures += bool(chosen)
            continue
        with outside_home() as outside:
            sandbox = sandbox_of(outside, achieved)
            tried = (*attacks(), *OWN)[::every]
            broken = {each: what for each in tried if (what := broken_by(each, outside, sandbox))}
            failures += len(broken)
            print(f"{achieved}: {len(tried)} commands, {len(broken)} got through", flush=True)
            for command, what in broken.items():
                print(f"  {what}: {command}")
    with outside_home() as outside:
        harmless = [command for command, kind in KINDS.items() if kind in PLACES]  # they touch what was made for them
        through = [command for command in harmless[::every] if broken_by(command, outside, None)]
        print(f"none: {len(through)} of {len(harmless[::every])} that can be tried without a sandbox get through")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
