"""The loop as a whole: the b-threads of a preset, its invariants and its environment, for subsets of its rules too."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from attrs import evolve, frozen

from agent.effects.declared import loop_effects
from agent.presets.preset import Preset
from agent.threads.core import CORE
from agent.verification.environment import Examples, any_verdict, environment, examples_for, people_for
from agent.verification.invariants import invariants_of
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
    rules: Sequence[BThread], *, core: Sequence[BThread] = CORE, examples: Examples | None = None, **options: Any
) -> Verification:
    """Model-check a loop of `core` and `rules` with its invariants; `options` are those of `bp.verify`.

    `examples`: what effects may return, by default what makes a difference to the rules.
    """
    world = environment(loop_effects(), examples_for(rules) if examples is None else examples)
    options = {"endless": True, **options}
    return verify(*core, *rules, *invariants_of(rules), environment=world, possible=people_for(rules), **options)


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
    loops = tuple((RulesChosen(combination.label), _loop(rules, combination)) for combination in combinations)
    world = environment(loop_effects(), examples_for(rules))
    return verify(one_of(loops), environment=world, possible=people_for(rules), **{"endless": True, **options})


def _loop(rules: Sequence[BThread], combination: Combination) -> tuple[BThread, ...]:
    present = [rule for rule in rules if rule.name in combination.rules]
    return (*CORE, *present, *invariants_of(present))


@bthread
def one_of(loops: tuple[tuple[RulesChosen, tuple[BThread, ...]], ...]) -> BThreadBody:
    """Choose one of the loops and start it."""
    chosen = yield sync(request=any_of(*[choice for choice, _ in loops]))
    yield start(*dict(loops)[chosen])
