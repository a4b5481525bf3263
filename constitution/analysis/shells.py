"""Shells and builtins: scripts that they run now or later, and changes of the shell's state."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from constitution.analysis.file_flow import scripts_of
from constitution.analysis.output import output_of
from constitution.analysis.steps import (
    Change,
    Command,
    Found,
    Placed,
    Read,
    Runs,
    Script,
    Set,
    Started,
    Steps,
    What,
    as_script,
)
from constitution.effects import UNKNOWN, Effect
from constitution.shell.scope import Flow, Origin
from constitution.tables import is_a, pattern
from constitution.tables.rows import read_line
from constitution.zones import resolve

INPUTS = ("-", "/dev/stdin", "/proc/self/fd/0", "/dev/fd/0")


def shell(command: Command) -> Steps:
    """`sh -c TEXT`, `sh FILE`, and a shell that reads its script from its input."""
    line = read_line(
        [_plus(word) for word in command.argv[1:]], frozenset(("-o", "--rcfile", "--init-file", "-O")), to_operand=True
    )
    if command.name in ("pwsh", "powershell"):
        yield from power_shell(command)
        return
    for file in line.value_of("--rcfile", "--init-file"):
        yield Found(Effect.CONFIGURE_TOOL, says="make the shell run a file first")
        yield from run_file(file, as_script)
    if "-c" in line.flags:
        if line.operands:
            yield from start_themselves(line.operands[0])
            yield Script(line.operands[0], command.stdin, line.operands[2:])
        return
    if line.flags & {"--version", "--help", "-n"}:
        return
    yield from run_script(() if "-s" in line.flags else line.operands, command.stdin, as_script)


PS_FETCHES = pattern(r"(?i)DownloadString|DownloadFile|Invoke-WebRequest|Invoke-RestMethod|\b(iwr|irm|curl|wget)\b")
PS_RUNS = pattern(r"(?i)\b(iex|Invoke-Expression|Start-Process|Invoke-Command|ScriptBlock)\b")


def power_shell(command: Command) -> Steps:
    """`pwsh -Command TEXT`: text that parses as a command of any shell is judged, and all of it needs approval."""
    line = command.read("-c -Command -File -f", long_style=True)
    text = " ".join((*line.value_of("-c", "-Command"), *line.operands))
    encoded = any(flag.lower().startswith("-e") and not flag.lower().startswith("-ex") for flag in line.flags)
    if encoded or (PS_FETCHES.search(text) and PS_RUNS.search(text)):
        yield Found(Effect.RUN_FETCHED_CODE)
    if text:
        yield Found(Effect.RISKY_CODE, says="run PowerShell code")
        yield Script(text.replace("Remove-Item", "rm").replace("$env:HOME", "$HOME").replace("-Recurse", "-r"))


ITSELF = pattern(r"(?:^|[;&|\n]\s*)[\"']?\$(?:0|\{0\}|BASH_SOURCE)[\"']?[^;\n&|]*[&|](?![&|])")


def start_themselves(text: str) -> Steps:
    """A script that starts `$0` in the background, or in a pipe."""
    if ITSELF.search(text):
        yield Found(Effect.FORK_BOMB, says="start itself again and again")


def _plus(word: str) -> str:
    return "-" + word[1:] if word.startswith("+") and len(word) > 1 else word


def run_file(file: str, read: Read | None = None) -> Steps:
    """A file is run as a script. Content that the command itself writes to it is read."""
    if not file.startswith("/dev/fd/"):
        yield Found(Effect.EXECUTE, path=file)
    yield Change(What.BEGUN, (file,))
    if read is not None:
        yield Runs(file, lambda flow: run_input(flow, read))


def run_script(words: Sequence[str], stdin: Flow, read: Read) -> Steps:
    """`sh FILE`, `sh -`, `sh`: run the file named by the first word, or else the input."""
    if words and words[0] not in INPUTS:
        yield from run_file(words[0], read)
    else:
        yield from run_input(stdin, read)


def run_input(stdin: Flow, read: Read) -> Steps:
    """Code from a pipe: known text is read, downloaded or decoded text is reported."""
    if stdin.origin is Origin.TEXT:
        yield from start_themselves(stdin.text)
        yield from read(stdin.text)
    elif stdin.origin in (Origin.FETCHED, Origin.DECODED):
        yield Found(Effect.RUN_FETCHED_CODE)
    elif stdin.origin is Origin.FILE:
        for file in stdin.names:
            yield Found(Effect.EXECUTE, path=file)
    elif stdin.origin is not Origin.NOTHING:
        yield Found(Effect.RUN_UNKNOWN_CODE)
        if stdin.text:
            yield from read(stdin.text)


def source(command: Command) -> Steps:
    """`source FILE` and `. FILE`; without a file, fish reads the input."""
    yield from run_script(command.argv[1:], command.stdin, as_script)


MAKE_TOOLS = frozenset("SHELL CC CXX CPP LD AR AS RM CP MV INSTALL PYTHON NODE GO CARGO MAKE LEX YACC TAR".split())  # noqa: SIM905
MAKEFILES = ("GNUmakefile", "makefile", "Makefile")


def crontab(command: Command) -> Steps:
    """`crontab FILE`, `crontab -`, `crontab -r`: known jobs are judged."""
    line = command.read("-u")
    if "-r" in line.flags:
        yield Found(Effect.DELETE, path="/var/spool/cron/crontabs", says="delete every scheduled job")
    if line.flags & {"-l", "-r", "-e"}:
        return

    def read(flow: Flow) -> Steps:
        for script in scripts_of("/cron/", flow.text):
            yield Placed((Script(script),))

    for file in line.operands or ("-",):
        if file == "-":
            yield from read(command.stdin)
        else:
            yield Placed((Found(Effect.EXECUTE, path=file),))
            yield Runs(file, read)


def at(command: Command) -> Steps:
    """`at TIME`, `at -f FILE`: the input or the file is a script that runs later."""
    for file in command.read("-f -q -t").value_of("-f"):
        yield from run_file(file, as_script)
    if not {"-l", "-c", "-r", "-d"} & set(command.argv):
        yield from run_input(command.stdin, as_script)


def make(command: Command) -> Steps:
    """`make -f FILE`, `make --eval TEXT`: recipes written by the script itself are judged."""
    line = command.read("-f --file --makefile -C --directory -j -I -o -W -l --eval -E")
    folders = line.value_of("-C", "--directory") or (".",)

    def read(text: str) -> Steps:
        for recipe in _recipes(text):
            yield Script(recipe)

    yield from _make_settings(command.argv[1:])
    for text in line.value_of("--eval", "-E"):
        yield from read(text.replace("\\n", "\n"))
    for file in line.value_of("-f", "--file", "--makefile"):
        yield from run_script([file], command.stdin, read)
    for file in MAKEFILES:
        for folder in folders:
            yield Runs(f"{folder}/{file}", lambda flow: run_input(flow, read))


def _make_settings(words: list[str]) -> Steps:
    for word in words:
        name, equals, value = word.partition("=")
        if equals and (name in MAKE_TOOLS or name.endswith("!")):
            yield Script(value)
        elif equals and "$" in value:
            yield from map(Script, _recipes(value))
        if name in ("MAKEFLAGS", "GNUMAKEFLAGS") and re.search(r"eval|-f|-C|-I", value):
            yield Found(Effect.RISKY_CODE, says="run make with other options")
        if word.startswith(UNKNOWN):
            yield Found(Effect.UNKNOWN_COMMAND, says="take options or targets that are not known in advance")


def _recipes(text: str) -> list[str]:
    """Return the shell lines of a makefile: after a tab, after `;` in a rule, and in `$(shell ...)`."""
    recipes = re.findall(r"\$\(shell\s+(.*?)\)", text)
    lines = re.sub(r"\\\n", " ", text).splitlines()
    for line in lines:
        rule = re.match(r"\s*[\w.%/ -]+::?[^=]*?;(.*)", line)
        if line.startswith("\t") or rule:
            recipes.append((rule[1] if rule and not line.startswith("\t") else line).strip().lstrip("@-+"))
    return [_without_variables(recipe) for recipe in recipes]


def _without_variables(recipe: str) -> str:
    """Return a recipe as the shell gets it, with make's variables unknown."""
    recipe = re.sub(r"\$[({](HOME|USER|PATH)[)}]", r"$$\1", recipe)
    recipe = re.sub(r"\$[({](CURDIR|PWD)[)}]", ".", recipe)
    unknown = re.sub(r"\$\([^()]*\)|\$\{[^{}]*\}|\$[@<^?*%]", UNKNOWN, recipe.replace("$$", "\ue005"))
    return unknown.replace("\ue005", "$").replace(UNKNOWN, "$_UNKNOWN_")


def cmake(command: Command) -> Steps:
    """`cmake -E COMMAND`: its variants of cp, rm, env and others."""
    if "-E" in command.argv[1:-1]:
        first, *rest = command.argv[command.argv.index("-E") + 1 :]
        plain = {"remove": "rm", "remove_directory": "rm", "copy": "cp", "rename": "mv", "make_directory": "mkdir"}
        words = [plain.get(first, first), *(["-r"] if first == "remove_directory" else []), *rest]
        yield Started(words, command.stdin)


def change_folder(command: Command) -> Steps:
    """`cd DIR`, `pushd DIR`: relative paths start there from now on."""
    operands = [word for word in command.argv[1:] if word not in ("-P", "-L", "-e", "-@", "--")]
    target = operands[0] if operands else "~"
    at_home = target == "~" or target.startswith("~/")
    scope = command.scope
    behind_links = "-P" in command.argv and BACK.search(target) is not None
    is_elsewhere = command.name == "popd" or target == "-" or target.startswith("+") or behind_links
    if is_elsewhere or (at_home and UNKNOWN in scope.home):
        yield Change(What.MOVED, (UNKNOWN,))
    else:
        folders = (resolve(target, cwd=cwd, home=scope.home) for cwd in scope.cwd)
        yield Change(What.MOVED, tuple(folders))


BACK = pattern(r"[^./][^/]*/+\.\.(/|$)")
"""A path with `..` after a folder, which may be a link."""


def read_variables(command: Command) -> Steps:
    """`read`, `mapfile`, `getopts`: variables get the input."""
    value = command.stdin.names if command.stdin.origin is Origin.NAMES else (UNKNOWN,)
    if command.stdin.origin is Origin.TEXT and len(command.stdin.text.splitlines()) <= 8:
        value = tuple(command.stdin.text.splitlines()) or (UNKNOWN,)
    line = command.read("-a -d -i -n -N -p -t -u -C -c -O -s")
    for script in line.value_of("-C") if command.name in ("mapfile", "readarray") else ():
        yield Script(f"{script} 0 $_UNKNOWN_")
    operands = (*line.operands, *(line.value_of("-a") if command.name == "read" else ()))
    yield from _evaluated(word for word in operands if not word.isidentifier())
    names = [word for word in operands if word.isidentifier()] or ["REPLY", "MAPFILE"]
    for variable in names:
        known = len(names) == 1 and value != (UNKNOWN,)
        yield Set(variable, value if known else (UNKNOWN,), text=not known and command.name != "getopts")


def _evaluated(names: Iterable[str]) -> Steps:
    """Words that a builtin takes as names of variables: commands in a subscript are run."""
    for name in names:
        if UNKNOWN in name:
            yield Found(Effect.RUN_UNKNOWN_CODE, says="evaluate a name that is not known in advance")
        elif "[" in name and ("$(" in name or "`" in name):
            yield Script(': "{}"'.format(name.replace('"', '\\"')))


def evaluates(command: Command) -> Steps:
    """`let`, `test -v NAME`, `declare` behind a wrapper: words that the shell evaluates."""
    words = command.argv[1:]
    if command.name in ("test", "["):
        words = [word for before, word in pairwise(words) if before == "-v"]
    if command.name == "wait":
        words = list(read_line(words, frozenset(["-p"])).value_of("-p"))
    whole = command.name == "let"
    yield from _evaluated(word if whole else word.partition("=")[0] for word in words if not word.startswith("-"))
    if command.name == "let" and command.scope.texts.intersection(re.findall(r"[A-Za-z_]\w*", " ".join(words))):
        yield Found(Effect.RUN_UNKNOWN_CODE, says="evaluate a text that is not known in advance")


def completes(command: Command) -> Steps:
    """`compgen -W TEXT`, `complete -C COMMAND`: the text is expanded, the command runs; `bind -x` runs one at a key."""
    line = command.read("-A -C -F -G -P -S -W -X -x -f")
    for script in (*line.value_of("-C"), *(text.partition(":")[2] for text in line.value_of("-x"))):
        yield Script(script)
    for text in line.value_of("-W"):
        if UNKNOWN in text:
            yield Found(Effect.RUN_UNKNOWN_CODE, says="expand a text that is not known in advance")
        elif "$(" in text or "`" in text:
            yield Script(': "{}"'.format(text.replace('"', '\\"')))


def print_to_variable(command: Command) -> Steps:
    """`printf -v NAME` sets a variable."""
    if "-v" in command.argv[1:-1]:
        position = command.argv.index("-v")
        yield from _evaluated([command.argv[position + 1]])
        printed = output_of("printf", ["printf", *command.argv[position + 2 :]], command.stdin)
        known = printed.origin is Origin.TEXT
        yield Set(command.argv[position + 1], (printed.text if known else UNKNOWN,))


def alias(command: Command) -> Steps:
    """`alias NAME=TEXT`: the text is judged now, and again where the name is used."""
    for word in command.argv[1:]:
        key, equals, text = word.partition("=")
        if equals and command.placing and is_a(key, "trusted"):
            yield Found(Effect.DISARM, says=f"permanently redefine {key}")
        if equals and key not in command.scope.aliases:
            yield Change(What.ALIAS, (key, text))


def trap(command: Command) -> Steps:
    """`trap TEXT SIGNAL`: the text runs later."""
    words = [word for word in command.argv[1:] if word != "--"]
    if len(words) > 1 and words[0] not in ("-", "", "-p", "-l"):
        yield Script(words[0])


def set_arguments(command: Command) -> Steps:
    """`set -- A B` sets the positional arguments; `set +o history` switches the command history off."""
    if any(pair == ("+o", "history") for pair in pairwise(command.argv)):
        yield Found(Effect.COVER_TRACKS, says="switch off the command history")
    if any(re.match("-[a-z]*e", word) for word in command.argv[1:]) or ("-o", "errexit") in pairwise(command.argv):
        yield Change(What.STOPS)
    if "--" in command.argv:
        yield Change(What.ARGUMENTS, tuple(command.argv[command.argv.index("--") + 1 :]))


def kill(command: Command) -> Steps:
    """`kill -9 12 -1`: after the first word -1 is every process, not a signal; `kill $P`: any process."""
    if "-1" in command.argv[2:]:
        yield Found(Effect.KILL_ALL, says="end every process")
    own = OWN_PROCESS.search(f"{command.text}\n{command.source.decode('utf-8', 'replace')}")
    if any(word.startswith(UNKNOWN) for word in command.argv[1:]) and not own:
        yield Found(Effect.KILL_MATCHING, says="end processes that are not known in advance")
    for number in re.findall(r"(?<= )-?(\d+)(?= |$)", " ".join(["kill", *command.argv[1 + _gives_signal(command) :]])):
        yield Found(Effect.HANDLE, path=f"/proc/{number}", says=f"end the process {number}")


def _gives_signal(command: Command) -> int:
    """Return the number of words of `kill` that give the signal."""
    first = command.argv[1:2]
    return 0 if first == ["--"] or not first or not first[0].startswith("-") else 1 + (first[0] in ("-s", "-n"))


OWN_PROCESS = pattern(r"\$!|\.pid\b|\$\$|[Pp][Ii][Dd]_?[Ff][Ii][Ll][Ee]|\$\((?:pgrep|pidof|lsof|fuser|jobs)\b")
"""A process that the script started, or that comes from a PID file or is found by its name."""
