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


def test_a_fork_bomb_is_said_to_start_itself() -> None:
    verdict = judge_command(":(){ :|:& };:", "/ws", home="/home/me")

    assert verdict.explanation == ": would start itself again and again"
