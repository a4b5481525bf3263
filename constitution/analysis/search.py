"""Programs that search and run commands on the results, and searches for secrets."""

import re
from itertools import pairwise

from constitution.analysis.clients import unpack
from constitution.analysis.steps import BARE_SHELL, Command, Found, Script, Started, Steps
from constitution.effects import UNKNOWN, Effect
from constitution.shell.scope import NOTHING, Flow, Origin
from constitution.tables import is_a, pattern, sign, words_in
from constitution.tables.rows import is_bare_shell, read_line
from constitution.zones import FOUND, GLOB, is_private, is_within

FIND_NAMES = frozenset(
    "-name -iname -path -ipath -wholename -regex -iregex -lname -samefile -inum -empty".split()  # noqa: SIM905
)
"""Tests that narrow a search; others, such as `-mtime`, can match any file, also in `.git`."""
FIND_RUNS = ("-exec", "-execdir", "-ok", "-okdir")


def find(command: Command) -> Steps:
    """`find ROOTS TESTS -delete`, `-exec COMMAND ;`, `-fprint FILE`."""
    roots = find_roots(command.argv)
    yield from hunts_by_name(roots, command)
    for root in roots:
        yield Found(Effect.LIST, path=root)
    if UNKNOWN in command.argv[2:]:
        yield Found(Effect.UNKNOWN_COMMAND, says="run a command that is not known in advance on the files it finds")
    for index, word in enumerate(command.argv):
        names = (
            [name for root in roots for name in _found_by(root, command, index)]
            if word == "-delete" or word in FIND_RUNS
            else []
        )
        if word == "-delete":
            for path in names:
                yield Found(Effect.DELETE_TREE, path=path)
        elif word in ("-fprint", "-fprintf", "-fls", "-fprint0") and index + 1 < len(command.argv):
            yield Found(Effect.WRITE, path=command.argv[index + 1])
        elif word in FIND_RUNS:
            yield from _each_found(command.argv[index + 1 :], names)


CHANGES = frozenset("mv chmod chown shred unlink truncate sed perl".split())  # noqa: SIM905


def _found_by(root: str, command: Command, index: int) -> list[str]:
    """Return placeholders for what a search passes on: also what is in `.git`, and behind links."""
    found = [found_below(root, command.argv[:index])]
    changes = not CHANGES.isdisjoint(command.argv[index + 1 : index + 2])
    deletes = command.argv[index] == "-delete" or command.argv[index + 1 : index + 2] == ["rm"]
    if (changes or deletes) and not {"-L", "-follow"}.isdisjoint(command.argv):
        found.append(UNKNOWN)
    if found[0] == f"{root}/*" and changes and any(is_within(command.start, path) for path in command.absolute(root)):
        found.append(f"{root}/.git/{FOUND}")
    return found


def fd(command: Command) -> Steps:
    """`fd PATTERN ROOT -x COMMAND`."""
    line = command.read("-x -X --exec --exec-batch -e -t -d -E")
    starts = [index for index, word in enumerate(command.argv) if word in ("-x", "-X", "--exec", "--exec-batch")]
    for index in starts[:1]:
        before = read_line(command.argv[1:index], frozenset(["-e", "-t", "-d", "-E"])).operands
        below = FOUND if before and before[0] not in (".", "") else "*"
        names = [f"{root}/{below}" for root in before[1:] or (".",)]
        inner = command.argv[index + 1 :]
        yield from _each_found(inner if any("{" in word for word in inner) else [*inner, "{}"], names)
    for root in line.operands[1:2] if not starts else ():
        yield Found(Effect.LIST, path=root)


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


def found_below(root: str, argv: list[str]) -> str:
    """Return a placeholder for the results: `ROOT/**/NAME`, a file below the root if tests narrow it, or all."""
    narrowed = all(map(_is_narrowed, _alternatives(argv)))
    kept = (".git", ".hg", ".svn", ".jj")
    private = [
        name for test, name in pairwise(argv) if test in ("-name", "-iname") and (is_private(name) or name in kept)
    ]
    if private:
        return f"{root}/{private[0]}"
    everything = any(
        a in ("-name", "-iname", "-path", "-wholename") and b in ("*", "**", ".*", "*.*") for a, b in pairwise(argv)
    )
    if narrowed and not everything:
        names = [name for test, name in pairwise(argv) if test == "-name" and UNKNOWN not in name]
        return (
            f"{root}/**/{names[0]}"
            if len(names) == 1 and {"!", "-not", "-path", "-o"}.isdisjoint(argv)
            else f"{root}/{FOUND}"
        )
    return f"{root}/*" if "-type" in argv else root


def _alternatives(argv: list[str]) -> list[list[str]]:
    """Return the alternatives of the tests: the groups between `-o`; without brackets actions belong to the last."""
    found = [list[str]()]
    for word in argv:
        found = [*found, []] if word in ("-o", "-or", ",") else [*found[:-1], [*found[-1], word]]
    return found if "(" in argv else found[-1:]


def _is_narrowed(tests: list[str]) -> bool:
    pairs = list(pairwise(["", *tests]))
    ordinary = FIND_NAMES - {"-empty"} if ("-type", "d") in pairs else FIND_NAMES
    named = any(word in ordinary and before not in ("!", "-not") for before, word in pairs)
    return named or any(".git" in word for before, word in pairs if before in FIND_NAMES)


def _each_found(words: list[str], names: list[str]) -> Steps:
    ends = [index for index, word in enumerate(words) if word in (";", "+")]
    command = words[: ends[0]] if ends else words
    if is_bare_shell(" ".join(command)):
        yield Found(Effect.ESCAPE_SHELL, says=BARE_SHELL, program="find")
    if is_a(command[0] if command else "", "shell") and any("{}" in word for word in command[2:3]):
        yield Found(Effect.RUN_UNKNOWN_CODE, says="run the names of files as code of a shell", program="find")
    for path in names if command else ():
        yield Started([word.replace("{}", path) for word in command], NOTHING, by_shell=True)


def xargs(command: Command) -> Steps:
    """`xargs COMMAND`: the input's words are appended to the command, or replace the text of `-I`."""
    line = read_line(command.argv[1:], words_in("signs", "lists", "xargs_takes"), to_operand=True)
    marks = line.value_of("-I", "-J", "--replace") or (("{}",) if line.flags & {"-i", "--replace"} else ())
    inner = list(line.operands)
    if not inner:
        return  # it echoes
    if command.stdin.origin is Origin.ENDLESS and line.flags & {"-P", "--max-procs"}:
        yield Found(Effect.FORK_BOMB, says="start more and more programs without end")
    lines = bool(marks or line.value_of("-d", "--delimiter"))
    items = command.stdin.text.splitlines() if lines and command.stdin.origin is Origin.TEXT else _items(command.stdin)
    if marks:
        for item in items:
            yield Started([word.replace(marks[0], item) for word in inner], NOTHING, by_shell=True)
    else:
        yield Started([*inner, *items], NOTHING, by_shell=True)


def _items(stdin: Flow) -> list[str]:
    if stdin.origin is Origin.TEXT:
        return stdin.text.split()
    return list(stdin.names) if stdin.origin in (Origin.NAMES, Origin.PROCESSES) else [UNKNOWN]


PASTED = pattern(r"\b(ba|da|z|k)?sh -\w*c\s.*\{\}", re.S)


def parallel(command: Command) -> Steps:
    """`parallel COMMAND ::: A B`, `... | parallel COMMAND`: once for each, in the place of `{}`, or appended."""
    words = list(read_line(command.argv[1:], words_in("signs", "lists", "parallel_takes"), to_operand=True).operands)
    mark = next((index for index, word in enumerate(words) if word.startswith(":::")), len(words))
    inner, items = " ".join(words[:mark]) or "{}", words[mark + 1 :] or _items(command.stdin)
    if PASTED.search(inner) and command.stdin.origin is not Origin.TEXT and not words[mark + 1 :]:
        yield Found(Effect.RUN_UNKNOWN_CODE, says="run what it is given as code of a shell")
    if "::::" in words or command.argv[1:2] in (["-a"], ["--arg-file"]):
        items = [UNKNOWN]
    for item in items[:8]:
        if UNKNOWN not in item:
            yield Script(inner.replace("{}", item) if "{}" in inner else f"{inner} {item}")
    if any(UNKNOWN in item for item in items) or not items:
        yield Script(re.sub(r"\{[./#%]*\}", "$_UNKNOWN_", inner) if "{" in inner else inner)


def tar(command: Command) -> Steps:
    """`tar czf x y`: also the old syntax without a dash."""
    extracts = "x" in "".join(command.argv[1:2]).lstrip("-")[:6]
    if command.argv[1:2] == [UNKNOWN] or (extracts and UNKNOWN in command.argv[3:]):
        yield Found(Effect.UNKNOWN_COMMAND, says="do something that is not known in advance")
    if len(command.argv) > 1 and command.argv[1].isalpha() and set(command.argv[1]) & set("cxtru"):
        yield Started([command.name, "-" + command.argv[1].replace("f", "") + "f", *command.argv[2:]], command.stdin)
    line = command.read("-f --file -C --directory -T -X --exclude -I")
    if line.flags & {"-c", "--create"}:
        if any(map(GLOB.search, line.value_of("-f", "--file"))):
            yield Found(Effect.HISTORY_LOSS, says="replace the first of the files that a pattern stands for")
        for folder in line.value_of("-C", "--directory"):
            for word in line.operands:
                yield Found(Effect.READ_TREE, path=f"{folder}/{word}")
                yield Found(Effect.READ, path=f"{folder}/{word}")
    if extracts or sign("unpacks").match(" ".join(command.argv)):
        yield from unpack(command)


def archive(command: Command) -> Steps:
    """`find FOLDER | cpio -o`: with names in the input the files are read; else an archive may be unpacked."""
    if any(re.match(r"-[a-zA-Z]*[opw]|--(create|pass-through)", word) for word in command.argv[1:]):
        for path in _items(command.stdin):
            yield Found(Effect.READ, path=path)
            yield Found(Effect.READ_TREE, path=path)
    yield from unpack(command)


EVERYWHERE = pattern(r"^(/|/(etc|home|root|var|Users|opt|srv|mnt|tmp|data)(/\*?)?|~/?|/(home|Users)/[^/]+/?)$")
NAME_TESTS = ("-name", "-iname", "-path", "-regex", "-iregex", "-wholename")
HUNTS = "search for secrets everywhere"


def _is_everywhere(folder: str, command: Command) -> bool:
    return any(EVERYWHERE.match(path) or path == command.home for path in command.absolute(folder))


def hunts(command: Command) -> Steps:
    """`grep -r password /`."""
    line = command.read("-e --regexp -f -A -B -C -m -g -t --include")
    recursive = command.name in ("rg", "ag", "ack") or line.flags & {"-r", "-R", "--recursive"}
    patterns = line.value_of("-e", "--regexp") or line.operands[:1]
    folders = line.operands[0 if line.value_of("-e", "--regexp") else 1 :]
    if not any(map(sign("searches_secrets").search, patterns)):
        return
    if command.stdin.names == ("env",):
        yield Found(Effect.SHOW_SECRETS, says="show the keys in the environment")
    if not recursive:
        return
    if any(_is_everywhere(folder, command) for folder in folders or (".",)):
        yield Found(Effect.HUNT, says=HUNTS)


def hunts_by_name(roots: list[str], command: Command) -> Steps:
    """`find / -name id_rsa`, `find / -perm -4000`."""
    pairs = list(pairwise(command.argv[1:]))
    named = any(test in NAME_TESTS and _names_secrets(word) for test, word in pairs)
    privileged = any(test == "-perm" and re.match(r"[-/]?(u[+=]s|[46][0-7]{3}|u=s)", word) for test, word in pairs)
    if (named or privileged) and any(_is_everywhere(root, command) for root in roots):
        yield Found(Effect.HUNT, says=HUNTS)


def _names_secrets(word: str) -> bool:
    return is_private(word.replace("*", "x")) or sign("names_secrets").search(word) is not None


def locate(command: Command) -> Steps:
    """`locate id_rsa`."""
    if any(_names_secrets(word) for word in command.argv[1:] if not word.startswith("-")):
        yield Found(Effect.HUNT, says=HUNTS)


def serve(command: Command) -> Steps:
    """`python -m http.server -d FOLDER`, `http-server FOLDER`, `busybox httpd -h FOLDER`: the folder is served."""
    line = command.read("-d --directory -h -p -a -b --bind --port -l -r")
    folders = line.value_of("-d", "--directory", "-h", "-r") or [w for w in line.operands if not w.isdigit()] or (".",)
    for folder in folders:
        yield Found(Effect.SHARE_TREE, path=folder, says="offer everything in {path} to others")
    if line.value_of("-b", "--bind", "-a") and not {"0.0.0.0", "::"}.isdisjoint(command.argv):
        yield Found(Effect.LISTEN, says="serve other machines too")


def own_server(command: Command) -> Steps:
    """`php -S ADDRESS -t FOLDER`, `ruby -run -e httpd FOLDER`."""
    line = command.read("-S -t")
    if command.name == "php" and line.value_of("-S"):
        yield from serve(command.with_argv(["php", "-d", *(line.value_of("-t") or (".",))]))
    if command.name == "ruby" and "-run" in command.argv and "httpd" in command.argv:
        yield from serve(command.with_argv(command.argv[command.argv.index("httpd") :]))
