"""Filters of system calls (seccomp, Linux): families of sockets, and what neither namespaces nor Landlock close."""

import platform
import struct
from collections.abc import Iterable

from attrs import frozen

FAMILY_UNIX, NETWORK_FAMILIES = 1, (2, 10, 16)  # IPv4, IPv6, Netlink

FILTERS = {"loopback": (FAMILY_UNIX, *NETWORK_FAMILIES), "network": NETWORK_FAMILIES}
"""The families of sockets that a command in namespaces may open, without and with a right to the network.

Sockets of Unix without a file belong to the network outside.
"""
WITHOUT_NAMESPACES = {"loopback": (), "network": NETWORK_FAMILIES}


@frozen
class Numbers:
    """The numbers of an architecture and of its system calls.

    never: add_key, request_key, keyctl, io_uring_setup. outside: those of System V's shared memory, semaphores and
    messages, and those that change owners or extended attributes; refused where no namespace confines them.
    """

    architecture: int
    socket: int
    ioctl: int
    never: tuple[int, ...]
    outside: tuple[int, ...]


NUMBERS = {
    "x86_64": Numbers(
        0xC000003E, 41, 16, (248, 249, 250, 425),
        (29, 30, 31, *range(64, 72), 220, 92, 93, 94, 260, 188, 189, 190, 197, 198, 199, 463, 466),
    ),
    "aarch64": Numbers(
        0xC00000B7, 198, 29, (217, 218, 219, 425), (*range(186, 198), 54, 55, 5, 6, 7, 14, 15, 16, 463, 466)
    ),
}  # fmt: skip
"""By machine. What a machine has that is not here has no filter, and so no sandbox but bubblewrap without one."""

LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
ALLOW, REFUSE, TYPING = 0x7FFF0000, 0x00050001, (0x5412, 0x541C)  # TIOCSTI, TIOCLINUX
NATIVE = 0x40000000  # system call numbers from here on belong to another ABI


def seccomp_filter(families: Iterable[int], *, namespaces: bool = True) -> bytes:
    """Return a filter: no sockets but of these families, no keys of the kernel, no typing into a terminal.

    Keys and the sockets of virtual machines have no namespaces, and io_uring would pass the filter by. Without
    `namespaces` shared memory of System V, changes of owners and of extended attributes are refused, too.
    """
    known = NUMBERS[platform.machine()]
    refused = (*known.never, *(() if namespaces else known.outside))
    typing = [step for request in TYPING for step in _if_equal(request, REFUSE)]
    kinds = [step for family in families for step in _if_equal(family, ALLOW)]
    program = [
        (LOAD, 0, 0, 4), (EQUAL, 1, 0, known.architecture), (RETURN, 0, 0, REFUSE),
        (LOAD, 0, 0, 0), (AT_LEAST, 0, 1, NATIVE), (RETURN, 0, 0, REFUSE),
        *(step for number in refused for step in _if_equal(number, REFUSE)),
        (EQUAL, 0, len(typing) + 2, known.ioctl), (LOAD, 0, 0, 24), *typing, (RETURN, 0, 0, ALLOW),
        (EQUAL, 0, len(kinds) + 2, known.socket), (LOAD, 0, 0, 16), *kinds, (RETURN, 0, 0, REFUSE),
        (RETURN, 0, 0, ALLOW),
    ]  # fmt: skip
    return b"".join(struct.pack("HBBI", *step) for step in program)


def _if_equal(value: int, answer: int) -> tuple[tuple[int, int, int, int], ...]:
    return (EQUAL, 0, 1, value), (RETURN, 0, 0, answer)
