"""The loop as a whole: rules, protocols, their invariants and their environment; also for many sets in one search."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from attrs import evolve, frozen

from agent.effects.declared import loop_effects
from agent.presets.preset import Preset
from agent.threads.core import CORE
from agent.verification.environment import (
    Examples,
    any_verdict,
    environment,
    examples_for,
    in_threes,
    people_for,
)
from agent.verification.invariants import invariants_of
from agent.verification.protocol_invariants import invariants_with
from agent.verification.protocols import examples_with_protocols, laboratory_effects, load_tables
from bp import BThread, BThreadBody, Event, Verification, any_of, bthread, start, sync, verify


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
    """Model-check a loop of `core`, `rules` and `protocols` with the invariants of all.

    rules: those of a preset, or some. examples: what effects may return, by default what makes a difference to the
    rules. invariants: more of them, for protocols that do not ship. required: the rules whose invariants have to hold,
    by default those that are there; give more to see what breaks where one is left out. options: those of `bp.verify`.
    """
    rules = loop_rules(rules) if isinstance(rules, Preset) else tuple(rules)
    program = (
        *core,
        *rules,
        *protocols,
        *invariants_with(rules if required is None else required, protocols),
        *invariants,
    )
    return _search(
        program, rules, protocols, usual_examples(rules, protocols) if examples is None else examples, options
    )


def usual_examples(rules: Sequence[BThread], protocols: Sequence[BThread]) -> Examples:
    """Return what effects may return by default: answers of three calls only where all calls run in turn."""
    if protocols:
        return examples_with_protocols(rules, protocols)
    examples = examples_for(rules)
    return in_threes(examples) if any(rule.name == "one_at_a_time" for rule in rules) else examples


def _search(
    program: Sequence[BThread],
    rules: Sequence[BThread],
    protocols: Sequence[BThread],
    examples: Examples,
    options: Mapping[str, Any],
) -> Verification:
    load_tables(protocols)
    effects = (*loop_effects(), *(laboratory_effects() if protocols else ()))
    people = people_for((*rules, *protocols))
    world = environment(effects, examples)
    return verify(*program, environment=world, possible=people, **{"endless": True, **options})


def loop_rules(preset: Preset) -> tuple[BThread, ...]:
    """Return the rules of `preset` with small limits and a constitution that may say anything."""
    limits: dict[str, Any] = {name: value for name, value in SMALL.items() if getattr(preset, name, None) is not None}
    return evolve(preset, **limits).rules(any_verdict)


@frozen
class RulesChosen(Event):
    """Which rules a loop has that is verified together with others; the first event of their traces."""

    rules: str


def verify_together(rules: Sequence[BThread], combinations: Sequence[Combination], **options: Any) -> Verification:
    """Model-check the loop with each of the combinations of `rules`, in one search.

    That is much faster than one search for each: what a b-thread does is found out once. Every trace begins with
    the combination.
    """
    chosen = {each.label: [rule for rule in rules if rule.name in each.rules] for each in combinations}
    loops = tuple((RulesChosen(label), (*CORE, *some, *invariants_of(some))) for label, some in chosen.items())
    return _search([one_of(loops)], rules, (), examples_for(rules), options)


def verify_each(
    programs: Mapping[str, Sequence[BThread]],
    rules: Sequence[BThread] = (),
    *,
    examples: Examples | None = None,
    **options: Any,
) -> Verification:
    """Model-check the loop and `rules` with each of several sets of protocols, in one search, in the same way."""
    everything = tuple(dict.fromkeys(protocol for protocols in programs.values() for protocol in protocols))
    loops = tuple(
        (RulesChosen(label), (*CORE, *rules, *protocols, *invariants_with(rules, protocols)))
        for label, protocols in programs.items()
    )
    return _search([one_of(loops)], rules, everything, examples or usual_examples(rules, everything), options)


@bthread
def one_of(loops: tuple[tuple[RulesChosen, tuple[BThread, ...]], ...]) -> BThreadBody:
    """Choose one of the loops and start it."""
    chosen = yield sync(request=any_of(*[choice for choice, _ in loops]))
    yield start(*dict(loops)[chosen])
