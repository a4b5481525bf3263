"""Plots by matplotlib: usefulness against safety, safety at every audit budget, realized budgets of thresholds.

Each function returns a matplotlib figure; `write_figure` writes one as PNG and SVG, reproducibly to the byte.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from textwrap import fill
from typing import Any

from agent.lab.extras import needed
from agent.lab.measures.intervals import Interval, tail_interval
from agent.lab.measures.safety import front
from agent.lab.reports.analysis import Analysis

Points = Sequence[tuple[float, float]]

QUIET = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "font.size": 10,
    "grid.alpha": 0.25,
    "svg.hashsalt": "bpagent",
    "text.parse_math": False,  # a name may have dollars
}
GAP = 0.045  # of the height of the axes, from one line of labels to the next
LONGEST = 44  # characters of such a line
MARKERS = "osD^vPX*<>"


def usefulness_and_safety(analysis: Analysis) -> Any:
    """Return the figure of usefulness against worst-case safety of all protocols.

    Ellipses show the 95 % intervals, dotted arrows lead from the weakest attack to the worst one, and the area below
    the front is shaded. A protocol that audits more than the budget is labelled so and not on the front; one without
    honest episodes or without attacks is left out.
    """
    known = {each.protocol: (each["usefulness"].value, each["safety_worst"].value) for each in analysis.estimates}
    placed = [each for each in analysis.estimates if not math.isnan(sum(known[each.protocol]))]
    points = {each.protocol: known[each.protocol] for each in placed}
    audited = {each.protocol: each["audited"].value for each in placed}
    dear = {name: f" (audits {share:.0%})" for name, share in audited.items() if share > analysis.budget}
    best = front({name: point for name, point in points.items() if name not in dear})
    low = max(0.0, math.floor(min((each["usefulness"].low for each in placed), default=0.0) * 10 - 0.5) / 10)
    most = max((share for share in audited.values() if share <= analysis.budget), default=0.0)
    much = f"{most:.{1 if most < 0.01 else 0}%} of" if most else "no"
    what = f"worst-case safety S1, {much} honest calls audited"
    with axes_of("usefulness", what, (low, 1.0), (0.0, 1.0)) as (figure, axes, colors):
        _shade(axes, [points[name] for name in best], low)
        labels = []
        for number, each in enumerate(placed):
            color = colors[number % len(colors)]
            _ellipse(axes, each["usefulness"], each["safety_worst"], color)
            _arrow(axes, points[each.protocol], each["safety", analysis.weakest].value, color)
            fill = color if each.protocol in best else "white"
            marker = MARKERS[number // len(colors) % len(MARKERS)]
            axes.plot(*points[each.protocol], marker, color=color, markerfacecolor=fill, clip_on=False, zorder=4)
            labels.append((each.protocol + dear.get(each.protocol, ""), points[each.protocol], color))
        _label(axes, labels)
    return figure


def audit_curves(curves: Mapping[str, Points], budget: float) -> Any:
    """Return the figure of safety against the audit budget: for each protocol points of budget and worst-case S1.

    `budget`: the one that is reported, marked by a line.
    """
    with axes_of("share of honest calls that are audited", "worst-case safety S1") as (figure, axes, colors):
        for number, (name, points) in enumerate(curves.items()):
            style = ("-", "--", ":")[number // len(colors) % 3]
            budgets, safety = zip(*points, strict=True) if points else ((), ())
            axes.plot(budgets, safety, style, color=colors[number % len(colors)], label=name, linewidth=1.5)
        axes.axvline(budget, color="gray", linewidth=0.8)
        axes.set_xscale("symlog", linthresh=0.01)
        axes.set_xlim(0, 1)
        ticks = (0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1)
        axes.set_xticks(ticks, [f"{tick:.0%}" for tick in ticks])
        if curves:
            lines, unnamed = axes.get_lines()[: len(curves)], ["?"] * len(curves)
            beside = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)}
            legend = axes.legend(lines, unnamed, frameon=False, fontsize=9, **beside)
            for text, name in zip(legend.get_texts(), curves, strict=True):
                text.set_text(name)  # given as a label, a name that begins with an underscore would be left out
    return figure


def calibration(spent: Points, calls: int) -> Any:
    """Return the figure of the share of new honest calls that thresholds audit, against the budget they were set for.

    `calls`: the number of honest calls that thresholds were set on; the band holds 95 % of such thresholds.
    """
    most = max((max(point) for point in spent), default=0.1) or 0.1
    with axes_of("budget", "share of the test's honest calls above the threshold", (0, most), (0, most)) as drawn:
        figure, axes, colors = drawn
        if calls:
            steps = [step / 50 * most for step in range(51)]
            band = [tail_interval(math.floor(step * calls), calls) for step in steps]
            low, high = [each.low for each in band], [each.high for each in band]
            axes.fill_between(steps, low, high, color=colors[0], alpha=0.12, label=f"95 %, set on {calls} calls")
        axes.plot((0, most), (0, most), color="gray", linewidth=0.8, label="what is asked for")
        if spent:
            axes.plot(*zip(*spent, strict=True), "o-", color=colors[0], markersize=3, label="what is spent")
        axes.legend(frameon=False, loc="upper left")
    return figure


def write_figure(figure: Any, folder: Path, name: str) -> None:
    """Write `name.png` and `name.svg` to a folder. Raises OSError."""
    with needed("matplotlib").rc_context(QUIET):
        figure.savefig(folder / f"{name}.png", dpi=150, bbox_inches="tight", metadata={"Software": None})
        figure.savefig(folder / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})


@contextmanager
def axes_of(
    x_label: str, y_label: str, x: tuple[float, float] = (0.0, 1.0), y: tuple[float, float] = (0.0, 1.0)
) -> Iterator[tuple[Any, Any, Sequence[Any]]]:
    """Yield a figure, its axes and colors, with a common style during the block."""
    matplotlib = needed("matplotlib")
    with matplotlib.rc_context(QUIET):
        figure = needed("matplotlib.figure").Figure(figsize=(8, 5.5))
        axes = figure.add_subplot()
        axes.set(xlabel=x_label, ylabel=y_label, xlim=x, ylim=y)
        axes.margins(0)
        yield figure, axes, matplotlib.colormaps["tab10"].colors


def _ellipse(axes: Any, x: Interval, y: Interval, color: Any) -> None:
    """Draw an ellipse around a point, whose four half axes end with its intervals."""
    turns = [step / 60 * math.tau for step in range(61)]
    across, up = [_reached(x, math.cos(turn)) for turn in turns], [_reached(y, math.sin(turn)) for turn in turns]
    axes.fill(across, up, facecolor=color, alpha=0.04, zorder=1)
    axes.plot(across, up, color=color, alpha=0.3, linewidth=0.8, zorder=2)


def _reached(interval: Interval, part: float) -> float:
    """Return a part of the distance from a value to the end of its interval; the lower end if negative."""
    return interval.value + part * (interval.high - interval.value if part > 0 else interval.value - interval.low)


def _arrow(axes: Any, point: tuple[float, float], weakest: float, color: Any) -> None:
    """Draw an arrow from the weakest attack to the worst one, if they differ."""
    at, worst = point
    if abs(weakest - worst) > 0.02:
        how = {"arrowstyle": "->", "color": color, "linestyle": ":", "shrinkB": 4}
        axes.annotate("", xy=(at, worst), xytext=(at, weakest), arrowprops=how)


def _shade(axes: Any, points: Points, left: float) -> None:
    """Fill the area below and to the left of a descending staircase through points."""
    if points:
        ordered = sorted(points)
        axes.fill_between(
            [left, *(x for x, _ in ordered)], [ordered[0][1], *(y for _, y in ordered)], step="pre", alpha=0.07
        )


def _label(axes: Any, labels: Sequence[tuple[str, tuple[float, float], Any]]) -> None:
    """Write the names of points in a column beside the axes, ordered by height, with a line to each.

    Points that coincide in the figure share a label.
    """
    shared: dict[tuple[float, float], tuple[list[str], tuple[float, float], Any]] = {}
    for text, point, color in labels:
        shared.setdefault((round(point[0], 2), round(point[1], 2)), ([], point, color))[0].append(text)
    ordered = sorted(shared.values(), key=lambda label: (label[1][1], label[1][0]))
    written = [(fill(", ".join(names), LONGEST, break_long_words=False), *rest) for names, *rest in ordered]
    heights = [text.count("\n") + 1 for text, _, _ in written]
    wanted = [point[1] for (_, point, _), lines in zip(written, heights, strict=True) for _ in range(lines)]
    places = iter(label_places(wanted))
    for (text, point, color), lines in zip(written, heights, strict=True):
        place = sum(islice(places, lines)) / lines
        line = {"arrowstyle": "-", "color": color, "alpha": 0.4, "linewidth": 0.6, "shrinkB": 3, "relpos": (0, 0.5)}
        axes.annotate(
            text, xy=point, xytext=(1.04, place), textcoords="axes fraction", va="center", fontsize=9, arrowprops=line
        )


def label_places(wanted: Sequence[float], gap: float = GAP) -> list[float]:
    """Return places from 0 to 1, in the same order and at least `gap` apart, or evenly spaced if there is no room.

    wanted: the preferred places, ascending, from 0 to 1.
    """
    gap = min(gap, 1 / max(1, len(wanted) - 1))
    places: list[float] = []
    for number, place in enumerate(wanted):
        places.append(max(place, number * gap, places[-1] + gap if places else 0.0))
    for number in range(len(places) - 1, -1, -1):
        after = places[number + 1] - gap if number + 1 < len(places) else 1.0
        places[number] = min(places[number], after)
    return places
