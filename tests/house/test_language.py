"""The project speaks plain technical English: docstrings are sentences, and messages name the actor."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("bp", "constitution", "agent")
VAGUE = re.compile(
    r"\b(somebody|someone|nobody|anybody|whoever|whomever"
    r"|anew|nought|mend(s|ed|ing)?|by lot|as good as|into account|for good|(for|of) what is no)\b"
)
CLAUSE = re.compile(r'^ *r?"""\s*((What|Who|Whose|Which|How|Where|Why|When|Whether)\b[^?\n]*?)("""|$)', re.MULTILINE)


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from sorted((ROOT / package).rglob("*.py"))


def pages() -> Iterator[Path]:
    yield from (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")))


def tables() -> Iterator[Path]:
    yield from sorted((ROOT / "constitution").rglob("*.toml"))


def vague_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, line) where the actor is left open, or where a word is not plain English."""
    for found in VAGUE.finditer(text.lower()):
        number = text.count("\n", 0, found.start()) + 1
        yield number, text.split("\n")[number - 1].strip()


def clauses(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line number, first line) of each docstring that is a clause instead of a sentence."""
    for found in CLAUSE.finditer(source):
        yield source.count("\n", 0, found.start(1)) + 1, found[1]


def test_code_tables_and_pages_name_the_actor() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line}"
        for path in (*sources(), *pages(), *tables())
        for number, line in vague_lines(path.read_text(encoding="utf-8"))
    ]

    assert not found, "name the user, the model, the caller or the b-thread, in plain English:\n" + "\n".join(found)


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
