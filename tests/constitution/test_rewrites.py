"""Every command of the corpora, spelled in other ways: a dangerous one stays gated, a harmless one stays allowed."""

import re
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from constitution import Level
from tests.constitution.corpora import CORPORA, commands, level
from tests.constitution.rewrites import HIDDEN, WRAPPED, requoted

DANGEROUS = [command for corpus in CORPORA for command in commands(corpus, "deny")]
SIMPLE = [command.split() for command in DANGEROUS if re.fullmatch(r"[\w./:+@,-]+ [\w./ :=+@,-]+", command)]


@cache
def everyday() -> list[str]:
    allowed = [command for corpus in CORPORA for command in commands(corpus, "allow")]
    plain = [command for command in allowed if not re.search(r"\$!|\$0|%1|alias|\$@", command)]
    return [command for command in plain if level(command) is Level.allow]


@pytest.mark.slow
@pytest.mark.parametrize("name", [*WRAPPED, *HIDDEN])
def test_a_dangerous_command_stays_gated(name: str) -> None:
    rewrite = {**WRAPPED, **HIDDEN}[name]

    tried = DANGEROUS[:: 1 if name in ("sh -c", "a file") else 7]

    missed = [command for command in tried if level(rewrite(command)) is Level.allow]

    assert missed == []


@pytest.mark.slow
@pytest.mark.parametrize("name", WRAPPED)
def test_an_everyday_command_stays_allowed(name: str) -> None:
    tried = everyday()[:: 1 if name in ("sh -c", "a file") else 7]
    if name == "find":  # which puts names into scripts, too
        tried = [command for command in tried if "{}" not in command]

    flagged = [command for command in tried if level(WRAPPED[name](command)) is not Level.allow]

    assert flagged == []


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.sampled_from(SIMPLE), st.integers(0, 2**32))
def test_a_simple_command_stays_gated_however_its_words_are_quoted(words: list[str], seed: int) -> None:
    written = requoted(words, Random(seed))

    assert level(written) > Level.allow, written
