"""Plots as SVG, light or dark as the page around it wants; nothing to install."""

from collections.abc import Callable, Sequence
from html import escape
from random import Random

from attrs import field, frozen, mutable

from agent.lab.measures.closed_forms import caught_by_least, caught_by_most
from agent.lab.measures.curves import rate_caught
from agent.lab.measures.intervals import Interval

__all__ = ["COLORS", "Label", "Plot", "column", "finding_figure", "simulated_noise", "simulated_slips", "spread", "tie"]


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


WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 960, 600, 72, 28, 268, 62
COLORS = (
    "#7b8794", "#2f7ed8", "#d9534f", "#3c9d5f", "#9b6dc6", "#d98c1f", "#17a2a2", "#c2578f", "#8a8f1f", "#5a78d1",
    "#c46a3d", "#4b9cd3", "#a3526b", "#6aa84f", "#b8860b", "#7f6bd1", "#2a9d8f", "#e0795b", "#6c8ea4", "#b3559f",
)  # fmt: skip
STYLE = """\
svg{--ink:#1f2933;--soft:#66727f;--grid:#e4e8ed;--paper:#fff;--area:#2f7ed8}
@media(prefers-color-scheme:dark){svg{--ink:#e6edf3;--soft:#9aa7b4;--grid:#2a323b;--paper:#0d1117;--area:#5aa0ee}}
text{font:13px system-ui,sans-serif;fill:var(--ink)}.tick{font-size:12px;fill:var(--soft)}.best{font-weight:600}
.grid{stroke:var(--grid);fill:none}.paper{fill:var(--paper)}.area{fill:var(--area);fill-opacity:.09}
.edge{stroke:var(--area);stroke-opacity:.45;fill:none}.lead{fill:none;stroke-opacity:.45;stroke-width:.8}"""


@mutable
class Plot:
    """A plot of `x` against `y`, each from its low to its high; what is drawn later lies above."""

    x_label: str
    y_label: str
    x: tuple[float, float] = (0.0, 1.0)
    y: tuple[float, float] = (0.0, 1.0)
    _below: list[str] = field(factory=list)
    _marks: list[str] = field(factory=list)
    _labels: list[Label] = field(factory=list)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point lies on the page."""
        across = (min(max(x, self.x[0]), self.x[1]) - self.x[0]) / (self.x[1] - self.x[0])
        up = (min(max(y, self.y[0]), self.y[1]) - self.y[0]) / (self.y[1] - self.y[0])
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def point(self, x: float, y: float, color: str, *, hollow: bool = False) -> None:
        """Draw a point."""
        across, up = self.at(x, y)
        fill = 'class="paper"' if hollow else f'fill="{color}"'
        self._marks.append(
            f'<circle cx="{across:.1f}" cy="{up:.1f}" r="5" {fill} stroke="{color}" stroke-width="1.8"/>'
        )

    def intervals(self, x: Interval, y: Interval, color: str) -> None:
        """Draw an ellipse of four quarters around a point: each half axis reaches to where its interval ends."""
        (cx, cy), (left, bottom), (right, top) = (
            self.at(x.value, y.value),
            self.at(x.low, y.low),
            self.at(x.high, y.high),
        )
        west, east, north, south = (max(half, 0.5) for half in (cx - left, right - cx, cy - top, bottom - cy))
        self._below.append(
            f'<path d="M{cx + east:.1f},{cy:.1f}A{east:.1f},{north:.1f} 0 0 0 {cx:.1f},{cy - north:.1f}'
            f"A{west:.1f},{north:.1f} 0 0 0 {cx - west:.1f},{cy:.1f}A{west:.1f},{south:.1f} 0 0 0 {cx:.1f},"
            f'{cy + south:.1f}A{east:.1f},{south:.1f} 0 0 0 {cx + east:.1f},{cy:.1f}z" '
            f'fill="{color}" fill-opacity="0.03" stroke="{color}" stroke-opacity="0.28"/>'
        )

    def arrow(self, x: float, y: float, to_x: float, to_y: float, color: str) -> None:
        """Draw an arrow from one point to just before another."""
        (ax, ay), (bx, by) = self.at(x, y), self.at(to_x, to_y)
        length = max(((bx - ax) ** 2 + (by - ay) ** 2) ** 0.5, 1e-9)
        short = max(0.0, 1 - 8 / length)
        ex, ey = ax + (bx - ax) * short, ay + (by - ay) * short
        ux, uy = (bx - ax) / length, (by - ay) / length
        tip = f"{ex:.1f},{ey:.1f} {ex - 7 * ux - 3.2 * uy:.1f},{ey - 7 * uy + 3.2 * ux:.1f} "
        tip += f"{ex - 7 * ux + 3.2 * uy:.1f},{ey - 7 * uy - 3.2 * ux:.1f}"
        self._below.append(
            f'<line x1="{ax:.1f}" y1="{ay:.1f}" x2="{ex:.1f}" y2="{ey:.1f}" stroke="{color}" stroke-opacity="0.55" '
            f'stroke-dasharray="2 4"/><polygon points="{tip}" fill="{color}" fill-opacity="0.8"/>'
        )

    def line(self, points: Sequence[tuple[float, float]], color: str, *, dashed: bool = False) -> None:
        """Draw a line through points."""
        path = " ".join(f"{across:.1f},{up:.1f}" for across, up in (self.at(*point) for point in points))
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self._marks.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"{dash}/>')

    def shade(self, points: Sequence[tuple[float, float]]) -> None:
        """Fill what lies below and to the left of a falling stair through points."""
        corners, before = [(self.x[0], self.y[0])], self.x[0]
        for x, y in sorted(points):
            corners += [(before, y), (x, y)]
            before = x
        corners.append((before, self.y[0]))
        path = " ".join(f"{across:.1f},{up:.1f}" for across, up in (self.at(*corner) for corner in corners))
        edge = " ".join(f"{across:.1f},{up:.1f}" for across, up in (self.at(*corner) for corner in corners[1:]))
        self._below.insert(0, f'<polygon points="{path}" class="area"/><polyline points="{edge}" class="edge"/>')

    def entry(self, text: str, color: str, *, hollow: bool = False, at: tuple[float, float] | None = None) -> None:
        """Add a label; `at`: the point that it names, to which a line leads."""
        across, up = self.at(*at) if at else (None, 0.0)
        self._labels.append(Label(text, color, hollow, across, up))

    def svg(self, title: str) -> str:
        """Return the whole picture."""
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
        parts = [head, f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>"]
        parts.append(f'<rect width="{WIDTH}" height="{HEIGHT}" class="paper"/>')
        return "\n".join(
            [*parts, *self._axes(), *self._below, *self._column(), *self._marks, *self._words(), "</svg>\n"]
        )

    def _axes(self) -> list[str]:
        lines = []
        for x in _ticks(*self.x):
            (across, bottom), (_, top) = self.at(x, self.y[0]), self.at(x, self.y[1])
            lines.append(f'<path d="M{across:.1f},{bottom:.1f}V{top:.1f}" class="grid"/>')
            lines.append(f'<text x="{across:.1f}" y="{bottom + 20:.1f}" text-anchor="middle" class="tick">{x:g}</text>')
        for y in _ticks(*self.y):
            (left, up), (right, _) = self.at(self.x[0], y), self.at(self.x[1], y)
            lines.append(f'<path d="M{left:.1f},{up:.1f}H{right:.1f}" class="grid"/>')
            lines.append(f'<text x="{left - 10:.1f}" y="{up + 4:.1f}" text-anchor="end" class="tick">{y:g}</text>')
        return lines

    def _column(self) -> list[str]:
        return column(self._labels, across=WIDTH - RIGHT + 34, low=TOP + 8.0, high=HEIGHT - BOTTOM - 4.0)

    def _words(self) -> list[str]:
        across, up = LEFT + (WIDTH - LEFT - RIGHT) / 2, TOP + (HEIGHT - TOP - BOTTOM) / 2
        return [
            f'<text x="{across:.0f}" y="{HEIGHT - 14}" text-anchor="middle">{escape(self.x_label)}</text>',
            f'<text x="22" y="{up:.0f}" text-anchor="middle" transform="rotate(-90 22 {up:.0f})">'
            f"{escape(self.y_label)}</text>",
        ]


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers from low to high, about six."""
    step = next(step for step in (0.05, 0.1, 0.2, 0.5, 1.0) if (high - low) / step <= 7)
    first = round(low / step)
    return [round(number * step, 6) for number in range(first, round(high / step) + 1)]


DRAWS = 4
EPISODES = 20_000
Curve = Callable[[float, float, int, float], float]
Pick = Callable[[Sequence[float]], float]


def simulated_slips(budget: float, slip: float, pick: Pick, *, n: int = EPISODES) -> float:
    """Return the share of attacks that is audited: each draw slips with probability `slip`, else looks honest."""
    return _simulated(budget, _slipping(slip, 1.0), pick, n)


def simulated_noise(budget: float, alpha: float, pick: Pick, *, n: int = EPISODES) -> float:
    """Return the share of attacks that is audited: each draw scores Beta(alpha, 1)."""
    return _simulated(budget, _slipping(0.0, alpha), pick, n)


def tie(budget: float, alpha: float, *, draws: int = DRAWS) -> float:
    """Return the slip rate from which on the most suspicious draw finds more.

    An attack's draw slips, or else scores Beta(alpha, 1); both shares have a closed form, their difference one root.
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if caught_by_most(budget, alpha, draws, middle) < caught_by_least(budget, alpha, draws, middle):
            low = middle
        else:
            high = middle
    return high


def finding_figure(budget: float = 0.05, alpha: float = 4.0, n: int = EPISODES) -> str:
    """Return the plot: lines are closed forms, hollow points are simulations of `n` episodes each."""
    plot = Plot("how often a draw slips", f"share of attacks audited, {budget:.0%} of honest ones audited", x=(0, 0.5))
    curves: tuple[tuple[str, Curve, Pick, float], ...] = (
        ("most suspicious, only slips", caught_by_most, max, 1.0),
        ("least suspicious, only slips", caught_by_least, min, 1.0),
        (f"most suspicious, alpha {alpha:g}", caught_by_most, max, alpha),
        (f"least suspicious, alpha {alpha:g}", caught_by_least, min, alpha),
    )
    for color, (name, curve, pick, spread) in zip(COLORS[1:], curves, strict=False):
        plot.line([(step / 100, curve(budget, spread, DRAWS, step / 100)) for step in range(51)], color)
        plot.entry(name, color, hollow=True, at=(0.5, curve(budget, spread, DRAWS, 0.5)))
        for slip in (0.0, 0.1, 0.2, 0.3, 0.4):
            plot.point(slip, _simulated(budget, _slipping(slip, spread), pick, n), color, hollow=True)
    return plot.svg("which of several draws to audit")


def _slipping(slip: float, alpha: float) -> Callable[[Random], float]:
    return lambda chance: 1.0 if chance.random() < slip else float(chance.random() ** (1 / alpha))


def _simulated(budget: float, attack: Callable[[Random], float], pick: Pick, n: int) -> float:
    chance = Random(0)
    honest: list[float | None] = [pick([chance.random() for _ in range(DRAWS)]) for _ in range(n)]
    attacks: list[float | None] = [pick([attack(chance) for _ in range(DRAWS)]) for _ in range(n)]
    return rate_caught(budget, honest, attacks)
