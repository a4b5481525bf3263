"""Effects of programs: from the rows of the program tables, and of programs without rows."""

import re
from functools import cache, lru_cache
from itertools import pairwise

from constitution.analysis.steps import (
    BARE_SHELL,
    Because,
    Change,
    Command,
    Found,
    Script,
    Started,
    Steps,
    What,
    as_typed,
)
from constitution.effects import UNKNOWN, Effect
from constitution.shell.scope import NOTHING, Origin
from constitution.tables import forms, is_a, one_line, pattern, said_of, table
from constitution.tables.rows import (
    Does,
    Line,
    behind_options,
    is_bare_shell,
    is_known,
    paths_of,
    program_name,
    read_line,
    rows_for,
    wrapper_of,
)
from constitution.zones import is_private

METADATA = pattern(r"169\.254\.(169\.254|170\.2)|metadata\.google\.internal|100\.100\.100\.200|fd00:ec2::254")
"""Metadata addresses, at which a cloud gives a machine its credentials."""

ADDRESSED = frozenset({Effect.NETWORK, Effect.UPLOAD})
"""Effects whose operands are addresses, not paths."""

LOCAL = pattern(
    r"^:\d*(/|$)|^fileb?:|^(\w+://)?([^/@]*@)?(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?|0\.0\.0\.0|[\w.-]+\.(localhost"
    r"|local|test))(:\d+)?(/|$|\?)"
)


def apply_rows(command: Command) -> Steps:
    """Report the effects of every row for a command, and read the scripts in its options."""
    if command.argv[-1] == "help" and len(command.argv) > 2 and "helps_behind" in command.kinds:
        return
    if "--help" in command.argv[1:3] and len(command.argv) <= 3 and command.argv[-1] == "--help":
        return
    lines: dict[object, Line] = {}  # by what a reading depends on
    has_options = "-" in [word[:1] for word in command.argv]
    for row, words in rows_for(command.name, command.argv[1:]):
        reading = (len(words), row.takes, row.long_style) if has_options else len(words)
        line = lines.get(reading)
        if line is None:
            line = lines[reading] = read_line(words, row.takes, long_style=row.long_style)
        if line.flags & row.unless:
            continue
        for does in row.does:
            if (line.flags or not does.given) and does.applies(line):
                yield from _does(does, paths_of(does.to, line), command)
        for script in line.value_of(*row.runs) if row.runs else ():
            yield from _runs(_command_in(script))


ADDRESS = pattern(
    r"(?:^|[=,'\"(\s/@])((?:https?|ftps?|sftp|scp|davs?|wss?|rtmps?|rtsp|ssh|git|postgres(?:ql)?|mysql"
    r"|mongodb(?:\+srv)?|redis|amqps?|tcp|udp"
    r"|ldaps?|smb|rsync)://[^\s'\"]*|[a-z][\w+.-]*://[\w-]+\.[\w.-]+[^\s'\"]*)",
    re.I,
)
BLANK = pattern(r"\s")
HOST_OPTION = pattern(
    r"-[hH]|--?(host(name)?|server|broker(s|-list)?|bootstrap-servers?|endpoint(-url)?|address|remote|proxy|registry)"
)
HOST = pattern(r"(?!localhost\b|127\.)([\w-]+\.)+([a-z]{3,}(?<!json|yaml|toml|conf|html)|[a-z]{2,}(?=:)|\d+)(:\d+)?")
SAYS_ONLY = frozenset(
    ["commit", "log", "tag", "config", "notes", "grep", "show", "diff", "blame", "remote", "clone", "submodule"]
)
"""Subcommands of git in which an address is text, or the source of a download."""


def addresses(command: Command) -> Steps:
    """Report each remote address among the words of a program; unknown parts of it are data sent there.

    For known addresses a row may restrict in which words of its program they count.
    """
    hosts = [host for option, host in pairwise(command.argv[1:]) if option[:1] == "-" and HOST_OPTION.fullmatch(option)]
    if not hosts and "://" not in " ".join(command.argv):
        return
    rows = (does for row, _ in rows_for(command.name, command.argv[1:]) for does in row.does)
    has_rows = any(does.effect in ADDRESSED and not does.texts for does in rows) and command.name != "git"
    for host in filter(HOST.fullmatch, () if has_rows else hosts):
        yield Found(Effect.NETWORK, says=f"reach {host[:80]} over the network")
    for word in command.argv[1:]:
        for address in ADDRESS.findall(word) if "://" in word and not BLANK.search(word) else ():
            if not _is_local(address) and not (has_rows and UNKNOWN not in address):
                yield from _reached(address, command)


def _reached(address: str, command: Command) -> Steps:
    shown = address.replace(UNKNOWN, "…")[:80]
    if UNKNOWN in address:
        yield Change(What.SENT)
        yield Found(Effect.NETWORK, says=f"send what is not known in advance to {shown}")
    elif command.name != "git" or SAYS_ONLY.isdisjoint(command.argv[1:]):
        yield Found(Effect.NETWORK, says=f"reach {shown} over the network")


OUTPUTS = re.compile(
    r"^(?:--?|-D)(out(put)?([-_]?(dir|file|path|directory|folder))?|declarationdir|(target|artifact)-dir"
    r"|dest(ination|dir)?|pack-destination"
    r"|install-(dir|prefix|root)|prefix|root|(cover|cpu|mem|block|mutex)profile|result-file|\w+_out)$",
    re.I,
)


@lru_cache(maxsize=4096)
def _is_output(option: str) -> bool:
    return OUTPUTS.match(option) is not None


def outputs(command: Command) -> Steps:
    """Report the output paths in options of a known program: `--outDir ~`, `--prefix=/usr`."""
    for index, word in enumerate(command.argv if is_known(command.name) else ()):
        name, equals, value = word.partition("=")
        if word[:1] == "-" and len(word) > 1 and _is_output(name):
            path = value if equals else _following(index, command)
            if path not in ("", "-"):
                yield Found(Effect.WRITE, path=path)


def _following(index: int, command: Command) -> str:
    return command.argv[index + 1] if index + 1 < len(command.argv) else ""


SETTING = pattern(r"^[\w.:-]*(?:exec|pager|invoke[\w-]*|alias\.\w+)(?:::)?=!?", re.I)
OTHER_SETTING = pattern(r"^[\w:-]+[.:][\w:.-]*=")


def _command_in(script: str) -> str:
    """Return the command in the value of an option: `pager=CMD`, `APT::Update::Pre-Invoke::=CMD`, `sh,-s`, `!CMD`."""
    if SETTING.match(script):
        return SETTING.sub("", script)
    if OTHER_SETTING.match(script) or script.startswith(("format=", "border=", "null=", "fieldsep=")):
        return ""
    plain = script.replace(",", " ") if " " not in script and script.count(",") else script
    return plain.removeprefix("!")


def _runs(script: str) -> Steps:
    if is_bare_shell(script.removesuffix(" -s")):
        yield Found(Effect.ESCAPE_SHELL, says=BARE_SHELL)
    if script and script not in ("on", "off", "always"):
        yield Script(script)
    program = script.split(maxsplit=1)[0] if script.strip() else ""
    if program.startswith(("/", "~", "../")):
        yield Found(Effect.CARRIED, path=program, says="run {path}, which an option names")


def _are_declared(does: Does, command: Command) -> bool:
    """Return whether the project itself declares every package of a command: `npm install PACKAGE`."""
    if not command.disk.declared or not (does.words or does.first):
        return False
    named = [word for word in command.argv[1:] if word[:1] != "-"]
    named = [word for word in named if re.search(does.words or does.first, word)]
    verbs = {"install", "i", "add", "get", "run", "exec", "x", "dlx", "tool", "require", "download", "wheel"}
    packages = [package_of(word) for word in named if word not in verbs]
    return bool(packages) and all(package in command.disk.declared for package in packages)


def package_of(word: str) -> str:
    """Return the name of a package without its version: `x` of `x@1.2`, `x==1`, `x[extra]>=2`."""
    return re.split(r"(?<!^)@|[=<>~!\[; ]", word, maxsplit=1)[0].lower().replace("_", "-")


def _does(does: Does, paths: tuple[str, ...], command: Command) -> Steps:
    if does.effect is Effect.INSTALL and _are_declared(does, command):
        yield Because(f"{does.says}, which the project declares", Effect.INSTALL)
        return
    if not does.to:
        yield Found(does.effect, says=does.says)
    for path in paths:
        if does.effect not in ADDRESSED:
            carried = does.effect is Effect.CARRIED and does.to == "operands"
            if path != "-" and not (carried and (_is_near(path) or NO_PATH.search(path))):
                yield Found(does.effect, path=path, says=does.says)
        elif METADATA.search(path):
            yield Found(Effect.TAKE_KEYS, says="read the cloud credentials of this machine")
        elif not _is_local(path):
            if UNKNOWN in path or command.stdin.origin is not Origin.NOTHING:
                yield Change(What.SENT)
            says = does.says or f"reach {path.replace(UNKNOWN, '…')[:80]} over the network"
            yield Found(does.effect, says=says)


def _is_near(word: str) -> bool:
    """Return whether an operand is not known to name something outside the workspace."""
    return ("/" not in word and word != "..") or word[0] == UNKNOWN


def _is_local(address: str) -> bool:
    return LOCAL.match(address) is not None


DESTROYS = pattern(
    r"^(delete|destroy|purge|wipe|erase|terminate|nuke|drop(all)?|flush(all|db)?|obliterate|factory[-_]?reset"
    r"|decommission|teardown"
    r"|deprovision|shred|force[-_]delete|rm[-_]all|(delete|destroy|drop|purge|wipe|remove)[-_:].+"
    r"|.+[-_:](delete|destroy|purge|wipe))$",
    re.I,
)
FORCES = pattern(
    r"^--?(delete-all|destroy|purge|wipe(-all)?|erase|drop-database|force-delete|nuke"
    r"|dangerously-[\w-]+|yolo|full-auto|allow-all[\w-]*)$"
)


def unknown_program(command: Command) -> Steps:
    """Yield the effects of an unknown program by its words: paths, commands, and verbs of destruction."""
    yield Found(Effect.UNKNOWN_PROGRAM, says="is not a known program")
    for word in command.argv[1:]:
        value = word.partition("=")[2] if word.startswith("-") or "=" in word else word
        elsewhere = GIVEN.findall(word) if "://" not in word and not NO_PATH.search(word) else []
        if not elsewhere and value and not value.startswith("-") and _looks_like_path(value):
            elsewhere = [value]
        for path in elsewhere:
            yield Found(Effect.UNKNOWN_PROGRAM, path=path)
            if "/" not in command.argv[0]:
                yield Found(Effect.CARRIED, path=path)
    if any("stratum+" in word for word in command.argv[1:]):
        yield Found(Effect.ATTACK, says="mine cryptocurrency")
    if "/" not in command.argv[0]:
        if any(map(FORCES.match, command.argv[1:])):
            yield Found(Effect.UNDESCRIBED, says="destroy something, or act without asking (it is not a known program)")
        values = (word.partition("=")[::2] for word in command.argv[1:])
        given = (*pairwise(command.argv[1:]), *values)
        if any(CODE_OPTION.fullmatch(option) and CODE.search(code) for option, code in given):
            yield Found(Effect.RISKY_CODE, says="run code given in an option (it is not a known program)")
        for word in filter(DOMAIN.match, command.argv[1:]):
            yield Found(Effect.NETWORK, says=f"reach {word[:80]} over the network (it is not a known program)")
    yield from _started_words(command)


CODE_OPTION = pattern(r"-[ecxrE]|-ex|--?(eval|code|execute|expr(ession)?|run|batch-string|command|query-goal|goal)")
CODE = pattern(r"[\w\"'`]\s*\(.*\)|^\(.+\)$|^!|\b(system|shell|exec|spawn|popen)\b", re.S)
DOMAIN = pattern(
    r"^([\w.+-]+@)?([\w-]+\.)+(com|org|net|edu|gov|io|dev|app|ai|cloud|info|biz|xyz|online|site|tech|store|top"
    r"|club|me|us|uk|de|fr|nl|eu|jp"
    r"|cn|ru|in|br|au|ca|ch|se|it|be|at)(:\d+)?([/:?].*)?$"
)


def _started_words(command: Command) -> Steps:
    """`frob -- rm -rf x`, `frob --exec 'rm -rf x'`: a command in the arguments may be run."""
    for index, word in enumerate(command.argv[1:-1], 1):
        if is_a(word.rpartition("/")[2], "starts_commands"):
            yield Started(command.argv[index:], NOTHING)
            return
    for word in command.argv[1:]:
        text = word.partition("=")[2] if word.startswith("--") else word
        if " " in text and is_known(program_name(text.partition(" ")[0])):
            yield Script(text)


def _looks_like_path(word: str) -> bool:
    if is_private(word):
        return True
    return (word.startswith(("/", "~", "..", "./")) or "/" in word or word == ".") and "://" not in word


TEXT_OF_GIT = frozenset(
    "commit log tag notes grep stash config remote clone submodule shortlog show merge worktree".split()  # noqa: SIM905
)
"""Subcommands of git whose arguments may only look like paths, or that have rows."""

GIVEN = re.compile(r"(?:^|[=:@,]|^-\w)((?:/|~|\.\./)[^,:]*|\.\.$)")
NO_PATH = re.compile(r"^//|^/\w+=|^/(warnaserror|nologo|restore|maxcpucount|m|bl|graph|[ptvm]:.*)$")
"""Labels of a build, steps of XPath, names of a certificate (`/CN=x`), and switches of MSBuild."""
REGEX = pattern(r"/[^/]+/i?")


def secret_arguments(command: Command) -> Steps:
    """Report secret paths among the words of a program."""
    if "guards_arguments" in command.kinds and (
        command.name != "git" or not TEXT_OF_GIT.isdisjoint(command.argv[1:]) or command.argv[1:2] == ["-C"]
    ):
        return
    elsewhere = command.scope.cwd != (command.start,)
    known = is_known(command.name) or wrapper_of(command.name) is not None or command.name in forms()
    effect = Effect.HANDLE if known else Effect.MENTION  # other programs get findings for every path anyway
    for before, word in pairwise(command.argv):
        if command.name == "ln" and word[:2] == "..":
            continue  # the link is moved, not its target, which is judged when it is used
        if before in ("-n", "--name") and "picks_tests" in command.kinds and REGEX.fullmatch(word):
            continue
        if "/" in word or "~" in word or elsewhere:
            for path in _paths(word, elsewhere):
                yield Found(effect, path=path)
            yield from found_in("code", word) if "'" in word or '"' in word else ()


def _paths(word: str, elsewhere: bool) -> list[str]:
    if len(word) > 400 or " " in word:
        return []
    word = word.removeprefix("file://")
    if "://" in word or NO_PATH.search(word):
        return []
    return GIVEN.findall(word) or ([word] if elsewhere and word[:1] != "-" else [])


def found_in(kind: str, text: str) -> Steps:
    """Report the files, scripts and effects that the patterns for a kind of text find in it (`signs.toml`)."""
    for row, expression in _patterns_for(kind):
        for found in expression.findall(text)[:32]:
            if "runs" in row:
                yield from as_typed(found) if row["runs"] == "typed" else (Script(found.replace("''", "'")),)
            else:
                path = found.strip() if expression.groups else None
                yield Found(Effect[row["effect"].upper()], path, row.get("says", ""))


@cache
def _patterns_for(kind: str) -> list[tuple[dict[str, str], re.Pattern[str]]]:
    return [(row, re.compile(one_line(row["pattern"]))) for row in table("signs")["texts"][kind]]


ASKS = frozenset(["--version", "--help", "-V"])


def only_looks(argv: tuple[str, ...]) -> bool:
    """Return whether a command is read-only, by its program and arguments; a wrapper is judged by its command."""
    name = argv[0].rpartition("/")[2]
    if (
        is_a(name, "read_only")
        or is_a(name, "shell")
        or _runs_another(name, argv)
        or (len(argv) == 2 and argv[1] in ASKS)
    ):
        return True
    pattern = read_only(name)
    words = list(argv[1:])
    words = behind_options(words, TAKES) if is_a(name, "options_first") else words
    return pattern is not None and pattern.match(" ".join(words)) is not None


def read_only(name: str) -> re.Pattern[str] | None:
    """Return the pattern of a program's read-only subcommands."""
    return subcommand_pattern(name, "read_only")


@cache
def subcommand_pattern(name: str, key: str) -> re.Pattern[str] | None:
    """Return the pattern of the subcommands that the tables list for a program under a key, if they list any."""
    patterns = [one_line(said) for said in said_of(name, key)]
    return re.compile(rf"(?:{'|'.join(patterns)})(?:\s|$)") if patterns else None


def _runs_another(name: str, argv: tuple[str, ...]) -> bool:
    """Return whether a command is as harmless as the one that it runs, which is judged separately."""
    wrapper = wrapper_of(name)
    first = next((word for word in argv[1:] if not word.startswith("-")), "")
    return wrapper is not None and (not wrapper.only or first in wrapper.only)


TAKES = frozenset("-C -c -n --namespace --context -f --file --profile --region -H -p --project".split())  # noqa: SIM905


HARMLESS = ("harmless", "takes_data", "filters", "passes_on", "shell")


def is_harmless(argv: tuple[str, ...]) -> bool:
    """Return whether all effects of a command are known: it is read-only, or handles only the files it names."""
    name = program_name(argv[0])
    return only_looks(argv) or any(is_a(name, kind) for kind in HARMLESS)
