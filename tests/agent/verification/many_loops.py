"""Many loops in one search, which is much faster than one for each; and few examples, for the many that there are."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

from attrs import frozen

from agent.threads.core import CORE
from agent.verification.environment import (
    EXAMPLES,
    FEW_EXAMPLES,
    Examples,
    declared_actions,
    with_actions,
)
from agent.verification.loop import Combination, invariants_with, usual_examples, verify_in_world
from agent.vocabulary.events import ProposedAction
from bp import BThread, BThreadBody, Event, Verification, any_of, bthread, start, sync


def small_combinations(rules: Sequence[str]) -> tuple[Combination, ...]:
    """Return none, all, each alone, each left out, and every pair."""
    alone = [Combination(f"only {rule}", (rule,)) for rule in rules]
    left_out = [Combination(f"without {rule}", tuple(other for other in rules if other != rule)) for rule in rules]
    pairs = [Combination(" + ".join(pair), pair) for pair in combinations(rules, 2)]
    return (Combination("none", ()), Combination("all", tuple(rules)), *alone, *left_out, *pairs)


Loops = Mapping[str, tuple[Sequence[BThread], Sequence[BThread]]]
"""Rules and protocols of several loops, by what to call them."""


def verify_each(loops: Loops, *, examples: Examples | None = None, **options: Any) -> Verification:
    """Model-check several loops, each of rules and protocols, in one search.

    That is much faster than one search for each: what a b-thread does is found out once. Every trace begins with
    the label of the loop.
    """
    every_rule = tuple(rule for rules, _ in loops.values() for rule in rules)
    every_protocol = tuple(protocol for _, protocols in loops.values() for protocol in protocols)
    programs = tuple(
        (RulesChosen(label), (*CORE, *rules, *protocols, *invariants_with(rules, protocols)))
        for label, (rules, protocols) in loops.items()
    )
    usual = usual_examples(every_rule, every_protocol)
    return verify_in_world((one_of(programs),), every_rule, every_protocol, examples or usual, options)


@frozen
class RulesChosen(Event):
    """Which rules a loop has that is verified together with others; the first event of their traces."""

    rules: str


def loops_of(rules: Sequence[BThread], combinations: Iterable[Combination]) -> Loops:
    """Return the loops with each of the combinations of `rules`, for `verify_each`."""
    return {each.label: ([rule for rule in rules if rule.name in each.rules], ()) for each in combinations}


@bthread
def one_of(loops: tuple[tuple[RulesChosen, tuple[BThread, ...]], ...]) -> BThreadBody:
    """Choose one of the loops and start it."""
    chosen = yield sync(request=any_of(*[choice for choice, _ in loops]))
    yield start(*dict(loops)[chosen])


def few_examples_for(protocols: Sequence[BThread]) -> Examples:
    """Return the same; where the constitution judges, every verdict, so that several may ask about one call."""
    judged = any(bthread.name == "by_constitution" for bthread in protocols)
    examples: Examples = {**FEW_EXAMPLES, ProposedAction: EXAMPLES[ProposedAction]} if judged else FEW_EXAMPLES
    return with_actions(examples, declared_actions(protocols))
