"""Labelled commands, judged: those beside the rows of the tables, those written down by class, and the corpora."""

import os
import re
import shlex
import shutil
import subprocess
import tomllib
from functools import cache
from pathlib import Path

import pytest

from constitution import POLICIES, Action, Effect, Level, Policy, deeds_of, judge_command, tables
from tests.constitution.corpora import ATTACKS, BY_CLASS, CORPORA, DAILY, HELD, commands, level
from tests.constitution.examples import OF_PATHS, Example, labelled_rows, of_options, of_rows, of_zones, written_down
from tests.tables import rows


def failing(examples: tuple[Example, ...]) -> list[str]:
    """The examples that are not judged as they have to be, as text."""
    assert len(examples) > 30
    return [f"{example.said}: {example.command}" for example in examples if not example.holds()]


@pytest.mark.slow
def test_a_row_says_what_its_examples_show() -> None:
    assert failing(of_rows()) == []


@pytest.mark.slow
def test_examples_written_beside_the_tables_hold() -> None:
    assert failing(written_down()) == []


@pytest.mark.slow
def test_an_option_is_read_as_the_program_reads_it() -> None:
    assert failing(tuple(example for line in of_options() for example in line)) == []


def test_a_rule_speaks_in_every_place_that_it_names() -> None:
    assert failing(tuple(example for line in of_zones() for example in line)) == []


def test_a_command_is_judged_by_what_it_does() -> None:
    """Endless loops, redirections, files that are written and run, variables, inline code: each at its exact level."""
    assert failing(tuple(Example(command, said) for said, command in labelled_rows("commands.tsv"))) == []


def test_python_is_read_alike_as_an_option_as_input_and_as_a_file() -> None:
    python = [
        (said, shlex.split(row)[2]) for said, row in labelled_rows("commands.tsv") if row.startswith("python3 -c")
    ]
    as_input = [Example(f"python3 - <<'END'\n{code}\nEND", said) for said, code in python]
    as_a_file = [Example(f"cat > x.py <<'END'\n{code}\nEND\npython3 x.py", said) for said, code in python]

    assert failing((*as_input, *as_a_file)) == []


DOUBTS = (
    *("hidden", "evaluated_later", "unknown_words", "carried_programs", "accidents", "addresses", "outputs"),
    "inline_code",
)


@pytest.mark.slow
@pytest.mark.parametrize("table", DOUBTS)
def test_a_doubt_is_asked_about_and_what_resembles_it_is_not(table: str) -> None:
    """What cannot be known, or can be read in two ways, is gated in every policy that asks."""
    found = labelled_rows(f"{table}.tsv")

    assert sum(label == "gated" for label, _ in found) >= 30
    assert [row for row in found if (level(row[1]) is Level.allow) is not (row[0] == "allowed")] == []


# Rules
@pytest.mark.slow
@rows("policy", [POLICIES["default"], POLICIES["approval_list"]])
def test_a_rule_judges_its_examples_and_leaves_what_only_resembles_them_alone(policy: Policy) -> None:
    def judged(command: str) -> tuple[str, Level]:
        verdict = judge_command(command, "/ws", home="/home/me", policy=policy)
        return verdict.rule, verdict.level

    every = [(rule, command, judged(command)) for rule in policy.rules for command in (*rule.match, *rule.not_match)]
    missed = [row for row in every if row[1] in row[0].match and row[2] != (row[0].name, row[0].level)]
    flagged = [
        row
        for row in every
        if row[1] in row[0].not_match and row[2][1] is not Level.allow and row[2][0] not in OF_PATHS
    ]

    assert (missed, flagged) == ([], [])


def test_rule_names_are_unique_within_a_policy() -> None:
    for policy in POLICIES.values():
        names = [rule.name for rule in policy.rules]
        assert len(names) == len(set(names))


# The files of the tables
def test_every_file_of_programs_is_read_whole() -> None:
    """Blocks are found by a pattern; what it does not find would be knowledge that is never used."""
    folder = Path(tables.__file__).parent
    others = {"rules", "variables", "verbs", "places", "languages", "signs"}
    files = {file.stem for file in folder.glob("*.toml")} - others
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


# Corpora: nearly every dangerous command is denied, nearly no everyday one is flagged.
def share(corpus: str, label: str, wanted: Level) -> float:
    """The share of the commands with a label that are judged at least as strictly as wanted."""
    found = commands(corpus, label)
    assert len(found) > 5
    return sum(level(command) >= wanted for command in found) / len(found)


def check_that_hardly_any_is_flagged(corpus: str, most: float = 0.01) -> None:
    flagged = [command for command in commands(corpus, "allow") if level(command) is not Level.allow]

    assert len(flagged) <= most * len(commands(corpus, "allow")), flagged


@pytest.mark.slow
def test_a_dangerous_command_is_gated() -> None:
    dangerous = [command for corpus in CORPORA for command in commands(corpus, "deny")]

    assert [command for command in dangerous if level(command) is Level.allow] == []


@rows("corpus", CORPORA)
def test_nearly_all_commands_of_the_tuning_corpus_are_judged_as_labelled(corpus: str) -> None:
    assert share(corpus, "deny", Level.deny) >= 0.95
    assert share(corpus, "ask", Level.ask) >= 0.98
    check_that_hardly_any_is_flagged(corpus)


@pytest.mark.slow
@pytest.mark.parametrize("corpus", HELD)
def test_commands_not_used_for_tuning_meet_the_bar(corpus: str) -> None:
    assert share(corpus, "deny", Level.ask) >= 0.96
    assert share(corpus, "deny", Level.deny) >= 0.85
    assert share(corpus, "ask", Level.ask) >= 0.92
    check_that_hardly_any_is_flagged(corpus, most=0.03)


@pytest.mark.slow
def test_many_short_commands_of_every_class_meet_the_bar_but_for_generous_labels() -> None:
    assert share(BY_CLASS, "deny", Level.ask) >= 0.96
    assert share(BY_CLASS, "deny", Level.deny) >= 0.85
    assert share(BY_CLASS, "ask", Level.ask) >= 0.85
    check_that_hardly_any_is_flagged(BY_CLASS)


@pytest.mark.slow
@pytest.mark.parametrize("corpus", ATTACKS)
def test_attacks_by_an_author_who_has_read_the_code_are_gated(corpus: str) -> None:
    assert share(corpus, "ask", Level.ask) >= ATTACKS[corpus]


@rows("corpus", DAILY)
def test_everyday_commands_of_developers_are_allowed(corpus: str) -> None:
    check_that_hardly_any_is_flagged(corpus)


# What programs say of themselves (`cp --help`) is compared with the tables: no option of theirs hides a file from us


READERS = (
    "cat tac nl head tail wc sort uniq cut paste join comm fold fmt expand od base64 sha256sum md5sum diff cmp stat"
)
CHANGERS = "cp mv ln install rm rmdir mkdir mkfifo touch truncate shred split tee chmod chown chgrp gzip xz zstd ls du"
SEARCHERS = "grep sed rg"
PROGRAMS = f"{READERS} {CHANGERS} {SEARCHERS}".split()

OPTION = re.compile(r"^ {1,8}(?:(-\w)\b)?(?:, *)?(--[\w-]+)?((?:\[?[= ]?[<\[{]?[A-Z'{][\w'|,.-]*)?)(?=[\s\]>}]|$)")
PRINTS = "-c --stdout --to-stdout -l --list -t --test"
MEANS_OTHERWISE = {"gzip": PRINTS, "xz": PRINTS, "zstd": PRINTS, "sed": "-i --in-place", "ln": "-s --symbolic"}
"""Options with which files are not written, or are not read: examples show what they do."""


@cache
def options_of(program: str) -> tuple[str, ...]:
    """The options that a program's help names, each with a value where it needs one."""
    if shutil.which(program) is None:
        return ()
    told = subprocess.run(
        [program, "--help"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        timeout=100,
        env={**os.environ, "LC_ALL": "C"},
    )
    found = []
    for line in told.stdout.splitlines():
        said = OPTION.match(line)
        names = [name for name in (said[1], said[2]) if name] if said else []
        value = said[3] if said and names else ""
        if value.startswith("["):  # a value that may be left out stands in the same word
            value = ""
        found += [f"{name} 5" if value else name for name in names]
    return tuple(found)


def deeds(command: str) -> set[tuple[Effect, str]]:
    """What is done to which path; to delete all of something is to delete it."""
    told = deeds_of(Action("bash", "write", "/ws", home="/home/me", command=command))
    return {(Effect.DELETE if "DELETE" in deed.effect.name else deed.effect, deed.path) for deed in told if deed.path}


@rows("program", PROGRAMS)
def test_no_option_hides_a_file(program: str) -> None:
    """`cat -n x` reads `x`, since `-n` has no value; `head -n 5 x` does too."""
    files = "600 /srv/a /srv/b"
    plain = deeds(f"{program} {files}")
    otherwise = MEANS_OTHERWISE.get(program, "").split()

    hidden = [option for option in options_of(program) if not plain <= deeds(f"{program} {option} {files}")]

    assert plain
    assert [option for option in hidden if option not in otherwise] == []
