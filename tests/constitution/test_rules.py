"""Every rule carries examples; here they are judged."""

import pytest

from constitution import POLICIES, Level, Policy, judge_command
from tests.constitution.examples import OF_PATHS

STATUTES = [POLICIES["default"], POLICIES["approval_list"]]


@pytest.mark.slow
def test_examples_of_a_rule_are_judged_by_it() -> None:
    missed = []
    for policy in STATUTES:
        for rule in policy.rules:
            for command in rule.match:
                verdict = judge_command(command, "/ws", home="/home/me", policy=policy)
                if (verdict.rule, verdict.level) != (rule.name, rule.level):
                    missed.append((policy.name, rule.name, command, str(verdict)))

    assert missed == []


@pytest.mark.slow
def test_a_command_that_only_resembles_a_rule_is_allowed() -> None:
    flagged = []
    for policy in STATUTES:
        for rule in policy.rules:
            for command in rule.not_match:
                verdict = judge_command(command, "/ws", home="/home/me", policy=policy)
                if verdict.level is not Level.allow and verdict.rule not in OF_PATHS:
                    flagged.append((policy.name, rule.name, command, str(verdict)))

    assert flagged == []


@pytest.mark.slow
def test_a_rule_that_is_taken_away_no_longer_judges() -> None:
    """Removing a rule changes what its examples get: no rule is idle."""
    default = POLICIES["default"]
    for rule in default.rules:
        without = Policy("less", tuple(other for other in default.rules if other is not rule))
        for command in rule.match:
            verdict = judge_command(command, "/ws", home="/home/me", policy=without)
            assert verdict.rule != rule.name
            assert verdict.level <= rule.level


def test_rule_names_are_unique_within_a_policy() -> None:
    for policy in POLICIES.values():
        names = [rule.name for rule in policy.rules]
        assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (":(){ :|:& };:", ": would start itself again and again"),
        ("cp $A y", "cp would read a path that is not known before it runs"),
        ("rm -rf src/$A", "rm would recursively delete a path in src that is not known before it runs"),
        ("cat /$A", "cat would read a path in / that is not known before it runs"),
        (
            "LD_PRELOAD=$A ls",
            "the command would make programs load a path that is not known before it runs (LD_PRELOAD)",
        ),
        ("ls ~/x | xargs rm", "rm would delete files in /home/me/x"),
    ],
)
def test_a_verdict_says_in_words_what_would_happen_to_what(command: str, words: str) -> None:
    assert judge_command(command, "/ws", home="/home/me").explanation == words
