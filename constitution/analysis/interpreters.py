"""Interpreters and consoles of other languages: code in an option, in a file, or in the input."""

import re

from constitution.analysis.clients import database
from constitution.analysis.other_code import (
    SED_INSERTS,
    SED_READS,
    SED_SCRIPT,
    SED_STARTS,
    SED_WRITES,
    Reading,
    deeds_in,
    read_any,
    read_awk,
    read_code,
    read_tcl,
)
from constitution.analysis.program_rows import secrets_in_code
from constitution.analysis.python_code import read_python
from constitution.analysis.search import own_server, serve
from constitution.analysis.shells import INPUTS, run_file, run_input
from constitution.analysis.steps import (
    BARE_SHELL,
    Command,
    Found,
    Script,
    Sent,
    Started,
    Steps,
    Wrote,
    as_script,
)
from constitution.effects import Effect
from constitution.shell.flow import Flow, Origin
from constitution.tables.rows import code_options, is_bare_shell, read_line
from constitution.zones import FETCHED, UNKNOWN

__all__ = [
    "any_language",
    "awk",
    "batch",
    "calculator",
    "client",
    "console",
    "gradle",
    "interpreter",
    "php_console",
    "python",
    "python_console",
    "sed",
    "touched",
]

PYTHON_TAKES = frozenset(["-W", "-X", "--check-hash-based-pycs"])


def python(command: Command) -> Steps:
    """`python -c CODE`, `python FILE`, `python -m MODULE`, `python -`."""
    line = read_line(command.argv[1:], PYTHON_TAKES | {"-c", "-m"}, to_operand=True)

    def read(code: str) -> Steps:
        yield from touched(read_python(code), code)

    for code in line.value_of("-c"):
        yield from read(code)
    modules = line.value_of("-m")
    if modules and modules[0] in ("timeit", "cProfile", "pdb"):
        for code in (word for word in line.operands if not word.startswith("-") and re.search(r"\W", word)):
            yield from read(code)
    if modules and modules[0] in ("http.server", "SimpleHTTPServer"):
        yield from serve(command.with_argv(["http.server", *line.operands]))
    if modules and modules[0] in ("venv", "virtualenv"):
        yield Started(["virtualenv", *line.operands], command.stdin)
    if modules and modules[0] in ("pip", "pipx", "twine", "pytest", "mypy", "black"):
        yield Started([modules[0], *line.operands], command.stdin)
    if line.value_of("-c", "-m") or line.flags & {"-V", "--version", "-h", "--help"}:
        return
    if line.operands and line.operands[0] not in INPUTS:
        yield from run_file(line.operands[0], read)
    else:
        yield from run_input(command.stdin, read)


TCL = ("expect", "tclsh", "wish")
JAVASCRIPT = ("node", "nodejs", "deno", "bun", "tsx", "ts-node")
RARE = ("julia", "R", "Rscript", "elixir", "groovy", "scala", "ghc", "swipl", "raku")


def interpreter(command: Command) -> Steps:
    """Perl, Ruby, Node and others with code in an option, in a file, or in their input."""
    options = code_options(command.name)
    line = read_line(
        command.argv[1:], options | {"-I", "-M", "-r"} - ({"-r"} if command.name == "ruby" else set()), to_operand=True
    )
    codes = line.value_of(*options)
    yield from own_server(command)
    if "eval" in options and line.operands[:1] == ("eval",):
        codes = line.operands[1:2]

    def read(code: str) -> Steps:
        reading = read_tcl(code) if command.name in TCL else read_code(code, backticks=command.name not in JAVASCRIPT)
        yield from touched(reading, code)
        if command.name in RARE:
            yield from touched(read_any(code), code)

    for code in codes:
        yield from read(code)
    if codes and "-i" in line.flags:
        for file in line.operands:
            yield Found(Effect.WRITE, path=file)
    if codes or line.flags & {"-v", "--version", "--help", "-h", "-c", "--check", "--test"}:
        return
    if line.operands and line.operands[0] not in INPUTS:
        yield from run_file(line.operands[0], read)
    else:
        yield from run_input(command.stdin, read)


def any_language(command: Command) -> Steps:
    """Interpreters of languages that nobody here knows, with code in an option or in their input."""
    options = code_options(command.name, "any_code")
    line = read_line(command.argv[1:], options, long_style=True)
    codes = [*line.value_of(*options), *([command.stdin.text] if command.stdin.text else [])]
    codes += [word for word in command.argv[1:] if "write18" in word]
    for code in codes:
        yield from touched(read_any(code), code)


def calculator(command: Command) -> Steps:
    """`dc -e '!COMMAND'`, and the same in its input."""
    for text in (
        *read_line(command.argv[1:], frozenset(("-e", "--expression"))).value_of("-e", "--expression"),
        command.stdin.text,
    ):
        for script in re.findall(r"(?m)^\s*!([^<>=].*)$", text):
            yield Script(script)


def awk(command: Command) -> Steps:
    """awk: the first operand is code; `-f` names a file with code."""
    line = read_line(
        command.argv[1:], frozenset(["-F", "-v", "-f", "--field-separator", "--assign", "--file"]), to_operand=True
    )
    operands = list(line.operands)
    for file in line.value_of("-f", "--file"):
        yield from run_file(file)
    if not line.value_of("-f", "--file") and operands:
        code = operands.pop(0)
        yield from touched(read_awk(code), code)
    for operand in operands:
        yield Found(Effect.READ, path=operand)
        if line.flags & {"-i"}:
            yield Found(Effect.WRITE, path=operand)


def sed(command: Command) -> Steps:
    """sed: with `-i` it writes the files behind its script; its commands `e` and `s///e` start programs."""
    line = read_line(command.argv[1:], frozenset(("-e", "--expression", "-f", "--file", "-l")))
    written = line.operands[0 if line.flags & {"-e", "--expression", "-f", "--file"} else 1 :]
    for file in written if line.flags & {"-i", "--in-place", "-I"} else ():
        yield Found(Effect.WRITE, path=file)
        for text in (
            text for script in (*line.value_of("-e"), *line.operands[:1]) for text in SED_INSERTS.findall(script)
        ):
            yield Wrote(file, Flow(Origin.TEXT, re.sub(r"\\(.)", r"\1", text)))
    for script in (*line.value_of("-e", "--expression"), *line.operands[:1]):
        if match := SED_STARTS.search(script):
            yield Found(Effect.RISKY_CODE, says="run a sed script that starts programs")
            if match[2]:
                yield Script(match[2].replace("\\" + match[1], match[1]))
        for text in SED_SCRIPT.findall(script):
            yield Script(text)
        for file in SED_READS.findall(script):
            yield Found(Effect.READ, path=file)
        for file in SED_WRITES.findall(script):
            yield Found(Effect.WRITE, path=file)


DEEDS = {
    "fetched": (Effect.RUN_FETCHED_CODE, "run code that was downloaded or decoded"),
    "shell": (Effect.GIVE_SHELL, "give another machine a shell"),
    "network": (Effect.NETWORK, "reach another machine"),
    "leak": (Effect.LEAK, "send the environment to another machine"),
    "grows": (Effect.FILL, "fill the memory without end"),
    "kills": (Effect.KILL_ALL, "end every process"),
    "passwords": (Effect.TAKE_KEYS, "show a secret in clear"),
    "keys": (Effect.TAKE_KEYS, "read the cloud credentials of this machine"),
    "database": (Effect.DATABASE_LOSS, "delete from a database"),
    "cloud": (Effect.CLOUD_LOSS, "delete in the cloud"),
    "publish": (Effect.PUBLISH, "upload files"),
    "power": (Effect.POWER, "stop or restart the machine"),
    "forks": (Effect.FORK_BOMB, "start itself again and again"),
}


def touched(reading: Reading, code: str) -> Steps:
    """Report what inline code does."""
    if UNKNOWN in code:
        effect = Effect.RUN_FETCHED_CODE if FETCHED in code else Effect.RUN_UNKNOWN_CODE
        yield Found(effect)
    for script in reading.scripts:
        if is_bare_shell(script):
            yield Found(Effect.ESCAPE_SHELL, says=BARE_SHELL)
        yield Script(script)
    effects = {"delete_tree": Effect.DELETE_TREE, "delete": Effect.DELETE, "write": Effect.WRITE, "read": Effect.READ}
    for kind, path in reading.paths:
        yield Found(effects[kind], path=path or UNKNOWN)
    for deed in (*reading.deeds, *deeds_in(code)):
        if deed == "sends":
            yield Sent()
            continue
        effect, says = DEEDS[deed]
        yield Found(effect, says=says)
    yield from secrets_in_code(code)
    for risk in reading.risks:
        yield Found(Effect.RISKY_CODE, says=risk)


LOSES = re.compile(
    r"\.(destroy_all|delete_all|deleteDir|deleteTree)\b|\.objects\.(all\(\)|filter\([^)]*\))?\.?(_raw_)?delete\(|::truncate\(|::query\(\)->delete\("
    r"|->truncate\(|\.(all|where)\([^)]*\)->delete\(|DB::(statement|delete)\(|Repo\.delete_all\b|\bdrop_all\(|\.drop_table\b"
    r"|::all\(\)->each->delete|\.all\(\)\.delete\(|\.each\(&:(destroy|delete)\)|deleteMany\(\s*\)|\bdrop_database\b"
    r"|connection\.execute\([\"'](?i:drop|truncate|delete)|\.flush_all\(|\.flushdb\(|\bSchema::drop|\.query\.delete\(\)"
    r"|Ecto\.Adapters\.SQL\.query!?\([^)]*(?i:drop|truncate|delete)"
)
"""What loses a whole table in the languages of frameworks."""

CHANGES = re.compile(
    r"\.(update_all|update_columns?|update!?|save!?|create!?|destroy!?|delete|\w+!|insert_all|bulk_create|bulk_update|upsert"
    r"|increment!|touch_all|enqueue|perform_(later|now|async)|deliver_(now|later)|delay|apply_async|send_mail|send\w*"
    r"|invalidate|set_password|clear)\b\s*\(?|->(save|update|create|delete|forceDelete|notify|dispatch)\(|::(create|update"
    r"|insert|dispatch|send|destroy)\(|Repo\.(update|insert|delete)\w*|&:\w+!|\bsend_mail\(|\bcall_command\("
)
"""What changes what an application holds, or makes it act."""

MAGIC = re.compile(
    r"(?m)(?:^|[;\n]\s*)!+\s*(.+)|%%?(?:sh|bash|system|sx)\s+(.+)|get_ipython\(\)\.(?:system|getoutput)\(['\"](.+)['\"]\)"
)
TAKES = frozenset(["-e", "--environment", "-c", "--command", "--eval", "--execute", "-S", "-x", "--settings", "-r"])


def in_framework(name: str, code: str) -> Steps:
    """Read code that runs within an application."""
    if not code:
        return
    reading = read_python(code) if name in ("ipython", "flask", "python", "jupyter") else read_code(code)
    for text in (text for found in MAGIC.findall(code) for text in found if text):
        yield Script(text)
    if name in ("ipython", "flask", "jupyter") and MAGIC.search(code):
        reading = read_python(MAGIC.sub("", code))
    yield from touched(reading, code)
    if LOSES.search(code):
        yield Found(Effect.DATABASE_LOSS, says="delete from a database")
    elif CHANGES.search(code):
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
    """`python manage.py shell -c CODE`, besides all that Python does."""
    yield from python(command)
    yield from _behind(("manage.py", "manage"), command)


def php_console(command: Command) -> Steps:
    """`php artisan tinker --execute CODE`, besides all that PHP does."""
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
    if command.stdin.origin not in (Origin.NOTHING, Origin.TEXT) and (
        any(map(ELSEWHERE.search, command.argv[1:]))
        or any(map(REMOTE.match, read_line(command.argv[1:], HOSTS).value_of("-h", "--host")))
    ):
        says = "change a database of another machine"
        yield Found(Effect.CLOUD_CHANGE, says=says)
    yield from files_in(command)


def batch(command: Command) -> Steps:
    """`sbatch --wrap SCRIPT`, `sbatch FILE`, `sbatch <<EOF`: shell text that runs on a cluster."""
    line = read_line(command.argv[1:], BATCH_TAKES, to_operand=True)
    for script in line.value_of("--wrap"):
        yield Script(script)
    if line.value_of("--wrap") or line.flags & {"--help", "-h", "--version", "--test-only"}:
        return
    if command.name == "bsub" and line.operands:
        yield Script(" ".join(line.operands))
    elif line.operands:
        yield from run_file(line.operands[0], as_script)
    else:
        yield from run_input(command.stdin, as_script)


ELSEWHERE = re.compile(
    r"^\0|(?<![A-Za-z])(?:prod|production|staging|PROD|PRODUCTION|STAGING)(?![A-Za-z])"
    r"|^\w+://(?:[^/@]*@)?(?!localhost|127\.|db[:/])[\w-]+\."
)


HOSTS = frozenset(["-h", "--host", "-u", "-p", "-P", "-U", "-d"])
REMOTE = re.compile(r"(?!localhost$|127\.|::1$|db$|/)[\w-]+(\.[\w-]+)+$")


def gradle(command: Command) -> Steps:
    """`gradle -I /dev/stdin`: code that a build runs first."""
    files = read_line(command.argv[1:], frozenset(["-I", "--init-script", "-b", "--build-file"])).value_of(
        "-I", "--init-script"
    )
    if INPUTS_SET.intersection(files):
        yield from run_input(command.stdin, lambda text: in_framework(command.name, text))


INPUTS_SET = frozenset(INPUTS)
BATCH_TAKES = frozenset(
    """
    --wrap -p --partition -n -N -J --job-name -o --output -e --error -t --time -A --account -q -l -R -M -W -c --mem
    --array -a -d --dependency -G --gres --mail-user --mail-type -D -w -x -C --export --chdir
    """.split()  # noqa: SIM905
)

READS = re.compile(r"(?i)\b(?:read_\w+|glob|from|file|infile|sniff_csv|parquet_scan|csv_scan)\s*\(?\s*'([/~][^']*)'")
SENDS = re.compile(r"(?i)\b(?:to|into\s+outfile|unload\b.*\bto)\s+'?((?:s3|gs|gcs|az|r2|hf|https?|abfss?)://[^' ]+)")
WRITES = re.compile(r"(?i)\b(?:to|into\s+(?:out|dump)file|attach|export\s+database)\s+'([/~][^']*)'")


def files_in(command: Command) -> Steps:
    """Files and addresses that statements of a database name: `COPY x TO 's3://b/y'`, `read_text('/home/me/x')`."""
    for text in [*command.argv[1:], command.stdin.text]:
        if "'" not in text:
            continue
        for path in READS.findall(text):
            yield Found(Effect.READ, path=path)
        for path in WRITES.findall(text):
            yield Found(Effect.WRITE, path=path)
        if SENDS.search(text):
            yield Found(Effect.UPLOAD, says="send data to another machine")
