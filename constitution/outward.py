"""Laws about words, whichever program: publish, deploy, submit, download; and work that names production.

A word counts where a verb or a task stands: among the first operands of a program that talks to services or that no
table knows, among all of a program that runs tasks, in the name of a script that is run.
"""

import re
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.spoken import acts, destroys, fetches, looks, parts, publishes, stays, task_of, verbs
from constitution.strangers import DESTROYS
from constitution.subjects import is_dry, operands_of, subject_of, tasks_of
from constitution.tables import is_a
from constitution.tables.programs import is_known

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["outward"]

MIGRATIONS = frozenset(["migrate", "migration", "migrations"])
OPTION = re.compile(r"^--(publish|deploy|upload|push|push[-_]to[-_]hub|submit|promote|auto-submit)(=true)?$")
BUILDS = frozenset([("dotnet", "publish"), ("mix", "release"), ("npm", "version"), ("prisma", "db")])
"""Verbs that mean something else to these: what comes out of them stays here."""

VERBS = frozenset(["publish", "upload", "deploy", "submit"])
RUNS = frozenset(["run", "run-script", "exec", "with", "stop"])
SENDS, TAKES = "hand something to others, or set it off elsewhere", "take something from another machine"
VARIABLE = re.compile(r"\$\{?\w*(?:PROD|STAGING)\w*", re.I)


def outward(examination: "Examination", name: str, argv: list[str], walk: "Walk") -> None:
    """Report what the words of a command say that goes to others, comes from elsewhere, or is done in production."""
    if is_a(name, "service"):
        _of_service(examination, name, argv, walk)
    production = examination.discoveries.production
    if not production and not _is_noticed(argv, walk.evidence.text):
        return
    subject, words = subject_of(name, argv)
    if not subject or is_dry(name, words):
        return
    if subject == "script":
        _script(examination, words, walk)
    elif subject == "tasks":
        _tasks(examination, name, words, walk)
    else:
        _verbs(examination, name, words, walk, first=subject == "first")
        operands = [] if is_known(name) else [task_of(argv[0])]
        _in_production(examination, name, [*operands, *operands_of(words, 5)], words, walk)


def _is_noticed(argv: list[str], text: str) -> bool:
    said = " ".join(argv).lower()
    for letters in verbs("noticed"):
        if letters in said:
            return True
    return _names_variable(text)


def _names_variable(text: str) -> bool:
    return "$" in text and VARIABLE.search(text) is not None


def _of_service(examination: "Examination", name: str, argv: list[str], walk: "Walk") -> None:
    """`hf repo delete x`, `databricks clusters permanent-delete 1`: what others use is gone."""
    operands = operands_of(argv[1:], 3)
    if any(map(DESTROYS.match, operands)) and not verbs("here").intersection(operands) and not is_dry(name, argv[1:]):
        examination.found(Effect.CLOUD_LOSS, walk, program=name, says="delete what others use")


def _verbs(examination: "Examination", name: str, words: list[str], walk: "Walk", *, first: bool) -> None:
    if (name, *words[:1]) in BUILDS:
        return
    if first and not verbs("installs").isdisjoint(words[:1]):
        return
    if not VERBS.isdisjoint(words[:2]) if first else verb_in(words):
        examination.found(Effect.PUBLISH, walk, program=name, says=SENDS)
    elif not first and any(map(fetches, operands_of(words, 3))):
        examination.found(Effect.NETWORK, walk, program=name, says=TAKES)


def _tasks(examination: "Examination", name: str, words: list[str], walk: "Walk") -> None:
    tasks = tasks_of(name, words)
    if any(map(publishes, tasks)) and (name, *words[:1]) not in BUILDS:
        examination.found(Effect.PUBLISH, walk, program=name, says=SENDS)
    _in_production(examination, name, tasks, words, walk)


def verb_in(words: list[str]) -> bool:
    """Tell whether a verb among the first operands, or an option, hands something to others."""
    operands = operands_of(words, 3)
    for index, word in enumerate(operands):
        if looks(word) or word in verbs("adds"):
            return False
        if word == "apply" and not MIGRATIONS.isdisjoint(operands):
            return False
        if publishes(word):
            return word not in verbs("nouns") or not any(map(looks, operands[index + 1 : index + 2]))
    return any(map(OPTION.match, words)) and "run" not in operands  # `docker run --publish 80:80`


def _script(examination: "Examination", words: list[str], walk: "Walk") -> None:
    """`bash scripts/release.sh`, `./deploy.sh prod`, `python manage.py migrate --settings=x.production`."""
    task, name = task_of(words[0]), words[0].rpartition("/")[2]
    if publishes(task) or verb_in(words[1:]):
        examination.found(Effect.PUBLISH, walk, program=name, says=SENDS)
    elif any(map(fetches, [task, *operands_of(words[1:], 1)])):
        examination.found(Effect.NETWORK, walk, program=name, says=TAKES)
    if (
        any(map(_are_there, words[1:]))
        and not stays([task, *operands_of(words[1:], 3)])
        and task not in verbs("serves")
    ):
        examination.found(Effect.CLOUD_CHANGE, walk, program=name, says="work on what people use")
    _in_production(examination, name, [task, *operands_of(words[1:], 5)], words, walk)


def _in_production(examination: "Examination", name: str, operands: list[str], words: list[str], walk: "Walk") -> None:
    """`RAILS_ENV=production rake db:migrate`, `dbt run --target prod`: what is done there is done to people."""
    if name == "dbt":
        return  # `staging` is a folder there: it has a row
    there = examination.discoveries.production or any(map(_are_there, words)) or _names_variable(walk.evidence.text)
    if not there:
        return
    if is_a(name, "runner") or is_a(name, "container"):
        operands = [word for word in operands if word not in RUNS]
    if not acts(operands):
        return
    lost = destroys(operands) or ("rollback" in " ".join(operands) and "--all" in words)
    effect = Effect.DATABASE_LOSS if lost else Effect.CLOUD_CHANGE
    examination.found(effect, walk, program=name, says="lose what people use" if lost else "work on what people use")


def _are_there(word: str) -> bool:
    return not verbs("production").isdisjoint(parts(word))
