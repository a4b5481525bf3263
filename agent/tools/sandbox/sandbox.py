"""The sandbox of one agent: adds the words that confine a command, and finds in its result what was blocked.

The level is determined once, by trying (`achieved`):

    bubblewrap    Linux with `bwrap`: namespaces
    landlock      Linux without it, from 5.13 on: rules about files, no sockets
    seatbelt      macOS: `sandbox-exec`, not tried by us
    none          nothing: commands run as they are, and the log says so

Commands, and those of an episode of the laboratory, also have limits of their resources, which the kernel enforces.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from threading import Lock
from typing import Literal, get_args
from weakref import finalize

from attrs import asdict, define, evolve, field, frozen, validators

from agent.tools.output import outputs_folder, size_in_words
from agent.tools.process import Finished
from agent.tools.sandbox import bubblewrap, landlock
from agent.tools.sandbox.bubblewrap import Namespaces, hold_loopback
from agent.tools.sandbox.egress import words_inside, words_outside
from agent.tools.sandbox.permissions import (
    NETWORK,
    SERVERS,
    UNCONFINED,
    Confinement,
    hidden_places,
    hosts_of,
    kept_places,
    writable_by,
)
from agent.tools.temporary import make_folder, make_lasting_folder, remove_abandoned
from agent.vocabulary.errors import CannotStart

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

Level = Literal["bubblewrap", "landlock", "seatbelt", "none"]
LEVELS: tuple[Level, ...] = get_args(Level)

FATAL = frozenset(signal.Signals) - {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE}  # also of shells

IN_THE_WAY = {
    NETWORK: (
        "Could not resolve host", "Temporary failure in name resolution", "Name or service not known",
        "Network is unreachable", "Network unreachable", "getaddrinfo", "No address associated with hostname",
        "Could not resolve proxy", "failed to lookup address", "dial tcp", "ENETUNREACH", "EAI_AGAIN",
        "blocked by the sandbox: network", "403 from proxy", "CONNECT tunnel failed, response 403",
    ),
    "write": ("Read-only file system", "EROFS"),
}  # fmt: skip
"""Messages of programs that could not reach a host or write a file, by what the sandbox refused."""


@define(eq=False)
class Sandbox:
    """Confines commands to `writable`, of which the first is the workspace.

    strict: no right is ever granted. level: what keeps them there. denied: places that are hidden, too. scratch: the
    folder that stands for /tmp; it is removed with the sandbox, and so are the filters of system calls beside it.
    scratches: a folder in which it stays instead, if anything is in it.
    """

    writable: tuple[str, ...]
    level: Level
    denied: tuple[str, ...] = ()
    strict: bool = False
    limits: ResourceLimits = LIMITS
    scratches: str = ""
    scratch: str = field(init=False)
    _loopback: Namespaces | None = field(init=False, default=None)
    _lock: Lock = field(init=False, factory=Lock)

    def __attrs_post_init__(self) -> None:
        folder = make_lasting_folder(self.scratches) if self.scratches else make_folder("scratch")
        self.scratch = os.path.join(folder.path, "tmp")
        finalize(self, folder.remove)
        os.mkdir(self.scratch)
        if self.level == "bubblewrap":
            bubblewrap.write_filters(folder.path)

    def prefix(self, cwd: str, rights: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the words before a command that starts in `cwd` with these rights; none if it is unconfined.

        Raises CannotStart if the folder is gone.
        """
        if not self._confines(rights):
            return ()
        inside, hosts = self.confinement(cwd, rights), () if self.strict else hosts_of(rights)
        joined = self._joined() if self.level == "bubblewrap" and not inside.network else ()
        inside = evolve(inside, joined=bool(joined))
        if not hosts or self.level != "bubblewrap":
            return (*joined, *_confining(self.level, inside), *self._limited())
        everywhere, prefix = os.path.realpath("/tmp"), "bpagent-egress-"  # invisible to other commands
        remove_abandoned(prefix, everywhere)
        folder = f"{everywhere}/{prefix}{os.urandom(8).hex()}"
        words = _confining("bubblewrap", evolve(inside, egress=folder))
        return (*words_outside(folder, hosts), *joined, *words, *self._limited(), *words_inside())

    def _limited(self) -> tuple[str, ...]:
        program = _prlimit()
        return () if program is None else (program, *self.limits.arguments(), "--")

    def _joined(self) -> tuple[str, ...]:
        """Return the words that make a command join the agent's loopback, which is created when needed."""
        with self._lock:
            if self._loopback is None or not self._loopback.is_held:
                self._loopback = hold_loopback()
                if self._loopback is not None:
                    finalize(self, self._loopback.close)
            return () if self._loopback is None else self._loopback.words()

    def environment(self, given: Mapping[str, str], rights: Iterable[str] = ()) -> dict[str, str]:
        """Return the environment of such a command: without addresses of the user's servers; TMPDIR is scratch."""
        if not self._confines(rights):
            return dict(given)
        scratch = "/tmp" if self.level == "bubblewrap" else self.scratch
        return {**{name: value for name, value in given.items() if name not in SERVERS}, "TMPDIR": scratch}

    def _confines(self, rights: Iterable[str]) -> bool:
        return self.level != "none" and (self.strict or UNCONFINED not in rights)

    def confinement(self, cwd: str, rights: Iterable[str]) -> Confinement:
        """Return the permissions of a command in `cwd` with these rights."""
        rights = () if self.strict else tuple(rights)
        writable = tuple(os.path.realpath(os.path.expanduser(path)) for path in self.writable)
        if not os.path.isdir(self.scratch):
            raise CannotStart(f"the scratch folder {self.scratch} is gone; start the agent again")
        kept = outputs_folder()
        return Confinement(
            cwd=os.path.realpath(cwd),
            scratch=self.scratch,
            writable=tuple(path for path in writable if os.path.exists(path)),
            readable=() if kept is None else (kept,),
            hidden=hidden_places(writable[0], os.path.realpath(os.path.expanduser("~")), self.denied),
            granted=tuple(os.path.realpath(path) for path in writable_by(rights) if os.path.exists(path)),
            kept=tuple(kept_places(writable, os.path.dirname(self.scratch))),
            network=NETWORK in rights,
        )

    def met(self, finished: Finished, rights: Iterable[str] = ()) -> tuple[Finished, tuple[str, ...]]:
        """Return how a command ended, and what blocked it if it failed, by its output: "network", "write", or a limit.

        Exit code 128 + N from bubblewrap may mean signal N or that exit code, unless bash printed which.
        """
        rights, code = tuple(rights), (finished.exit_code or 0) - AND_SIGNAL
        if not self._confines(rights) or not (finished.exit_code or finished.signal):
            return finished, ()
        said = finished.output + finished.errors
        if self.level == "bubblewrap" and code in FATAL:
            if re.search(rf": line \d+: +\d+ {re.escape(signal.strsignal(code) or '')}\b", said):
                finished = evolve(finished, signal=code, exit_code=None)
            elif not finished.exited:
                finished = evolve(finished, signal=code)
        closed = (name for name in IN_THE_WAY if name not in rights)
        named = tuple(name for name in closed if any(words in said for words in IN_THE_WAY[name]))
        return finished, (*named, *(f"limit: {self.limits.told(resource)}" for resource in exhausted_by(finished)))

    def cures(self, met: Iterable[str]) -> Iterator[str]:
        """Yield lines for the model and the user about what blocked a command, with the cure."""
        for name in met:
            right = {NETWORK: NETWORK, "write": "write /ABSOLUTE/PATH"}.get(name)
            asking = f'; if it is necessary, ask the user for it: give the command again with rights=["{right}"]'
            yield f"[blocked by the sandbox: {name}{asking if right and not self.strict else ''}]"


def make_sandbox(
    wanted: Literal["off", "on", "strict"], writable: Iterable[str], denied: Iterable[str] = (), scratches: str = ""
) -> Sandbox | None:
    """Return the sandbox that a preset wants, None for none. Raises CannotStart if "strict" is not achieved."""
    if wanted == "off":
        return None
    level = achieved()
    if wanted == "strict" and level == "none":
        raise CannotStart("sandbox=strict, and this machine has no sandbox: see `bpagent doctor`, or give --sandbox on")
    return Sandbox(tuple(writable), level, tuple(denied), strict=wanted == "strict", scratches=scratches)


def _confining(level: Level, inside: Confinement) -> tuple[str, ...]:
    match level:
        case "bubblewrap":
            return bubblewrap.confining(inside)
        case "landlock":
            return (sys.executable, "-I", "-S", landlock.__file__, json.dumps(asdict(inside)))
    return ("sandbox-exec", "-p", "\n".join(_seatbelt_profile(inside)))


SEATBELT_SINKS = ("/dev/null", "/dev/zero", "/dev/tty", "/dev/dtracehelper")


def _seatbelt_profile(inside: Confinement) -> Iterator[str]:
    """Yield the lines of a profile for `sandbox-exec -p`; later ones win. Written from its documentation, untested."""
    yield from ("(version 1)", "(allow default)", "(deny file-write*)")
    yield f"(allow file-write* {_below((*inside.writable, inside.scratch))} {_below(SEATBELT_SINKS, 'literal')})"
    if inside.kept:
        yield f"(deny file-write* {_below(inside.kept)})"
    if inside.hidden:
        yield f"(deny file-read* file-write* {_below(inside.hidden)})"
    if inside.granted:
        yield f"(allow file-read* file-write* {_below(inside.granted)})"
    yield from ("(deny signal)", "(allow signal (target same-sandbox))", "(deny mach-lookup)", "(deny appleevent-send)")
    if not inside.network:
        yield from ("(deny network*)", '(allow network* (local ip "localhost:*"))')
        yield '(allow network-outbound (remote ip "localhost:*"))'


def _below(places: Iterable[str], kind: str = "subpath") -> str:
    quoted = (place.replace("\\", "\\\\").replace('"', '\\"') for place in places)
    return " ".join(f'({kind} "{place}")' for place in quoted)


@lru_cache(maxsize=1)
def _prlimit() -> str | None:
    return shutil.which("prlimit")


# The level that this machine achieves.

LONGEST_PROBE = 60.0  # seconds, also enough for a busy machine: another level would make a resumed run ask again
ATTEMPTS = """
: > inside && echo works
{ echo 'a file outside can be written' >> "$1"; } 2>/dev/null
cat "$2" 2>/dev/null
exit 0
"""


@lru_cache(maxsize=1)
def achieved() -> Level:
    """Return the level that this machine achieves; tried at the first call, in about 20 milliseconds."""
    return next((level for level in LEVELS[:-1] if why_not(level) == ""), "none")


@lru_cache(maxsize=len(LEVELS))
def why_not(level: Level) -> str:
    """Return why a level is not achieved here, found by attempts to escape; empty if it is."""
    missing = _missing(level)
    if missing:
        return missing
    try:
        with make_folder("probe", os.path.expanduser("~")) as folder:
            return _tried(level, folder)
    except (OSError, subprocess.SubprocessError, CannotStart) as error:
        return str(error)


def _missing(level: Level) -> str:
    match level:
        case "bubblewrap":
            return "" if shutil.which("bwrap") else "there is no program bwrap; install the package bubblewrap"
        case "landlock":
            return "" if landlock.version() else "this kernel has no Landlock (Linux 5.13)"
        case "seatbelt":
            return "" if sys.platform == "darwin" and shutil.which("sandbox-exec") else "this is not macOS"
    return ""


def _tried(level: Level, folder: str) -> str:
    """Return the failures of a test command in a sandbox: forbidden operations that work, required ones that fail."""
    workspace, canary, secret = (os.path.join(folder, name) for name in ("workspace", "canary", "secret"))
    os.mkdir(workspace)
    for path in (canary, secret):
        with open(path, "w") as file:
            file.write("a hidden file can be read\n" if path == secret else "")
    made = Sandbox((workspace,), level, denied=(secret,))
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
