"""Many loops, one after the other, in one space: what a b-thread does is found out once for all of them."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing

from agent.threads.core import CORE
from agent.verification import invariants_with, world_of
from agent.verification.environment import (
    EXAMPLES,
    FEW_EXAMPLES,
    Examples,
    declared_actions,
    people_for,
    usual_examples,
    with_actions,
)
from agent.vocabulary.events import ProposedAction
from bp import BThread, Event, Verification
from bp.verification import searched
from bp.verification.report import Violations
from bp.verification.search import Search
from bp.verification.states import StateSpace
from tests.agent.faults import told

Loop = tuple[Sequence[BThread], Sequence[BThread]] | tuple[Sequence[BThread], Sequence[BThread], Examples]
Loops = Mapping[str, Loop]
"""Rules and protocols of several loops, by what to call them; one may have examples of its own."""

Situations = Mapping[str, Callable[[Sequence[BThread]], Sequence[Event]]]
"""What people may say at any moment, given the rules and protocols of a loop."""

ANYTHING: Situations = {"anything": people_for}


def verify_each(
    loops: Loops,
    examples: Callable[[Sequence[BThread]], Examples] | None = None,
    *,
    situations: Situations = ANYTHING,
    max_states: int | None = None,
    first: bool = False,
    left_out: bool = False,
) -> Iterator[tuple[str, str, Verification]]:
    """Model-check several loops, each of rules and protocols, in each situation; yield label, situation and result.

    That is much faster than `verify_loop` for each where they are small, and gives the same. first: stop each search at
    its first violation. left_out: what the rules require has to hold without them.
    """
    space = StateSpace((), (), (), in_order=False)
    with closing(space.automaton):
        for label, (rules, protocols, *own) in loops.items():
            usual = usual_examples(rules, protocols) if examples is None else examples((*rules, *protocols))
            world = world_of(rules, protocols, own[0] if own else usual)
            present = () if left_out else rules
            program = (*CORE, *present, *protocols, *invariants_with(rules, protocols))
            for situation, people in situations.items():
                began = time.perf_counter()
                space.begin(program, world, people((*rules, *protocols)))
                search = Search(space, Violations(space, (), first=first), max_states)
                yield label, situation, searched(search, True, began)


def not_held(loops: Loops, examples: Callable[[Sequence[BThread]], Examples] | None = None) -> dict[str, str]:
    """Return what was found of those loops that do not hold, by what they are called."""
    return {label: told(result) for label, _, result in verify_each(loops, examples) if not result.holds}


def loops_of(rules: Sequence[BThread], subsets: Iterable[Collection[str]]) -> Loops:
    """Return the loops with each of the subsets of `rules`, by their names, for `verify_each`."""
    return {" + ".join(names) or "none": ([rule for rule in rules if rule.name in names], ()) for names in subsets}


def few_examples_for(protocols: Sequence[BThread]) -> Examples:
    """Return few outcomes; where the constitution judges, every verdict, so that several may ask about one call."""
    judged = any(bthread.name == "by_constitution" for bthread in protocols)
    examples: Examples = {**FEW_EXAMPLES, ProposedAction: EXAMPLES[ProposedAction]} if judged else FEW_EXAMPLES
    return with_actions(examples, declared_actions(protocols))
