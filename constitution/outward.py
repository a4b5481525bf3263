"""Laws about words, whichever program: publish, deploy, submit, download; and work that names production.

A word counts where a verb or a task stands: among the first operands of a program that talks to services or that no
table knows, among all of a program that runs tasks, in the name of a script that is run.
"""

import re
from functools import cache
from typing import TYPE_CHECKING

from constitution.effects import Effect
from constitution.programs.clouds import CLOUDS
from constitution.programs.clusters import CLUSTERS
from constitution.programs.containers import CONTAINERS
from constitution.programs.development import DEVELOPMENT
from constitution.programs.fetching import FETCHING
from constitution.programs.messages import MESSAGES
from constitution.programs.packages import PACKAGES
from constitution.programs.pipelines import PIPELINES
from constitution.programs.publishing import PUBLISHING
from constitution.programs.stores import STORES
from constitution.programs.table import is_known
from constitution.spoken import PRODUCTION, acts, destroys, fetches, looks, parts, publishes, task_of
from constitution.strangers import DESTROYS
from constitution.wrapper import SHELLS

if TYPE_CHECKING:
    from constitution.examination import Examination
    from constitution.shell.walk import Walk

__all__ = ["outward"]

NOTICED = re.compile(
    r"(?i)deploy|publish|releas|upload|submit|promot|trigger|roll-?out|ship|push|backfill|distribut|broadcast|prod"
    r"|staging|prd|stg|download"
)
"""Letters without which no word below can occur."""

RUNNERS = frozenset(
    """
    npm pnpm yarn bun make gmake just task rake bundle mix gradle gradlew mvn mvnw cap fab invoke inv nox doit ant turbo
    nx lerna ember sbt lein mina bazel bazelisk pants buck buck2 earthly dagger rush melos grunt gulp mage mask deno
    hatch pixi pdm poe poetry composer npm-run-all run-s run-p fastlane dotnet thor jake robo castor phing moon wireit
    cargo-make makers b2 leiningen clj bb boot mill scons waf tox
    """.split()  # noqa: SIM905
)
"""Programs whose operands are tasks of the project: every one of them runs."""

READERS = frozenset(
    """
    cargo go rustc rustup gcc g++ cc c++ clang clang++ ld as javac tsc esbuild vite webpack rollup swc babel swift
    xcodebuild cmake ninja meson msbuild protoc buf ocamlfind nvcc configure pip pip3 uv gem virtualenv pipenv ghc cabal
    stack zig nim crystal code cursor codium brew apt apt-get dnf yum conda mamba micromamba adb drizzle-kit
    """.split()  # noqa: SIM905
)
"""Programs that build, or that take names of anything as operands."""

SCRIPTS = SHELLS | frozenset(
    "python node nodejs ruby perl php tsx ts-node bun deno Rscript lua osascript groovy julia elixir pypy".split()  # noqa: SIM905
)
SCRIPT = re.compile(r"/|\.(py|sh|bash|zsh|js|ts|mjs|cjs|mts|rb|pl|php|R|lua|exs|groovy|jl|ps1)$")

DRY = frozenset(
    """
    --dry-run --dryrun --dry -dryRun --DryRun --help -h --version --check --list --what-if --whatif --noop --no-push
    --snapshot --skip-publish --preview --simulate --validate-only --just-print --recon --print --syntax-check
    --list-tasks --no-op --pretend --dry_run
    """.split()  # noqa: SIM905
)
DRY_RUNNERS = frozenset(["make", "gmake", "just", "task", "rake", "mage", "dagger", "ant"])
VALUED = frozenset(
    """
    -m -k -f -n -c -e -t -p -o -g -s -i -l -r -x -w -C -j -a -P --name --message --grep --filter --tag --title --config
    --file --project --branch --namespace --prefix --workspace --cwd --directory --output --region --format --app
    --url --host --token --user --org --registry --kubeconfig --context --profile --manifest-path --queue --label
    """.split()  # noqa: SIM905
)
"""Options behind which a word is a value in nearly every program."""

NOUNS = frozenset(["release", "deploy", "rollout", "push", "trigger", "ship"])
"""Verbs that are names of things too: `rollout status`, `release list`."""

RUNS = frozenset(["run", "run-script", "exec", "with", "stop"])
BUILDS = frozenset([("dotnet", "publish"), ("mix", "release")])
"""Verbs that mean something else to these: what comes out of them stays here."""

SENDS = "hand something to others, or set it off elsewhere"
VARIABLE = re.compile(r"\$\{?\w*(?:PROD|STAGING)\w*", re.I)


def outward(examination: "Examination", name: str, argv: list[str], walk: "Walk") -> None:
    """Report what the words of a command say that goes to others, comes from elsewhere, or is done in production."""
    if name in _services():
        _of_service(examination, name, argv, walk)
    production = examination.discoveries.production
    if not production and not NOTICED.search(" ".join(argv)) and "$" not in walk.evidence.text:
        return
    subject, words = _subject(name, argv)
    if not subject or _is_dry(name, words):
        return
    if subject == "script":
        _script(examination, words, walk, production=production)
        return
    if subject == "tasks":
        tasks = [word for word in _operands(words, 12) if publishes(_label(word))]
        said = "" if (name, *words[:1]) in BUILDS else next(iter(tasks), "")
    else:
        said = _verb(words)
    if said:
        examination.found(Effect.PUBLISH, walk, program=name, says=SENDS)
    elif subject == "verbs" and any(map(fetches, _operands(words, 3))):
        examination.found(Effect.NETWORK, walk, program=name, says="take something from another machine")
    operands = [_label(word) for word in _operands(words, 5)]
    if not is_known(name):
        operands.insert(0, task_of(argv[0]))
    _in_production(examination, name, operands, words, walk, production=production)


def _subject(name: str, argv: list[str]) -> tuple[str, list[str]]:
    """Return how the words of a program are read (not at all, as verbs, as tasks, as a script) and the words."""
    if name in SCRIPTS:
        return _of_interpreter(name, argv)
    if name in RUNNERS:
        return "tasks", argv[1:]
    if not is_known(name) and publishes(task_of(argv[0])):
        return "script", argv
    return ("verbs", argv[1:]) if (name in _talkers() or not is_known(name)) and name not in READERS else ("", [])


def _of_interpreter(name: str, argv: list[str]) -> tuple[str, list[str]]:
    for index, word in enumerate(argv[1:], 1):
        if word == "-m" and index + 1 < len(argv):
            return "verbs", argv[index + 2 :]
        if word.startswith("-"):
            if name in SHELLS or word in ("-c", "-e", "--check", "-p", "--eval", "-l"):
                return "", []
            continue
        if name in ("bun", "deno", "elixir"):
            return "tasks" if not SCRIPT.search(word) else "script", argv[index:]
        return ("script", argv[index:]) if SCRIPT.search(word) or name == "php" else ("", [])
    return "", []


@cache
def _talkers() -> frozenset[str]:
    """Return the programs that talk to services, or that work on what a project has elsewhere."""
    rows = (*CLOUDS, *CLUSTERS, *STORES, *PACKAGES, *DEVELOPMENT[:-1], *CONTAINERS, *PUBLISHING, *PIPELINES, *MESSAGES)
    names = frozenset(name.split()[0] for row in rows for name in row.names)
    return (names | {"alembic", "django-admin", "flask", "celery", "rails"}) - {"git", "gh", "glab"}


@cache
def _services() -> frozenset[str]:
    """Return the programs whose one use is to talk to a service."""
    rows = (*PUBLISHING[1:], *PIPELINES, *MESSAGES, *FETCHING)
    return frozenset(name for row in rows for name in row.names if " " not in name) - {"python", "git", "dvc"}


def _of_service(examination: "Examination", name: str, argv: list[str], walk: "Walk") -> None:
    """`hf repo delete x`, `databricks clusters permanent-delete 1`: what others use is gone."""
    operands = _operands(argv[1:], 3)
    if any(map(DESTROYS.match, operands)) and not HERE.intersection(operands) and not _is_dry(name, argv[1:]):
        examination.found(Effect.CLOUD_LOSS, walk, program=name, says="delete what others use")


HERE = frozenset(["cache", "local", "draft", "context", "config", "queue", "purge"])
"""What is deleted here, and can be had again."""


def _is_dry(name: str, words: list[str]) -> bool:
    if any(word.partition("=")[0] in DRY and not word.endswith(("=false", "=none")) for word in words):
        return True
    return name in DRY_RUNNERS and any(word in ("-n", "-T", "-l") for word in words)


def _operands(words: list[str], most: int) -> list[str]:
    """Return the first operands; what stands behind an option that mostly takes a value is none."""
    found, before = list[str](), ""
    for word in words:
        if word == "--" or len(found) == most:
            break
        if not word.startswith("-") and before not in VALUED and "=" not in word:
            found.append(word)
        before = word
    return found


def _label(word: str) -> str:
    """Return the task in a label of a build tool: `//app:push`, `:lib:publish`, `+deploy`."""
    return word.rpartition(":")[2] if word.startswith(("//", ":")) else word.lstrip("+")


def _verb(words: list[str]) -> str:
    """Return the verb among the first operands that hands something to others, if there is one."""
    operands = _operands(words, 3)
    for index, word in enumerate(operands):
        if looks(word):
            return ""
        if publishes(word):
            asked = word in NOUNS and any(map(looks, operands[index + 1 : index + 2]))
            return "" if asked else word
    return ""


def _script(examination: "Examination", words: list[str], walk: "Walk", *, production: bool) -> None:
    """`bash scripts/release.sh`, `./deploy.sh prod`, `python manage.py migrate --settings=x.production`."""
    task, name = task_of(words[0]), words[0].rpartition("/")[2]
    if publishes(task) or _verb(words[1:]):
        examination.found(Effect.PUBLISH, walk, program=name, says=SENDS)
    _in_production(examination, name, [task, *_operands(words[1:], 5)], words, walk, production=production)


def _in_production(
    examination: "Examination", name: str, operands: list[str], words: list[str], walk: "Walk", *, production: bool
) -> None:
    """`RAILS_ENV=production rake db:migrate`, `dbt run --target prod`: what is done there is done to people."""
    if not production and not any(_are_there(word) for word in words) and not VARIABLE.search(walk.evidence.text):
        return
    if name in RUNNERS or name in ("docker", "podman", "docker-compose", "kubectl", "helm"):
        operands = [word for word in operands if word not in RUNS]
    if not acts(operands):
        return
    lost = destroys(operands) or ("rollback" in " ".join(operands) and "--all" in words)
    effect = Effect.DATABASE_LOSS if lost else Effect.CLOUD_CHANGE
    examination.found(effect, walk, program=name, says="lose what people use" if lost else "work on what people use")


def _are_there(word: str) -> bool:
    return not PRODUCTION.isdisjoint(parts(word))
