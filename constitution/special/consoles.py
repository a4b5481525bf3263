"""Consoles of frameworks, with code or statements in an option, an operand or the input: judged as what they run."""

import re
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.lexicon import read_code
from constitution.python_code import read_python
from constitution.shell.flow import Flow, Origin
from constitution.special.code import interpreter, python, touched
from constitution.special.settings import database
from constitution.special.shells import INPUTS, run_file, run_input
from constitution.tables.programs import read_line

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["batch", "client", "console", "gradle", "php_console", "python_console"]

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


def in_framework(examination: "Examination", name: str, code: str, walk: "Walk") -> None:
    """Read code that runs within an application."""
    if not code:
        return
    reading = read_python(code) if name in ("ipython", "flask", "python", "jupyter") else read_code(code)
    for text in (text for found in MAGIC.findall(code) for text in found if text):
        walk.nested(text)
    if name in ("ipython", "flask", "jupyter") and MAGIC.search(code):
        reading = read_python(MAGIC.sub("", code))
    touched(examination, name, reading, code, walk)
    if LOSES.search(code):
        examination.found(Effect.DATABASE_LOSS, walk, program=name, says="delete from a database")
    elif CHANGES.search(code):
        examination.found(Effect.RISKY_CODE, walk, program=name, says="change what an application holds")


def console(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`rails runner CODE`, `artisan tinker --execute CODE`, `mix run -e CODE`, `ipython -c CODE`."""
    words = argv[1:]
    codes = list(read_line(words, TAKES).value_of("-c", "--command", "--eval", "--execute"))
    if name in ("mix", "iex"):
        codes += read_line(words, TAKES).value_of("-e")
    operands = read_line(words, TAKES).operands
    if operands[:1] in (("runner",), ("r",)) and len(operands) > 1:
        if re.fullmatch(r"[\w./-]+\.rb", operands[1]):
            run_file(examination, name, operands[1], walk)
        else:
            codes.append(operands[1])
    for code in codes:
        in_framework(examination, name, code, walk)
    if not codes and stdin.origin is Origin.TEXT:
        run_input(examination, name, stdin, walk, lambda text: in_framework(examination, name, text, walk))


def python_console(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`python manage.py shell -c CODE`, besides all that Python does."""
    python(examination, name, argv, stdin, walk)
    _behind(examination, name, ("manage.py", "manage"), argv, stdin, walk)


def php_console(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`php artisan tinker --execute CODE`, besides all that PHP does."""
    interpreter(examination, name, argv, stdin, walk)
    _behind(examination, name, ("artisan", "console"), argv, stdin, walk)


def _behind(
    examination: "Examination", name: str, files: tuple[str, ...], argv: list[str], stdin: Flow, walk: "Walk"
) -> None:
    for index, word in enumerate(argv[1:3], 1):
        if word.rpartition("/")[2] in files and argv[index + 1 : index + 2] in (["shell"], ["tinker"], ["shell_plus"]):
            console(examination, name, argv[index:], stdin, walk)


def client(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """A client of a database, with statements in its words or in its input."""
    database(examination, name, argv, stdin, walk)
    if stdin.origin not in (Origin.NOTHING, Origin.TEXT) and (
        any(map(ELSEWHERE.search, argv[1:]))
        or any(map(REMOTE.match, read_line(argv[1:], HOSTS).value_of("-h", "--host")))
    ):
        says = "change a database of another machine"
        examination.found(Effect.CLOUD_CHANGE, walk, program=name, says=says)
    files_in(examination, name, argv, stdin, walk)


def batch(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`sbatch --wrap SCRIPT`, `sbatch FILE`, `sbatch <<EOF`: shell text that runs on a cluster."""
    line = read_line(argv[1:], BATCH_TAKES, to_operand=True)
    for script in line.value_of("--wrap"):
        walk.nested(script)
    if line.value_of("--wrap") or line.flags & {"--help", "-h", "--version", "--test-only"}:
        return
    if name == "bsub" and line.operands:
        walk.nested(" ".join(line.operands))
    elif line.operands:
        run_file(examination, name, line.operands[0], walk, walk.nested)
    else:
        run_input(examination, name, stdin, walk, walk.nested)


ELSEWHERE = re.compile(
    r"^\0|(?<![A-Za-z])(?:prod|production|staging|PROD|PRODUCTION|STAGING)(?![A-Za-z])"
    r"|^\w+://(?:[^/@]*@)?(?!localhost|127\.|db[:/])[\w-]+\."
)


HOSTS = frozenset(["-h", "--host", "-u", "-p", "-P", "-U", "-d"])
REMOTE = re.compile(r"(?!localhost$|127\.|::1$|db$|/)[\w-]+(\.[\w-]+)+$")


def gradle(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """`gradle -I /dev/stdin`: code that a build runs first."""
    files = read_line(argv[1:], frozenset(["-I", "--init-script", "-b", "--build-file"])).value_of(
        "-I", "--init-script"
    )
    if INPUTS_SET.intersection(files):
        run_input(examination, name, stdin, walk, lambda text: in_framework(examination, name, text, walk))


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


def files_in(examination: "Examination", name: str, argv: list[str], stdin: Flow, walk: "Walk") -> None:
    """Files and addresses that statements of a database name: `COPY x TO 's3://b/y'`, `read_text('/home/me/x')`."""
    for text in [*argv[1:], stdin.text]:
        if "'" not in text:
            continue
        for path in READS.findall(text):
            examination.found(Effect.READ, walk, program=name, path=path)
        for path in WRITES.findall(text):
            examination.found(Effect.WRITE, walk, program=name, path=path)
        if SENDS.search(text):
            examination.found(Effect.UPLOAD, walk, program=name, says="send data to another machine")
