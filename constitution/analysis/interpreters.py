"""Interpreters and consoles of other languages: code in an option, in a file, or in the input."""

import re
from typing import Any

from constitution.analysis.clients import database
from constitution.analysis.other_code import (
    Reading,
    deeds_in,
    language_of,
    read_any,
    read_awk,
    read_code,
    read_tcl,
)
from constitution.analysis.program_rows import secrets_in_code
from constitution.analysis.python_code import read_python
from constitution.analysis.search import own_server, serve
from constitution.analysis.shells import run_file, run_input, run_script
from constitution.analysis.steps import Command, Found, Read, Script, Sent, Started, Steps, as_script, as_typed
from constitution.effects import UNKNOWN, Effect
from constitution.shell.scope import ANYTHING, Origin
from constitution.tables import pattern, sign, table, word_list
from constitution.tables.rows import code_options, read_line
from constitution.zones import FETCHED

PYTHON_TAKES = frozenset(["-W", "-X", "--check-hash-based-pycs"])


def python(command: Command) -> Steps:
    """`python -c CODE`, `python FILE`, `python -m MODULE`, `python -`."""
    line = read_line(command.argv[1:], PYTHON_TAKES | {"-c", "-m"}, to_operand=True)

    def read(code: str) -> Steps:
        yield from touched(read_python(code), code)

    for code in line.value_of("-c"):
        yield from read(code)
    for module in line.value_of("-m")[:1]:
        behind = command.argv.index(module) + 1 if module in command.argv else len(command.argv)
        yield from _python_module(module, command.argv[behind:], command, read)
        for file in (
            command.argv[behind:] if module in table("languages")["python"]["modules"]["run_files"].split() else ()
        ):
            yield from run_file(file, read) if file.endswith(".py") else ()
    if line.value_of("-c", "-m") or line.flags & {"-V", "--version", "-h", "--help"}:
        return
    yield from run_script(line.operands, command.stdin, read)


def _python_module(module: str, words: list[str], command: Command, read: Read) -> Steps:
    """`python -m MODULE`: most are programs of the same name; a few take code, unpack files, or need approval."""
    modules: dict[str, Any] = table("languages")["python"]["modules"]
    if module in modules["programs"].split():
        yield Started([module, *words], command.stdin)
    elif module in modules["renamed"]:
        yield Started([modules["renamed"][module], *words], command.stdin)
    elif module in modules["servers"].split():
        yield from serve(command.with_argv(["http.server", *words]))
    elif module in modules["take_code"].split():
        for code in (word for word in words if not word.startswith("-") and re.search(r"\W", word)):
            yield from read(code)
    elif module in modules["archives"].split() and {"-e", "--extract"}.intersection(words):
        yield Found(Effect.WRITE, path=words[-1])
    elif module in modules["consoles"].split():
        yield from run_input(command.stdin, read)
    elif module == "django":
        yield from console(command.with_argv(["manage.py", *words]))
    elif module in modules["asked"].split():
        yield Found(Effect.RISKY_CODE, says=f"run the Python module {module}")


def interpreter(command: Command) -> Steps:
    """Perl, Ruby, Node and others with code in an option, in a file, or in their input."""
    options, language = code_options(command.name), language_of(command.name)
    row = table("languages").get(language, {})
    words = [row.get("same", {}).get(word, word) for word in command.argv[1:]]
    loads: dict[str, str] = row.get("loads", {})
    line = read_line(words, options | {"-I", *loads, *row.get("takes", "").split()}, to_operand=True)
    codes = line.operands[1:2] if "eval" in options and line.operands[:1] == ("eval",) else line.value_of(*options)
    loaded = "".join(loads[name].format(*value.split("=", 1), "") for name, value in line.values if name in loads)
    yield from own_server(command)
    if any(map(WRITTEN_OUT.match, command.argv[1:])):
        yield Found(Effect.RISKY_CODE, says="load code given in an option")

    def read(code: str) -> Steps:
        reading = read_tcl(code) if language == "tcl" else read_code(loaded + code, language)
        yield from touched(reading, code)
        if language in ("r", "rare"):
            yield from touched(read_any(code), code)

    for code in codes or ([""] if loaded else []):
        yield from read(code)
    for word in line.operands if language == "perl" and {"-n", "-p"} & line.flags else ():
        if word[:1] == "|" or word[-1:] == "|":
            yield Script(word.strip("| "))  # `<>` may start a program instead of reading a file
    if codes and "-i" in line.flags:
        for file in line.operands:
            yield Found(Effect.WRITE, path=file, says="edit {path}")
    if codes or line.flags & {"-v", "--version", "--help", "-h", "-c", "--check"}:
        return
    yield from run_script(line.operands, command.stdin, read)


def any_language(command: Command) -> Steps:
    """Interpreters of other languages, with code in an option or in their input."""
    options = code_options(command.name, "any_code")
    line = read_line([word.replace(":", "=", 1) for word in command.argv[1:]], options, long_style=True)
    codes = [
        *line.value_of(*options),
        *(line.operands[1:2] if line.operands[:1] == ("eval",) else ()),
        *([command.stdin.text] if command.stdin.text else []),
    ]
    codes += [word for word in command.argv[1:] if "write18" in word]
    for code in codes:
        yield from touched(read_code(code), code)
        yield from touched(read_any(code), code)


WRITTEN_OUT = pattern(r"(?:-[^=]*=)?data:")

AWK_DUMPS = pattern(r"-[dop](.+)|--(?:dump-variables|profile|pretty-print)=(.+)")


def awk(command: Command) -> Steps:
    """awk: the code is the first operand, the value of `-e`, or the file of `-f`."""
    line = read_line(command.argv[1:], word_list("awk_takes"), to_operand=True)
    operands, codes = list(line.operands), list(line.value_of("-e", "--source"))
    files = line.value_of("-f", "--file", "-E", "--exec")
    libraries = line.value_of("-i", "--include")

    def read(code: str) -> Steps:
        yield from touched(read_awk(code), code)

    for file in (*files, *(name for name in libraries if name != "inplace")):
        yield from run_script([file], command.stdin, read)
    if line.value_of("-l", "--load"):
        yield Found(Effect.RISKY_CODE, says="load a library into awk")
    if not files and not codes:
        codes, operands = operands[:1], operands[1:]
    for code in codes:
        yield from read(code)
    for match in filter(None, map(AWK_DUMPS.fullmatch, command.argv[1 : len(command.argv) - len(operands)])):
        yield Found(Effect.WRITE, path=match[1] or match[2])
    for file in (word for word in operands if not AWK_SETTING.match(word)):
        if "inplace" in libraries:
            yield Found(Effect.WRITE, path=file, says="edit {path}")
        else:
            yield Found(Effect.READ, path=file)


AWK_SETTING = pattern(r"[A-Za-z_]\w*=")


def touched(reading: Reading, code: str) -> Steps:
    """Report the effects of inline code."""
    if UNKNOWN in code:
        effect = Effect.RUN_FETCHED_CODE if FETCHED in code else Effect.RUN_UNKNOWN_CODE
        yield Found(effect)
    for script in reading.scripts:
        yield from as_typed(script)
    for script in reading.fed:
        yield Script(script, ANYTHING)
    for kind, path in reading.paths:
        says = "pass {path} to other code" if kind == "unknown_program" else ""
        yield Found(Effect[kind.upper()], path=path or UNKNOWN, says=says)
    for deed in (*reading.deeds, *deeds_in(code)):
        if deed == "sends":
            yield Sent()
            continue
        row = table("languages")["deeds"][deed]
        yield Found(Effect[row["effect"].upper()], says=row["says"])
    yield from secrets_in_code(code)
    for risk in reading.risks:
        yield Found(Effect.RISKY_CODE, says=risk)


TAKES = frozenset(["-e", "--environment", "-c", "--command", "--eval", "--execute", "-S", "-x", "--settings", "-r"])


def in_framework(name: str, code: str) -> Steps:
    """Read code that runs within an application."""
    if not code:
        return
    reading = read_python(code) if name in ("ipython", "flask", "python", "jupyter") else read_code(code)
    for text in (text for found in sign("notebook_commands").findall(code) for text in found if text):
        yield Script(text)
    if name in ("ipython", "flask", "jupyter") and sign("notebook_commands").search(code):
        reading = read_python(sign("notebook_commands").sub("", code))
    yield from touched(reading, code)
    if sign("loses_records").search(code):
        yield Found(Effect.DATABASE_LOSS, says="delete from a database")
    elif sign("changes_records").search(code):
        yield Found(Effect.RISKY_CODE, says="change the data of an application")


def console(command: Command) -> Steps:
    """`rails runner CODE`, `artisan tinker --execute CODE`, `mix run -e CODE`, `ipython -c CODE`."""
    words = command.argv[1:]
    codes = list(read_line(words, TAKES).value_of("-c", "--command", "--eval", "--execute"))
    if command.name in ("mix", "iex"):
        codes += read_line(words, TAKES).value_of("-e")
    operands = read_line(words, TAKES).operands
    if operands[:1] in (("runner",), ("r",)) and len(operands) > 1:
        if re.fullmatch(r"[\w./-]+\.rb", operands[1]):
            yield from run_file(operands[1])
        else:
            codes.append(operands[1])
    for code in codes:
        yield from in_framework(command.name, code)
    if not codes and command.stdin.origin is Origin.TEXT:
        yield from run_input(command.stdin, lambda text: in_framework(command.name, text))


def python_console(command: Command) -> Steps:
    """`python manage.py shell -c CODE`, beside the effects of Python."""
    yield from python(command)
    yield from _behind(("manage.py", "manage"), command)


def php_console(command: Command) -> Steps:
    """`php artisan tinker --execute CODE`, beside the effects of PHP."""
    yield from interpreter(command)
    yield from _behind(("artisan", "console"), command)


def _behind(files: tuple[str, ...], command: Command) -> Steps:
    for index, word in enumerate(command.argv[1:3], 1):
        if word.rpartition("/")[2] in files and command.argv[index + 1 : index + 2] in (
            ["shell"],
            ["tinker"],
            ["shell_plus"],
        ):
            yield from console(command.with_argv(command.argv[index:]))


def client(command: Command) -> Steps:
    """A client of a database, with statements in its words or in its input."""
    yield from database(command)
    for file in command.stdin.names if command.stdin.origin is Origin.FILE else ():
        yield Found(Effect.EXECUTE, path=file)
    for code in (word for word in (*command.argv[1:], command.stdin.text) if "require(" in word):
        yield from touched(read_code(code, "javascript"), code)
    if command.stdin.origin not in (Origin.NOTHING, Origin.TEXT) and (
        any(map(ELSEWHERE.search, command.argv[1:]))
        or any(map(REMOTE.match, read_line(command.argv[1:], HOSTS).value_of("-h", "--host")))
    ):
        says = "change a database of another machine"
        yield Found(Effect.CLOUD_CHANGE, says=says)
    yield from files_in(command)


def batch(command: Command) -> Steps:
    """`sbatch --wrap SCRIPT`, `sbatch FILE`, `sbatch <<EOF`: shell text that runs on a cluster."""
    line = read_line(command.argv[1:], word_list("batch_takes"), to_operand=True)
    for script in line.value_of("--wrap"):
        yield Script(script)
    if line.value_of("--wrap") or line.flags & {"--help", "-h", "--version", "--test-only"}:
        return
    if command.name == "bsub" and line.operands:
        yield Script(" ".join(line.operands))
    else:
        yield from run_script(line.operands, command.stdin, as_script)


ELSEWHERE = pattern(
    r"^\0|(?<![A-Za-z])(?:prod|production|staging|PROD|PRODUCTION|STAGING)(?![A-Za-z])"
    r"|^\w+://(?:[^/@]*@)?(?!localhost|127\.|db[:/])[\w-]+\."
)


HOSTS = frozenset(["-h", "--host", "-u", "-p", "-P", "-U", "-d"])
REMOTE = pattern(r"(?!localhost$|127\.|::1$|db$|/)[\w-]+(\.[\w-]+)+$")


def files_in(command: Command) -> Steps:
    """Files and addresses that statements of a database name: `COPY x TO 's3://b/y'`, `read_text('/home/me/x')`."""
    for text in [*command.argv[1:], command.stdin.text]:
        if "'" not in text:
            continue
        for path in sign("statement_reads").findall(text):
            yield Found(Effect.READ, path=path)
        for path in sign("statement_writes").findall(text):
            yield Found(Effect.WRITE, path=path)
            yield Found(Effect.DISCARD, path=path)
        if sign("statement_sends").search(text):
            yield Found(Effect.UPLOAD, says="send data to another machine")
