"""The sandbox of one agent: adds the words that confine a command, and finds in its result what was blocked.

The level is determined once, by trying (`achieved`):

    bubblewrap    Linux with `bwrap`: namespaces
    namespaces    Linux without it: the same namespaces, made by a program of ours
    landlock      where the kernel lets no user make these, from 5.13 on: rules about files, no sockets
    none          nothing: commands run as they are, and the log says so

Commands, and those of an episode of the laboratory, also have limits of their resources, which the kernel enforces.
"""

import json
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import Literal, get_args
from weakref import finalize

from attrs import Factory, asdict, define, evolve, field, frozen, validators

from agent.tools.output import outputs_folder, size_in_words
from agent.tools.process import Finished
from agent.tools.programs import find_program
from agent.tools.sandbox import bubblewrap, launcher
from agent.tools.sandbox.bubblewrap import Namespaces, hold_loopback
from agent.tools.sandbox.masks import Masks
from agent.tools.sandbox.permissions import (
    CACHES,
    NETWORK,
    READ,
    SERVERS,
    UNCONFINED,
    WITHOUT_PERSON,
    WRITE,
    Confinement,
    cache_folder,
    hidden_places,
    hosts_of,
    kept_places,
    shown_by,
    writable_by,
)
from agent.tools.sandbox.proxy import Proxy, listen_in
from agent.tools.sandbox.put_back import Guard
from agent.tools.sandbox.repository import git_folders
from agent.tools.sandbox.seccomp import FILTERS, NUMBERS, WITHOUT_NAMESPACES, seccomp_filter
from agent.tools.sandbox.sockets import outer_sockets
from agent.tools.temporary import make_folder, make_lasting_folder
from agent.vocabulary.errors import CannotStart
from constitution.places import Places, is_within, place_of

# Limits of resources.

Resource = Literal["memory", "processes", "file_size", "cpu_time"]
RESOURCES: tuple[Resource, ...] = get_args(Resource)

MIB = 1024**2
GIB = 1024**3
RESERVED = 4  # processes of ours: those that hold the namespaces of an episode, and one that becomes a command
COUNTED = (5, 14)  # the first version of Linux that counts processes

WORDS: dict[Resource, tuple[str, ...]] = {
    "memory": ("MemoryError", "annot allocate memory", "out of memory", "memory exhausted"),
    "processes": ("Resource temporarily unavailable",),
    "file_size": ("File too large", "File size limit exceeded"),
    "cpu_time": ("CPU time limit exceeded",),
}
"""Messages of programs to which the kernel refused a resource."""

SIGNALS: dict[int, Resource] = {signal.SIGXFSZ: "file_size", signal.SIGXCPU: "cpu_time"}
AND_SIGNAL = 128  # shells add this to the number of the signal that ended a command


def _limit(default: int) -> int:
    made: int = field(default=default, validator=[validators.instance_of(int), validators.ge(1)])
    return made


@frozen
class ResourceLimits:
    """Limits enforced by the kernel, in bytes, processes, and seconds of CPU time.

    Memory, file size and time are limited for each process. Processes and threads are counted per user and user
    namespace, from Linux 5.14 on, except those of root; so an episode's PID namespace has about as many IDs.
    addresses: the address space of a process, in multiples of its memory; None: unlimited, as some runtimes need.
    """

    memory: int = _limit(1024 * MIB)
    processes: int = _limit(128)
    file_size: int = _limit(256 * MIB)
    cpu_time: int = _limit(60)
    addresses: int | None = 4

    def arguments(self) -> Iterator[str]:
        """Yield the arguments of `prlimit` that set them."""
        yield f"--data={self.memory}"
        yield from () if self.addresses is None else (f"--as={self.addresses * self.memory}",)
        yield f"--fsize={self.file_size}"
        yield f"--cpu={self.cpu_time}:{self.cpu_time + 1}"  # first SIGXCPU, which shows the reason, then SIGKILL
        yield "--core=0"
        if kernel_version() >= COUNTED:
            yield f"--nproc={self.processes + RESERVED}"

    def told(self, resource: Resource) -> str:
        """Return a limit in words."""
        return {
            "memory": f"{size_in_words(self.memory)} of memory",
            "processes": f"{self.processes} processes",
            "file_size": f"{size_in_words(self.file_size)} for each file",
            "cpu_time": f"{self.cpu_time} s of a processor for each process",
        }[resource]


LIMITS = ResourceLimits(memory=8 * GIB, processes=4096, file_size=16 * GIB, cpu_time=3600, addresses=None)
"""Limits of commands: far above ordinary work, and below what overloads a machine."""


def exhausted_by(finished: Finished) -> tuple[Resource, ...]:
    """Return the resources whose limits a command ran into, by its exit and its last output."""
    if not finished.exit_code and finished.signal is None:
        return ()
    ended = finished.signal if finished.signal is not None else (finished.exit_code or 0) - AND_SIGNAL
    said = finished.output + finished.errors
    spoken = (resource for resource, words in WORDS.items() if any(word in said for word in words))
    return tuple(dict.fromkeys([*([SIGNALS[ended]] if ended in SIGNALS else []), *spoken]))


def kernel_version() -> tuple[int, ...]:
    """Return the version of Linux: two numbers."""
    numbers = os.uname().release.split("-")[0].split(".")[:2]
    return tuple(int(number) for number in numbers if number.isdecimal())


# The sandbox of an agent.

Level = Literal["bubblewrap", "namespaces", "landlock", "none"]
LEVELS: tuple[Level, ...] = get_args(Level)
NAMESPACED: tuple[Level, ...] = ("bubblewrap", "namespaces")


@frozen
class Programs:
    """The paths of programs that start a command, outside the places that it may write; None for a missing one.

    python: our interpreter, which runs the text of `launcher`; that of a virtual environment leads to it.
    """

    bwrap: str | None
    nsenter: str | None
    prlimit: str | None
    python: str | None

    @classmethod
    def found(cls, writable: Iterable[str]) -> "Programs":
        """Return the programs on PATH."""
        names, places = ("bwrap", "nsenter", "prlimit", os.path.realpath(sys.executable)), tuple(writable)
        return cls(*(find_program(name, places) for name in names))

    def launcher(self, level: Level) -> tuple[str, ...]:
        """Return the words of the program that confines a command at this level. Raises CannotStart."""
        program = self.bwrap if level == "bubblewrap" else self.python
        if program is None:
            raise CannotStart(f"no program for the sandbox {level} lies outside the places that the agent may write")
        return (program,) if level == "bubblewrap" else (program, "-I", "-S", "-c", _text_of_launcher())


@cache
def _text_of_launcher() -> str:
    """Return the program as it was at the start: its file may be in a place that the agent writes."""
    return Path(launcher.__file__).read_text(encoding="utf-8")


OPEN_AT_LANDLOCK = (
    "see which processes run",
    "see what lies in /tmp",
    "change modes and times outside",
    "write the hooks of git",
    "read secrets in the workspace",
)


def open_at(level: Level) -> tuple[str, ...]:
    """Return what commands can do at a level of this machine, and cannot in namespaces, in words of the docs."""
    if level in NAMESPACED:
        return ()
    if level == "none":
        return ("everything that you can",)
    signals = () if launcher.landlock_version() >= launcher.SCOPED_FROM else ("signal a process",)
    return (*OPEN_AT_LANDLOCK, *signals)


def write_filters(level: Level, folder: str) -> None:
    """Write the filters of system calls of a level into the folder in which the scratch folder lies. Raises OSError."""
    families = FILTERS if level in NAMESPACED else WITHOUT_NAMESPACES
    for name, those in families.items() if platform.machine() in NUMBERS else ():
        Path(folder, name).write_bytes(seccomp_filter(those, namespaces=level in NAMESPACED))


FATAL = frozenset(signal.Signals) - {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE}  # also of shells

READ_ONLY = ("Read-only file system", "EROFS")
"""Names that the kernel, and programs after it, have for a place that the sandbox closed for writing."""


@define(eq=False)
class Sandbox:
    """Confines commands to `writable`, of which the first is the workspace.

    strict: no right is ever granted. level: what keeps them there. denied: places that are hidden, too. caches: the
    folder for caches; empty: they are in the scratch folder. scratch: the folder that stands for /tmp; it is removed
    with the sandbox, and so are the filters of system calls beside it. scratches: a folder in which it stays instead,
    if a file is in it. Programs that start a command are found when it is made. Raises CannotStart if the level lacks
    one. guard: keeps places that run later, if there is one.
    """

    writable: tuple[str, ...]
    level: Level
    denied: tuple[str, ...] = ()
    strict: bool = False
    limits: ResourceLimits = LIMITS
    programs: Programs = Factory(lambda made: Programs.found(made.writable), takes_self=True)
    caches: str = ""
    scratches: str = ""
    scratch: str = field(init=False)
    guard: Guard | None = field(init=False, default=None)
    _masks: Masks = field(init=False)
    _git: tuple[str, ...] = field(init=False)  # looked up once, so that no command moves what git may write
    _loopback: Namespaces | None = field(init=False, default=None)
    _proxy: Proxy | None = field(init=False, default=None)
    _lock: Lock = field(init=False, factory=Lock)

    def __attrs_post_init__(self) -> None:
        folder = make_lasting_folder(self.scratches) if self.scratches else make_folder("scratch")
        self.scratch = os.path.join(folder.path, "tmp")
        finalize(self, folder.remove)
        os.mkdir(self.scratch)
        self._masks = Masks(os.path.join(folder.path, "masks"), os.path.expanduser(self.writable[0]))
        self._git = git_folders(os.path.expanduser(self.writable[0]))
        if self.level != "none":
            write_filters(self.level, folder.path)
            self.programs.launcher(self.level)

    @property
    def guarded(self) -> tuple[str, ...]:
        """The places that commands may write, the folders of git included; links followed."""
        return tuple(
            dict.fromkeys((*(os.path.realpath(os.path.expanduser(path)) for path in self.writable), *self._git))
        )

    def guard_of(self, rights: Iterable[str]) -> Guard | None:
        """Return what keeps the places that run later from a command with these rights."""
        return self.guard if self.strict or UNCONFINED not in rights else None

    def prefix(self, cwd: str, rights: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the words before a command that starts in `cwd` with these rights; none if it is unconfined.

        Raises CannotStart if the folder is gone.
        """
        if not self._confines(rights):
            return ()
        inside = self.confinement(cwd, rights)
        joined = self._joined() if self.level in NAMESPACED and not inside.network else ()
        inside = evolve(inside, joined=bool(joined))
        return (*joined, *self._confining(inside), *self._limited())

    def _limited(self) -> tuple[str, ...]:
        prlimit = self.programs.prlimit
        return () if prlimit is None else (prlimit, *self.limits.arguments(), "--")

    def _confining(self, inside: Confinement) -> tuple[str, ...]:
        if self.level in NAMESPACED:
            return bubblewrap.confining(self.programs.launcher(self.level), inside)
        code = os.path.join(os.path.dirname(self.scratch), "network" if inside.network else "loopback")
        return (*self.programs.launcher("landlock"), "landlock", json.dumps(asdict(inside)), code)

    def _joined(self) -> tuple[str, ...]:
        """Return the words that make a command join the agent's loopback, which is created when needed."""
        with self._lock:
            if self._loopback is None or not self._loopback.is_held:
                self._loopback = hold_loopback(self.programs.launcher(self.level), self.programs.nsenter or "")
                if self._loopback is not None:
                    finalize(self, self._loopback.close)
            return () if self._loopback is None else self._loopback.words()

    def environment(self, given: Mapping[str, str], rights: Iterable[str] = ()) -> dict[str, str]:
        """Return the environment of such a command: no addresses of the user's servers, caches of ours, scratch.

        With rights to single hosts it names our proxy; what it opens has to be released. Raises CannotStart.
        """
        rights = tuple(rights)
        if not self._confines(rights):
            return dict(given)
        scratch = "/tmp" if self.level in NAMESPACED else self.scratch
        caches = self.caches or os.path.join(scratch, "caches")
        hosts = () if self.strict or self.level not in NAMESPACED else hosts_of(rights)
        return {
            **{name: value for name, value in given.items() if name not in SERVERS},
            **WITHOUT_PERSON,
            **{name: os.path.join(caches, folder) for name, folder in CACHES.items()},
            **self._masks.variables(given, self.scratch, scratch, self._private()),
            **(self._opened_proxy().grant(hosts) if hosts else {}),
            "TMPDIR": scratch,
        }

    def release(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        """End what an environment opened, with its command; return the hosts that our proxy refused to it."""
        return () if self._proxy is None else self._proxy.release(environment)

    def _opened_proxy(self) -> Proxy:
        joining = self._joined()
        with self._lock:
            if self._proxy is None:
                try:
                    self._proxy = Proxy(listen_in(joining, self.programs.python or sys.executable))
                except (OSError, subprocess.SubprocessError) as error:
                    raise CannotStart(f"the proxy to single hosts cannot be started: {error}") from error
                finalize(self, self._proxy.close)
            return self._proxy

    def _confines(self, rights: Iterable[str]) -> bool:
        return self.level != "none" and (self.strict or UNCONFINED not in rights)

    def confinement(self, cwd: str, rights: Iterable[str]) -> Confinement:
        """Return the permissions of a command in `cwd` with these rights."""
        rights = () if self.strict else tuple(rights)
        writable = tuple(os.path.realpath(os.path.expanduser(path)) for path in self.writable)
        if not os.path.isdir(self.scratch):
            raise CannotStart(f"the scratch folder {self.scratch} is gone; start the agent again")
        outputs = outputs_folder()
        hooks = [os.path.join(folder, "hooks") for folder in (*self._git, os.path.join(writable[0], ".git"))]
        named = [path for path in [os.path.join(writable[0], ".git")] if not os.path.islink(path)]
        kept = tuple(kept_places((*writable, *self._git), *hooks, os.path.dirname(self.scratch)))
        hidden = hidden_places(writable[0], os.path.realpath(os.path.expanduser("~")), self.denied)
        if self.level in NAMESPACED:  # Landlock leaves no sockets of Unix
            hidden += outer_sockets((*writable, *bubblewrap.REPLACED, *hidden))
        shown = shown_by(rights)
        masks = self._masks.over(path for path in self._private() if not any(is_within(path, each) for each in shown))
        closed = (*kept, *hidden, *(path for _, path in masks))
        granted = (os.path.realpath(path) for path in writable_by(rights) if os.path.exists(path))
        return Confinement(
            cwd=os.path.realpath(cwd),
            scratch=self.scratch,
            writable=tuple(path for path in (*writable, *self._git, *named, self.caches) if os.path.exists(path)),
            readable=() if outputs is None else (outputs,),
            hidden=hidden,
            granted=tuple(place for place in granted if not _is_open(place, writable, closed)),
            kept=kept,
            masks=masks,
            network=NETWORK in rights,
        )

    def _private(self) -> tuple[str, ...]:
        """Return the files of the workspace that are masked: secrets, at a level that can hide them."""
        return self.guard.private if self.guard is not None and self.level in NAMESPACED else ()

    def met(
        self, finished: Finished, rights: Iterable[str] = (), refused: Iterable[str] = ()
    ) -> tuple[Finished, tuple[str, ...], tuple[str, ...]]:
        """Return how a command ended, what is known to have been in its way, and lines for the model and the user.

        In the way are rights that were lacking, such as "read PATH" for a hidden file that was opened, and limits. Exit
        code 128 + N from bubblewrap may mean signal N or that exit code, unless bash printed which.
        """
        rights, code = tuple(rights), (finished.exit_code or 0) - AND_SIGNAL
        if not self._confines(rights):
            return finished, (), ()
        said, failed = finished.output + finished.errors, bool(finished.exit_code or finished.signal)
        if self.level in NAMESPACED and code in FATAL:
            if re.search(rf": line \d+: +\d+ {re.escape(signal.strsignal(code) or '')}\b", said):
                finished = evolve(finished, signal=code, exit_code=None)
            elif not finished.exited:
                finished = evolve(finished, signal=code)
        opened = tuple(READ + path for path in self._masks.opened())
        hosts = tuple(f"{NETWORK} {host}" for host in refused)
        limits = tuple(f"limit: {self.limits.told(resource)}" for resource in exhausted_by(finished))
        lines = [f"[blocked by the sandbox: {each}]" for each in (*hosts, *limits)]
        if opened:
            cure = "" if self.strict else f'; give the command again with rights=["{opened[0]}"]: the user is asked'
            lines.append(
                f"[blocked by the sandbox: {_listed(opened)} was an empty file, since it may hold secrets{cure}]"
            )
        elif failed or any(words in said for words in READ_ONLY):
            lines.append(self._closed(rights))
        return finished, (*opened, *hosts, *limits), tuple(lines)

    def _closed(self, rights: tuple[str, ...]) -> str:
        """Return a sentence about what is closed to a command with these rights."""
        scratch = "/tmp" if self.level in NAMESPACED else "$TMPDIR"
        own = [path for path in self.denied if is_within(path, self.writable[0])]
        closed = [
            *([] if NETWORK in rights else [f"the network ({NETWORK})"]),
            f"writing outside the workspace and {scratch} ({WRITE}PATH)",
            f"reading {_listed((*self._private(), *own, 'keys and logins of the user'))} ({READ}PATH)",
        ]
        cure = (
            "" if self.strict else "; give the command again with what it needs of these as `rights`: the user is asked"
        )
        return f"[blocked by the sandbox, if that was in the way: {', '.join(closed)}{cure}]"


MOST_LISTED = 10


def _listed(names: Sequence[str]) -> str:
    """Return paths or rights to read them as a list, at most a few."""
    shown = [name.removeprefix(READ) for name in names[:MOST_LISTED]]
    return ", ".join([*shown, *([f"{len(names) - MOST_LISTED} more"] if len(names) > MOST_LISTED else [])])


def _is_open(place: str, writable: Iterable[str], closed: Iterable[str]) -> bool:
    """Return whether a place can be written anyway; mounted again, it would uncover the closed ones in it."""
    return any(is_within(place, each) for each in writable) and not any(is_within(place, each) for each in closed)


def make_sandbox(
    wanted: str, writable: Iterable[str], denied: Iterable[str] = (), scratches: str = ""
) -> Sandbox | None:
    """Return the sandbox that a preset wants ("off", "on", "required", "strict"), None for none.

    Raises CannotStart if a required one is not achieved, or leaves secrets in the workspace open.
    """
    if wanted == "off":
        return None
    writable = tuple(writable)
    level = achieved(writable)
    made = Sandbox(
        writable, level, tuple(denied), strict=wanted == "strict", caches=_made(cache_folder(writable[0])),
        scratches=scratches,
    )  # fmt: skip
    made.guard = Guard(made.guarded)
    if wanted == "on":
        return made
    if level == "none":
        says = f"sandbox={wanted}, and nothing confines commands here: see `bpagent doctor`"
        raise CannotStart(f"{says}; give --sandbox off, and they run unconfined")
    if readable := open_secrets(level, writable[0]):
        raise CannotStart(
            f"sandbox={wanted}, and the level {level} cannot hide {', '.join(readable)} in the workspace; move them, "
            "install bubblewrap, or give --sandbox on, and commands can read them"
        )
    return made


MOST_NAMED = 5
MADE_OR_KEPT = frozenset([".git", "node_modules", ".venv", "venv", "__pycache__"])


def open_secrets(level: str, workspace: str) -> list[str]:
    """Return files of the workspace that hold secrets and that this level cannot hide, at most a few of them."""
    if level != "landlock":
        return []
    places, found = Places(workspace=workspace, home=os.path.expanduser("~")), list[str]()
    for folder, folders, names in os.walk(workspace):
        folders[:] = sorted(set(folders) - MADE_OR_KEPT)
        paths = (os.path.join(folder, name) for name in sorted(names))
        found += [os.path.relpath(path, workspace) for path in paths if place_of(path, places).name == "private"]
        if len(found) >= MOST_NAMED:
            break
    return found[:MOST_NAMED]


def _made(folder: str) -> str:
    """Return a folder, which is made if it is missing; empty if it cannot be written."""
    with suppress(OSError):
        os.makedirs(folder, exist_ok=True)
    return folder if os.access(folder, os.W_OK) else ""


# The level that this machine achieves.

LONGEST_PROBE = 60.0  # seconds, also enough for a busy machine: another level would make a resumed run ask again
ATTEMPTS = """
: > inside && echo works
{ echo 'a file outside can be written' >> "$1"; } 2>/dev/null
cat "$2" 2>/dev/null
exit 0
"""


def achieved(writable: Iterable[str] = ()) -> Level:
    """Return the level that this machine achieves for an agent that may write these places.

    It is tried at the first call, in about 20 milliseconds.
    """
    programs = Programs.found(writable)
    return next((level for level in LEVELS[:-1] if why_not(level, programs) == ""), "none")


@lru_cache(maxsize=64)
def why_not(level: Level, programs: Programs | None = None) -> str:
    """Return why a level is not achieved here, found by attempts to escape; empty if it is."""
    if level == "landlock" and not launcher.landlock_version():
        return "this kernel has no Landlock (Linux 5.13)"
    programs = programs or Programs.found(())
    if level == "bubblewrap" and programs.bwrap is None:
        return "there is no program bwrap; install the package bubblewrap"
    if level == "namespaces" and sys.platform != "linux":
        return "this is not Linux"
    try:
        with make_folder("probe", os.path.expanduser("~")) as folder:
            return _tried(level, programs, folder)
    except (OSError, subprocess.SubprocessError, CannotStart) as error:
        return str(error)


def _tried(level: Level, programs: Programs, folder: str) -> str:
    """Return the failures of a test command in a sandbox: forbidden operations that work, required ones that fail."""
    workspace, canary, secret = (os.path.join(folder, name) for name in ("workspace", "canary", "secret"))
    os.mkdir(workspace)
    for path in (canary, secret):
        with open(path, "w") as file:
            file.write("a hidden file can be read\n" if path == secret else "")
    made = Sandbox((workspace,), level, denied=(secret,), programs=programs)
    command = (*made.prefix(workspace), "sh", "-c", ATTEMPTS, "sh", canary, secret)
    done = subprocess.run(
        command, cwd=workspace, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LONGEST_PROBE,
        check=False,
    )  # fmt: skip
    with open(canary) as file:
        said = (done.stdout + file.read()).splitlines()
    if said == ["works"]:
        return ""
    return "; ".join(line for line in said if line != "works") or done.stderr.strip()[:200] or "a command did not run"
