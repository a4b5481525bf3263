"""What was fetched a moment ago and is then run: clones, unpacked archives, packages."""

import re
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.shell.flow import Flow, Origin
from constitution.tables import is_a
from constitution.tables.programs import read_line

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["BUILDS", "CLONE_TAKES", "builds", "clone", "installs", "unpack"]

CLONE_TAKES = frozenset("-b --branch --depth -o --origin -c --config --reference -j --filter -u".split())  # noqa: SIM905
REMOTE = re.compile(r"^(?:(?:https?|git|ssh|ftp)://(?!localhost|127\.)|[\w.-]+@[\w.-]+:|gh:|[\w.-]+\.[a-z]+:)")

BUILDS = re.compile(
    r"^(make|gmake|cmake|ninja|meson|scons|rake|just|task|tox|nox|ant|mvn|gradle|bazel|configure|install|build|setup"
    r"|(npm|pnpm|yarn|bun)( (i|ci|install|run|test|start|build|exec|x|add))?|(pip|pip3|pipx|uv pip|poetry|pdm)"
    r" (install|run)"
    r"|(cargo|go|dotnet|swift|stack|cabal|zig|dub|nimble|mix|sbt) (build|run|test|install|generate)|bundle"
    r" (install|exec)"
    r"|composer install|gem (build|install)|docker (build|compose)|docker-compose|vagrant up|terraform apply"
    r"|ansible-playbook"
    r"|easy_install|python setup\.py)\b"
)
"""Commands that run what stands in the files of a folder."""


def clone(examination: "Examination", words: list[str], walk: "Walk") -> None:
    """`git clone URL [FOLDER]`: what is in the folder is somebody else's."""
    operands = read_line(words, CLONE_TAKES).operands
    if operands and REMOTE.match(operands[0]):
        name = operands[0].rstrip("/").removesuffix(".git").replace(":", "/").rpartition("/")[2]
        examination.contents.fetched_folder(operands[1] if len(operands) > 1 else name, walk)


def unpack(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`tar xf FILE`, `unzip FILE`, `curl ... | tar x`: an archive that was fetched leaves a folder that was."""
    line = read_line(argv[1:], frozenset(["-f", "--file", "-C", "--directory", "-d", "-o"]))
    files = (*line.value_of("-f", "--file"), *line.operands)
    flows = [examination.content(file, walk) for file in files] + [stdin]
    if any(flow.origin is Origin.FETCHED for flow in flows):
        for folder in line.value_of("-C", "--directory", "-d") or (".",):
            examination.contents.fetched_folder(folder, walk)


def builds(examination: "Examination", name: str, argv: list[str], walk: "Walk") -> None:
    """A tool that runs what the files of a folder say, in a folder, or on one, that was fetched a moment ago."""
    if not examination.contents.fetched:
        return
    if BUILDS.match(" ".join([name, *argv[1:3]])) and examination.contents.is_fetched([".", *argv[1:]], walk):
        examination.found(Effect.RUN_CLONED_CODE, walk, program=name, says="run code that was cloned a moment ago")


def installs(examination: "Examination", name: str, argv: list[str], walk: "Walk") -> None:
    """`dpkg -i FILE`: a package that was fetched a moment ago runs scripts as it is installed."""
    for word in argv[1:] if is_a(name, "installer") else ():
        if examination.content(word, walk).origin is Origin.FETCHED:
            examination.found(Effect.RUN_FETCHED_CODE, walk, program=name)
