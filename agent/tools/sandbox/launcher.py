"""A program that confines itself and becomes a command, where there is no bubblewrap.

It is started for each command, so it imports little, and of the standard library only.

    python -I -S launcher.py OPTIONS -- COMMAND ...                namespaces; OPTIONS as for bubblewrap
    python -I -S launcher.py landlock CONFINEMENT FILTER COMMAND ...

The first makes a user, mount and PID namespace, and further ones, as bubblewrap would with the same options; it knows
those that `bubblewrap.confining` and `hold_loopback` use. The second uses Landlock and seccomp alone.

CONFINEMENT is JSON: a `Confinement`. Landlock has no exceptions, so for a folder with a hidden place in it the other
entries are listed, and the folder itself cannot be read; within the workspace nothing is hidden or kept. /tmp is not
replaced: scratch is the folder in TMPDIR. A command sees that other processes exist, but can neither inspect nor signal
them (from Linux 6.12 on). It can open sockets only if the network was granted, and never Unix sockets.
"""

import _socket
import ctypes
import fcntl
import json
import os
import signal
import struct
import sys
from collections.abc import Iterable, Iterator

libc = ctypes.CDLL(None, use_errno=True)

PR_SET_NAME, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 15, 38, 22, 2
CAPABILITIES = 0x20080522  # the version of the structures


def main(argv: list[str]) -> None:
    """Confine this process, and become the command."""
    environment = given_environment()
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT):  # by Python
        if signal.getsignal(ignored) in (signal.SIG_IGN, signal.default_int_handler):
            signal.signal(ignored, signal.SIG_DFL)
    if argv[0] == "landlock":
        command = confine_by_landlock(json.loads(argv[1]), argv[2], argv[3:])
    else:
        command = confine_by_namespaces(argv)
    os.execvpe(command[0], command, environment)


def given_environment() -> dict[str, str]:
    """Return the environment from before Python set LC_CTYPE, as it does in the C locale. Raises OSError."""
    with open("/proc/self/environ", "rb") as file:
        entries = os.fsdecode(file.read()).split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def drop_capabilities() -> None:
    """Drop the capabilities of root, with which it could inspect other processes."""
    header, none = struct.pack("II", CAPABILITIES, 0), bytes(24)
    _succeed(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))  # so that the command does not get them back
    _succeed(libc.capset(header, none))


def keep_to(code: bytes) -> None:
    """Install a filter of system calls. Raises OSError."""
    buffer = ctypes.create_string_buffer(code)
    filtered = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    _succeed(libc.prctl(PR_SET_SECCOMP, FILTER, filtered, 0, 0))


def _succeed(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


# Namespaces.

CLONE = {
    "--unshare-user": 0x10000000, "--unshare-pid": 0x20000000, "--unshare-net": 0x40000000, "--unshare-ipc": 0x08000000,
    "--unshare-uts": 0x04000000, "--unshare-cgroup-try": 0,
}  # fmt: skip
NEW_USER, NEW_MOUNTS = 0x10000000, 0x00020000
ARGUMENTS = {
    "--bind": 2, "--ro-bind": 2, "--ro-bind-try": 2, "--dev-bind": 2, "--tmpfs": 1, "--dev": 1, "--proc": 1,
    "--remount-ro": 1, "--size": 1, "--chdir": 1, "--seccomp": 1, "--info-fd": 1, "--cap-drop": 1,
}  # fmt: skip
"""The number of arguments of each option that is not in `CLONE`."""

NO_SUID, NO_DEVICES, NO_PROGRAMS, BIND, RECURSIVE, SLAVE, DETACH = 2, 4, 8, 0x1000, 0x4000, 1 << 19, 2
READ_ONLY_ATTRIBUTE, WITH_ALL_BELOW, HERE = 1, 0x8000, -100
MOUNT_SETATTR, PIVOT_ROOT = 442, {"x86_64": 155, "aarch64": 41}
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
LINKS = {
    "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}  # fmt: skip
SET_FLAGS, IS_UP = 0x8914, 1  # SIOCSIFFLAGS
OLD, NEW = "/old", "/new"
NAME = b"namespaces"  # of the processes that hold a command's namespaces, as `descendants` knows them

Step = tuple[str, tuple[str, ...]]


def confine_by_namespaces(argv: list[str]) -> list[str]:
    """Return, in namespaces as the options say, the command; the processes that stay outside never return."""
    end = argv.index("--")
    steps = list(_steps(argv[:end]))
    options = {name: words for name, words in steps if len(words) <= 1}
    kinds = NEW_MOUNTS | sum(CLONE[name] for name in options if name in CLONE)
    user, group = os.geteuid(), os.getegid()
    _succeed(libc.unshare(kinds))
    as_root = "--dev" in options  # whose terminals no other user may mount
    _map_ids("/proc/self", (0 if as_root else user, user), (0 if as_root else group, group))
    libc.prctl(PR_SET_NAME, NAME, 0, 0, 0)
    if "--unshare-net" in options:
        _raise_loopback()
    saying = _stay_outside(int(options["--info-fd"][0]) if "--info-fd" in options else None)
    processes = _make_files(steps)
    if user and as_root:  # its own IDs again, for which there is a namespace in the one that could mount
        _succeed(libc.unshare(NEW_USER))
        _map_ids(processes, (user, 0), (group, 0))
    if "--cap-drop" in options:
        drop_capabilities()
    if "--seccomp" in options:
        with open(int(options["--seccomp"][0]), "rb") as code:
            keep_to(code.read())
    _be_the_first(saying)
    os.chdir(options.get("--chdir", (os.curdir,))[0])
    return argv[end + 1 :]


def _steps(words: list[str]) -> Iterator[Step]:
    while words:
        count = 0 if words[0] in CLONE else ARGUMENTS[words[0]]
        yield words[0], tuple(words[1 : count + 1])
        words = words[count + 1 :]


def _map_ids(process: str, user: tuple[int, int], group: tuple[int, int]) -> None:
    for name, words in (("setgroups", ("deny",)), ("uid_map", (*user, 1)), ("gid_map", (*group, 1))):
        with open(f"{process}/{name}", "w") as file:
            file.write(" ".join(map(str, words)))


def _raise_loopback() -> None:
    any_socket = _socket.socket()
    fcntl.ioctl(any_socket.fileno(), SET_FLAGS, struct.pack("16sh14x", b"lo", IS_UP))
    any_socket.close()


def _stay_outside(telling: int | None) -> int:
    """Return in the first process of the PID namespace, where to write the exit code; outside end with that code."""
    hearing, saying = os.pipe()
    first = os.fork()
    if not first:
        os.close(hearing)
        return saying
    os.close(saying)
    if telling is not None:
        os.write(telling, json.dumps({"child-pid": first}).encode())
        os.close(telling)
    status = os.read(hearing, 1)
    os._exit(status[0] if status else 1)


def _be_the_first(saying: int) -> None:
    """Return in the process that becomes the command; the first process reaps all others, and ends after the last."""
    command = os.fork()
    if not command:
        return
    while True:
        try:
            ended, status = os.wait()
        except ChildProcessError:
            os._exit(0)
        if ended == command:
            code = os.waitstatus_to_exitcode(status)
            os.write(saying, bytes([code if code >= 0 else 128 - code]))
            os.close(saying)


def _make_files(steps: list[Step]) -> str:
    """Make the steps' files the root of this mount namespace; return a descriptor's path of /proc as it was outside."""
    mask = os.umask(0)
    sources = {words[0]: os.path.realpath(words[0]) for name, words in steps if len(words) > 1}
    _mount("none", "/", "", SLAVE | RECURSIVE)
    _mount("tmpfs", "/tmp", "tmpfs", NO_SUID | NO_DEVICES)
    for folder in (OLD, NEW):
        os.mkdir(f"/tmp{folder}")
    _mount(f"/tmp{NEW}", f"/tmp{NEW}", "", BIND | RECURSIVE)
    _pivot("/tmp", f"/tmp{OLD}")
    size = ""
    for name, words in steps:
        size = words[0] if name == "--size" else _made(name, words, sources, size)
    outside = os.open(f"{OLD}/proc", os.O_PATH)
    _succeed(libc.umount2(OLD.encode(), DETACH))
    os.chdir(NEW)
    _pivot(".", ".")
    _succeed(libc.umount2(b".", DETACH))
    os.chdir("/")
    os.umask(mask)
    return f"/proc/self/fd/{outside}/self"


def _made(name: str, words: tuple[str, ...], sources: dict[str, str], size: str) -> str:
    """Carry out one step; return the size of the next file system in memory, which is none."""
    place = NEW + words[-1] if words else ""
    if "bind" in name:
        _bind(OLD + sources[words[0]], place, name)
    elif name == "--tmpfs":
        _mount("tmpfs", _folder(place), "tmpfs", NO_SUID | NO_DEVICES, f"mode=0755{size and ',size='}{size}")
    elif name == "--proc":
        _mount("proc", _folder(place), "proc", NO_SUID | NO_DEVICES | NO_PROGRAMS)
    elif name == "--dev":
        _make_devices(place)
    elif name == "--remount-ro":
        _set_attributes(place, READ_ONLY_ATTRIBUTE, 0)
    return ""


def _bind(source: str, place: str, name: str) -> None:
    if name.endswith("-try") and not os.path.lexists(source):
        return
    if os.path.isdir(source):
        _folder(place)
    elif not os.path.lexists(place):
        _folder(os.path.dirname(place))
        os.close(os.open(place, os.O_CREAT, 0o666))
    _mount(source, place, "", BIND | RECURSIVE)
    attributes = NO_SUID if name == "--dev-bind" else NO_SUID | NO_DEVICES
    _set_attributes(place, attributes | (READ_ONLY_ATTRIBUTE if name.startswith("--ro-") else 0), WITH_ALL_BELOW)


def _make_devices(place: str) -> None:
    _mount("tmpfs", _folder(place), "tmpfs", NO_SUID, "mode=0755,size=65536")
    for name in DEVICES:
        _bind(f"{OLD}/dev/{name}", f"{place}/{name}", "--dev-bind")
    for name, target in LINKS.items():
        os.symlink(target, f"{place}/{name}")
    options = "newinstance,ptmxmode=0666,mode=620"
    _mount("devpts", _folder(f"{place}/pts"), "devpts", NO_SUID | NO_PROGRAMS, options)


def _folder(place: str) -> str:
    os.makedirs(place, 0o755, exist_ok=True)
    return place


def _mount(source: str, place: str, kind: str, flags: int, options: str = "") -> None:
    words = (os.fsencode(word) if word else None for word in (source, place, kind))
    if libc.mount(*words, ctypes.c_ulong(flags), options.encode() or None) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), place)


def _set_attributes(place: str, attributes: int, flags: int) -> None:
    wanted = struct.pack("QQQQ", attributes, 0, 0, 0)
    _succeed(libc.syscall(MOUNT_SETATTR, HERE, os.fsencode(place), flags, wanted, ctypes.c_size_t(len(wanted))))


def _pivot(root: str, old: str) -> None:
    _succeed(libc.syscall(PIVOT_ROOT[os.uname().machine], root.encode(), old.encode()))
    os.chdir("/")


# Landlock.

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
READING = 0b1101  # execute, read files, list folders
ALL_BY_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
OF_FILES = 0b111 | 1 << 14  # rights of a rule for a single file: execute, write, read, truncate
SCOPED_FROM, SCOPED = 6, 0b11  # abstract sockets, signals
SINKS = ("/dev/null", "/dev/zero", "/dev/full")
SHARED_MEMORY = "/dev/shm"


def landlock_version() -> int:
    """Return the Landlock version of this kernel; 0 for none."""
    if sys.platform != "linux":
        return 0
    found: int = libc.syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    return max(found, 0)


def confine_by_landlock(inside: dict[str, list[str]], code: str, command: list[str]) -> list[str]:
    """Restrict this process to what a `Confinement` permits; return the command. Raises OSError."""
    drop_capabilities()
    writable = (*inside["writable"], *inside["granted"], str(inside["scratch"]), *SINKS)
    with open(code, "rb") as file:
        filtering = file.read()
    restrict([*without("/", [*inside["hidden"], SHARED_MEMORY])], writable)
    keep_to(filtering)
    return command


def without(root: str, hidden: Iterable[str]) -> Iterator[str]:
    """Yield places that together are all of `root` except the `hidden` ones."""
    inner = [place for place in hidden if place == root or place.startswith(root.rstrip("/") + "/")]
    if not inner:
        yield root
    elif root not in inner:
        try:
            names = os.listdir(root)
        except OSError:
            return
        for name in names:
            if not os.path.islink(path := os.path.join(root, name)):
                yield from without(path, inner)


def restrict(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Restrict this process and its children to reading and writing these places. Raises OSError."""
    abi = landlock_version()
    handled = ALL_BY_VERSION[min(abi, 3)]
    ruleset = struct.pack("QQQ", handled, 0, SCOPED if abi >= SCOPED_FROM else 0)
    size = 24 if abi >= SCOPED_FROM else 8
    descriptor = _succeed(libc.syscall(CREATE_RULESET, ruleset, ctypes.c_size_t(size), 0))
    for places, access in ((readable, READING), (writable, handled)):
        for place in places:
            _allow(descriptor, place, access)
    _succeed(libc.syscall(RESTRICT_SELF, descriptor, 0))
    os.close(descriptor)


def _allow(ruleset: int, place: str, access: int) -> None:
    try:
        opened = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # gone meanwhile
    if not os.path.isdir(place):
        access &= OF_FILES
    _succeed(libc.syscall(ADD_RULE, ruleset, 1, struct.pack("=Qi", access, opened), 0))
    os.close(opened)


if __name__ == "__main__":
    main(sys.argv[1:])
