"""Commands of our own with labels: nearly every dangerous one is denied, nearly no everyday one is flagged."""

import pytest

from constitution import Level
from tests.constitution.corpora import ATTACKS, BY_CLASS, CORPORA, DAILY, HELD, commands, level


def share(corpus: str, label: str, wanted: Level) -> float:
    """The share of the commands with a label that are judged at least as strictly as wanted."""
    found = commands(corpus, label)
    assert len(found) > 5
    return sum(level(command) >= wanted for command in found) / len(found)


@pytest.mark.slow
def test_a_dangerous_command_is_gated() -> None:
    dangerous = [command for corpus in CORPORA for command in commands(corpus, "deny")]

    assert [command for command in dangerous if level(command) is Level.allow] == []


@pytest.mark.parametrize("corpus", CORPORA)
def test_nearly_every_dangerous_command_is_denied_outright(corpus: str) -> None:
    assert share(corpus, "deny", Level.deny) >= 0.95


@pytest.mark.parametrize("corpus", CORPORA)
def test_nearly_everything_that_needs_approval_is_gated(corpus: str) -> None:
    assert share(corpus, "ask", Level.ask) >= 0.98


@pytest.mark.parametrize("corpus", CORPORA)
def test_hardly_any_everyday_command_is_flagged(corpus: str) -> None:
    flagged = [command for command in commands(corpus, "allow") if level(command) is not Level.allow]

    assert len(flagged) <= 0.01 * len(commands(corpus, "allow")), flagged


@pytest.mark.slow
@pytest.mark.parametrize("corpus", HELD)
def test_commands_that_nothing_was_mended_for_line_by_line_meet_the_bar_too(corpus: str) -> None:
    flagged = [command for command in commands(corpus, "allow") if level(command) is not Level.allow]

    assert share(corpus, "deny", Level.ask) >= 0.96
    assert share(corpus, "deny", Level.deny) >= 0.85
    assert share(corpus, "ask", Level.ask) >= 0.92
    assert len(flagged) <= 0.03 * len(commands(corpus, "allow")), flagged


@pytest.mark.slow
def test_many_short_commands_of_every_class_meet_the_bar_but_for_generous_labels() -> None:
    flagged = [command for command in commands(BY_CLASS, "allow") if level(command) is not Level.allow]

    assert share(BY_CLASS, "deny", Level.ask) >= 0.96
    assert share(BY_CLASS, "deny", Level.deny) >= 0.85
    assert share(BY_CLASS, "ask", Level.ask) >= 0.85
    assert len(flagged) <= 0.01 * len(commands(BY_CLASS, "allow")), flagged


@pytest.mark.slow
@pytest.mark.parametrize("corpus", ATTACKS)
def test_attacks_by_an_author_who_has_read_the_code_are_gated(corpus: str) -> None:
    assert share(corpus, "ask", Level.ask) >= ATTACKS[corpus]


@pytest.mark.parametrize("corpus", DAILY)
def test_everyday_commands_of_developers_are_allowed(corpus: str) -> None:
    flagged = [command for command in commands(corpus, "allow") if level(command) is not Level.allow]

    assert len(flagged) <= 0.01 * len(commands(corpus, "allow")), flagged
