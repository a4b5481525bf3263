"""What runs later, or by a tool that reads it from a file of its own: schedules, startup files, recipes of make."""

import re
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.shell.flow import Flow
from constitution.special.shells import run_file, run_input
from constitution.tables.programs import read_line
from constitution.zones import UNKNOWN

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["at", "cmake", "crontab", "make", "scripts_of"]

CRON_TIMES = re.compile(r"^\s*(?:@\w+|(?:[\d*/,\-A-Za-z]+\s+){5})\s*(.*)$")
UNIT_LINE = re.compile(r"(?m)^\s*Exec\w*\s*=\s*[-@:+!]*(.*)$")
CRON_FILE = re.compile(r"/cron(\.d|tab)(/|$)|/cron/")
PLIST_WORDS = re.compile(r"<string>(/[^<]*)</string>")
UNIT_FILE = re.compile(r"\.(desktop|service|timer|socket|path|plist)$")
MAKE_TAKES = frozenset("-f --file --makefile -C --directory -j -I -o -W -l --eval -E".split())  # noqa: SIM905
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")


def scripts_of(path: str, text: str) -> list[str]:
    """Return the shell text in the content of a file that is run later: of a schedule, of a unit, or all of it."""
    lines = text.replace("\\n", "\n")  # what `echo` makes of it depends on the shell
    if CRON_FILE.search(path):
        with_user = re.search(r"^/etc/cron", path) is not None
        jobs = [match[1] for line in lines.splitlines() if (match := CRON_TIMES.match(line))]
        return [job.partition(" ")[2] if with_user and " " in job else job for job in jobs]
    if UNIT_FILE.search(path):
        return UNIT_LINE.findall(lines) + PLIST_WORDS.findall(lines)
    return [text] if text == lines else [text, lines]


def crontab(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`crontab FILE`, `crontab -`, `crontab -r`: the jobs in it are judged as far as they are known."""
    line = read_line(argv[1:], frozenset(["-u"]))
    if "-r" in line.flags:
        says = "delete every scheduled job"
        examination.found(Effect.DELETE, walk, program=name, path="/var/spool/cron/crontabs", says=says)
    if line.flags & {"-l", "-r", "-e"}:
        return

    def read(flow: Flow) -> None:
        for script in scripts_of("/cron/", flow.text):
            examination.discoveries.placed(lambda script=script: walk.nested(script))  # type: ignore[misc]

    for file in line.operands or ("-",):
        if file == "-":
            read(stdin)
        else:
            examination.discoveries.placed(
                lambda file=file: examination.found(Effect.EXECUTE, walk, program=name, path=file)  # type: ignore[misc]
            )
            examination.run_written(file, walk, read)


def at(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`at TIME`: the input is a script that runs later; so is the file behind `-f`."""
    for file in read_line(argv[1:], frozenset(["-f", "-q", "-t"])).value_of("-f"):
        run_file(examination, name, file, walk, walk.nested)
    if not {"-l", "-c", "-r", "-d"} & set(argv):
        run_input(examination, name, stdin, walk, walk.nested)


def make(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`make -f FILE`, `make --eval TEXT`: recipes that the command itself writes are judged."""
    line = read_line(argv[1:], MAKE_TAKES)
    folders = line.value_of("-C", "--directory") or (".",)

    def read(text: str) -> None:
        for recipe in _recipes(text):
            walk.nested(recipe)

    for word in argv[1:]:
        if word.startswith("SHELL="):
            walk.nested(word.removeprefix("SHELL="))
    for text in line.value_of("--eval", "-E"):
        read(text.replace("\\n", "\n"))
    for file in line.value_of("-f", "--file", "--makefile"):
        if file in ("-", "/dev/stdin"):
            run_input(examination, name, stdin, walk, read)
        else:
            run_file(examination, name, file, walk, read)
    for file in MAKEFILES:
        for folder in folders:
            examination.run_written(
                f"{folder}/{file}", walk, lambda flow: run_input(examination, name, flow, walk, read)
            )


def _recipes(text: str) -> list[str]:
    """Return the shell lines of a makefile: behind a tab, behind `;` in a rule, and in `$(shell ...)`."""
    recipes = re.findall(r"\$\(shell\s+(.*?)\)", text)
    lines = re.sub(r"\\\n", " ", text).splitlines()
    for line in lines:
        rule = re.match(r"\s*[\w.%/ -]+::?[^=]*?;(.*)", line)
        if line.startswith("\t") or rule:
            recipes.append((rule[1] if rule and not line.startswith("\t") else line).strip().lstrip("@-+"))
    return [_without_variables(recipe) for recipe in recipes]


def _without_variables(recipe: str) -> str:
    """Return a recipe as the shell gets it; what make would put in is not known."""
    recipe = re.sub(r"\$[({](HOME|USER|PATH)[)}]", r"$$\1", recipe)
    recipe = re.sub(r"\$[({](CURDIR|PWD)[)}]", ".", recipe)
    unknown = re.sub(r"\$\([^()]*\)|\$\{[^{}]*\}|\$[@<^?*%]", UNKNOWN, recipe.replace("$$", "\ue005"))
    return unknown.replace("\ue005", "$").replace(UNKNOWN, "$_UNKNOWN_")


def cmake(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`cmake -E COMMAND`: its own spelling of cp, rm, env and others."""
    if "-E" in argv[1:-1]:
        command = argv[argv.index("-E") + 1 :]
        plain = {"remove": "rm", "remove_directory": "rm", "copy": "cp", "rename": "mv", "make_directory": "mkdir"}
        words = [plain.get(command[0], command[0]), *(["-r"] if command[0] == "remove_directory" else []), *command[1:]]
        examination.examine(words, stdin, walk)
