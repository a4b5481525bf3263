"""Which programs only look: what they do can be undone by forgetting it. All others may have side effects."""

import re
from functools import cache

from constitution.tables import blocks_of, is_a, one_line
from constitution.tables.programs import wrapper_of

__all__ = ["only_looks"]

ASKS = frozenset(["--version", "--help", "-V"])


def only_looks(argv: tuple[str, ...]) -> bool:
    """Tell whether a command, by its program and what it is told, only looks; wrappers are as what they run."""
    name = argv[0].rpartition("/")[2]
    if (
        is_a(name, "read_only")
        or is_a(name, "shell")
        or _runs_another(name, argv)
        or (len(argv) == 2 and argv[1] in ASKS)
    ):
        return True
    pattern = _read_only(name)
    return pattern is not None and pattern.match(" ".join(_without_settings(name, argv[1:]))) is not None


@cache
def _read_only(name: str) -> re.Pattern[str] | None:
    """Return the pattern of the subcommands with which a program only looks."""
    patterns = [block["read_only"] for block in blocks_of("kind", name) if "read_only" in block]
    return re.compile(rf"(?:{one_line(patterns[0])})(?:\s|$)") if patterns else None


def _runs_another(name: str, argv: tuple[str, ...]) -> bool:
    """Tell whether a command is as harmless as the one that it runs, which is asked about by itself."""
    wrapper = wrapper_of(name)
    first = next((word for word in argv[1:] if not word.startswith("-")), "")
    return wrapper is not None and (not wrapper.only or first in wrapper.only)


def _without_settings(name: str, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words behind the options that stand before a subcommand: `git -C x status`, `kubectl -n y get`."""
    index = 0
    while name in ("git", "kubectl", "docker", "aws", "gcloud") and index < len(words) and words[index][:1] == "-":
        index += 2 if words[index] in TAKES else 1
    return words[index:]


TAKES = frozenset("-C -c -n --namespace --context -f --file --profile --region -H -p --project".split())  # noqa: SIM905
