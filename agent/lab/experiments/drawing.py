"""Drawing with SVG: a plot with axes from 0 to 1, points, ellipses, arrows, lines and words; nothing to install."""

from collections.abc import Sequence
from html import escape

from attrs import field, mutable

__all__ = ["COLORS", "Plot"]

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 720, 520, 64, 24, 210, 60
COLORS = (
    "#1b6ca8", "#c8553d", "#3a7d44", "#8d5a97", "#b8860b", "#4f5d75", "#d1495b", "#2a9d8f", "#6d597a", "#e07a5f",
    "#577590", "#90a955", "#9a031e", "#5f0f40", "#0f4c5c", "#fb8b24",
)  # fmt: skip


@mutable
class Plot:
    """A plot of `x` against `y`, each from its low to its high; what is drawn later lies above."""

    x_label: str
    y_label: str
    x: tuple[float, float] = (0.0, 1.0)
    y: tuple[float, float] = (0.0, 1.0)
    _marks: list[str] = field(factory=list)
    _legend: list[tuple[str, str, bool]] = field(factory=list)

    def at(self, x: float, y: float) -> tuple[float, float]:
        """Return where a point lies on the page."""
        across = (min(max(x, self.x[0]), self.x[1]) - self.x[0]) / (self.x[1] - self.x[0])
        up = (min(max(y, self.y[0]), self.y[1]) - self.y[0]) / (self.y[1] - self.y[0])
        return LEFT + across * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM)

    def point(self, x: float, y: float, color: str, *, hollow: bool = False) -> None:
        """Draw a point."""
        across, up = self.at(x, y)
        fill = "white" if hollow else color
        self._marks.append(f'<circle cx="{across:.1f}" cy="{up:.1f}" r="4.5" fill="{fill}" stroke="{color}"/>')

    def ellipse(self, x: float, y: float, across: float, up: float, color: str) -> None:
        """Draw an ellipse around a point, with these half axes."""
        (cx, cy), (ex, ey) = self.at(x, y), self.at(x + across, y + up)
        self._marks.append(
            f'<ellipse cx="{cx:.1f}" cy="{cy:.1f}" rx="{max(ex - cx, 1):.1f}" ry="{max(cy - ey, 1):.1f}" '
            f'fill="{color}" fill-opacity="0.10" stroke="{color}" stroke-opacity="0.35"/>'
        )

    def arrow(self, x: float, y: float, to_x: float, to_y: float, color: str) -> None:
        """Draw an arrow from one point to another."""
        (ax, ay), (bx, by) = self.at(x, y), self.at(to_x, to_y)
        self._marks.append(
            f'<line x1="{ax:.1f}" y1="{ay:.1f}" x2="{bx:.1f}" y2="{by:.1f}" stroke="{color}" '
            'stroke-dasharray="3 3" marker-end="url(#tip)"/>'
        )

    def line(self, points: Sequence[tuple[float, float]], color: str, *, dashed: bool = False) -> None:
        """Draw a line through points."""
        path = " ".join(f"{across:.1f},{up:.1f}" for across, up in (self.at(*point) for point in points))
        dash = ' stroke-dasharray="6 4"' if dashed else ""
        self._marks.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"{dash}/>')

    def shade(self, points: Sequence[tuple[float, float]], color: str) -> None:
        """Fill what lies below and to the left of a falling stair through points."""
        low_x, low_y = self.x[0], self.y[0]
        corners, before = [(low_x, low_y)], None
        for x, y in sorted(points):
            corners.append((low_x if before is None else before, y))
            corners.append((x, y))
            before = x
        corners.append((low_x if before is None else before, low_y))
        path = " ".join(f"{across:.1f},{up:.1f}" for across, up in (self.at(*corner) for corner in corners))
        self._marks.insert(0, f'<polygon points="{path}" fill="{color}" fill-opacity="0.08"/>')

    def entry(self, text: str, color: str, *, hollow: bool = False) -> None:
        """Add a line to the legend."""
        self._legend.append((text, color, hollow))

    def svg(self, title: str) -> str:
        """Return the whole picture."""
        tip = '<marker id="tip" orient="auto" markerWidth="7" markerHeight="7" refX="6" refY="3">'
        size = f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12"'
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {size}>'
        parts = [head, f"<title>{escape(title)}</title>", f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
        parts.append(f'<defs>{tip}<path d="M0,0 L6,3 L0,6 z" fill="#666"/></marker></defs>')
        return "\n".join([*parts, *self._axes(), *self._marks, *self._words(), "</svg>"]) + "\n"

    def _axes(self) -> list[str]:
        lines = []
        for tenth in range(0, 11, 2):
            share = tenth / 10
            x, y = (self.x[0] + share * (self.x[1] - self.x[0]), self.y[0] + share * (self.y[1] - self.y[0]))
            (across, bottom), (_, top) = self.at(x, self.y[0]), self.at(x, self.y[1])
            (left, up), (right, _) = self.at(self.x[0], y), self.at(self.x[1], y)
            lines.append(
                f'<path d="M{across:.1f},{bottom:.1f}V{top:.1f}M{left:.1f},{up:.1f}H{right:.1f}" stroke="#ddd"/>'
            )
            lines.append(f'<text x="{across:.1f}" y="{bottom + 18:.1f}" text-anchor="middle">{x:g}</text>')
            lines.append(f'<text x="{left - 8:.1f}" y="{up + 4:.1f}" text-anchor="end">{y:g}</text>')
        return lines

    def _words(self) -> list[str]:
        middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
        lines = [
            f'<text x="{middle:.0f}" y="{HEIGHT - 16}" text-anchor="middle">{escape(self.x_label)}</text>',
            f'<text x="18" y="{HEIGHT / 2:.0f}" text-anchor="middle" transform="rotate(-90 18 {HEIGHT / 2:.0f})">'
            f"{escape(self.y_label)}</text>",
        ]
        for number, (text, color, hollow) in enumerate(self._legend):
            y, fill = TOP + 10 + number * 20, "white" if hollow else color
            lines.append(f'<circle cx="{WIDTH - RIGHT + 22}" cy="{y}" r="4.5" fill="{fill}" stroke="{color}"/>')
            lines.append(f'<text x="{WIDTH - RIGHT + 34}" y="{y + 4}">{escape(text)}</text>')
        return lines
