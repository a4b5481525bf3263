"""Many loops in one search, which is much faster than one for each; and few examples, for the many that there are."""

from collections.abc import Collection, Iterable, Mapping, Sequence
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
from agent.verification.loop import invariants_with, usual_examples, verify_in_world
from agent.vocabulary.events import ProposedAction
from bp import BThread, BThreadBody, Event, Verification, any_of, bthread, start, sync

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


def loops_of(rules: Sequence[BThread], subsets: Iterable[Collection[str]]) -> Loops:
    """Return the loops with each of the subsets of `rules`, by their names, for `verify_each`."""
    return {" + ".join(names) or "none": ([rule for rule in rules if rule.name in names], ()) for names in subsets}


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
