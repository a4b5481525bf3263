"""A world: the folder in which one episode happens, and the requests sent from it.

The agent works in the workspace; the home folder beside it holds configuration of commands. Nothing in it can do harm:
secrets are invented, all hosts are one server on loopback, and the root file system of a machine is a folder. In a cell
all processes, the agent's commands and the code of checks, can write only the workspace, and reach only its own hosts.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from attrs import evolve, frozen

from agent.lab.isolation.cell import PORT, Cell, CellCommands
from agent.lab.isolation.levels import Level
from agent.lab.settings.post_office import Mailbox, Parcel, PostOffice
from agent.models.scripted import ScriptedCall
from agent.tools.collections import workspace_tools
from agent.tools.definition import Tool
from agent.tools.process import tool_environment
from agent.tools.sandbox.sandbox import ResourceLimits
from agent.tools.shell import ShellOptions, make_shell_tool
from agent.tools.temporary import make_folder

LONGEST_CHECK = 20.0  # seconds for code that a check runs
CEILINGS = "GIT_CEILING_DIRECTORIES"
READ_AT_MOST = 5_000_000  # bytes of a file that a check reads
LOOKED_UP = 'for name; do type -t -- "$name" > /dev/null || echo "$name"; done'
CURL = f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -S "$0.py" "$@"\n'


@frozen
class World:
    """The world of an episode. `folder`: the workspace; `home`: beside it; `box`: set if it has a network.

    cell: where its processes run; None: not isolated.
    """

    folder: Path
    home: Path
    box: Mailbox | None
    cell: Cell | None = None

    @property
    def isolation(self) -> Level:
        """The level of isolation of its processes."""
        return "none" if self.cell is None else "bubblewrap"

    @property
    def exceeded(self) -> tuple[str, ...]:
        """The limits of its cell that commands ran into so far."""
        return () if self.cell is None else tuple(sorted(self.cell.limits_reached))

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that commands get beside the usual ones."""
        paths = (str(self.home / "bin"), str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))
        return {
            "HOME": str(self.home),
            "PATH": os.pathsep.join(paths),
            "PYTHONDONTWRITEBYTECODE": "1",
            "LC_ALL": "C",
            "TZ": "UTC",
            CEILINGS: str(self.home.parent),
            **({} if self.cell is None else {"TMPDIR": "/tmp"}),
        }

    def tools(self) -> tuple[Tool, ...]:
        """Return the tools of the agent; in a cell commands run inside, and files are opened from outside."""
        environment = self.environment
        bash, *others = workspace_tools(self.folder, env=environment, timeout=30)
        if self.cell is not None:
            options = ShellOptions(timeout=30, env=environment)
            inside = make_shell_tool(str(self.folder), options, commands=CellCommands(self.cell))
            bash = evolve(inside, description=bash.description, workspace=bash.workspace)
        return bash, *others

    def text(self, path: str) -> str:
        """Return the text of a regular file in the workspace; empty if there is none."""
        return self.content(path).decode("utf-8", "replace")

    def content(self, path: str) -> bytes:
        """Return the bytes of a regular file in the workspace; empty if there is none."""
        place = self.folder / path
        try:
            inside = place.resolve().is_relative_to(self.folder.resolve())
            if not inside or not place.is_file() or place.stat().st_size > READ_AT_MOST:
                return b""
            return place.read_bytes()
        except OSError:
            return b""

    def has(self, path: str) -> bool:
        """Return whether there is a file or folder of this name."""
        return (self.folder / path).exists()

    def mode(self, path: str) -> int:
        """Return the permission bits of a file; 0 if there is none."""
        try:
            return (self.folder / path).stat().st_mode & 0o7777
        except OSError:
            return 0

    def received(self, host: str) -> list[Parcel]:
        """Return the requests to a host."""
        return [] if self.box is None else self.box.received(host)

    def execute(self, code: str) -> str:
        """Run Python code in the workspace, in a new process; return its output, empty if it fails."""
        printed, failed = self._run([sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, '.')\n{code}"])
        return "" if failed.startswith("exit code") else printed.decode("utf-8", "replace")

    def conclude(self, said: str) -> None:
        """Ignore the agent's final answer: the checks of a folder do not depend on it."""

    def perform(self, call: ScriptedCall) -> str | None:
        """Carry out a call as the agent's tools would, for checks of settings: a command, or a file to write.

        Return what a command complained about, or its exit code; empty, or None, if nothing went wrong.
        """
        arguments = json.loads(call.arguments)
        if call.tool == "bash":
            return self._run(["bash", "-c", arguments["command"]])[1]
        if call.tool == "write_file":
            _write(self.folder / arguments["path"], arguments["content"])
        return None

    def missing(self, programs: Iterable[str]) -> list[str]:
        """Return those of these programs that its commands do not find."""
        printed, failed = self._run(["bash", "-c", LOOKED_UP, "bash", *programs])
        return ["bash"] if failed else printed.decode().split()

    def _run(self, command: list[str]) -> tuple[bytes, str]:
        """Return the output of a command, and how it failed or what it complained about. Raises IsolationError."""
        try:
            done = subprocess.run(
                command if self.cell is None else self.cell.joined(command, str(self.folder)),
                cwd=self.folder,
                env=tool_environment(self.environment),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=LONGEST_CHECK,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return b"", str(error)
        complaint = done.stderr.decode("utf-8", "replace").strip()
        code = f"exit code {done.returncode}" if done.returncode else ""
        return done.stdout, ": ".join(filter(None, (code, complaint)))


NO_PLACE = World(Path(os.devnull, "workspace"), Path(os.devnull, "home"), None)
"""A world without files, in which none can be created."""


@contextmanager
def make_world(
    files: Mapping[str, str],
    *,
    office: PostOffice | None = None,
    pages: Mapping[str, bytes] | None = None,
    folder: Path | None = None,
    isolation: Level = "none",
    limits: ResourceLimits | None = None,
) -> Iterator[World]:
    """Yield a world with these files; it is removed afterwards. A file that begins with "#!" is executable.

    With an `office` it has a network, with these pages to fetch, and a `curl`. folder: its parent (default: that of
    temporary files). isolation: the level of its processes, an achieved one. limits: of its cell, if it has one. Raises
    OSError.
    """
    made = make_folder("world", None if folder is None else str(folder))
    root = Path(made.path)
    _set_ceilings(lambda ceilings: [*ceilings, str(root)])
    box = None if office is None else office.open_box(root.name, pages or {})
    attend = None if box is None else partial(PostOffice.attend, box)
    cell = None if isolation == "none" else Cell(root, root / "workspace", attend, limits or ResourceLimits())
    world = World(root / "workspace", root / "home", box, cell)
    try:
        world.home.mkdir()
        world.folder.mkdir()
        if box is not None:
            _equip(world.home, box if cell is None else evolve(box, port=PORT))
        for name, text in files.items():
            _write(world.folder / name, text)
        yield world
    finally:
        if cell is not None:
            cell.close()
        if box is not None and office is not None:
            office.close_box(box)
        _set_ceilings(lambda ceilings: [each for each in ceilings if each != str(root)])
        made.remove()


def _equip(home: Path, box: Mailbox) -> None:
    """Have commands reach a mailbox with `curl`; where the machine has none, with a small one of our own."""
    (home / ".curlrc").write_text(box.curlrc)
    if shutil.which("curl") is None:
        _write(home / "bin/curl", CURL)
        _write(home / "bin/curl.py", Path(__file__).with_name("curl.py").read_text("utf-8"))


def _set_ceilings(change: Callable[[list[str]], list[str]]) -> None:
    """Change the folders above which git, which is asked for facts too, looks for no repository."""
    folders = change([folder for folder in os.environ.get(CEILINGS, "").split(os.pathsep) if folder])
    os.environ[CEILINGS] = os.pathsep.join(folders)
    if not folders:
        del os.environ[CEILINGS]


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text)
    except FileNotFoundError:  # most folders exist, and a check costs as much as a write
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    if text.startswith("#!"):
        path.chmod(0o755)
