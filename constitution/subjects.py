"""Where in the words of a program a verb, or a task, can stand: services have verbs, runners have tasks, files run."""

import re
from typing import Literal

from constitution.spoken import publishes, task_of, verbs
from constitution.tables import is_a
from constitution.tables.programs import is_known, read_line

__all__ = ["Subject", "is_dry", "operands_of", "subject_of", "tasks_of"]

Subject = Literal["", "verbs", "first", "tasks", "script"]
"""Nothing is read; verbs among the first operands; the first alone; tasks among all of them; a file that is run."""


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


SCRIPT = re.compile(r"/|\.(py|sh|bash|zsh|js|ts|mjs|cjs|mts|rb|pl|php|R|lua|exs|groovy|jl|ps1)$")


def subject_of(name: str, argv: list[str]) -> tuple[Subject, list[str]]:
    """Return how the words of a program are read, and the words."""
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
"""Lists of the options with a value, of programs with options of their own."""


def is_dry(name: str, words: list[str]) -> bool:
    """Tell whether a command only says what it would do."""
    if words[-1:] and words[-1] in ("--help", "-h", "--version", "help"):
        return True
    if any(word.partition("=")[0] in verbs("dry_run") and not word.endswith(("=false", "=none")) for word in words):
        return True
    return is_a(name, "dry_runner") and any(word in ("-n", "-T", "-l") for word in words)


def operands_of(words: list[str], most: int, valued: str = "valued_options") -> list[str]:
    """Return the first operands; what stands behind an option that mostly takes a value is none."""
    found, before = list[str](), ""
    for word in words:
        if word == "--" or len(found) == most:
            break
        if not word.startswith("-") and before not in verbs(valued) and "=" not in word:
            found.append(word)
        before = word
    return found


def tasks_of(name: str, words: list[str]) -> list[str]:
    """Return the tasks that a runner is to run."""
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
    return operands[1:2] if operands[:1] in (["run"], ["run-script"], ["exec"], ["task"]) else operands[:1]


def _targets(words: list[str]) -> list[str]:
    """`nx deploy web`, `nx run web:deploy`, `nx run-many -t deploy`."""
    operands = operands_of(words, 2)
    if operands[:1] in (["run-many"], ["affected"]):
        line = read_line(words, frozenset(["-t", "--target", "--targets"]))
        return [task for value in line.value_of("-t", "--target", "--targets") for task in value.split(",")]
    return operands[1].split(":")[1:] if operands[:1] == ["run"] and len(operands) > 1 else operands[:1]
