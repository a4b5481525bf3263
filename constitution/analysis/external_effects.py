"""Verbs of any program: publish, deploy, submit, download; and work that names production.

A word counts in the position of a verb or task: among the first operands of a service client or unknown program, among
all operands of a task runner, in the name of a script that is run.
"""

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import repeat
from typing import Literal

from constitution.analysis.program_rows import DESTROYS, HARMLESS, read_only, subcommand_pattern
from constitution.analysis.steps import Command, Found, Steps
from constitution.effects import UNKNOWN, Effect
from constitution.tables import is_a, pattern, said_of, table
from constitution.tables.rows import (
    behind_options,
    has_subcommands,
    is_known,
    is_subcommand,
    own_takes,
    read_line,
    subcommands,
    wraps_behind_subcommands,
)

MIGRATIONS = frozenset(["migrate", "migration", "migrations"])
OPTION = pattern(r"^--(publish|deploy|upload|push|push[-_]to[-_]hub|submit|promote|auto-submit)(=true)?$")
BUILDS = frozenset([("dotnet", "publish"), ("mix", "release"), ("npm", "version"), ("prisma", "db")])
"""Programs for which the verbs mean a local operation."""

VERBS = frozenset(["publish", "upload", "deploy", "submit"])
RUNS = frozenset(["run", "run-script", "exec", "with", "stop"])
SENDS, TAKES = "publish or deploy something", "download from the network"
VARIABLE = pattern(r"\$\{?\w*(?:PROD|STAGING)\w*", re.I)


def external_effects(command: Command) -> Steps:
    """Report publications, downloads and work in production by the words of a command."""
    if "service" in command.kinds:
        yield from _of_service(command)
    if not command.production and not _is_noticed(command.argv, command.text):
        return
    subject, words = subject_of(command.name, command.argv)
    if not subject or is_dry(command.name, words):
        return
    if subject == "script":
        yield from _script(words, command)
    elif subject == "tasks":
        yield from _tasks(words, command)
    else:
        yield from _verbs(command.name, words, first=subject == "first")
        operands = [] if is_known(command.name) else [task_of(command.argv[0])]
        yield from _in_production([*operands, *operands_of(words, 5)], words, command)


def _is_noticed(argv: list[str], text: str) -> bool:
    said = " ".join(argv).lower()
    for letters in verbs("noticed"):
        if letters in said:
            return True
    return _names_variable(text)


def _names_variable(text: str) -> bool:
    return "$" in text and VARIABLE.search(text) is not None


def _of_service(command: Command) -> Steps:
    """`hf repo delete x`, `databricks clusters permanent-delete 1`: shared data are deleted."""
    operands = operands_of(command.argv[1:], 3)
    if (
        any(map(DESTROYS.match, operands))
        and not verbs("here").intersection(operands)
        and not is_dry(command.name, command.argv[1:])
    ):
        yield Found(Effect.CLOUD_LOSS, says="delete shared data")


def _verbs(name: str, words: list[str], *, first: bool) -> Steps:
    if (name, *words[:1]) in BUILDS:
        return
    if first and not verbs("installs").isdisjoint(words[:1]):
        return
    if not VERBS.isdisjoint(words[:2]) if first else verb_in(words):
        yield Found(Effect.PUBLISH, says=SENDS)
    elif not first and any(map(fetches, operands_of(words, 3))):
        yield Found(Effect.NETWORK, says=TAKES)


def _tasks(words: list[str], command: Command) -> Steps:
    tasks = tasks_of(command.name, words)
    if any(map(publishes, tasks)) and (command.name, *words[:1]) not in BUILDS:
        yield Found(Effect.PUBLISH, says=SENDS)
    yield from _in_production(tasks, words, command)


def verb_in(words: list[str]) -> bool:
    """Return whether a verb among the first operands, or an option, publishes something."""
    operands = operands_of(words, 3)
    for index, word in enumerate(operands):
        if looks(word) or word in verbs("adds"):
            return False
        if word == "apply" and not MIGRATIONS.isdisjoint(operands):
            return False
        if publishes(word):
            return word not in verbs("nouns") or not any(map(looks, operands[index + 1 : index + 2]))
    return any(map(OPTION.match, words)) and "run" not in operands  # `docker run --publish 80:80`


def _script(words: list[str], command: Command) -> Steps:
    """`bash scripts/release.sh`, `./deploy.sh prod`, `python manage.py migrate --settings=x.production`."""
    task, name = task_of(words[0]), words[0].rpartition("/")[2]
    if publishes(task) or verb_in(words[1:]):
        yield Found(Effect.PUBLISH, says=SENDS, program=name)
    elif any(map(fetches, [task, *operands_of(words[1:], 1)])):
        yield Found(Effect.NETWORK, says=TAKES, program=name)
    if (
        mean(words[1:], "production")
        and not mean([task, *operands_of(words[1:], 3)], "stays")
        and task not in verbs("serves")
    ):
        yield Found(Effect.CLOUD_CHANGE, says="modify data in production", program=name)
    yield from _in_production([task, *operands_of(words[1:], 5)], words, command.with_argv(words, name=name))


def _in_production(operands: list[str], words: list[str], command: Command) -> Steps:
    """`RAILS_ENV=production rake db:migrate`, `dbt run --target prod`: work in production."""
    name = command.name
    if name == "dbt":
        return  # `staging` is a folder there, by its row
    there = command.production or mean(words, "production") or _names_variable(command.text)
    if not there:
        return
    if is_a(name, "runner") or is_a(name, "container"):
        operands = [word for word in operands if word not in RUNS]
    if not acts(operands):
        return
    lost = (
        mean(operands, "destroys")
        or "db:schema:load" in operands
        or ("rollback" in " ".join(operands) and "--all" in words)
    )
    effect = Effect.DATABASE_LOSS if lost else Effect.CLOUD_CHANGE
    yield Found(effect, says="delete data in production" if lost else "modify data in production", program=name)


VERB = pattern(r"[a-z][a-z_]+([:-][a-z_-]+)*")
"""A word that tells a program what to do, rather than what to do it with."""
UNDESCRIBED = "do something that no table describes: {}"


def undescribed(command: Command) -> Steps:
    """Report a subcommand that no table describes: those that stay in the workspace are the list, every other one asks.

    Of programs without such a list the first operands count that are verbs; of unknown ones, those that are doubtful.
    """
    name, words = command.name, command.argv[1:]
    stays, takes, has_none = _subcommands_of(name)
    has_none = has_none or (stays is None and "/" in command.argv[0])
    if not words or (has_none and not (has_subcommands(name) and any(map(str.startswith, words, repeat(UNKNOWN))))):
        return
    text = " ".join(behind_options(words, takes))
    if UNKNOWN not in text and stays is not None and _is_listed(name, text, stays):
        return
    said = list(subcommands(name, words, takes))
    unknown = [longer.rpartition(" ")[0] for longer, _ in said if longer.rpartition(" ")[2].startswith(UNKNOWN)]
    if any(map(has_subcommands, unknown)) or (stays is not None and unknown[:1] == [name]):
        yield Found(Effect.UNKNOWN_COMMAND, says="do something that is not known in advance")
        return
    looks = read_only(name)
    if not said or has_none or is_dry(name, words) or (looks and (looks.match(text) or looks.match(" ".join(words)))):
        return
    if not (_is_described(name, words, said) if stays is None else _is_listed(name, text, stays)):
        spoken = " ".join(longer.rpartition(" ")[2] for longer, _ in said[:2])
        yield Found(Effect.UNDESCRIBED, says=UNDESCRIBED.format(spoken.replace(UNKNOWN, "…")))


def _is_listed(name: str, text: str, stays: frozenset[str]) -> bool:
    """Return whether the tables list a subcommand, alone or by a pattern for it and what is behind it."""
    if text.partition(" ")[0] in stays:
        return True
    pattern = subcommand_pattern(name, "stays_as")
    return pattern is not None and pattern.match(text) is not None


def _is_described(name: str, words: list[str], said: list[tuple[str, list[str]]]) -> bool:
    """Return whether a row names what a program without a list is told to do, or that stays here, or is no verb."""
    if not is_known(name) and not has_subcommands(name):
        return not _is_doubtful(words)
    deepest = [longer for longer, _ in said if is_subcommand(longer)]
    if deepest:
        return not has_subcommands(deepest[-1]) or len(deepest) == len(said)
    first, *others = [longer.rpartition(" ")[2] for longer, _ in said]
    if any(map(DESTROYS.match, [first, *others])):
        return False
    if not VERB.fullmatch(first) or not verbs("local").isdisjoint([first, *others[:1]]):
        return True
    return first in verbs("alone") and not others  # what the project declares


LOCAL_FILE = pattern(r"\.|[^@]*\.[A-Za-z]\w*")
"""The name of a file, as in `frob add x.txt`, and not of a package."""
WITH_VALUE = pattern(r"--(?!(yes|force|verbose|quiet|silent|debug|all|global|json|no-[\w-]+)$)[\w-]+")


def _is_doubtful(words: list[str]) -> bool:
    """Return whether an unknown program is told to trust, send or destroy something, or to bring a thing by its name.

    A word directly behind `--option` is its value, but for options like `--yes`.
    """
    values = {index + 1 for index, word in enumerate(words) if WITH_VALUE.fullmatch(word)}
    operands = [word for index, word in enumerate(words) if word[:1] != "-" and index not in values]
    if any(map(DESTROYS.match, operands[:3])) or not verbs("doubtful").isdisjoint(operands[:2]):
        return True
    brings = next((index for index, word in enumerate(operands[:2]) if word in verbs("brings")), len(operands))
    return not all(map(LOCAL_FILE.fullmatch, operands[brings + 1 :]))


@cache
def _subcommands_of(name: str) -> tuple[frozenset[str] | None, frozenset[str], bool]:
    """Return the subcommands with which a program stays here, if they are listed; its own options that take a value;
    and whether it has no subcommands, since its operands are files and other data, or tasks of the project.
    """
    lists, takes = said_of(name, "stays"), own_takes(name) | verbs("valued")
    if lists:
        return frozenset(" ".join(lists).split()), takes, False
    behind = has_subcommands(name) or wraps_behind_subcommands(name)
    none = any(is_a(name, kind) for kind in ("runner", "script_runner", "names_things"))
    return None, takes, none or (not behind and any(is_a(name, kind) for kind in (*HARMLESS, "read_only")))


Subject = Literal["", "verbs", "first", "tasks", "script"]
"""Read nothing; verbs among the first operands; the first operand only; tasks among all operands.

A file that is run.
"""


SCRIPT = pattern(r"/|\.(py|sh|bash|zsh|js|ts|mjs|cjs|mts|rb|pl|php|R|lua|exs|groovy|jl|ps1)$")


def subject_of(name: str, argv: list[str]) -> tuple[Subject, list[str]]:
    """Return how a program's words are read, and these words."""
    if is_a(name, "own_verbs"):
        return "", []
    if is_a(name, "script_runner"):
        return _of_interpreter(name, argv)
    if is_a(name, "runner"):
        return "tasks", argv[1:]
    if is_a(name, "builder"):
        return "first", argv[1:]
    if is_known(name):
        return ("verbs", argv[1:]) if is_a(name, "talker") else ("", [])
    return ("script", argv) if publishes(task_of(argv[0])) or "/" in argv[0] else ("verbs", argv[1:])


def _of_interpreter(name: str, argv: list[str]) -> tuple[Subject, list[str]]:
    words = argv[1:]
    while words and words[0].startswith("-"):
        if words[0] == "-m" and len(words) > 1:
            return subject_of(words[1], words[1:]) if is_known(words[1]) else ("script", words[1:])
        if is_a(name, "shell") or words[0] in ("-c", "-e", "--check", "-p", "--eval", "-l"):
            return "", []
        words = words[1:]
    if name in ("bun", "deno"):
        words = words[1:] if words[:1] in (["run"], ["task"]) else words
        words = [*(word for word in words[:3] if not word.startswith("-")), *words[3:]]
        return ("script" if words and SCRIPT.search(words[0]) else "tasks"), words
    return ("script", words) if words and (SCRIPT.search(words[0]) or name == "php") else ("", [])


VALUED = {"make": "make_valued", "gmake": "make_valued", "task": "task_valued"}
"""The lists of options with a value, by program."""


def is_dry(name: str, words: list[str]) -> bool:
    """Return whether a command is a dry run."""
    if words[-1:] and words[-1] in ("--help", "-h", "--version", "help"):
        return True
    if any(word.partition("=")[0] in verbs("dry_run") and not word.endswith(("=false", "=none")) for word in words):
        return True
    return is_a(name, "dry_runner") and any(word in ("-n", "-T", "-l") for word in words)


def operands_of(words: list[str], most: int, valued: str = "valued_options") -> list[str]:
    """Return the first operands, without values of options that usually take one."""
    found, before = list[str](), ""
    for word in words:
        if word == "--" or len(found) == most:
            break
        if not word.startswith("-") and before not in verbs(valued) and "=" not in word:
            found.append(word)
        before = word
    return found


def tasks_of(name: str, words: list[str]) -> list[str]:
    """Return the tasks of a task runner in a command."""
    if name in ("tox", "nox"):
        return [task for word in words if not word.startswith("-") for task in word.split(",")]
    if name == "nx":
        return _targets(words)
    operands = operands_of(words, 12, VALUED.get(name, "valued_options"))
    if is_a(name, "labelled"):
        return [operands[1].replace("//", "").replace(":", "-").replace("/", "-")] if operands[:1] == ["run"] else []
    if not is_a(name, "manager"):
        return [word.rpartition(":")[2] if word.startswith(":") else word.lstrip("+") for word in operands]
    while operands[:1] in (["workspace"], ["workspaces"], ["foreach"], ["npm"]):
        operands = operands[2:] if operands[0] == "workspace" else operands[1:]
    behind = operands[:1] in (["run"], ["run-script"], ["exec"], ["task"]) or any(
        is_a(word, "service") for word in operands[:1]
    )
    return operands[1:2] if behind else operands[:1]


def _targets(words: list[str]) -> list[str]:
    """`nx deploy web`, `nx run web:deploy`, `nx run-many -t deploy`."""
    operands = operands_of(words, 2)
    if operands[:1] in (["run-many"], ["affected"]):
        line = read_line(words, frozenset(["-t", "--target", "--targets"]))
        return [task for value in line.value_of("-t", "--target", "--targets") for task in value.split(",")]
    return operands[1].split(":")[1:] if operands[:1] == ["run"] and len(operands) > 1 else operands[:1]


PART = pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")

WORD = pattern(r"^[@+:_]*\.?[A-Za-z][\w:.+@-]*$")
ENVIRONMENT = pattern(
    r"(?i)(env|environment|stage|settings_module|profile|context|target|stack|database_url|_url|_uri|host|config)$"
)
IN_PRODUCTION = pattern(r"(?i)(^|[^a-z])(prod|production|staging|live|prd|stg|preprod)([^a-z]|$)")


@cache
def verbs(name: str) -> frozenset[str]:
    """Return a list of words of `verbs.toml`."""
    return frozenset(table("verbs")[name].split())


@lru_cache(maxsize=4096)
def parts(word: str) -> tuple[str, ...]:
    """Return the parts of a word, in lower case: `publishToMavenLocal`, `hex.publish`, `deploy-prod`."""
    return tuple(part.lower() for part in PART.findall(word[:120]))


def _is_file(word: str) -> bool:
    """Return whether a word is the name of a file: `release.sig`, and not a task as `hex.publish` or `deploy.prod`."""
    before, dot, ending = word.rpartition(".")
    tasks = verbs("publishes") | verbs("modest") | verbs("production") | verbs("acts")
    return bool(before and dot) and not ending[:1].isupper() and tasks.isdisjoint(parts(ending))


@lru_cache(maxsize=1024)
def publishes(word: str) -> bool:
    """Return whether a word, as a verb or task, means publishing."""
    if not WORD.match(word) or _is_file(word) or word == "assets.deploy":
        return False
    said = parts(word)
    at = next((index for index, part in enumerate(said) if part in verbs("publishes")), None)
    if at is None:
        return not verbs("infrastructure").isdisjoint(said) and not {"upgrade", "destroy", "rollback"}.isdisjoint(said)
    behind = verbs("modest") if said[at] == "release" else verbs("modest_behind")
    if not verbs("modest").isdisjoint(said[:at]) or not behind.isdisjoint(said[at + 1 :]):
        return False
    return said[at] != "release" or at in (0, len(said) - 1) or not verbs("publishes").isdisjoint(said[at + 1 :])


def fetches(word: str) -> bool:
    """Return whether a word, as a verb, means downloading."""
    return bool(WORD.match(word)) and not verbs("fetches").isdisjoint((*parts(word)[:1], *parts(word)[-1:]))


def looks(word: str) -> bool:
    """Return whether a word means a read-only operation."""
    return word.lower() in verbs("looks") or not verbs("looks").isdisjoint(parts(word)[:1])


def acts(words: list[str]) -> bool:
    """Return whether words name an operation, and none of them marks it as local."""
    said = {part for word in words for part in parts(word)}
    if "set" in words:
        said -= {"config", "env"}
    return not said.isdisjoint(verbs("acts")) and said.isdisjoint(verbs("stays"))


def mean(words: Iterable[str], what: str) -> bool:
    """Return whether one of the words, or a part of it, is in a list: "destroys", "stays" (local), "production"."""
    return any(not verbs(what).isdisjoint(parts(word)) for word in words)


def task_of(path: str) -> str:
    """Return the name of a script without folder and suffix; empty for a file among tests."""
    folder, _, name = path.rpartition("/")
    if not {"test", "tests", "spec", "specs", "__tests__"}.isdisjoint(folder.split("/")):
        return ""
    return re.sub(r"\.\w{1,4}$", "", name)


def names_production(name: str, value: str) -> bool:
    """Return whether a variable selects production: `RAILS_ENV=production`."""
    return bool(IN_PRODUCTION.search(value) and ENVIRONMENT.search(name))
