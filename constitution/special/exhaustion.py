"""What fills a disk or the memory without end: endless sources into files, huge sizes, loops that only append."""

import re
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.shell.flow import Flow, Origin
from constitution.tables.programs import read_line

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["ENDLESS_FILES", "HUGE", "copy_blocks", "into_memory", "size_of", "sized"]

ENDLESS_FILES = frozenset(["/dev/zero", "/dev/urandom", "/dev/random", "/dev/full"])
HUGE = 100 * 2**30
"""Bytes: nobody writes as much by the way."""

FACTORS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50, "E": 60}
SIZE = re.compile(r"^[+<>/%]?(\d+)([KMGTPE]?)(?:i?B)?$", re.I)
FILLS = "fill the disk without end"


def size_of(text: str) -> int:
    """Return the bytes that a size stands for, as in `10G`; 0 where it is none."""
    match = SIZE.match(text)
    if match is None or len(match[1]) > 30:
        return 0
    return int(match[1]) << FACTORS[match[2].upper()]


SIZED = frozenset("-s --size -l --length -c --bytes -n -b".split())  # noqa: SIM905


def sized(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`fallocate -l SIZE`, `truncate -s SIZE`, `head -c SIZE`, `mkfile SIZE`, `seq LAST`."""
    line = read_line(argv[1:], SIZED)
    sizes = [*line.value_of("-s", "--size", "-l", "--length", "-c", "--bytes"), *line.operands]
    if any(size_of(size) >= HUGE for size in sizes):
        examination.found(Effect.FILL, walk, program=name, says=FILLS)


def copy_blocks(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`dd`: an endless source into a file, without a count, or with a huge one."""
    settings = dict(word.split("=", 1) for word in argv[1:] if "=" in word)
    source, target = settings.get("if", ""), settings.get("of", "")
    if not target or target.startswith("/dev/"):
        return
    endless = source in ENDLESS_FILES or (not source and stdin.origin is Origin.ENDLESS)
    size = (size_of(settings.get("bs", "512")) or 512) * size_of(settings.get("count", "0"))
    if size >= HUGE or (endless and not size):
        examination.found(Effect.FILL, walk, program=name, says=FILLS)


def into_memory(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`tail /dev/zero`, `yes | sort`: programs that keep all they read."""
    if stdin.origin is Origin.ENDLESS or ENDLESS_FILES.intersection(argv[1:]):
        if name == "tail" and any(word.startswith(("-c", "-f", "--bytes")) for word in argv[1:]):
            return
        examination.found(Effect.EXHAUST, walk, program=name, says="use up the memory")
