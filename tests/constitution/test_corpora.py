"""Labelled commands, judged where nothing confines them: the dangerous are gated, the harmless run.

There is no bar for single attacks: what a text hides, a sandbox has to hold.
"""

from collections import Counter

import pytest
from attrs import evolve

from constitution import Action, Level, judge
from tests.constitution.corpora import commands, level, rows


def share(name: str, least: Level = Level.ask) -> float:
    """The share of the commands of a file that are judged at least so strictly."""
    found = commands(name)
    return sum(level(command) >= least for command in found) / len(found)


@pytest.mark.slow
def test_nearly_all_dangerous_commands_are_gated() -> None:
    assert share("dangerous") >= 0.97
    assert share("dangerous", Level.deny) >= 0.6


@pytest.mark.slow
def test_most_doubtful_commands_are_asked_about() -> None:
    assert share("doubtful") >= 0.85


@pytest.mark.slow
def test_few_harmless_commands_are_questioned() -> None:
    assert share("harmless") <= 0.08


@pytest.mark.slow
def test_most_attacks_are_asked_about() -> None:
    assert share("attacks") >= 0.75


@pytest.mark.slow
def test_no_class_of_danger_is_missed_as_a_whole() -> None:
    gated, all_of_it = Counter[str](), Counter[str]()
    for kind, command in rows("dangerous"):
        all_of_it[kind] += 1
        gated[kind] += level(command) > Level.allow

    assert [kind for kind in all_of_it if kind != "missed" and gated[kind] < 0.9 * all_of_it[kind]] == []


@pytest.mark.slow
def test_in_a_sandbox_the_texts_of_harmless_commands_raise_no_question() -> None:
    """But for what a right or a secret of the project is needed."""
    facts = Action("bash", "write", "/ws", home="/home/me", sandbox="bubblewrap", kept=("/ws",))
    confined = [judge(evolve(facts, command=command)) for command in commands("harmless")]

    assert sum(verdict.level > Level.allow for verdict in confined) <= 0.03 * len(confined)
