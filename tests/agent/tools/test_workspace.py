"""`agent.tools.workspace`: nothing outside can be opened, whatever stands there or changes meanwhile."""

import gc
import os
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path

import pytest

from agent.tools.workspace import Entry, Workspace
from agent.vocabulary.errors import PathRefused
from tests.tables import rows


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / ".ssh").mkdir(parents=True)
    (tmp_path / "home" / ".ssh" / "id").write_text("secret")
    return tmp_path / "home"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return tmp_path / "outside"


@pytest.fixture
def workspace(root: Path, home: Path) -> Workspace:
    (root / "sub").mkdir()
    (root / "sub" / "file").write_text("inside")
    return Workspace(root, home=home)


TOUCH_ALL = """
import sys
from agent.tools.sandbox.permissions import hidden_places
from agent.tools.workspace import Workspace

made = Workspace(sys.argv[1], home=sys.argv[2])
for folder in ("x", "x/keys", "x/keys/old", "a b", "a b/old"):
    for touch in (
        lambda: made.open_read(folder + "/id").read(),
        lambda: made.open_write(folder + "/new/new").__enter__(),
        lambda: made.list(folder),
    ):
        try:
            print(touch())
        except OSError as error:
            print(error)
with made.open_folder() as folder:
    print([entry.name for entry in folder.entries()])
print([place for place in hidden_places("/nowhere", sys.argv[2]) if place.startswith(sys.argv[1])])
"""


MOUNT = 'mount --bind "$1" "$2/x" && mount --bind "$1/keys" "$2/a b" && shift 2 && exec "$@"'


def read(workspace: Workspace, path: object) -> str:
    with workspace.open_read(str(path)) as file:
        return file.read().decode()


def write(workspace: Workspace, path: object, text: str = "") -> None:
    with workspace.open_write(str(path)) as file:
        file.write(text.encode())


def test_relative_paths_start_at_the_root(workspace: Workspace, root: Path) -> None:
    for path in ("sub/file", root / "sub/file", "./sub/../sub/file", "sub//file"):
        assert read(workspace, path) == "inside"
    assert workspace.list() == (Entry("sub", True),)
    assert workspace.list("sub") == (Entry("file", False, True),)


def test_further_allowed_paths_are_allowed_and_may_not_exist_yet(root: Path, home: Path, outside: Path) -> None:
    workspace = Workspace(root, allowed=[outside, "~/new"], home=home)

    write(workspace, "~/new/deep/file", "text")

    assert read(workspace, outside / "secret") == "secret"
    assert (home / "new/deep/file").read_text() == "text"


OUTSIDE, DENIED, OTHER_NAME = "is outside the allowed paths", "is a denied path", "another name of a denied path"


@rows(
    ("use", "path", "problem"),
    [
        (read, "/etc/hosts", "^permission denied: /etc/hosts is outside the allowed paths \\({root}\\)$"),
        *((read, path, OUTSIDE) for path in ("../outside/secret", "{root}/../outside/secret", "{outside}/secret")),
        (read, "sub/../../outside/secret", OUTSIDE),
        (Workspace.list, "..", OUTSIDE),
        *((read, path, "leads to {outside}/secret, which is outside the allowed paths")
          for path in ("file-link", "directory-link/secret", "over-a-link")),
        *((write, path, OUTSIDE) for path in ("file-link", "directory-link/new", "dangling", "directory-link/a/b")),
        (Workspace.list, "directory-link", OUTSIDE),
        *((use, "loop", "a loop of links") for use in (read, write)),
        *((read, path, OUTSIDE) for path in ("/proc/self/root/etc/hosts", "/proc/self/environ", "proc/etc/hosts")),
        (read, "cwd/pyproject.toml", OUTSIDE),
        *((use, kind, f"is a{' FIFO' if kind == 'fifo' else ' socket'}, not an ordinary file")
          for use in (read, write) for kind in ("fifo", "socket")),
        *((use, path, "NUL|surrogate")
          for use in (read, Workspace.resolve, Workspace.list) for path in ("a\0b", "a\ud800", "\udc80")),
    ],
)  # fmt: skip
def test_s6_10_and_s6_12_nothing_leads_outside_and_no_link_does(
    workspace: Workspace, links: Path, root: Path, outside: Path, use: Callable[..., object], path: str, problem: str
) -> None:
    path, problem = (text.replace("{root}", str(root)).replace("{outside}", str(outside)) for text in (path, problem))

    with pytest.raises(PathRefused, match=problem):
        use(workspace, path)
    assert (outside / "secret").read_text() == "secret"
    assert os.listdir(outside) == ["secret"]


@pytest.fixture
def links(root: Path, outside: Path) -> Iterator[Path]:
    """A workspace full of links that lead outside, and of what is no file."""
    targets: dict[str, str | Path] = {
        "file-link": outside / "secret", "directory-link": outside, "dangling": outside / "new", "loop": "loop",
        "over-a-link": "directory-link/secret", "proc": "/proc/self/root", "cwd": "/proc/self/cwd",
    }  # fmt: skip
    for name, target in targets.items():
        (root / name).symlink_to(target)
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        with chdir(root):  # the path of a socket is short
            server.bind("socket")
        yield root


def test_devices_and_the_system_s_own_secrets_are_refused() -> None:
    with pytest.raises(PathRefused, match="is a device"):
        read(Workspace("/", denied=()), "/dev/zero")
    with pytest.raises(PathRefused, match=DENIED):
        read(Workspace("/"), "/proc/self/root/etc/passwd")


def test_s6_11_denied_wins_over_allowed_also_for_writing(home: Path) -> None:
    workspace = Workspace(home, home=home)

    for path in ("~/.ssh/id", ".ssh/new", ".ssh", "~/.ssh/../.ssh/id"):
        with pytest.raises(PathRefused, match=DENIED):
            write(workspace, path, "changed")
    with pytest.raises(PathRefused, match=DENIED):
        workspace.list(".ssh")
    assert (home / ".ssh/id").read_text() == "secret"
    assert workspace.list(".") == (Entry(".ssh", True),)


def test_denied_holds_under_another_name(root: Path, home: Path) -> None:
    """A link to the same directory, a hard link, or another spelling: what counts is what it is."""
    workspace = Workspace(root, denied=[f"{root}/sub/../Secret", "~/.ssh"], home=home)
    (home / ".ssh").rename(root / "keys")
    (home / ".ssh").symlink_to(root / "keys")
    (root / "Secret").mkdir()
    (root / "Secret" / "key").write_text("secret")
    os.link(root / "Secret" / "key", root / "harmless")

    with pytest.raises(PathRefused, match=DENIED):
        read(workspace, "keys/id")
    for use in (read, write):
        with pytest.raises(PathRefused, match=OTHER_NAME):
            use(workspace, "harmless")


@pytest.mark.slow
def test_s6_11_denied_holds_below_another_name(root: Path, home: Path, needs: Callable[[str], Path]) -> None:
    """However deep below: a mounted directory is what it is, and so is what it holds, also one from within."""
    (root / "x").mkdir()
    (root / "a b").mkdir()
    (home / ".ssh" / "keys" / "old").mkdir(parents=True)
    (home / ".ssh" / "keys" / "old" / "id").write_text("secret")
    mounted = (str(needs("unshare")), "-rm", "sh", "-c", MOUNT, "sh", str(home / ".ssh"), str(root))
    if (tried := subprocess.run([*mounted, "true"], capture_output=True, text=True, check=False)).returncode:
        pytest.skip(f"this system lets no user mount: {tried.stderr.strip()}")

    command = [*mounted, sys.executable, "-c", TOUCH_ALL, str(root), str(home)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *touched, entries, hidden = done.stdout.splitlines()

    assert len(touched) == 15
    assert {line for line in touched if not line.endswith("is another name of a denied path")} == set()
    assert (entries, hidden) == ("[]", str([f"{root}/a b", f"{root}/x"]))
    assert list((home / ".ssh").rglob("new")) == []


def test_links_that_stay_inside_work_and_stay_links(workspace: Workspace, root: Path) -> None:
    (root / "link").symlink_to("sub")
    (root / "sub" / "alias").symlink_to(root / "sub" / "file")

    write(workspace, "link/alias", "changed")

    assert read(workspace, "link/file") == "changed"
    assert (root / "sub" / "alias").is_symlink()
    assert workspace.list("link") == (Entry("alias", False), Entry("file", False, True))


ABSENT = [
    (read, "sub/none", FileNotFoundError, "no such file: {root}/sub/none"),
    (read, "none/file", FileNotFoundError, "no such file: {root}/none/file"),
    (Workspace.list, "none", FileNotFoundError, "no such directory: {root}/none"),
    (read, "sub/file/x", NotADirectoryError, "{root}/sub/file/x: Not a directory"),
    (Workspace.list, "sub/file", NotADirectoryError, "{root}/sub/file: Not a directory"),
    (read, "sub", IsADirectoryError, "{root}/sub is a directory"),
    (write, ".", IsADirectoryError, "{root} is a directory"),
]


@rows(("use", "path", "kind", "problem"), ABSENT)
def test_a_path_that_cannot_be_opened_is_named(
    workspace: Workspace, root: Path, use: Callable[..., object], path: str, kind: type[OSError], problem: str
) -> None:
    with pytest.raises(kind, match=problem.format(root=root)):
        use(workspace, path)


def test_writing_makes_directories_and_keeps_mode_and_owner(workspace: Workspace, root: Path) -> None:
    script = root / "script"
    script.write_text("old")
    script.chmod(0o751)
    if os.getuid() == 0:
        os.chown(script, 1234, 1234)
    before = script.stat()

    write(workspace, "script", "new")
    write(workspace, "a/b/c", "text")

    after = script.stat()
    assert script.read_text() == "new"
    assert (stat.S_IMODE(after.st_mode), after.st_uid, after.st_gid) == (0o751, before.st_uid, before.st_gid)
    assert (root / "a/b/c").read_text() == "text"
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((root / "a/b/c").stat().st_mode) == 0o666 & ~mask


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(workspace: Workspace, root: Path) -> None:
    with pytest.raises(TypeError), workspace.open_write("sub/file") as file:
        file.writelines([b"half", None])  # type: ignore[list-item]

    assert (root / "sub/file").read_text() == "inside"
    assert os.listdir(root / "sub") == ["file"]


@pytest.mark.slow
def test_opening_leaves_no_descriptor(workspace: Workspace, root: Path) -> None:
    (root / "loop").symlink_to("loop")
    gc.collect()  # what other tests left open is closed now, most of it
    before = len(os.listdir("/proc/self/fd"))

    for _ in range(20):
        read(workspace, "sub/file")
        write(workspace, "sub/new", "text")
        workspace.list("sub")
        for path in ("sub/none", "loop", "sub", "/etc/hosts"):
            with pytest.raises(OSError):
                read(workspace, path)
            with pytest.raises(OSError):
                workspace.list("sub/file")

    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_configured_path_means_the_same_whichever_way_it_is_written(root: Path, home: Path) -> None:
    (root / "secrets").mkdir()
    (root / "secrets" / "a").write_text("1")
    (home / "data").mkdir()
    (home / "data" / "a").write_text("1")
    for data in ("~/data", "$HOME/data", "${HOME}/data", f"{home}/data"):
        with Workspace(root, [data], home=home).open_read("~/data/a") as file:
            assert file.read() == b"1"
    for denied in ("secrets", "./secrets", "secrets/*", "s*", f"{root}/secrets", "../ws/secrets"):
        workspace = Workspace(root, denied=[denied], home=home)
        for path in ("secrets/a", "secrets/.new"):
            with pytest.raises(PathRefused):
                workspace.open_read(path)
    os.link(root / "secrets" / "a", root / "b")
    with pytest.raises(PathRefused):
        Workspace(root, denied=["secrets/*"], home=home).open_read("b")
