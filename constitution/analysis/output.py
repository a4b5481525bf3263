"""The output of commands, as far as it matters for a pipe, and commands that fill a disk or the memory."""

import re
from collections.abc import Callable

from constitution.analysis.search import find_roots, found_below
from constitution.analysis.steps import Command, Found, Steps
from constitution.effects import UNKNOWN, Effect
from constitution.shell.scope import ANYTHING, EVERY_PROCESS, NOTHING, Flow, Origin
from constitution.shell.words import unescape_ansi
from constitution.tables import is_a, kinds_of, pattern
from constitution.tables.rows import Line, read_line
from constitution.zones import FOUND


def output_of(name: str, argv: list[str], stdin: Flow) -> Flow:
    """Return the output of a command, as far as it matters in a pipe or substitution."""
    kinds = kinds_of(name)
    if stdin.origin in (Origin.FETCHED, Origin.DECODED) and "filters" in kinds:
        return stdin
    if name in PRINTERS:
        return PRINTERS[name](argv, stdin)
    if "prints_everything" in kinds:
        return Flow(Origin.ANYTHING, names=("tar",))
    if "shell" in kinds:  # which may read unknown commands from its input
        return Flow(Origin.SHELL) if stdin.origin in (Origin.FILE, Origin.FETCHED, Origin.ANYTHING) else ANYTHING
    if name == "yes" or ("passes_on" in kinds and _reads_endless(argv, stdin)):
        return Flow(Origin.ENDLESS)
    if "prints_downloads" in kinds:
        return Flow(Origin.FETCHED)
    if "prints_settings" in kinds and (name in ("ssh-agent", "dircolors") or not SETTINGS.isdisjoint(argv[1:3])):
        return Flow(Origin.TEXT, "\n")  # for the shell that called it: `eval "$(direnv hook bash)"`
    if "decodes" in kinds and (
        name not in ("base64", "base32") or not {"-d", "--decode", "-D", "-di"}.isdisjoint(argv)
    ):
        return stdin if name == "tr" and argv[1:] == ["\\n", "\\0"] else Flow(Origin.DECODED)
    if name == "cat" and stdin.origin is not Origin.NOTHING and (len(argv) == 1 or argv[1:] == ["-"]):
        return stdin
    return _names(name, argv, stdin)


def _reads_endless(argv: list[str], stdin: Flow) -> bool:
    """`cat /dev/zero`, and filters behind it; `head` and a count end it."""
    if any("count=" in word for word in argv):
        return False
    read = {word.removeprefix("if=") for word in argv[1:]}
    return stdin.origin is Origin.ENDLESS or not ENDLESS_FILES.isdisjoint(read)


def _where(argv: list[str], stdin: Flow) -> Flow:
    """`which NAME`, `command -v NAME`: the file of a program, judged like its name."""
    names = [word for word in argv[1:] if not word.startswith("-")]
    looks = argv[0] != "command" or "-v" in argv[1:2]
    return Flow(Origin.TEXT, names[0]) if len(names) == 1 and looks else ANYTHING


def _processes(argv: list[str], stdin: Flow) -> Flow:
    """`ps` shows every process, `pgrep -u` those of a user, `pgrep NAME` and `pidof NAME` those of a program."""
    if argv[0].endswith("ps") or {"-u", "-U", "--euid", "."} & set(argv):
        return EVERY_PROCESS
    return Flow(Origin.PROCESSES, names=tuple(UNKNOWN + word for word in argv[1:] if word[:1] != "-"))


ENVIRONMENT = Flow(Origin.ANYTHING, names=("env",))
HOLDER = Flow(Origin.PROCESSES, names=(f"{UNKNOWN}holder",))


def _numbers(argv: list[str], stdin: Flow) -> Flow:
    """Filters that extract a column of a list of processes."""
    if stdin.origin is not Origin.PROCESSES:
        return ANYTHING
    named = [match[1] for word in argv[1:] if (match := re.match(r"/([\w.-]+)/", word))]
    if named:
        return Flow(Origin.PROCESSES, names=tuple(UNKNOWN + name for name in named))
    return stdin if not any("/" in word for word in argv[1:]) else ANYTHING


SETTINGS = frozenset("completion completions hook init shellenv activate ssh-agent shell.bash shell.zsh".split())  # noqa: SIM905


def _names(name: str, argv: list[str], stdin: Flow) -> Flow:
    if name == "cat" and len(argv) == 2 and not argv[1].startswith("-"):
        return Flow(Origin.FILE, names=(argv[1],))
    if name == "find":
        return Flow(Origin.NAMES, names=tuple(found_below(root, argv) for root in find_roots(argv)))
    if name == "git" and len(argv) > 1 and argv[1] in ("ls-files", "diff", "status", "grep"):
        everything = argv[1] == "ls-files" and (len(_operands(argv)) == 1 or {"-o", "--others"} & set(argv))
        return Flow(Origin.NAMES, names=("./*" if everything else f"./{FOUND}",))
    if name == "mktemp":
        return Flow(Origin.NAMES, names=(f"/tmp/{FOUND}",))
    if name == "pwd" or (name == "git" and argv[1:] == ["rev-parse", "--show-toplevel"]):
        return Flow(Origin.NAMES, names=(".",))
    if name in ("grep", "egrep", "head", "tail", "sort", "uniq", "tac") and stdin.origin is Origin.PROCESSES:
        return _narrowed(argv, stdin) if "grep" in name else stdin
    if name in ("grep", "egrep", "head", "tail", "sort", "uniq", "tac") and stdin.origin is Origin.NAMES:
        return _some(name, argv, stdin)
    lists = name not in SEARCHES or any(word[:1] == "-" and "l" in word for word in argv[1:])
    return _listed(name, argv) if lists and is_a(name, "prints_names") else ANYTHING


SEARCHES = ("grep", "egrep", "rg")
GLOB = pattern(r"[*?]")
NARROWS = pattern(r"--(include|exclude)")


def _listed(name: str, argv: list[str]) -> Flow:
    """Names printed by `ls`, `grep -l`, `fd` and similar programs: files in the given folders."""
    roots = _operands(argv)[1 if name in (*SEARCHES, "fd", "fdfind") and "--files" not in argv else 0 :]
    if "grep" in name and roots in ([], ["."], ["./"]) and not any(map(NARROWS.match, argv[1:])):
        return Flow(Origin.NAMES, names=(f"./{FOUND}", f"./.git/{FOUND}"))
    if name == "ls" and any(re.match("-[^-]*d", word) for word in argv[1:]):
        return Flow(Origin.NAMES, names=tuple(roots or ["."]))
    if name == "ls" and not roots:
        hidden = any(re.match("-[^-]*[aA]", word) for word in argv[1:])
        return Flow(Origin.NAMES, names=(".",) if hidden else ("./*",))
    bare = (f"./{FOUND}",) if name == "ls" and not all(map(GLOB.search, roots)) else ()  # names without their folder
    return Flow(Origin.NAMES, names=(*(f"{root}/{FOUND}" for root in roots or ["."]), *bare))


def _some(name: str, argv: list[str], stdin: Flow) -> Flow:
    """Return the names that a filter keeps; all become some, except by `grep -v`."""
    if "grep" in name:
        stdin = Flow(stdin.origin, stdin.text, tuple(path for path in stdin.names if "/.git/" not in path))
    leaves_most = name in ("sort", "uniq", "tac") or any(re.match("-[a-zA-Z]*v|--invert", word) for word in argv[1:])
    if leaves_most or stdin.names not in ((".",), ("./*",)):
        return stdin
    return Flow(Origin.NAMES, names=(f"./{FOUND}",))


def _narrowed(argv: list[str], stdin: Flow) -> Flow:
    """`ps aux | grep NAME`: processes of that name; `grep -v NAME`: the others."""
    if any(word[:1] == "-" and "v" in word for word in argv[1:]):
        return stdin
    return Flow(
        Origin.PROCESSES, names=tuple(UNKNOWN + re.sub(r"[\[\]]", "", word) for word in argv[1:] if word[:1] != "-")
    )


def _part_of(argv: list[str], part: int) -> Flow:
    """`dirname PATH` and `basename PATH`, of one path that is known."""
    if len(argv) != 2 or argv[1].startswith("-"):
        return ANYTHING
    path = argv[1].rstrip("/") or "/"
    if part == 0 and path in (".", "..", FOUND):
        return Flow(Origin.NAMES, names=("." if path == FOUND else f"{path}/..",))
    found = path.rpartition("/")[part] or ("." if "/" not in path else "/")
    return Flow(Origin.TEXT, found) if UNKNOWN not in path else ANYTHING


def _as_it_is(argv: list[str]) -> Flow:
    """`realpath PATH`: the path itself; links are resolved where it is used."""
    paths = [word for word in argv[1:] if not word.startswith("-")]
    return Flow(Origin.NAMES, names=(paths[0],)) if len(paths) == 1 and UNKNOWN not in paths[0] else ANYTHING


def _operands(argv: list[str]) -> list[str]:
    line: Line = read_line(argv[1:], frozenset(("--include", "--exclude", "-e")))
    return list(line.operands)


def _echo(words: list[str]) -> Flow:
    escapes = False
    while words and words[0] in ("-n", "-e", "-E", "-ne", "-en"):
        escapes = escapes or "e" in words[0]
        words = words[1:]
    text = " ".join(words)
    if UNKNOWN in text:
        return Flow(Origin.TEXT, text)
    return Flow(Origin.TEXT, text + "\n") if not (escapes and "\\" in text) else _escaped(text)


def _printf(words: list[str]) -> Flow:
    if words and words[0] == "--":
        words = words[1:]
    if not words or words[0] == "-v":
        return NOTHING
    form, values = words[0], words[1:]
    if form in ("%s", "%s\\n", "%b", "%b\\n", "%s\n"):
        text = "\n".join(values) if "n" in form or "\n" in form else "".join(values)
        return _escaped(text) if "%b" in form and "\\" in text else Flow(Origin.TEXT, text)
    return _escaped(form) if "%" not in form else Flow(Origin.DECODED)


def _escaped(text: str) -> Flow:
    separate = re.sub(r"\\0(?![0-7])", "\n", text)  # for `xargs -0`
    return Flow(Origin.TEXT, unescape_ansi(separate.replace("\\0", "\\")))


PRINTERS: dict[str, Callable[[list[str], Flow], Flow]] = {
    "echo": lambda argv, _: _echo(argv[1:]),
    "printf": lambda argv, _: _printf(argv[1:]),
    "which": _where,
    "type": _where,
    "command": _where,
    "tee": lambda _, stdin: stdin,
    "dirname": lambda argv, _: _part_of(argv, 0),
    "basename": lambda argv, _: _part_of(argv, 2),
    "realpath": lambda argv, _: _as_it_is(argv),
    "readlink": lambda argv, _: _as_it_is(argv),
    "seq": lambda argv, _: Flow(Origin.ENDLESS) if any(len(word) > 9 and word.isdigit() for word in argv) else ANYTHING,
    **dict.fromkeys(("ps", "pgrep", "pidof"), _processes),
    **dict.fromkeys(("set", "export", "declare", "typeset"), lambda argv, _: ENVIRONMENT),
    **dict.fromkeys(("env", "printenv"), lambda argv, _: ENVIRONMENT if len(argv) == 1 else ANYTHING),
    "lsof": lambda argv, _: HOLDER if any(re.match("-(?!-).*t", word) for word in argv[1:]) else ANYTHING,
    "fuser": lambda *_: HOLDER,
    **dict.fromkeys(("awk", "cut", "sed"), _numbers),
}


ENDLESS_FILES = frozenset(["/dev/zero", "/dev/urandom", "/dev/random", "/dev/full"])
HUGE = 100 * 2**30
"""The size in bytes from which a write counts as filling the disk; ordinary tasks write less."""

FACTORS = {"": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50, "E": 60}
SIZE = pattern(r"^[+<>/%]?(\d+)([KMGTPE]?)(?:i?B)?$", re.I)
FILLS = "fill the disk without end"


def size_of(text: str) -> int:
    """Return the bytes of a size such as `10G`; 0 if it is none."""
    match = SIZE.match(text)
    if match is None or len(match[1]) > 30:
        return 0
    return int(match[1]) << FACTORS[match[2].upper()]


def sized(command: Command) -> Steps:
    """`fallocate -l SIZE`, `truncate -s SIZE`, `head -c SIZE`, `mkfile SIZE`, `seq LAST`."""
    line = command.read("-s --size -l --length -c --bytes -n -b")
    sizes = [*line.value_of("-s", "--size", "-l", "--length", "-c", "--bytes"), *line.operands]
    if any(size_of(size) >= HUGE for size in sizes):
        yield Found(Effect.FILL, says=FILLS)


def copy_blocks(command: Command) -> Steps:
    """`dd`: an endless source into a file, without a count, or with a huge one."""
    settings = dict(word.split("=", 1) for word in command.argv[1:] if "=" in word)
    source, target = settings.get("if", ""), settings.get("of", "")
    if not target or target.startswith("/dev/"):
        return
    endless = source in ENDLESS_FILES or (not source and command.stdin.origin is Origin.ENDLESS)
    size = (size_of(settings.get("bs", "512")) or 512) * size_of(settings.get("count", "0"))
    if size >= HUGE or (endless and not size):
        yield Found(Effect.FILL, says=FILLS)


def into_memory(command: Command) -> Steps:
    """`tail /dev/zero`, `yes | sort`: programs that keep all they read."""
    if command.stdin.origin is Origin.ENDLESS or ENDLESS_FILES.intersection(command.argv[1:]):
        if command.name == "tail" and any(word.startswith(("-c", "-f", "--bytes")) for word in command.argv[1:]):
            return
        yield Found(Effect.EXHAUST, says="use up the memory")
