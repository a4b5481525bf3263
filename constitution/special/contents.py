"""Commands that make files whose content is known: downloads, copies, `tee`."""

from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.shell.flow import Flow, Origin
from constitution.special.sending import request
from constitution.tables.programs import own_takes, read_line

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["copy", "curl", "tee", "wget"]

FETCHED_FILE = Flow(Origin.FETCHED)
COPY_TAKES = frozenset("-t --target-directory -S --suffix -m --mode -o --owner -g --group".split())  # noqa: SIM905


def curl(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`curl -o FILE URL`, `curl -O URL`."""
    request(examination, name, argv, stdin, walk)
    line = read_line(argv[1:], own_takes("curl"))
    files = list(line.value_of("-o", "--output"))
    if line.flags & {"-O", "--remote-name", "-J", "--remote-name-all"}:
        files += [_last_part(url) for url in line.operands]
    for file in files:
        examination.wrote(file, FETCHED_FILE, walk)


def wget(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`wget -O FILE URL`, `wget URL`, `wget -P FOLDER URL`; `aria2c` and `axel` are taken alike."""
    request(examination, name, argv, stdin, walk)
    line = read_line(argv[1:], own_takes("wget"))
    files = list(line.value_of("-O", "--output-document", *(["-o", "--out"] if name != "wget" else [])))
    folders = line.value_of("-P", "--directory-prefix", *(["-d", "--dir"] if name == "aria2c" else [])) or (".",)
    files = files or [f"{folder}/{_last_part(url)}" for folder in folders for url in line.operands]
    for file in files:
        examination.wrote(file, FETCHED_FILE, walk)


def copy(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`cp A B`, `mv A B`, `ln A B`: what is known about A is known about B."""
    line = read_line(argv[1:], COPY_TAKES)
    folders = line.value_of("-t", "--target-directory")
    sources, target = (line.operands, folders[0]) if folders else (line.operands[:-1], "".join(line.operands[-1:]))
    for source in sources if name == "mv" and target == "/dev/null" else ():
        examination.found(Effect.DELETE_TREE, walk, program=name, path=source)
    for source in sources:
        for copied in (target, f"{target}/{_last_part(source)}"):
            examination.copied(source, copied, walk)


def tee(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`tee FILE`: its input goes into files."""
    for file in read_line(argv[1:], frozenset()).operands:
        examination.wrote(file, stdin, walk)


def _last_part(url: str) -> str:
    return url.partition("?")[0].rstrip("/").rpartition("/")[2]
