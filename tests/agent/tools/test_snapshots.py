"""Snapshots: what is kept of a workspace, what is told, and that every change can be taken back."""

import os
import random
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.tools.snapshots import trees
from agent.tools.snapshots.objects import LARGE, MOST_SMALL_PACKS
from agent.tools.snapshots.store import Snapshots
from agent.tools.snapshots.trees import SnapshotError
from agent.tools.snapshots.undo import changes, changes_since, undo
from agent.tools.snapshots.worktree import make_worktree
from tests.agent.losses import GIT, REPOSITORY, Edits, digest, shell


def scene(
    folder: Path, seed: int, steps: int
) -> tuple[Snapshots, Edits, list[tuple[str, dict[str, tuple[object, ...]]]]]:
    """A workspace in which some calls have run: its snapshots, and how it was before each call."""
    root = folder / "work"
    root.mkdir()
    store, edits, states = Snapshots(root, folder / "home"), Edits(root, seed), []
    for _ in range(12):
        edits.one()
    for step in range(steps):
        before = store.take("run", "before", (f"c{step}",))
        states.append((before.name, digest(root)))
        for _ in range(edits.chance.randint(0, 6)):
            edits.one()
        store.take("run", "after", (f"c{step}",))
    return store, edits, states


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(0, 1 << 32))
def test_undo_to_any_step_gives_the_whole_tree_back_and_can_be_undone(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("scene")
    store, edits, states = scene(folder, seed, 4)
    latest = digest(Path(store.root))

    undone = undo(store, states[0][0])
    assert (digest(Path(store.root)), undone.left) == (states[0][1], {})
    again = undo(store, undone.before)
    assert (digest(Path(store.root)), again.left) == (latest, {})
    for name, state in edits.chance.sample(states, len(states)):
        assert undo(store, name).left == {}
        assert digest(Path(store.root)) == state


def undo_in_a_process_that_dies(store: Snapshots, name: str, at: int) -> bool:
    """Undo in a child that gets a SIGKILL before its change number `at`; return whether it came that far."""
    child = os.fork()
    if child == 0:
        left = at
        changing = {
            "os.rename",
            "os.mkdir",
            "os.remove",
            "os.rmdir",
            "os.symlink",
            "os.chmod",
            "os.utime",
            "shutil.rmtree",
        }

        def die(event: str, arguments: object) -> None:
            nonlocal left
            if event in changing:
                left -= 1
                if not left:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(die)
        undo(store, name)
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process of its own")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_an_undo_that_is_killed_at_any_point_is_finished_by_the_next(tmp_path: Path) -> None:
    store, _, states = scene(tmp_path, 5, 2)
    (name, state), latest, wrong, at = states[0], digest(Path(store.root)), [], 1

    while undo_in_a_process_that_dies(store, name, at):
        undone = undo(store, name)
        if undone.left or digest(Path(store.root)) != state:
            wrong.append((at, undone.left, digest(Path(store.root)).items() ^ state.items()))
        back = undo(store, store.names("run")[3], force=True)
        assert (back.left, digest(Path(store.root))) == ({}, latest)
        at += 2

    assert (wrong, at > 10) == ([], True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.fixture
def store(root: Path, tmp_path: Path) -> Snapshots:
    return Snapshots(root, tmp_path / "home")


def call(store: Snapshots, change: Callable[[Path], object], name: str = "c1") -> str:
    """Take the snapshots around a change, as the loop does around a call; return the name of the first."""
    before = store.take("run", "before", (name,))
    change(Path(store.root))
    store.take("run", "after", (name,))
    return before.name


def test_a_repository_that_is_damaged_comes_back_and_one_that_is_whole_keeps_its_branches(
    root: Path, store: Snapshots
) -> None:
    shell(REPOSITORY)(root)
    shell(f"{GIT} add -A; {GIT} commit -qm two; rm -rf lib/inner/.git/objects")
    before = digest(root / "lib")
    name = call(store, shell(f"{GIT} commit -qam two; echo 3 > src/a.py; rm -rf lib/inner/.git/objects"))

    undone = undo(store, name)

    assert (undone.repositories, undone.left, digest(root / "lib")) == ((".git",), {}, before)
    log = subprocess.run(["git", "log", "--format=%s"], cwd=root, capture_output=True, text=True, check=True).stdout
    assert (log.split(), (root / "src/a.py").read_text()) == (["two", "one"], "1\nunsaved\n")
    undo(store, name, git=True)
    log = subprocess.run(["git", "log", "--format=%s"], cwd=root, capture_output=True, text=True, check=True).stdout
    assert log.split() == ["one"]


def test_undo_leaves_what_the_user_changed_meanwhile_unless_forced(root: Path, store: Snapshots) -> None:
    (root / "users").mkdir()
    for name in ("both", "after", "own", "gone"):
        (root / name).write_text("old")
    before = digest(root)

    def agent(root: Path) -> None:
        for name in ("both", "after", "made", "gone"):
            (root / name).write_text("agent's")
        (root / "folder").mkdir()

    first = call(store, agent)
    (root / "after").write_text("user's")
    (root / "own").write_text("user's")
    (root / "users/mine").write_text("user's")
    (root / "folder/mine").write_text("user's")
    (root / "gone").unlink()
    states = digest(root)

    undone = undo(store, first)

    other = "was changed by something else than this run"
    assert undone.left == {
        "after": other,
        "own": other,
        "gone": other,
        "folder/mine": other,
        "users/mine": other,
        "folder": "holds something that is left",
    }
    assert {path.name: path.read_text() for path in root.iterdir() if path.is_file()} == {
        "both": "old", "after": "user's", "own": "user's",
    }  # fmt: skip
    forced = undo(store, first, force=True)
    assert (forced.left, digest(root)) == ({}, before)
    undo(store, undone.before, force=True)
    assert digest(root) == states


def test_changes_name_the_calls_that_made_them(root: Path, store: Snapshots) -> None:
    (root / "a").write_text("1")
    first = call(store, lambda root: (root / "a").write_text("2"), "c1")
    (root / "user").write_text("1")
    call(store, lambda root: (root / "b").write_text("2"), "c2")
    store.take("run", "after", ("c2",), background=True)
    (root / "server.log").write_text("started")
    call(store, lambda root: (root / "a").write_text("3"), "c3")

    by = {path: (each.kind, each.by) for path, each in changes_since(store, first).items() if each.kind}

    assert by == {
        "a": ("changed", ("c3",)),
        "user": ("new", ()),
        "b": ("new", ("c2",)),
        "server.log": ("new", ("background",)),
    }
    one, two = store.get(first), store.get("run/000002")
    assert [(each.path, each.kind) for each in changes(one, two)] == [("a", "changed")]
    assert (one.read("a"), two.read("a")) == (b"1", b"2")


def test_single_files_are_restored_with_the_folders_that_they_need(root: Path, store: Snapshots) -> None:
    (root / "src/deep").mkdir(parents=True)
    for name in ("src/deep/a", "src/b"):
        (root / name).write_text("old")
    name = call(store, lambda root: shutil.rmtree(root / "src"))

    undone = undo(store, name, paths=["src/deep/a"])

    assert ({*undone.restored}, [path.name for path in (root / "src").iterdir()]) == (
        {"src", "src/deep", "src/deep/a"},
        ["deep"],
    )


def test_what_is_no_file_or_too_large_is_told_and_left_alone(root: Path, tmp_path: Path) -> None:
    store = Snapshots(root, tmp_path / "home", limit=LARGE + 1000)
    os.mkfifo(root / "pipe")
    os.mknod(root / "socket", 0o600 | stat.S_IFSOCK)
    (root / "large").write_bytes(bytes(LARGE))
    with open(root / "larger", "wb") as file:
        file.truncate(LARGE * 5)
    name = call(store, shell("rm large larger pipe"))

    no_file = "is no file, folder or link"
    told = sorted(store.get(name).unkept)
    assert told == ["larger: is too large to be kept: 40 MB", f"pipe: {no_file}", f"socket: {no_file}"]
    assert undo(store, name).left == {"larger": "was not kept", "pipe": "was not kept"}
    assert ((root / "large").read_bytes() == bytes(LARGE), (root / "socket").exists()) == (True, True)


@pytest.fixture
def sharing(tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system on which files can share blocks."""
    image, folder = tmp_path / "image", tmp_path / "mounted"
    folder.mkdir()
    with open(image, "wb") as file:
        file.truncate(150_000_000)
    if shutil.which("mkfs.btrfs") is None or subprocess.run(["mkfs.btrfs", "-q", image], check=False).returncode:
        pytest.skip("no btrfs can be made here")
    if subprocess.run(["mount", "-o", "loop", image, folder], check=False, capture_output=True).returncode:
        pytest.skip("no image can be mounted here")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.slow
def test_a_large_file_that_shares_its_blocks_costs_only_what_has_changed_since(sharing: Path) -> None:
    root = sharing / "work"
    root.mkdir()
    (root / "data").write_bytes(os.urandom(3 * LARGE))
    store = Snapshots(root, sharing / "home", limit=LARGE)
    before = digest(root)

    name = call(store, shell("printf changed | dd of=data bs=1 seek=9999999 conv=notrunc status=none; sync"))

    assert (store.get(name).unkept, len(store.names("run"))) == ((), 2)
    assert (undo(store, name).left, digest(root)) == ({}, before)
    (root / "data").unlink()
    os.sync()
    assert "oldest snapshots" in "".join(store.take("run", "before").told)


MADE = [
    ("node_modules/.package-lock.json", True), ("node_modules/mine.txt", False), (".venv/pyvenv.cfg", True),
    ("lib/__pycache__/a.cpython-311.pyc", True), ("lib/__pycache__/thesis.txt", False),
    ("build/target/CACHEDIR.TAG", True),
    (".mypy_cache/CACHEDIR.TAG", False), ("data/node_modules2/.package-lock.json", False),
]  # fmt: skip
"""A file in a folder, and whether the folder is left out: with its mark, where git ignores it."""


def test_what_a_tool_can_make_again_is_left_out_and_told(root: Path, store: Snapshots) -> None:
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("node_modules\n.venv\n__pycache__/\n/build\n")
    wrong = []
    for name, is_left_out in MADE:
        path = root / name
        path.parent.mkdir(parents=True)
        path.write_text("")
        told = store.take("run", "before").made_again
        if told != ((str(Path(name).parent),) if is_left_out else ()):
            wrong.append((name, told))
        shutil.rmtree(path.parent)

    assert wrong == []


@pytest.mark.slow
def test_a_large_file_that_is_changed_in_place_comes_back(root: Path, store: Snapshots) -> None:
    with open(root / "data", "wb") as file:
        piece = os.urandom(1_000_000)
        for _ in range(300):
            file.write(piece)
    before = digest(root)

    def in_place(root: Path) -> None:
        with open(root / "data", "r+b") as file:
            file.seek(LARGE * 2)
            file.write(b"changed")

    undone = undo(store, call(store, in_place))

    assert (undone.left, digest(root)) == ({}, before)


@pytest.mark.slow
def test_a_database_with_a_log_of_writes_comes_back_as_it_was_between_two_transactions(
    root: Path, store: Snapshots
) -> None:
    with closing(sqlite3.connect(root / "x.db")) as database:
        database.execute("pragma journal_mode=wal")
        with database:
            database.execute("create table t (n)")
            database.execute("insert into t values (1)")
        assert (root / "x.db-wal").stat().st_size > 0
        first = store.take("run", "before").name
        with database:
            database.execute("update t set n = 2")
    store.take("run", "after", ("call",))
    assert not (root / "x.db-wal").exists()

    undone = undo(store, first)

    with closing(sqlite3.connect(root / "x.db")) as database:
        assert (undone.left, database.execute("select n from t").fetchall()) == ({}, [(1,)])


def test_the_store_is_private_outside_of_the_workspace_and_readable_by_git(root: Path, store: Snapshots) -> None:
    (root / "a").write_text("text\n")
    (root / ".gitattributes").write_text("* filter=evil text eol=crlf\n")
    store.take("run", "before")

    assert (stat.S_IMODE(store.folder.stat().st_mode), root in store.folder.parents) == (0o700, False)
    git = ["git", "--git-dir", str(store.folder), "cat-file", "--batch-all-objects", "--batch"]
    told = subprocess.run(git, capture_output=True, check=True).stdout
    assert (b"\ntext\n" in told, b"eol=crlf" in told) == (True, True)


def test_further_roots_are_kept_like_the_workspace_and_come_back_also_as_a_whole(root: Path, tmp_path: Path) -> None:
    other, late, above = tmp_path / "other", tmp_path / "late", tmp_path / "above"
    (other / "deep").mkdir(parents=True)
    (other / "deep/a").write_text("old")
    (above / "inner").mkdir(parents=True)
    (root / "other").write_text("mine")
    further = [str(path) for path in (other, late, above, above / "inner", root)]
    store = Snapshots(root, tmp_path / "home", further=further)
    before = [digest(path) for path in (root, other, above)]
    name = call(store, shell("mv other ../other/moved; echo 2 > ../other/deep/a; mkdir ../late; touch ../late/x"))
    changed = {change.path: change.kind for change in changes_since(store, name).values() if change.kind}

    assert changed == {"other": "deleted", f"{other}/moved": "new", f"{other}/deep/a": "changed", f"{late}/x": "new"}
    assert store.get(name).read(f"{other}/deep/a") == b"old"
    undone = undo(store, name, paths=[str(other)])
    assert sorted(undone.restored) == [f"{other}/deep/a", f"{other}/moved"]
    assert undo(store, name).left == {}
    assert ([digest(path) for path in (root, other, above)], late.exists()) == (before, False)
    name = call(store, shell("rm -r ../other; touch ../above/inner/x"))
    assert undo(store, name).left == {}
    assert [digest(path) for path in (root, other, above)] == before
    assert make_worktree(store.get(name), str(root), tmp_path / "copy") == ()
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["other"]


@pytest.mark.slow
def test_many_snapshots_lie_in_few_packs_and_each_can_be_read_by_another_process(
    root: Path, store: Snapshots, tmp_path: Path
) -> None:
    other, names = Snapshots(root, tmp_path / "home"), []
    for number in range(3 * MOST_SMALL_PACKS):
        (root / "a").write_text(str(number))
        names.append(store.take("run", "before").name)
        if not number:
            other.get(names[0])  # whose packs are merged afterwards

    assert len([*(store.folder / "objects/pack").glob("*.pack")]) <= MOST_SMALL_PACKS
    assert [other.get(name).read("a") for name in names] == [b"%d" % number for number in range(len(names))]


def test_removing_a_run_removes_at_once_what_only_it_has_kept(root: Path, store: Snapshots) -> None:
    (root / "both").write_text("stays " * 9)
    store.take("one", "before")
    (root / "secret").write_text("sk-123")
    (root / "large").write_bytes(b"secret" * LARGE)
    store.take("two", "before")

    store.remove("two")

    kept = b"".join(path.read_bytes() for path in store.folder.rglob("*") if path.is_file())
    assert (store.runs(), b"secret" in kept) == (["one"], False)
    assert store.get("one/000001").read("both") == b"stays " * 9
    (root / "secret").unlink()
    (root / "large").unlink()
    assert Snapshots(root, store.folder.parent.parent).take("three", "before").read("both") == b"stays " * 9


def test_at_the_limit_the_oldest_snapshots_go_and_never_the_first_of_the_newest_run(root: Path, tmp_path: Path) -> None:
    store = Snapshots(root, tmp_path / "home", limit=100_000)
    for number in range(8):
        (root / "data").write_bytes(os.urandom(20_000))
        told = store.take(("old", "new")[number > 2], "before").told

    assert (store.names("old"), store.names("new")[0], "oldest snapshots" in "".join(told)) == ([], "new/000001", True)
    assert len(store.get("new/000001").read("data")) == 20_000
    with pytest.raises(SnapshotError, match="there is no snapshot 'old/000001'"):
        store.get("old/000001")


def test_a_snapshot_that_cannot_be_taken_names_what_is_in_the_way(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    (root / "a").write_text("12345")
    deep = root.joinpath(*["d"] * 300)
    monkeypatch.setenv("HOME", str(root.parent))
    cases = [
        (Snapshots(root, tmp_path / "file"), "file: Not a directory|file/snapshots"),
        (Snapshots(root, tmp_path / "home", limit=4), "to leave the largest out: --option snapshot_exclude=./a"),
        (Snapshots(tmp_path / "nowhere", tmp_path / "home"), "nowhere: No such file"),
        (Snapshots(root, tmp_path / "home", limit=4), "more than 4 bytes"),
    ]
    for store, message in cases:
        with pytest.raises(SnapshotError, match=message):
            store.take("run", "before")
    deep.mkdir(parents=True)
    with pytest.raises(SnapshotError, match="more than 200 folders deep"):
        Snapshots(root, tmp_path / "home").take("run", "before")
    with pytest.raises(SnapshotError, match="cancelled"):
        Snapshots(root, tmp_path / "home").take("run", "before", is_cancelled=lambda: True)


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_a_network_file_system_is_refused_by_name(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    status = root.stat()
    device = f"{os.major(status.st_dev)}:{os.minor(status.st_dev)}"
    (tmp_path / "mounts").write_text(f"22 1 {device} / / rw shared:1 - {kind} server:/x rw\n")
    monkeypatch.setattr(trees, "MOUNTS", str(tmp_path / "mounts"))

    with pytest.raises(SnapshotError, match=rf"work lies on a network file system \({kind}\), where snapshots"):
        Snapshots(root, tmp_path / "home").take("run", "before")
    assert [*(tmp_path / "home").rglob("refs/snapshots/*")] == []


def test_what_the_user_names_is_left_out(root: Path, tmp_path: Path) -> None:
    for name in ("data/big", "kept/big", "cache/x"):
        (root / name).parent.mkdir()
        (root / name).write_text("1")
    store = Snapshots(root, tmp_path / "home", exclude=("data/big", "cache"))
    name = call(store, shell("echo 2 > data/big; echo 2 > kept/big; rm -r cache"))

    why = "named in snapshot_exclude"
    assert sorted(store.get(name).unkept) == [f"cache: {why}", f"data/big: {why}"]
    assert undo(store, name).left == {"cache": "was not kept", "data/big": "was not kept"}
    assert [(root / each).read_text() for each in ("data/big", "kept/big")] == ["2\n", "1"]


@pytest.mark.slow
@settings(max_examples=15)
@given(st.integers(0, 1 << 32))
def test_undo_keeps_every_edit_of_the_user_between_calls(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    """Files that the user alone has are as the user left them, and so are those changed after the last call."""
    folder = tmp_path_factory.mktemp("scene")
    root, chance = folder / "work", random.Random(seed)
    root.mkdir()
    store, names = Snapshots(root, folder / "home"), []
    users = dict[Path, bytes]()
    for step in range(3):
        for _ in range(3):
            path = root / f"{chance.choice('ab')}/user-{chance.choice('xyz')}"
            path.parent.mkdir(exist_ok=True)
            users[path] = chance.randbytes(5)
            path.write_bytes(users[path])
        names.append(store.take("run", "before", (f"c{step}",)).name)
        for _ in range(3):
            path = root / f"{chance.choice('ac')}/agent-{chance.choice('xyz')}"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(chance.randbytes(5))
        store.take("run", "after", (f"c{step}",))
    theirs = chance.choice(sorted(root.glob("*/agent-*")))
    theirs.write_bytes(b"changed by the user")

    undone = undo(store, chance.choice(names))

    assert {path: path.read_bytes() for path in users} == users
    assert theirs.read_bytes() == b"changed by the user"
    assert str(theirs.relative_to(root)) in undone.left


WRITER = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR)
print("ready", flush=True)
number = 0
while True:
    number = (number + 1) % 256
    os.pwrite(file, bytes([number]) * 4_000_000, 0)
"""


@pytest.mark.slow
def test_a_file_that_was_read_while_it_was_written_is_told(root: Path, store: Snapshots) -> None:
    path, silent = root / "data", []
    path.write_bytes(bytes(4_000_000))
    with subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        for _ in range(5):
            taken = store.take("run", "before")
            content = taken.read("data")
            is_torn = len(set(content.lstrip(content[:1]))) > 1  # more than one write that was under way
            silent += [taken.name] if is_torn and not taken.unkept else []
        writer.kill()

    assert silent == []


def test_two_runs_in_one_folder_take_turns(root: Path, tmp_path: Path) -> None:
    for number in range(50):
        (root / str(number)).write_text(str(number))
    stores = [Snapshots(root, tmp_path / "home") for _ in range(4)]

    with ThreadPoolExecutor(4) as threads:
        taken = [*threads.map(lambda number: stores[number % 4].take(f"run {number % 4}", "before"), range(24))]

    assert {each.read("49") for each in taken} == {b"49"}
    assert [len(stores[0].names(f"run {number}")) for number in range(4)] == [6] * 4


ON_A_FULL_DISK = """
import os, subprocess, sys
from pathlib import Path
from agent.tools.snapshots.store import Snapshots
from agent.tools.snapshots.trees import SnapshotError
from agent.tools.snapshots.undo import undo
def attempt(act):
    try:
        return act()
    except SnapshotError as error:
        return str(error)
def mounted(name, size):
    folder = Path(sys.argv[1], name)
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", folder], check=True)
    return folder
root, home = mounted("ws", 20_000_000), mounted("home", 2_000_000)
store = Snapshots(root, home)
(root / "old").write_bytes(os.urandom(1_000_000))
(root / "mine").write_text("1")
first = store.take("run", "before").name
for size in (3_000_000, 10_000_000):
    (root / "new").write_bytes(os.urandom(size))
    print(attempt(lambda: store.take("run", "after")), len([*home.rglob("new-*")]))
(root / "new").unlink()
subprocess.run(["mount", "-o", "remount,ro", home], check=True)
(root / "old").unlink()
print(attempt(lambda: store.take("run", "after")))
subprocess.run(["mount", "-o", "remount,rw", home], check=True)
store.take("run", "after", ("c1",))
with open(root / "filling", "wb", buffering=0) as file:
    try:
        while file.write(bytes(1000)):
            pass
    except OSError:
        pass
os.truncate(root / "filling", (root / "filling").stat().st_size - 4096)
filling = (root / "filling").stat().st_size
print(attempt(lambda: undo(Snapshots(root, home, exclude=("filling",)), first, paths=["old"])))
print(sorted(path.name for path in root.iterdir()) == ["filling", "mine"], filling == (root / "filling").stat().st_size)
(root / "filling").unlink()
print(undo(store, first).restored, (root / "old").stat().st_size, store.names("run"))
"""


@pytest.mark.slow
def test_on_a_full_or_read_only_disk_nothing_is_lost_and_all_goes_on_once_there_is_room(
    tmp_path: Path, needs: Callable[[str], Path]
) -> None:
    mounting = (str(needs("unshare")), "-rm")
    if subprocess.run([*mounting, "mount", "-t", "tmpfs", "none", str(tmp_path)], check=False).returncode:
        pytest.skip("this system lets no user mount")

    words = [*mounting, sys.executable, "-c", ON_A_FULL_DISK, str(tmp_path)]
    said = subprocess.run(words, check=True, capture_output=True, text=True).stdout.replace(str(tmp_path), "")

    full, store = "the disk is full; make room, or move BPAGENT_HOME", said.partition(":")[0]
    assert said.splitlines() == [
        *[f"{store}: {full} 0"] * 2,
        f"{store}/lock: it is read-only",
        f"nothing was undone: /ws: {full}",
        "True True",
        f"('old',) 1000000 {[f'run/{number:06}' for number in range(1, 6)]}",
    ]


BY_AN_ORDINARY_USER = """
import os, resource, sys
from pathlib import Path
from agent.tools.snapshots.store import Snapshots
from agent.tools.snapshots.trees import SnapshotError
root, home, largest = sys.argv[1:]
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
if largest:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(largest),) * 2)
try:
    print(*Snapshots(root, Path(home)).take("run", "before").unkept, sep="; ")
except SnapshotError as error:
    print(error)
"""


@pytest.fixture
def ordinary() -> Iterator[Callable[..., str]]:
    """Take a snapshot of the folder "ws", in "home", as a user who is not root; its `folder` holds both."""
    with tempfile.TemporaryDirectory() as folder:

        def take(largest: str = "") -> str:
            words = [sys.executable, "-c", BY_AN_ORDINARY_USER, f"{folder}/ws", f"{folder}/home", largest]
            return subprocess.run(words, check=True, capture_output=True, text=True).stdout.strip().replace(folder, "")

        for path in (folder, f"{folder}/ws", f"{folder}/home"):
            os.makedirs(path, exist_ok=True)
            if os.geteuid() == 0:
                os.chown(path, 65534, 65534)
        take.folder = Path(folder)  # type: ignore[attr-defined]
        yield take


@pytest.mark.slow
def test_what_an_ordinary_user_cannot_read_is_told_and_the_rest_is_kept(ordinary: Any) -> None:
    work = ordinary.folder / "ws"
    (work / "closed").mkdir()
    for name in ("a", "secret", "closed/b"):
        (work / name).write_text("x")
    for name in ("secret", "closed"):
        os.chown(work / name, os.geteuid(), -1)
        (work / name).chmod(0)

    told = ordinary()

    assert sorted(told.split("; ")) == ["closed: cannot be read", "secret: cannot be read"]
    [name] = Snapshots(work, ordinary.folder / "home").names("run")
    assert Snapshots(work, ordinary.folder / "home").get(name).read("a") == b"x"


@pytest.mark.slow
def test_a_store_that_has_no_room_or_cannot_be_written_is_named_and_nothing_is_left_behind(ordinary: Any) -> None:
    work, home = ordinary.folder / "ws", ordinary.folder / "home"
    (work / "a").write_bytes(random.Random(1).randbytes(300_000))
    for size in (LARGE + 1, 300_000):  # kept as it is, and in a pack
        (work / "a").write_bytes(random.Random(1).randbytes(size))
        assert "File too large" in ordinary("100000")
        assert [path for path in home.rglob("*") if path.is_file() and path.stat().st_size > 10_000] == []

    assert ordinary() == ""
    store = next((home / "snapshots").iterdir())
    for path in (store, *store.rglob("*")):
        path.chmod(0o500)
    (work / "a").write_text("new")

    assert ordinary().endswith(": Permission denied")
    for path in (store, *store.rglob("*")):
        path.chmod(0o700)
    assert ordinary() == ""
