"""The loop as a whole: rules, protocols, their invariants and their environment; also for many sets in one search."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from attrs import evolve, frozen

from agent.effects.declared import loop_effects
from agent.presets.preset import Preset
from agent.threads.core import CORE
from agent.verification.environment import (
    EXAMPLES_WITH_PROTOCOLS,
    Examples,
    any_verdict,
    declared_actions,
    environment,
    examples_for,
    examples_with,
    in_threes,
    laboratory_effects,
    people_for,
)
from agent.verification.invariants import invariants_of
from agent.verification.protocol_invariants import ALWAYS_WITH_PROTOCOLS, invariants_of_protocols
from bp import BThread, BThreadBody, Event, Verification, any_of, bthread, start, sync, verify
from constitution import Action, deeds_of


@frozen
class Combination:
    """Some of the rules of a preset, by name, and what to call them."""

    label: str
    rules: tuple[str, ...]


def small_combinations(rules: Sequence[str]) -> tuple[Combination, ...]:
    """Return none, all, each alone, each left out, and every pair."""
    alone = [Combination(f"only {rule}", (rule,)) for rule in rules]
    left_out = [Combination(f"without {rule}", tuple(other for other in rules if other != rule)) for rule in rules]
    pairs = [Combination(" + ".join(pair), pair) for pair in combinations(rules, 2)]
    return (Combination("none", ()), Combination("all", tuple(rules)), *alone, *left_out, *pairs)


def every_subset(rules: Sequence[str]) -> Iterator[Combination]:
    """Yield every subset, small ones first."""
    for size in range(len(rules) + 1):
        for subset in combinations(rules, size):
            yield Combination(" + ".join(subset) or "none", subset)


SMALL = {
    "max_iterations": 2,
    "max_failures": 2,
    "max_empty_answers": 2,
    "attempts": 2,
    "max_follow_ups": 1,
    "doom_loop": 2,
    "max_tokens": 2,
    "max_tokens_per_iteration": 1,
    "max_cost": 2.0,
    "deadline": 1.0,
    "context_tokens": 1,
}
"""Limits that are reached soon; what holds for two holds for twenty, because the b-threads only count."""


def verify_loop(
    rules: Preset | Sequence[BThread],
    protocols: Sequence[BThread] = (),
    *,
    core: Sequence[BThread] = CORE,
    examples: Examples | None = None,
    invariants: Sequence[BThread] = (),
    required: Sequence[BThread] | None = None,
    **options: Any,
) -> Verification:
    """Model-check a loop of `core`, `rules` and `protocols` with the invariants of all; `options` are `bp.verify`'s.

    rules: a preset, which gets small limits, or b-threads. examples: what effects may return, by default what makes a
    difference. invariants: more of them, for protocols that do not ship. required: the rules whose invariants have to
    hold, by default those that are there; give more to see what breaks where one is left out.
    """
    chosen = loop_rules(rules) if isinstance(rules, Preset) else tuple(rules)
    kept = (*invariants_with(chosen if required is None else required, protocols), *invariants)
    usual = usual_examples((*chosen, *(required or ())), protocols)
    if not protocols and any(rule.name == "one_at_a_time" for rule in chosen):
        usual = in_threes(usual)  # where calls run at a time, three would have too many states
    return _verified((*core, *chosen, *protocols, *kept), chosen, tuple(protocols), examples or usual, options)


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
    return _verified((one_of(programs),), every_rule, every_protocol, examples or usual, options)


def usual_examples(rules: Sequence[BThread], protocols: Sequence[BThread]) -> Examples:
    """Return what effects may return where `examples` are not given."""
    return examples_with(rules, protocols) if protocols else examples_for(rules)


def _verified(
    loop: Sequence[BThread],
    rules: tuple[BThread, ...],
    protocols: tuple[BThread, ...],
    examples: Examples,
    options: Mapping[str, Any],
) -> Verification:
    load_tables((*rules, *protocols))
    effects = (*loop_effects(), *(laboratory_effects() if protocols else ()))
    world = environment(effects, {**EXAMPLES_WITH_PROTOCOLS, **examples})
    return verify(*loop, environment=world, possible=people_for((*rules, *protocols)), **{"endless": True, **options})


def load_tables(bthreads: Sequence[BThread]) -> None:
    """Have the constitution load what it loads when it first sees such actions, so that no predicate does meanwhile."""
    for facts in (Action("bash", "write", "/", command="true"), *(each.facts for each in declared_actions(bthreads))):
        deeds_of(facts)


def invariants_with(rules: Sequence[BThread], protocols: Sequence[BThread]) -> tuple[BThread, ...]:
    """Return all that has to hold of the loop with these."""
    of_protocols = (*ALWAYS_WITH_PROTOCOLS, *invariants_of_protocols(protocols)) if protocols else ()
    return (*invariants_of((*rules, *protocols)), *of_protocols)


def loop_rules(preset: Preset) -> tuple[BThread, ...]:
    """Return the rules of `preset` with small limits and a constitution that may say anything."""
    limits: dict[str, Any] = {name: value for name, value in SMALL.items() if getattr(preset, name, None) is not None}
    return evolve(preset, **limits).rules(any_verdict)


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
