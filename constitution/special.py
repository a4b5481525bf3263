"""The forms that a table cannot say: shells, `find`, `xargs`, `source`, interpreters, and builtins that change the scope."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.interpreters import Reading, read_code, read_python
from constitution.programs.options import Line, read_line
from constitution.shell.flow import ANYTHING, NOTHING, Flow, Origin
from constitution.zones import FOUND, UNKNOWN, resolve

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["SPECIAL", "output_of"]

Special = Callable[["Examination", str, list[str], Flow, "Walk"], None]


def shell(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`sh -c TEXT`, `sh FILE`, and a shell that reads its script from its input."""
    line = read_line([_plus(word) for word in argv[1:]], frozenset(("-o", "--rcfile", "--init-file", "-O")), to_operand=True)
    if "-c" in line.flags:
        if line.operands:
            scope = walk.scope.copy()
            scope.positional = line.operands[2:]
            walk.nested(line.operands[0], stdin, scope=scope)
        return
    if line.flags & {"--version", "--help", "-n"}:
        return
    for file in line.value_of("--rcfile", "--init-file"):
        examination.found(Effect.EXECUTE, walk, program=name, path=file)
    if line.operands and "-s" not in line.flags and line.operands[0] not in ("-", "/dev/stdin"):
        run_file(examination, name, line.operands[0], walk)
    else:
        run_input(examination, name, stdin, walk, walk.nested)


def _plus(word: str) -> str:
    return "-" + word[1:] if word.startswith("+") and len(word) > 1 else word


def run_file(examination: "Examination", name: str, file: str, walk: "Walk") -> None:
    """A file is run as a script; one that a process substitution makes has been walked already, but prints anything."""
    if file.startswith("/dev/fd/"):
        examination.found(Effect.RUN_FETCHED_CODE, walk, program=name)
    else:
        examination.found(Effect.EXECUTE, walk, program=name, path=file)


def run_input(examination: "Examination", name: str, stdin: Flow, walk: "Walk", read: Callable[[str], object]) -> None:
    """Code comes through a pipe: known text is read, fetched or decoded text is reported."""
    if stdin.origin is Origin.TEXT:
        read(stdin.text)
    elif stdin.origin in (Origin.FETCHED, Origin.DECODED):
        examination.found(Effect.RUN_FETCHED_CODE, walk, program=name)
    elif stdin.origin is Origin.FILE:
        for file in stdin.names:
            examination.found(Effect.EXECUTE, walk, program=name, path=file)
    elif stdin.origin is not Origin.NOTHING:
        examination.found(Effect.RUN_UNKNOWN_CODE, walk, program=name)


def source(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`source FILE` and `. FILE`."""
    if len(argv) > 1:
        run_file(examination, name, argv[1], walk)


PYTHON_TAKES = frozenset("-W -X --check-hash-based-pycs".split())


def python(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`python -c CODE`, `python FILE`, `python -m MODULE`, `python -`."""
    line = read_line(argv[1:], PYTHON_TAKES | {"-c", "-m"}, to_operand=True)

    def read(code: str) -> None:
        touched(examination, name, read_python(code), code, walk)

    for code in line.value_of("-c"):
        read(code)
    modules = line.value_of("-m")
    if modules and modules[0] in ("pip", "pipx", "twine", "pytest", "mypy", "black"):
        examination.examine([modules[0], *line.operands], stdin, walk)
    if line.value_of("-c", "-m") or line.flags & {"-V", "--version", "-h", "--help"}:
        return
    if line.operands and line.operands[0] != "-":
        run_file(examination, name, line.operands[0], walk)
    else:
        run_input(examination, name, stdin, walk, read)


INLINE = {"perl": "-e -E", "ruby": "-e", "node": "-e --eval -p --print", "nodejs": "-e --eval -p --print", "php": "-r", "lua": "-e",
          "Rscript": "-e", "R": "-e", "osascript": "-e", "deno": "eval", "bun": "-e --eval", "luajit": "-e", "julia": "-e -E",
          "tclsh": "-c", "raku": "-e", "elixir": "-e", "groovy": "-e", "scala": "-e", "swipl": "-g", "gawk": "", "awk": "", "mawk": ""}  # fmt: skip


def interpreter(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """Perl, Ruby, Node and others with code in an option, in a file, or in their input."""
    options = frozenset(INLINE[name].split())
    line = read_line(argv[1:], options | {"-I", "-M", "-r"} - ({"-r"} if name == "ruby" else set()), to_operand=True)
    codes = line.value_of(*options)

    def read(code: str) -> None:
        touched(examination, name, read_code(code), code, walk)

    for code in codes:
        read(code)
    if codes and "-i" in line.flags:
        for file in line.operands:
            examination.found(Effect.WRITE, walk, program=name, path=file)
    if codes or line.flags & {"-v", "--version", "--help", "-h", "-c", "--check", "--test"}:
        return
    if line.operands:
        run_file(examination, name, line.operands[0], walk)
    else:
        run_input(examination, name, stdin, walk, read)


def awk(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """awk: the first operand is code; `-f` names a file with code."""
    line = read_line(argv[1:], frozenset("-F -v -f --field-separator --assign --file".split()), to_operand=True)
    operands = list(line.operands)
    if not line.value_of("-f", "--file") and operands:
        code = operands.pop(0)
        touched(examination, name, read_code(code), code, walk)
    for operand in operands:
        examination.found(Effect.READ, walk, program=name, path=operand)
        if line.flags & {"-i"}:
            examination.found(Effect.WRITE, walk, program=name, path=operand)


def touched(examination: "Examination", name: str, reading: Reading, code: str, walk: "Walk") -> None:
    """Report what inline code does."""
    if UNKNOWN in code:
        examination.found(Effect.RUN_UNKNOWN_CODE, walk, program=name)
    for script in reading.scripts:
        walk.nested(script)
    effects = {"delete_tree": Effect.DELETE_TREE, "delete": Effect.DELETE, "write": Effect.WRITE, "read": Effect.READ}
    for kind, path in reading.paths:
        examination.found(effects[kind], walk, program=name, path=path or UNKNOWN)
    for risk in reading.risks:
        examination.found(Effect.RISKY_CODE, walk, program=name, says=risk)


FIND_TAKES = frozenset(
    "-name -iname -path -ipath -regex -iregex -type -size -mtime -atime -ctime -mmin -amin -cmin -newer -user -group -perm -maxdepth "
    "-mindepth -fstype -links -inum -lname -printf -fprintf -fprint -fprint0 -fls -uid -gid -samefile -wholename -xtype -used".split()
)
FIND_FILTERS = FIND_TAKES - {"-maxdepth", "-mindepth", "-fprint", "-printf", "-fprintf", "-fls", "-fprint0", "-xtype"} | {"-empty", "-newermt"}
FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir")


def find(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`find ROOTS TESTS -delete`, `-exec COMMAND ;`, `-fprint FILE`."""
    roots = find_roots(argv)
    names = [_found_below(root, argv) for root in roots]
    for root in roots:
        examination.found(Effect.LIST, walk, program=name, path=root)
    for index, word in enumerate(argv):
        if word == "-delete":
            for path in names:
                examination.found(Effect.DELETE_TREE, walk, program=name, path=path)
        elif word in ("-fprint", "-fprintf", "-fls", "-fprint0") and index + 1 < len(argv):
            examination.found(Effect.WRITE, walk, program=name, path=argv[index + 1])
        elif word in FIND_RUNS:
            _each_found(argv[index + 1 :], names, walk)


def find_roots(argv: list[str]) -> list[str]:
    """Return the folders in which a `find` starts."""
    roots = []
    for word in argv[1:]:
        if word in ("-H", "-L", "-P") or word.startswith(("-O", "-D")):
            continue
        if word.startswith("-") or word in ("(", "!", ")"):
            break
        roots.append(word)
    return roots or ["."]


def _found_below(root: str, argv: list[str]) -> str:
    """Return a stand-in for what is found: something below the root if the search is narrowed, else the root."""
    narrowed = any(word in FIND_FILTERS for word in argv)
    everything = any(a in ("-name", "-iname", "-path", "-wholename") and b in ("*", "**", ".*", "*.*") for a, b in zip(argv, argv[1:], strict=False))
    return f"{root}/{FOUND}" if narrowed and not everything else root


def _each_found(words: list[str], names: list[str], walk: "Walk") -> None:
    ends = [index for index, word in enumerate(words) if word in (";", "+")]
    command = words[: ends[0]] if ends else words
    for path in names if command else ():
        walk.invoke([word.replace("{}", path) for word in command], NOTHING)


XARGS_TAKES = frozenset(
    "-a --arg-file -d --delimiter -E -I -L --max-lines -n --max-args -P --max-procs -s --max-chars -R -S -J --replace".split()
)


def xargs(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`xargs COMMAND`: the input's words are put behind the command, or where `-I` says."""
    line = read_line(argv[1:], XARGS_TAKES, to_operand=True)
    items = _items(stdin)
    marks = line.value_of("-I", "-J", "--replace") or (("{}",) if line.flags & {"-i", "--replace"} else ())
    command = list(line.operands) or ["echo"]
    if not line.operands:
        return
    if marks:
        for item in items:
            walk.invoke([word.replace(marks[0], item) for word in command], NOTHING)
    else:
        walk.invoke([*command, *items], NOTHING)


def _items(stdin: Flow) -> list[str]:
    if stdin.origin is Origin.TEXT:
        return stdin.text.split()
    return list(stdin.names) if stdin.origin is Origin.NAMES else [UNKNOWN]


def tar(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`tar czf x y`: the old spelling without a dash."""
    if len(argv) > 1 and argv[1].isalpha() and set(argv[1]) & set("cxtru"):
        examination.examine([name, "-" + argv[1].replace("f", "") + "f", *argv[2:]], stdin, walk)


# Builtins that change what is known.


def change_folder(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`cd DIR`, `pushd DIR`: from here on relative paths start elsewhere."""
    operands = [word for word in argv[1:] if word not in ("-P", "-L", "-e", "-@", "--")]
    target = operands[0] if operands else "~"
    if name == "popd" or target == "-" or target.startswith("+"):
        walk.scope.cwd = (UNKNOWN,)
        return
    folders = (resolve(target, cwd=cwd, home=walk.scope.home) for cwd in walk.scope.cwd)
    walk.scope.cwd = tuple(dict.fromkeys(examination.resolved.get(folder, folder) for folder in folders))
    for folder in walk.scope.cwd:
        examination.words[folder] = None


def read_variables(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`read`, `mapfile`, `getopts`: variables get what comes in."""
    value = stdin.names if stdin.origin is Origin.NAMES else (UNKNOWN,)
    if stdin.origin is Origin.TEXT and len(stdin.text.splitlines()) <= 8:
        value = tuple(stdin.text.splitlines()) or (UNKNOWN,)
    names = [word for word in argv[1:] if word.isidentifier()] or ["REPLY", "MAPFILE"]
    for variable in names:
        walk.scope.assign(variable, value if len(names) == 1 else (UNKNOWN,))


def print_to_variable(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`printf -v NAME` sets a variable."""
    if "-v" in argv[1:-1]:
        walk.scope.assign(argv[argv.index("-v") + 1], (UNKNOWN,))


def alias(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`alias NAME=TEXT`: the text is judged at once, and again where the name is used."""
    for word in argv[1:]:
        key, equals, text = word.partition("=")
        if equals and key not in walk.scope.aliases:
            walk.nested(text)
            walk.scope.aliases[key] = text


def trap(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`trap TEXT SIGNAL`: the text runs later."""
    words = [word for word in argv[1:] if word != "--"]
    if len(words) > 1 and words[0] not in ("-", "", "-p", "-l"):
        walk.nested(words[0])


def set_arguments(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`set -- A B` sets the positional arguments."""
    if "--" in argv:
        walk.scope.positional = tuple(argv[argv.index("--") + 1 :])


SPECIAL: dict[str, Special] = {
    "sh": shell,
    "source": source,
    ".": source,
    "python": python,
    "pypy": python,
    "find": find,
    "gfind": find,
    "xargs": xargs,
    "gxargs": xargs,
    "tar": tar,
    "gtar": tar,
    "bsdtar": tar,
    "cd": change_folder,
    "pushd": change_folder,
    "popd": change_folder,
    "read": read_variables,
    "mapfile": read_variables,
    "readarray": read_variables,
    "getopts": read_variables,
    "printf": print_to_variable,
    "alias": alias,
    "trap": trap,
    "set": set_arguments,
    "awk": awk,
    "gawk": awk,
    "mawk": awk,
    "nawk": awk,
} | {name: interpreter for name in INLINE if "awk" not in name}


FETCHES = frozenset("curl wget fetch http https aria2c nc ncat netcat lynx w3m dig nslookup host ssh scp".split())
DECODES = frozenset("base64 base32 xxd openssl uudecode gunzip zcat bzcat xzcat gpg rev tr uncompress basenc ascii85".split())
NAMES_FILES = frozenset("ls fd fdfind rg grep egrep".split())


def output_of(name: str, argv: list[str], stdin: Flow) -> Flow:
    """Return what a command prints, as far as it matters behind a pipe or in a substitution."""
    if name == "echo":
        return _echo(argv[1:])
    if name == "printf":
        return _printf(argv[1:])
    if name in FETCHES:
        return Flow(Origin.FETCHED)
    if name in DECODES and (name not in ("base64", "base32") or not {"-d", "--decode", "-D", "-di"}.isdisjoint(argv)):
        return stdin if name == "tr" and argv[1:] == ["\\n", "\\0"] else Flow(Origin.DECODED)
    if name in ("cat", "tee") and stdin.origin is not Origin.NOTHING and (name == "tee" or len(argv) == 1 or argv[1:] == ["-"]):
        return stdin
    return _names(name, argv, stdin)


def _names(name: str, argv: list[str], stdin: Flow) -> Flow:
    if name == "cat" and len(argv) == 2 and not argv[1].startswith("-"):
        return Flow(Origin.FILE, names=(argv[1],))
    if name == "find":
        return Flow(Origin.NAMES, names=tuple(_found_below(root, argv) for root in find_roots(argv)))
    if name == "git" and len(argv) > 1 and argv[1] in ("ls-files", "diff", "status", "grep"):
        return Flow(Origin.NAMES, names=(f"./{FOUND}",))
    if name == "mktemp":
        return Flow(Origin.NAMES, names=(f"/tmp/{FOUND}",))
    if name == "pwd":
        return Flow(Origin.NAMES, names=(".",))
    if name in ("grep", "egrep", "head", "tail", "sort", "uniq", "tac") and stdin.origin is Origin.NAMES:
        return stdin
    if name in NAMES_FILES and (name not in ("grep", "egrep", "rg") or any(word[:1] == "-" and "l" in word for word in argv[1:])):
        roots = _operands(argv)[1 if name in ("grep", "egrep", "rg", "fd", "fdfind") else 0 :]
        return Flow(Origin.NAMES, names=tuple(f"{root}/{FOUND}" for root in roots or ["."]))
    return ANYTHING


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
    from constitution.shell.escapes import unescape_ansi

    return Flow(Origin.TEXT, unescape_ansi(text.replace("\\0", "\\")))
