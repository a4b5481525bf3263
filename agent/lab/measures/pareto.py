"""The Pareto front: which protocols no other one beats in usefulness and in worst-case safety."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypeVar

__all__ = ["front", "front_frequency"]

Name = TypeVar("Name")
Point = tuple[float, float]


def front(points: Mapping[Name, Point]) -> frozenset[Name]:
    """Return whom nobody beats: no other is at least as good in both and better in one. Equal points stay."""
    return frozenset(
        name for name, point in points.items() if not any(_beats(other, point) for other in points.values())
    )


def front_frequency(replicates: Iterable[Mapping[Name, Point]]) -> dict[Name, float]:
    """Return in which share of the replicates each protocol is on the front."""
    given = list(replicates)
    counts = Counter(name for points in given for name in front(points))
    return {name: counts[name] / len(given) for name in (given[0] if given else ())}


def _beats(one: Point, other: Point) -> bool:
    return one != other and one[0] >= other[0] and one[1] >= other[1]
