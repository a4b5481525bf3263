"""The project speaks plain technical English: docstrings are sentences, and messages name the actor."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.walls import parsed

pytestmark = pytest.mark.xdist_group("sources")
ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("bp", "constitution", "agent")
VAGUE = re.compile(r"\b(somebody|someone|nobody|anybody|whoever|whomever)\b", re.IGNORECASE)
DIALECT = re.compile(
    r"\b(anew|nought|mend(s|ed|ing)?|by lot|as good as|into account|for good|(for|of) what is no)\b",
    re.IGNORECASE,
)
CLAUSE = re.compile(r"(What|Who|Whose|Which|How|Where|Why|When|Whether)\b[^?]*$")


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def pages() -> Iterator[Path]:
    yield from (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")))


def tables() -> Iterator[Path]:
    yield from sorted((ROOT / "constitution").rglob("*.toml"))


def vague_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) where the actor is left open, or where a word is not plain English."""
    for number, line in enumerate(text.splitlines(), start=1):
        if VAGUE.search(line) or DIALECT.search(line):
            yield number, line.strip()


def clauses(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, first line) of each docstring that is a clause instead of a sentence."""
    for node in parsed(source):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            first = node.value.value.strip().split("\n")[0]
            if CLAUSE.match(first):
                yield node.lineno, first


@pytest.mark.slow
def test_code_tables_and_pages_name_the_actor() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line}"
        for path in (*sources(), *pages(), *tables())
        for number, line in vague_lines(path.read_text(encoding="utf-8"))
    ]

    assert not found, "name the user, the model, the caller or the b-thread, in plain English:\n" + "\n".join(found)


@pytest.mark.slow
def test_docstrings_are_sentences() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {first}"
        for path in sources()
        for number, first in clauses(path.read_text(encoding="utf-8"))
    ]

    assert not found, "begin with what the thing is or does:\n" + "\n".join(found)


def test_a_vague_actor_and_a_clause_are_found() -> None:
    assert list(vague_lines("x = 1\n# Nobody answers.")) == [(2, "# Nobody answers.")]
    assert list(vague_lines("# Count anew.\nx = 1\n# A good start.")) == [(1, "# Count anew.")]
    assert list(clauses('def f():\n    """Whether it holds."""')) == [(2, "Whether it holds.")]
    assert not list(clauses('def f():\n    """Return whether it holds."""'))
