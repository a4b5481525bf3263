"""Every rule over episodes is model-checked, alone and with all others, and every planted fault is found and named."""

from itertools import combinations
from typing import Any, get_args

import pytest
from attrs import frozen

from agent.lab.deployments.program import Instead
from agent.lab.deployments.rules import (
    RULES,
    audit_afterwards,
    audit_first,
    audit_suspicious,
    distrust_monitor,
    shut_down_on_catch,
)
from agent.lab.deployments.verification import invariants_of_deployment, verify_deployment
from agent.verification.counterexample import tell
from bp import BThread
from tests.agent.faults import deployments as faults
from tests.agent.faults.fault import told

ALONE = {
    "audit_first": audit_first(2),
    "audit_suspicious": audit_suspicious(1, 0.5),
    "audit_afterwards": audit_afterwards(1),
    "shut_down_on_catch": shut_down_on_catch(),
    "distrust_monitor": distrust_monitor(),
}


def test_every_rule_that_ships_is_verified() -> None:
    assert list(ALONE) == [rule.name for rule in RULES]


@pytest.mark.parametrize("instead", get_args(Instead))
@pytest.mark.parametrize("name", ALONE)
def test_a_rule_alone_keeps_what_it_is_there_for(name: str, instead: Instead) -> None:
    result = verify_deployment([ALONE[name]], instead=instead)

    assert result.holds, told(result)


@pytest.mark.parametrize("pair", list(combinations(ALONE, 2)), ids="+".join)
def test_any_two_rules_keep_what_both_are_there_for(pair: tuple[str, str]) -> None:
    result = verify_deployment([ALONE[name] for name in pair], episodes=2)

    assert result.holds, told(result)


@pytest.mark.parametrize("instead", get_args(Instead))
def test_all_rules_together_keep_what_each_is_there_for(instead: Instead) -> None:
    result = verify_deployment(list(ALONE.values()), instead=instead)

    assert result.holds, told(result)


def test_the_order_of_rules_makes_no_difference() -> None:
    one, other = (verify_deployment(order) for order in (list(ALONE.values()), list(ALONE.values())[::-1]))

    assert (one.states, one.transitions) == (other.states, other.transitions)


@frozen
class Fault:
    """A b-thread in the place of a rule's (or of the course), the rules beside it, and what the checker says."""

    planted: BThread
    kind: str
    culprit: str
    others: tuple[BThread, ...] = ()
    episodes: int = 2


SHUTDOWN = (audit_first(1), shut_down_on_catch())

FAULTS = (
    Fault(faults.does_not_wait_for_the_end(2), "error", "episodes_come_one_by_one"),
    Fault(faults.has_it_run_by_somebody_else(2), "error", "refused_episodes_are_replaced", SHUTDOWN),
    Fault(faults.takes_what_can_be_had(2), "error", "refused_episodes_are_replaced", SHUTDOWN),
    Fault(faults.lets_the_next_one_start(1), "error", "first_episodes_are_audited"),
    Fault(faults.takes_a_missing_score_for_harmless(1), "error", "suspicious_episodes_are_audited"),
    Fault(faults.spends_on_anything(1), "error", "suspicious_episodes_are_audited"),
    Fault(faults.audits_one_more(1), "error", "audits_are_limited"),
    Fault(faults.audits_the_first_ones(1), "error", "the_most_suspicious_are_audited"),
    Fault(faults.saves_audits(1), "hot", "the_most_suspicious_are_audited"),
    Fault(faults.audits_again(1), "error", "episodes_are_audited_once", (audit_first(1),)),
    Fault(faults.only_holds(), "deadlock", "deploy", (audit_first(1),)),
    Fault(faults.forgives(), "error", "disabled_roles_run_nothing", (audit_first(1),), episodes=3),
    Fault(faults.heeds_audits_alone(), "error", "disabled_roles_run_nothing", (audit_first(1),)),
    Fault(faults.does_not_say_so(), "error", "disabled_roles_run_nothing", (audit_first(1),)),
    Fault(faults.counts_to_two(), "error", "unfit_monitors_watch_nothing", episodes=3),
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.planted.function.__name__)
def test_a_planted_fault_is_found_and_named(fault: Fault) -> None:
    is_course = fault.planted.name == "deploy"
    rules = fault.others if is_course else (fault.planted, *fault.others)

    result = verify_deployment(rules, episodes=fault.episodes, course=fault.planted if is_course else None)

    assert any(_is_told_by(fault, violation) for violation in result.violations), told(result)
    assert all(len(tell(violation).splitlines()) <= 15 for violation in result.violations)


def test_every_invariant_has_a_fault_that_breaks_it() -> None:
    from agent.lab.deployments.program import deploy

    named = {monitor.name for monitor in invariants_of_deployment((deploy(3), *ALONE.values()))}

    assert named == {fault.culprit for fault in FAULTS if fault.kind != "deadlock"}


def _is_told_by(fault: Fault, violation: Any) -> bool:
    culprits = {wish[0] for wish in violation.blockers} if violation.kind == "deadlock" else {violation.bthread}
    return bool(violation.kind == fault.kind and fault.culprit in culprits)
