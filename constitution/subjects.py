"""Where in the words of a program a verb, or a task, can stand: services have verbs, runners have tasks, files run."""

import re
from functools import cache
from typing import Literal

from constitution.programs.clients import CLIENTS
from constitution.programs.clouds import CLOUDS
from constitution.programs.clusters import CLUSTERS
from constitution.programs.containers import CONTAINERS
from constitution.programs.development import DEVELOPMENT
from constitution.programs.fetching import FETCHING
from constitution.programs.messages import MESSAGES
from constitution.programs.options import read_line
from constitution.programs.packages import PACKAGES
from constitution.programs.pipelines import PIPELINES
from constitution.programs.preferences import PREFERENCES
from constitution.programs.publishing import PUBLISHING
from constitution.programs.queues import QUEUES
from constitution.programs.stores import STORES
from constitution.programs.table import is_known
from constitution.spoken import publishes, task_of
from constitution.wrapper import SHELLS

__all__ = ["MANAGERS", "RUNNERS", "Subject", "is_dry", "operands_of", "services", "subject_of", "tasks_of"]

Subject = Literal["", "verbs", "first", "tasks", "script"]
"""Nothing is read; verbs among the first operands; the first alone; tasks among all of them; a file that is run."""


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


MANAGERS = _set("npm pnpm yarn bun composer poetry pdm bundle mix deno")
"""Their first operand is a verb of their own, a task, or `run` and a task."""

RUNNERS = MANAGERS | _set(
    """
    make gmake just task rake gradle gradlew mvn mvnw cap fab invoke inv nox doit ant turbo nx lerna ember sbt lein mina
    bazel bazelisk pants buck buck2 earthly dagger rush melos grunt gulp mage mask hatch pixi poe npm-run-all run-s
    run-p fastlane thor jake robo castor phing moon wireit cargo-make makers b2 leiningen clj bb boot mill scons tox
    """
)
"""Programs whose operands are tasks of the project: every one of them runs."""

LABELLED = _set("bazel bazelisk buck buck2")
"""They run a label behind `run` only."""

READERS = _set(
    """
    cargo go rustc rustup gcc g++ cc c++ clang clang++ ld as javac tsc esbuild vite webpack rollup swc babel swift
    xcodebuild cmake ninja meson msbuild protoc buf ocamlfind nvcc configure pip pip3 uv gem virtualenv pipenv ghc cabal
    stack zig nim crystal code cursor codium brew apt apt-get dnf yum conda mamba micromamba nuget choco
    """
)
"""Programs that build, or that take names of anything as operands: a verb can only come first."""

SILENT = _set("adb drizzle-kit drizzle git hg jj bzr fossil svn gh glab yadm chezmoi act")
"""Programs with verbs of their own, or whose `push` is everyday work."""

SCRIPTS = SHELLS | _set("python node nodejs ruby perl php tsx ts-node bun deno Rscript lua groovy julia elixir pypy")
SCRIPT = re.compile(r"/|\.(py|sh|bash|zsh|js|ts|mjs|cjs|mts|rb|pl|php|R|lua|exs|groovy|jl|ps1)$")
FRAMEWORKS = _set("alembic django-admin flask celery rails artisan manage.py")

DRY = _set(
    """
    --dry-run --dryrun --dry -dryRun --DryRun --check --list --what-if --whatif --noop --no-push
    --snapshot --skip-publish --preview --simulate --validate-only --just-print --recon --print --syntax-check
    --list-tasks --no-op --pretend --dry_run --test-only --plan --diff --printshellcmds --sql
    """
)
ASKS = _set("--help -h --version help")
DRY_RUNNERS = _set("cargo make gmake just task rake mage ant snakemake")
VALUED = _set(
    """
    -m -k -f -n -c -e -t -p -o -g -s -i -l -r -x -w -C -a -P --name --message --grep --filter --tag --title --config
    --file --project --branch --namespace --prefix --workspace --cwd --directory --output --region --format --app
    --url --host --token --user --org --registry --kubeconfig --context --profile --manifest-path --queue --label
    --settings --configuration --env-file --select --models --exclude --tests
    --env --environment --target --stage --scope --remote --to --from --image --key --value --role --id --type
    """
)
"""Options behind which a word is a value in nearly every program."""


MAKERS = {"make": frozenset[str](), "gmake": frozenset[str](), "task": _set("-f -I")}
"""What is a flag to them, of the options of make that have a value."""
MAKE_VALUED = _set("-C -f -I -o -W -l --directory --file --makefile --include-dir --workspace --filter --prefix")


def subject_of(name: str, argv: list[str]) -> tuple[Subject, list[str]]:
    """Return how the words of a program are read, and the words."""
    if name in SILENT:
        return "", []
    if name in SCRIPTS:
        return _of_interpreter(name, argv)
    if name in RUNNERS:
        return "tasks", argv[1:]
    if name in READERS:
        return "first", argv[1:]
    if is_known(name):
        return ("verbs", argv[1:]) if name in _talkers() else ("", [])
    return ("script", argv) if publishes(task_of(argv[0])) or "/" in argv[0] else ("verbs", argv[1:])


def _of_interpreter(name: str, argv: list[str]) -> tuple[Subject, list[str]]:
    words = argv[1:]
    while words and words[0].startswith("-"):
        if words[0] == "-m" and len(words) > 1:
            return subject_of(words[1], words[1:]) if is_known(words[1]) else ("script", words[1:])
        if name in SHELLS or words[0] in ("-c", "-e", "--check", "-p", "--eval", "-l"):
            return "", []
        words = words[1:]
    if name in ("bun", "deno"):
        words = words[1:] if words[:1] in (["run"], ["task"]) else words
        words = [*(word for word in words[:3] if not word.startswith("-")), *words[3:]]
        return ("script" if words and SCRIPT.search(words[0]) else "tasks"), words
    return ("script", words) if words and (SCRIPT.search(words[0]) or name == "php") else ("", [])


@cache
def _talkers() -> frozenset[str]:
    """Return the programs that talk to services, or that work on what a project has elsewhere."""
    rows = (*CLOUDS, *CLUSTERS, *STORES, *PACKAGES, *DEVELOPMENT[:-1], *CONTAINERS, *PREFERENCES, *CLIENTS)
    more = (*PUBLISHING, *PIPELINES, *QUEUES, *FETCHING, *MESSAGES)
    heads = {name.split()[0] for row in (*rows, *more) for name in row.names}
    return (services() | heads | FRAMEWORKS) - SILENT


@cache
def services() -> frozenset[str]:
    """Return the programs whose one use is to talk to a service."""
    rows = (*PUBLISHING[1:], *PIPELINES, *QUEUES, *MESSAGES, *FETCHING)
    return frozenset(name for row in rows for name in row.names if " " not in name) - {
        "python",
        "git",
        "dvc",
        "php",
        "artisan",
        "wp",
        "aws",
    }


def is_dry(name: str, words: list[str]) -> bool:
    """Tell whether a command only says what it would do."""
    if words[-1:] and words[-1] in ASKS:
        return True
    if any(word.partition("=")[0] in DRY and not word.endswith(("=false", "=none")) for word in words):
        return True
    return name in DRY_RUNNERS and any(word in ("-n", "-T", "-l") for word in words)


def operands_of(words: list[str], most: int, valued: frozenset[str] = VALUED) -> list[str]:
    """Return the first operands; what stands behind an option that mostly takes a value is none."""
    found, before = list[str](), ""
    for word in words:
        if word == "--" or len(found) == most:
            break
        if not word.startswith("-") and before not in valued and "=" not in word:
            found.append(word)
        before = word
    return found


def tasks_of(name: str, words: list[str]) -> list[str]:
    """Return the tasks that a runner is to run."""
    if name in ("tox", "nox"):
        return [task for word in words if not word.startswith("-") for task in word.split(",")]
    if name == "nx":
        return _targets(words)
    operands = operands_of(words, 12, MAKE_VALUED - MAKERS[name] if name in MAKERS else VALUED)
    if name in LABELLED:
        return [operands[1].replace("//", "").replace(":", "-").replace("/", "-")] if operands[:1] == ["run"] else []
    if name not in MANAGERS:
        return [word.rpartition(":")[2] if word.startswith(":") else word.lstrip("+") for word in operands]
    while operands[:1] in (["workspace"], ["workspaces"], ["foreach"], ["npm"]):
        operands = operands[2:] if operands[0] == "workspace" else operands[1:]
    return operands[1:2] if operands[:1] in (["run"], ["run-script"], ["exec"], ["task"]) else operands[:1]


def _targets(words: list[str]) -> list[str]:
    """`nx deploy web`, `nx run web:deploy`, `nx run-many -t deploy`."""
    operands = operands_of(words, 2)
    if operands[:1] in (["run-many"], ["affected"]):
        line = read_line(words, frozenset(["-t", "--target", "--targets"]))
        return [task for value in line.value_of("-t", "--target", "--targets") for task in value.split(",")]
    return operands[1].split(":")[1:] if operands[:1] == ["run"] and len(operands) > 1 else operands[:1]
