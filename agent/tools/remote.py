"""The tools on another machine, over any command that runs a shell there, such as `ssh host` (S2 "operations").

    place = RemoteFiles(("ssh", "build-host"), "/srv/project")
    options = CodingOptions(files=place, commands=RemoteCommands(place.connect))

Each operation is one shell script there, with its arguments quoted and its text on standard input; a POSIX shell and
the usual programs (cat, ls, mkdir, mv, stat, test) are enough. What is read comes here whole, into a file without a
name, up to a limit. There are no bounds but those of the account: who needs them gives that account few rights.
"""

import os
import posixpath
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from tempfile import TemporaryFile
from typing import BinaryIO, Unpack

from attrs import frozen

from agent.tools.process import Finished, run_process, tool_environment
from agent.tools.shell import SCRIPT_FROM_STDIN, How, encoded
from agent.tools.workspace import Entry, check_text
from agent.vocabulary.errors import CannotStart, ToolError

_MOST_BYTES = 100 * 1024 * 1024  # of a file that is read
_TIMEOUT = 60.0  # seconds for one operation on a file

_READ = """
if [ -d "$1" ]; then echo "$1 is a directory, not a file" >&2; exit 21; fi
if [ ! -e "$1" ]; then echo "no such file: $1" >&2; exit 22; fi
if [ ! -f "$1" ]; then echo "$1 is not an ordinary file" >&2; exit 23; fi
exec head -c "$2" -- "$1"
"""
_WRITE = """
if [ -d "$1" ]; then echo "$1 is a directory, not a file" >&2; exit 21; fi
if [ -e "$1" ] && [ ! -f "$1" ]; then echo "$1 is not an ordinary file" >&2; exit 23; fi
if [ -e "$1" ] && [ ! -w "$1" ]; then echo "permission denied: $1 is not writable" >&2; exit 24; fi
target=$(readlink -f -- "$1" 2>/dev/null) && [ -n "$target" ] || target=$1
mkdir -p -- "$(dirname -- "$target")" || exit 25
draft=$(dirname -- "$target")/.bpagent-$$
trap 'rm -f -- "$draft"' EXIT
cat > "$draft" || exit 26
if [ "$(wc -c < "$draft")" -ne "$2" ]; then echo "cannot write $1: it did not arrive whole" >&2; exit 27; fi
if [ -e "$target" ]; then chmod --reference="$target" -- "$draft" 2>/dev/null; fi
mv -f -- "$draft" "$target"
"""
_LIST = """
if [ ! -e "$1" ]; then echo "no such directory: $1" >&2; exit 22; fi
if [ ! -d "$1" ]; then echo "$1 is not a directory" >&2; exit 28; fi
cd -- "$1" || exit 24
for name in * .*; do
    case $name in .|..) continue ;; esac
    if [ -h "$name" ]; then kind=l; elif [ -d "$name" ]; then kind=d; elif [ -f "$name" ]; then kind=f
    elif [ -e "$name" ]; then kind=o; else continue; fi
    printf '%s%s\\0' "$kind" "$name"
done
"""
_RESOLVE = 'readlink -m -- "$1" 2>/dev/null || printf "%s\\n" "$1"'
_ERRORS: Mapping[int, Callable[[str], Exception]] = {
    21: IsADirectoryError, 22: FileNotFoundError, 24: PermissionError, 28: NotADirectoryError,
}  # fmt: skip


@frozen
class RemoteFiles:
    """The files of another machine. `connect` is the command that runs a shell there, `root` an absolute path."""

    connect: tuple[str, ...]
    root: str

    def resolve(self, path: str) -> str:
        """Return `path` absolute and with its links followed, as the other machine does."""
        return os.fsdecode(self._run(_RESOLVE, self._absolute(path))).rstrip("\n")

    def open_read(self, path: str) -> BinaryIO:
        """Return a file, fetched whole. Raises ToolError for one that is too large."""
        if path.endswith(("/", "/.", "/..")):
            raise IsADirectoryError(f"{path} names a directory, not a file; leave its end out")
        fetched = TemporaryFile()  # noqa: SIM115, the caller closes it
        try:
            self._run(_READ, self._absolute(path), str(_MOST_BYTES + 1), into=fetched)
            if fetched.seek(0, os.SEEK_END) > _MOST_BYTES:
                raise ToolError(f"{path} has more than {_MOST_BYTES} bytes, which are not fetched")
            fetched.seek(0)
        except BaseException:
            fetched.close()
            raise
        return fetched

    @contextmanager
    def open_write(self, path: str) -> Iterator[BinaryIO]:
        """Give a file that takes the place of the one at `path`, in one step, when the block ends.

        Raises IsADirectoryError for a path that names a directory.
        """
        if path.endswith(("/", "/.", "/..")):
            raise IsADirectoryError(f"{path} names a directory, not a file; leave its end out")
        with TemporaryFile() as draft:
            yield draft
            size = draft.tell()
            draft.seek(0)
            self._run(_WRITE, self._absolute(path), str(size), stdin=draft.fileno())

    def list(self, path: str = ".") -> Sequence[Entry]:
        """Return what is in a directory, sorted by name."""
        listed = self._run(_LIST, self._absolute(path)).split(b"\0")[:-1]
        found = (Entry(os.fsdecode(item[1:]), item[:1] == b"d", item[:1] == b"f") for item in listed)
        return tuple(sorted(found, key=lambda entry: entry.name))

    @contextmanager
    def open_folder(self, path: str = ".") -> Iterator["_RemoteFolder"]:
        """Give a directory."""
        folder = _RemoteFolder(self, self._absolute(path))
        folder.entries()
        yield folder

    def _absolute(self, path: str) -> str:
        check_text(path)
        return posixpath.join(self.root, path)

    def _run(self, script: str, *arguments: str, stdin: int | None = None, into: object = None) -> bytes:
        """Run a script there and return what it prints, or write that `into` a file. Raises what it means."""
        command = [*self.connect, shlex.join(["sh", "-c", script, "sh", *arguments])]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=subprocess.PIPE if into is None else into,  # type: ignore[call-overload]
                stderr=subprocess.PIPE,
                timeout=_TIMEOUT,
                start_new_session=True,
            )
        except subprocess.TimeoutExpired as error:
            raise ToolError(f"{self.connect[0]} did not answer within {_TIMEOUT:g} seconds") from error
        except OSError as error:
            raise CannotStart(f"cannot start {self.connect[0]!r}: {error.strerror}") from error
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip()[-500:]
            raise _ERRORS.get(done.returncode, ToolError)(
                said or f"{self.connect[0]} failed: exit code {done.returncode}"
            )
        return bytes(done.stdout or b"")


@frozen
class _RemoteFolder:
    """A directory there, by its path."""

    files: RemoteFiles
    path: str

    def entries(self) -> Sequence[Entry]:
        return self.files.list(self.path)

    def open(self, name: str) -> BinaryIO:
        return self.files.open_read(f"{self.path}/{name}")

    def folder(self, name: str) -> "AbstractContextManager[_RemoteFolder]":
        return self.files.open_folder(f"{self.path}/{name}")


@frozen
class RemoteCommands:
    """Runs commands on another machine. When the time is up the connection is ended, and what it started with it."""

    connect: tuple[str, ...]

    async def run(self, command: str, *, shell: tuple[str, ...], **how: Unpack[How]) -> Finished:
        """Run `command` there. Variables go along that are not as they are here; PATH, HOME and the like are theirs."""
        cwd, script = how["cwd"], encoded(command)
        check_text(cwd)
        sent = {name: value for name, value in how["env"].items() if os.environ.get(name) != value}
        exports = "".join(f"export {shlex.quote(f'{name}={value}')}\n" for name, value in sent.items())
        there = f"cd -- {shlex.quote(cwd)} || exit\n{exports}exec {shlex.join([*shell, SCRIPT_FROM_STDIN])}"
        here: How = {**how, "cwd": "/", "env": tool_environment()}
        return await run_process((*self.connect, shlex.join(["sh", "-c", there])), stdin=script, **here)
