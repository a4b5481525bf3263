"""Labels: names in one column, in the order of what they name, so that none covers another; thin lines lead to that."""

from collections.abc import Sequence
from html import escape

from attrs import frozen

__all__ = ["Label", "column", "spread"]

GAP = 23.0  # pixels from one label to the next


@frozen
class Label:
    """A name for a point, which lies at these pixels."""

    text: str
    color: str
    hollow: bool
    across: float | None = None
    up: float = 0.0


def column(labels: Sequence[Label], *, across: float, low: float, high: float) -> list[str]:
    """Return labels in the order of their points, between these heights, and the lines to the points."""
    ordered = _ordered(labels)
    wanted = [label.up if label.across is not None else low + GAP * n for n, label in enumerate(ordered)]
    places = zip(ordered, spread(wanted, low, high, GAP), strict=True)
    return [line for label, y in places for line in _drawn(label, across, y)]


def _ordered(labels: Sequence[Label]) -> Sequence[Label]:
    """Return labels as their points lie; as they came where they name none."""
    if all(label.across is None for label in labels):
        return labels
    return sorted(labels, key=lambda label: (label.up, label.across or 0.0))


def _drawn(label: Label, across: float, y: float) -> list[str]:
    lines = []
    if label.across is not None:
        bend = f"M{label.across:.1f},{label.up:.1f}L{across - 22},{y:.1f}H{across - 8}"
        lines.append(f'<path d="{bend}" class="lead" stroke="{label.color}"/>')
    fill = 'class="paper"' if label.hollow else f'fill="{label.color}"'
    lines.append(f'<circle cx="{across}" cy="{y:.1f}" r="4.5" {fill} stroke="{label.color}" stroke-width="1.8"/>')
    best = "" if label.hollow or label.across is None else ' class="best"'
    lines.append(f'<text x="{across + 12}" y="{y + 4.5:.1f}"{best}>{escape(label.text)}</text>')
    return lines


def spread(wanted: Sequence[float], low: float, high: float, gap: float) -> list[float]:
    """Return places from `low` to `high`, in the same order and at least `gap` apart, or as far as there is room.

    wanted: where each would like to be, ascending.
    """
    if not wanted:
        return []
    gap = min(gap, (high - low) / max(1, len(wanted) - 1))
    places: list[float] = []
    for number, place in enumerate(wanted):
        first = low + number * gap
        places.append(max(place, first, places[-1] + gap if places else first))
    for number in range(len(places) - 1, -1, -1):
        last = high - (len(places) - 1 - number) * gap
        after = places[number + 1] - gap if number + 1 < len(places) else last
        places[number] = min(places[number], last, after)
    return places
