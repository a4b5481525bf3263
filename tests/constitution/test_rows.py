"""The rows of the tables carry examples, and three files of labelled commands have more; here they are judged."""

import tomllib
from pathlib import Path

import pytest

from constitution import tables
from tests.constitution.examples import Example, of_options, of_rows, of_zones, written_down


def failing(examples: tuple[Example, ...]) -> list[str]:
    """The examples that are not judged as they have to be, as text."""
    assert len(examples) > 30
    return [f"{example.said}: {example.command}" for example in examples if not example.holds()]


@pytest.mark.slow
def test_a_row_says_what_its_examples_show() -> None:
    assert failing(of_rows()) == []


@pytest.mark.slow
def test_the_tables_say_what_is_written_down() -> None:
    assert failing(written_down()) == []


@pytest.mark.slow
def test_an_option_is_read_as_the_program_reads_it() -> None:
    assert failing(tuple(example for line in of_options() for example in line)) == []


def test_a_rule_speaks_in_every_place_that_it_names() -> None:
    assert failing(tuple(example for line in of_zones() for example in line)) == []


def test_every_file_of_programs_is_read_whole() -> None:
    """Blocks are found by a pattern; what it does not find would be knowledge that is never used."""
    folder = Path(tables.__file__).parent
    files = {file.stem for file in folder.glob("*.toml")} - {
        "rules",
        "variables",
        "verbs",
        "places",
        "languages",
        "signs",
    }
    named = {kind: set[str]() for kind in ("program", "wrapper", "kind")}
    for file in files:
        for kind, blocks in tomllib.loads((folder / f"{file}.toml").read_text(encoding="utf-8")).items():
            named[kind] |= {name for block in blocks for name in block["names"].replace("\n", "").split("|")}

    assert files == set(tables.PROGRAM_FILES)
    assert {kind: set(tables.table_names(kind)) for kind in named} == named


def test_a_pattern_stays_the_same_value_when_it_is_used() -> None:
    """Verification refuses a b-thread that asks the constitution if a global of it changes meanwhile."""
    made = tables.pattern("a+")
    before = vars(made).copy()

    assert made.search("baa") is not None
    assert vars(made) == before
