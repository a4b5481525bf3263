"""The few programs that need code: builtins that change the shell, and programs that start others or run text."""

import re
from collections.abc import Mapping
from functools import cache
from itertools import pairwise

from constitution import programs
from constitution.inline_code import inline
from constitution.places import FETCHED, FOUND, UNKNOWN, absolute
from constitution.programs import Line, read_line
from constitution.walk import LOCAL, Special, Walk
from constitution.words import known

# Builtins of shells


def change_folder(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`cd`, `pushd`: later words are taken from there; if it fails, from here."""
    operands = [word for word in words if word == "-" or not word.startswith("-")]
    target = operands[0] if operands else walk.state.home
    state = walk.state
    state.left = tuple(dict.fromkeys(state.cwds + state.left))
    state.cwds = (UNKNOWN,) if target == "-" or name == "popd" else from_here(walk, target)
    return ""


def from_here(walk: Walk, target: str) -> tuple[str, ...]:
    """Return a folder, from every folder in which the shell may be."""
    return tuple(dict.fromkeys(absolute(target, cwd, walk.state.home) for cwd in walk.state.cwds))


def evaluate(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`eval`: the words are a script."""
    return walk.script(" ".join(words))


def source(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`source FILE`, `. FILE`."""
    for word in words[:1]:
        if FETCHED in word:
            walk.add("fetched_code")
        else:
            walk.run(word)
    return UNKNOWN


def trap(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`trap SCRIPT SIGNAL`."""
    if words and words[0] not in ("-", "-p", "-l", ""):
        walk.script(words[0])
    return ""


def alias(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`alias name=script`: judged as if it were used."""
    for word in words:
        called, equals, script = word.partition("=")
        if equals:
            walk.script(script)
            walk.state.functions.add(called)
            walk.state.set(f"alias {called}", (script,))
    return ""


def read_variables(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`read NAMES`: each gets a line of the input."""
    lines: tuple[str, ...] = (FETCHED,) if FETCHED in stdin else (UNKNOWN,)
    if stdin and known(stdin):
        lines = tuple(stdin.split("\n")[:-1] or [stdin])
    for word in read_line(words, programs.takes("read")).operands or ("REPLY",):
        walk.state.set(word, lines)
    return ""


def echo(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`echo`: its words are its output."""
    options = 0
    while options < len(words) and re.fullmatch(r"-[neE]+", words[options]):
        options += 1
    text = " ".join(words[options:])
    return (text.replace("\\n", "\n") if options else text) + "\n"


def print_formatted(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`printf`: its words are its output, as far as the format is a plain one."""
    if words[:1] == ["-v"]:
        walk.state.set([*words, ""][1], (UNKNOWN,))
        return ""
    if not words:
        return ""
    form, *values = words
    if re.search(r"\\(?!n)|%(?!s)", form):
        return FETCHED if FETCHED in "".join(words) or "\\x" in form else UNKNOWN
    form, count = form.replace("\\n", "\n"), max(form.count("%s"), 1)
    if "%s" not in form:
        return form
    return "".join(_fill(form, values[at : at + count]) for at in range(0, max(len(values), 1), count))


def _fill(form: str, values: list[str]) -> str:
    rest = iter(values)
    return re.sub("%s", lambda _: next(rest, ""), form)


def test(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`[`, `[[`, `test`, `:`: nothing happens to their words, but an index may run a script."""
    if any(re.search(r"\[.*(\$\(|`)", word) for word in words):
        walk.add("unknown_code")
    return ""


def show_folder(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`pwd`."""
    return walk.state.cwds[0] + "\n"


# Programs that start others


def shell(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`sh -c SCRIPT`, `sh FILE`, and a script in its input."""
    line = read_line(words, programs.takes("sh"), to_operand=True)
    if line.flags & {"-n", "--version", "--help"}:
        return UNKNOWN
    if line.flags & {"--rcfile", "--init-file"}:
        walk.add("unknown_code")
    if "-c" in line.flags and line.operands:
        state, walk.state = walk.state, walk.state.copy()
        output = walk.script(line.operands[0])
        walk.state = state
        return output
    if line.operands and "-s" not in line.flags:
        return source(walk, name, list(line.operands), stdin)
    if stdin and FETCHED not in stdin:
        return walk.script(stdin)
    walk.add("fetched_code" if stdin else "unknown_code")
    return UNKNOWN


def look_up(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`command -v`, and `command` as a wrapper."""
    return "1\n" if words and re.match(r"-[vV]", words[0]) else walk.by_row(name, words, stdin)


def environment(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`env`: shows the environment, or starts a command in a changed one."""
    if words and (split := re.match(r"(?:-v?S|--split-string=?)(.*)", words[0], re.S)):
        return walk.script(" ".join([split[1], *words[1:]]))
    line = read_line(words, programs.takes("env"), to_operand=True)
    if not [each for each in line.operands if "=" not in each] and "--version" not in line.flags:
        walk.add("show_environment")
        return UNKNOWN
    return walk.by_row(name, words, stdin)


def xargs(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`xargs COMMAND`: the words of the input are more operands."""
    line = read_line(words, programs.takes("xargs"), to_operand=True)
    is_known = bool(stdin) and known(stdin) and len(stdin) < 4000
    inputs = stdin.split() if is_known else [FETCHED if FETCHED in stdin else UNKNOWN]
    argv, mark = list(line.operands) or ["echo"], (line.value_of("-I", "--replace", "-J") or [""])[-1]
    argv = replaced(argv, mark, inputs) if mark else argv + inputs
    if argv[0] in programs.words("shells") and "-c" in argv and not mark:
        argv = argv[: argv.index("-c") + 2]
        if re.search(r"\$[@*0-9{]", argv[-1]):
            return walk.script(argv[-1])
    return walk.invoke(argv, "")


def replaced(argv: list[str], mark: str, values: list[str]) -> list[str]:
    """Return a command with a mark in its words replaced by each of some values."""
    return [
        each for word in argv for each in ([word.replace(mark, value) for value in values] if mark in word else [word])
    ]


NARROWS = frozenset({"-name", "-iname", "-path", "-regex", "-newer", "-size", "-empty", "-perm", "-user"})
NAMES = frozenset({"-name", "-iname", "-path", "-wholename"})


def find(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`find`: where it looks, and what it does with what it finds."""
    while words[:1] and words[0] in ("-H", "-L", "-P"):
        words = words[1:]
    end = next((at for at, word in enumerate(words) if word[:1] in ("-", "(", "!")), len(words))
    roots, tests = words[:end] or ["."], words[end:]
    found = [f"{root.rstrip('/') or '/'}/{FOUND}" for root in roots]
    found += names_sought(walk, roots, tests)
    for root in roots:
        if walk.place(root).name in ("home_root", "keeps_secrets", "secret", "denied", "own"):
            walk.path("search", root)
    is_whole = not any(word in NARROWS for word in tests)
    for position, word in enumerate(tests):
        rest = tests[position + 1 :]
        if word == "-delete":
            for each in [root for root in roots if is_whole] or found:
                is_tree = is_whole or walk.place(each).worth > 2
                walk.path("delete_tree" if is_tree else "delete", each)
        elif word in ("-fprint", "-fls", "-fprint0", "-fprintf"):
            walk.path("write", (rest or [UNKNOWN])[0])
        elif word in ("-exec", "-execdir", "-ok", "-okdir"):
            run_on_found(walk, rest, found, roots if is_whole else [])
    return "".join(each + "\n" for each in found)


def names_sought(walk: Walk, roots: list[str], tests: list[str]) -> list[str]:
    """Return the paths of the secrets that a `find` names, and record that it hunts for them."""
    named = [following for word, following in pairwise(tests) if word in NAMES]
    if not any(map(programs.sign("secret_names").search, named)):
        return []
    if any(walk.place(root).worth > 3 and walk.place(root).name != "root" for root in roots):
        walk.add("hunt")
    return [f"{root.rstrip('/')}/{each}" for root in roots for each in named]


def run_on_found(walk: Walk, words: list[str], found: list[str], whole: list[str]) -> None:
    """Judge `-exec COMMAND ;` for everything that a `find` finds; `whole`: folders of which it finds all."""
    end = next((at for at, each in enumerate(words) if each in (";", "+")), len(words))
    argv = replaced(words[:end], "{}", found)
    if argv:
        walk.invoke(argv, "")
        for root in whole if argv[0] == "rm" else ():
            walk.path("delete_tree", root)


# Interpreters


def interpreter(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """An interpreter: inline code is a question, a file is run, a module is a program."""
    options, values = programs.interpreters()[name]
    line = read_line(words, options | values, to_operand=True)
    if name == "python" and (module_or_code := python_option(words)) is not None:
        return run_python(walk, words, *module_or_code)
    if line.given(options):
        inline(walk, name, "\n".join(line.value_of(*options)))
        for each in line.operands if name == "perl" else ():
            walk.path("write" if line.flags & {"-i", "-pi"} else "read", each)
    elif asks_only(line) or (name == "node" and "--test" in {*line.flags, *line.operands[:1]}):
        pass
    elif line.operands and line.operands[0] != "-":
        run_file(walk, name, words, line, stdin)
    elif FETCHED in stdin:
        walk.add("fetched_code")
    elif stdin or not line.operands:
        inline(walk, name, stdin)
    return UNKNOWN


def asks_only(line: Line) -> bool:
    """Return whether an interpreter only checks a file, or shows its version."""
    asks = {"-v", "-V", "--version", "--help", "-h", "--check", "-l"}
    return bool(line.flags & asks) and not line.flags & {"-r", "--require"}


def run_file(walk: Walk, name: str, words: list[str], line: Line, stdin: str) -> None:
    """Judge a file that an interpreter runs, or a subcommand of one that has some."""
    if name in ("deno", "bun") and programs.row_of(name, words):
        walk.by_row(name, words, stdin)
        return
    walk.paths_named(words, {line.operands[0]}, settings=True)
    before, walk.argv = walk.argv, [name, *line.operands[1:]]
    source(walk, name, [line.operands[0]], stdin)
    walk.argv = before


def python_option(words: list[str]) -> tuple[str, str, list[str]] | None:
    """Return `c` or `m`, what is behind it, and the rest, if Python runs code of its command line or a module."""
    for at, word in enumerate(words):
        if match := re.match(r"-[bBdEhiIOqsSuvVWx]*([cm])(.*)", word, re.S):
            value, rest = match[2], words[at + 1 :]
            return (match[1], value, rest) if value else (match[1], [*rest, UNKNOWN][0], rest[1:])
        if not word.startswith("-"):
            return None
    return None


def run_python(walk: Walk, words: list[str], kind: str, value: str, rest: list[str]) -> str:
    """Judge `python -c CODE` and `python -m MODULE`."""
    if kind == "c":
        inline(walk, "python", value)
        walk.paths_named(rest, frozenset())
        return UNKNOWN
    module = value if value in ("http.server", "json.tool") else value.partition(".")[0]
    if programs.knows(module):
        return walk.by_row(module, rest, "")
    return walk.by_row("python-module", [value, *rest], "")


# Programs with languages or data of their own

WRITTEN = ("-o", "--output", "-O", "--output-document", "-D", "--dump-header", "-c", "--cookie-jar", "-P")
UPLOADED = ("-T", "--upload-file", "--post-file", "--body-file")
READ = (*UPLOADED, "--cert", "--key", "-E", "--cacert")
SENT = (
    *("-d", "--data", "--data-binary", "--data-raw", "--data-ascii", "--data-urlencode", "-F", "--form"),
    *(*UPLOADED, "--post-data", "--body-data", "--json"),
)


def download(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`curl`, `wget`: from this machine or another, to the output or a file, with or without data."""
    line = read_line(words, programs.takes(name))
    addresses = [word for word in line.operands if re.search(r"[:/.]|localhost", word)] + line.value_of("--url")
    is_local = bool(addresses) and all(LOCAL.match(each) for each in addresses)
    files_of_download(walk, name, line, addresses)
    sent = line.value_of(*SENT)
    for part in (part for value in sent for part in re.findall(r"[@<]([^;,]+)", value)):
        walk.path("read", part)
    is_hidden = any(not known(word) for word in addresses) or bool(line.value_of("--unix-socket"))
    if is_hidden:
        walk.add("network")
    elif not is_local:
        walk.add("send" if sent else "network")
    return UNKNOWN if is_local else FETCHED


def files_of_download(walk: Walk, name: str, line: Line, addresses: list[str]) -> None:
    """Record the files that `curl` or `wget` reads and writes."""
    written = [each for each in line.value_of(*WRITTEN) if each not in ("-", "", "-O")]
    for value in (each for each in written if not (name == "curl" and each.startswith("http"))):
        walk.path("write", value)
        walk.state.files[walk.absolute(value)] = FETCHED
    for kind, options in (("read", READ), ("setting", ("-K", "--config"))):
        for value in line.value_of(*options):
            walk.path(kind, value)
    to_output = {"-O", "--output-document", "--spider"}
    is_named = bool(line.flags & {"-O", "--remote-name"}) if name == "curl" else not line.flags & to_output
    for each in addresses if is_named else ():
        file = re.sub(r"[?#].*", "", each).rstrip("/").rpartition("/")[2] or "index.html"
        walk.path("write", file)
        walk.state.files[walk.absolute(file)] = FETCHED


SED_WRITES = re.compile(
    r"(^|[;}\n]|\d|\$|/[Igp]*\s*)\s*[wWrRe]\s+\S|(/|\||#|,)[0-9Igmp]*[ew][0-9Igmp]*(\s|$|;)|^\s*[0-9,$]*\s*e\b"
)


def sed(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`sed`: files are read, or changed with `-i`; scripts that run or write are a question."""
    words = ["-i" if re.fullmatch(r"-i[^nEersz]*", word) else word for word in words]
    line = read_line(words, programs.takes("sed"))
    scripts, operands = line.value_of("-e", "--expression"), list(line.operands)
    if not scripts and not line.value_of("-f", "--file") and operands:
        scripts.append(operands.pop(0))
    for script in scripts:
        if script in (UNKNOWN, FETCHED) or SED_WRITES.search(re.sub(r"\\.", "", script)):
            walk.add("code")
    kind = "write" if line.flags & {"-i", "--in-place"} else "read"
    return filtered(walk, line.value_of("-f", "--file"), kind, operands, stdin)


AWK_STARTS = re.compile(r"system\s*\(|getline|@load|@include|\|\s*&?\s*(\"|[a-z])")
AWK_WRITES = re.compile(r"print[^;}\n]*>\s*[^;}\n]*[\"$\w]")


def awk(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`awk`: files are read; programs that start others or write files are a question."""
    line = read_line(words, programs.takes("awk"))
    operands = list(line.operands)
    if not line.value_of("-f", "--file"):
        script = operands.pop(0) if operands else ""
        without_parentheses = re.sub(r"\([^()]*\)", "", script)
        is_more = AWK_STARTS.search(script.replace("||", "")) or AWK_WRITES.search(without_parentheses)
        if is_more or not known(script):
            walk.add("code")
            for command in re.findall(r"system\s*\(\s*\"([^\"]*)", script):
                walk.script(command)
    files = [each for each in operands if "=" not in each]
    return filtered(walk, line.value_of("-f", "--file"), "read", files, stdin)


def filtered(walk: Walk, scripts: list[str], kind: str, files: list[str], stdin: str) -> str:
    """Judge the files of a filter and its scripts; return what it prints."""
    for file in scripts:
        walk.path("run", file)
    for each in files:
        walk.path(kind, each)
    if files:
        return UNKNOWN
    return FETCHED if FETCHED in stdin else stdin if FOUND in stdin else UNKNOWN


def git(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`git`: settings and other repositories before the subcommand can make it run anything."""
    line = read_line(words, programs.takes("git"), to_operand=True)
    for setting in line.value_of("-c", "--config-env"):
        if not programs.sign("harmless_git_settings").match(setting):
            walk.add("configure", note=setting)
    for value in line.value_of("--exec-path", "--git-dir", "--work-tree", "--namespace"):
        walk.path("setting", value)
    before = walk.state.cwds
    for folder in line.value_of("-C"):
        walk.path("setting", folder)
        walk.state.cwds = from_here(walk, folder)
    output = walk.by_row("git", list(line.operands), stdin)
    walk.state.cwds = before
    return walk.places.workspace + "\n" if line.operands[:2] == ("rev-parse", "--show-toplevel") else output


def end_processes(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`kill`: all processes, some that cannot be known, or those that are named."""
    if words[:1] in (["-s"], ["-n"]):
        words = words[2:]
    elif len(words) > 1 and re.match(r"-[A-Z0-9]", words[0]):
        words = words[1:]
    if any(word in ("-1", "0", "1") for word in words):
        walk.add("kill_all")
    elif any(word.lstrip("-") == "$PPID" or f"/proc/{word.lstrip('-')}" in walk.places.own for word in words):
        walk.add("act_as_user", note="end the agent")
    elif not all(map(known, words)):
        walk.add("kill")
    return ""


def temporary(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`mktemp`: a new name in the folder for temporary files, or in the one that is named."""
    line = read_line(words, programs.takes("mktemp"))
    named = [each for each in line.operands if "/" in each]
    return (named[0].replace("X", "1") if named else "/tmp/tmp.1") + "\n"


def disk_copy(walk: Walk, name: str, words: list[str], stdin: str) -> str:
    """`dd`: reads `if=`, writes `of=`."""
    walk.add("raw_copy")
    for word in words:
        key, _, value = word.partition("=")
        if key == "of" or (key == "if" and walk.place(value).name != "sink"):
            walk.path({"if": "read", "of": "write"}[key], value)
    is_endless = not any(word.startswith("count=") for word in words)
    if is_endless and {"if=/dev/zero", "if=/dev/urandom"}.intersection(words):
        walk.add("exhaust")
    return UNKNOWN


BY_NAME: Mapping[str, Special] = {
    "cd pushd popd": change_folder,
    "eval": evaluate,
    "source .": source,
    "trap": trap,
    "alias": alias,
    "read": read_variables,
    "echo": echo,
    "printf": print_formatted,
    "[ [[ test : true false": test,
    "pwd": show_folder,
    "command": look_up,
    "env": environment,
    "xargs": xargs,
    "find": find,
    "curl wget": download,
    "sed gsed": sed,
    "awk gawk mawk nawk": awk,
    "git": git,
    "kill": end_processes,
    "mktemp": temporary,
    "dd": disk_copy,
}


@cache
def special_programs() -> Mapping[str, Special]:
    """Return the code for programs, by name."""
    found = {name: code for names, code in BY_NAME.items() for name in names.split()}
    interpreters = dict.fromkeys(programs.interpreters(), interpreter)
    return {**dict.fromkeys(programs.words("shells"), shell), **interpreters, **found}
