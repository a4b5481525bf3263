"""Landlock with seccomp, for Linux without bubblewrap: a program that confines itself and becomes the command.

    python -I -S landlock.py CONFINEMENT COMMAND ...

CONFINEMENT is JSON: a `Confinement`. Landlock has no exceptions, so for a folder with a hidden place in it the other
entries are listed, and the folder itself cannot be read; within the workspace nothing is hidden or kept. /tmp is not
replaced: scratch is the folder in TMPDIR. There are no namespaces: a command sees that other processes exist, but can
neither inspect nor signal them (from Linux 6.12 on). It can open sockets only if the network was granted, and never
Unix sockets.
"""

import ctypes
import json
import os
import platform
import signal
import struct
import sys
from collections.abc import Iterable, Iterator

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446
READING = 0b1101  # execute, read files, list folders
ALL_BY_VERSION = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
OF_FILES = 0b111 | 1 << 14  # rights of a rule for a single file: execute, write, read, truncate
SCOPED_FROM, SCOPED = 6, 0b11  # abstract sockets, signals

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 38, 22, 2
NUMBERS = {  # of the architecture, socket, ioctl; and of add_key, request_key, keyctl, io_uring_setup
    "x86_64": (0xC000003E, 41, 16, (248, 249, 250, 425)),
    "aarch64": (0xC00000B7, 198, 29, (217, 218, 219, 425)),
}
LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, REFUSE, TYPING = 0x7FFF0000, 0x00050001, (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
FAMILY_UNIX, NETWORK_FAMILIES = 1, (2, 10, 16)  # IPv4, IPv6, Netlink
CAPABILITIES = 0x20080522  # the version of the structures
SINKS = ("/dev/null", "/dev/zero", "/dev/full")
NATIVE = 0x40000000  # system call numbers from here on belong to another ABI


def version() -> int:
    """Return the Landlock version of this kernel; 0 for none."""
    if sys.platform != "linux" or platform.machine() not in NUMBERS:
        return 0
    found: int = ctypes.CDLL(None, use_errno=True).syscall(CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    return max(found, 0)


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
    libc, abi = ctypes.CDLL(None, use_errno=True), version()
    handled = ALL_BY_VERSION[min(abi, 3)]
    ruleset = struct.pack("QQQ", handled, 0, SCOPED if abi >= SCOPED_FROM else 0)
    size = 24 if abi >= SCOPED_FROM else 8
    descriptor = _succeed(libc.syscall(CREATE_RULESET, ruleset, ctypes.c_size_t(size), 0))
    for places, access in ((readable, READING), (writable, handled)):
        for place in places:
            _allow(libc, descriptor, place, access)
    _succeed(libc.syscall(RESTRICT_SELF, descriptor, 0))
    os.close(descriptor)


def _allow(libc: ctypes.CDLL, ruleset: int, place: str, access: int) -> None:
    try:
        opened = os.open(place, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # gone meanwhile
    if not os.path.isdir(place):
        access &= OF_FILES
    _succeed(libc.syscall(ADD_RULE, ruleset, 1, struct.pack("=Qi", access, opened), 0))
    os.close(opened)


def seccomp_filter(families: Iterable[int]) -> bytes:
    """Return a filter for seccomp: no sockets but of these families, no keys of the kernel, no typing into a terminal.

    Keys and the sockets of virtual machines have no namespaces, and io_uring would pass the filter by.
    """
    architecture, socket, ioctl, refused = NUMBERS[platform.machine()]
    typing = [step for request in TYPING for step in _if_equal(request, REFUSE)]
    kinds = [step for family in families for step in _if_equal(family, ALLOW)]
    program = [
        (LOAD, 0, 0, 4), (EQUAL, 1, 0, architecture), (RETURN, 0, 0, REFUSE),
        (LOAD, 0, 0, 0), (AT_LEAST, 0, 1, NATIVE), (RETURN, 0, 0, REFUSE),
        *(step for number in refused for step in _if_equal(number, REFUSE)),
        (EQUAL, 0, len(typing) + 2, ioctl), (LOAD, 0, 0, 24), *typing, (RETURN, 0, 0, ALLOW),
        (EQUAL, 0, len(kinds) + 2, socket), (LOAD, 0, 0, 16), *kinds, (RETURN, 0, 0, REFUSE),
        (RETURN, 0, 0, ALLOW),
    ]  # fmt: skip
    return b"".join(struct.pack("HBBI", *step) for step in program)


def _if_equal(value: int, answer: int) -> tuple[tuple[int, int, int, int], ...]:
    return (EQUAL, 0, 1, value), (RETURN, 0, 0, answer)


def _keep_to(code: bytes) -> None:
    buffer = ctypes.create_string_buffer(code)
    filtered = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    _succeed(libc.prctl(PR_SET_SECCOMP, FILTER, filtered, 0, 0))


def drop_capabilities() -> None:
    """Drop the capabilities of root, with which it could inspect other processes."""
    header, none = struct.pack("II", CAPABILITIES, 0), bytes(24)
    libc = ctypes.CDLL(None, use_errno=True)
    _succeed(libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))  # so that the command does not get them back
    _succeed(libc.capset(header, none))


def _succeed(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def given_environment() -> dict[str, str]:
    """Return the environment from before Python set LC_CTYPE, as it does in the C locale. Raises OSError."""
    with open("/proc/self/environ", "rb") as file:
        entries = os.fsdecode(file.read()).split("\0")
    return dict(entry.split("=", 1) for entry in entries if "=" in entry)


def main(argv: list[str]) -> None:
    """Confine this process, and become the command."""
    inside, environment = json.loads(argv[0]), given_environment()
    drop_capabilities()
    writable = (*inside["writable"], *inside["granted"], inside["scratch"], *SINKS)
    restrict([*without("/", inside["hidden"])], writable)
    _keep_to(seccomp_filter(NETWORK_FAMILIES if inside["network"] else ()))
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python
        signal.signal(ignored, signal.SIG_DFL)
    os.execvpe(argv[1], argv[1:], environment)


if __name__ == "__main__":
    main(sys.argv[1:])
