"""Which of the rules are there: none, all, each alone, each left out, every pair, every subset.

A rule that holds only because another one happens to be there is no rule of its own.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations

from attrs import frozen

__all__ = ["Combination", "every_subset", "small_combinations"]


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
