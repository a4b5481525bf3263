"""A b-thread as a graph: its synchronization points, and the events that lead from one to the next.

A graph can be had as a Mermaid flowchart, as dot, as SVG and as JSON; notebooks show it.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from html import escape

import attrs
from attrs import frozen

from bp.errors import shown
from bp.events import Event
from bp.statements import BThread, Sync, as_list, check_bthreads
from bp.verification.model import Choice, Failure, Model

WIDTH, HEIGHT, LINE = 260, 110, 16  # of a node's place, and of a line of text, in pixels


@frozen
class Node:
    """A node with its label; `bad`: a violation, `end`: nothing follows."""

    label: str
    bad: bool = False
    end: bool = False


@frozen
class Edge:
    """An edge from one node to another, by their positions."""

    source: int
    target: int
    label: str


@frozen
class Graph:
    """Nodes and edges; the first node is the start. `complete`: False if a bound was reached."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    complete: bool = True

    def mermaid(self) -> str:
        """Return the graph as a Mermaid flowchart."""
        lines = ["flowchart LR"]
        for number, node in enumerate(self.nodes):
            left, right = ("[[", "]]") if node.end else ("(", ")")
            lines.append(f'  n{number}{left}"{_escaped(node.label)}"{right}{":::bad" if node.bad else ""}')
        lines += [f'  n{edge.source} -->|"{_escaped(edge.label)}"| n{edge.target}' for edge in self.edges]
        return "\n".join([*lines, "  classDef bad stroke:#c00"]) + "\n"

    def dot(self) -> str:
        """Return the graph in the language of Graphviz."""
        lines = ["digraph {", "  rankdir=LR", "  node [shape=box, style=rounded]"]
        for number, node in enumerate(self.nodes):
            more = (", color=red" if node.bad else "") + (", peripheries=2" if node.end else "")
            lines.append(f"  n{number} [label={json.dumps(node.label)}{more}]")
        lines += [f"  n{edge.source} -> n{edge.target} [label={json.dumps(edge.label)}]" for edge in self.edges]
        return "\n".join([*lines, "}"]) + "\n"

    def json(self) -> str:
        """Return the graph as JSON: `nodes`, `edges` by the positions of nodes, and `complete`."""
        return json.dumps(attrs.asdict(self), ensure_ascii=False)

    def svg(self) -> str:
        """Return the graph as a picture: each node in the column of its distance from the start."""
        places = self._places()
        across, down = (1 + max(part, default=0) for part in zip(*places, strict=True)) if places else (1, 1)
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{across * WIDTH}" height="{down * HEIGHT}" '
            'font-family="sans-serif" font-size="12">',
            '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
            '<path d="M0 0L8 4L0 8z"/></marker></defs>',
        ]
        lines += [line for edge in self.edges for line in _arrow(places[edge.source], places[edge.target], edge.label)]
        lines += [line for node, place in zip(self.nodes, places, strict=True) for line in _box(node, place)]
        return "\n".join([*lines, "</svg>"]) + "\n"

    def _repr_svg_(self) -> str:
        return self.svg()

    def _places(self) -> list[tuple[int, int]]:
        """Return column and row of each node."""
        targets: defaultdict[int, list[int]] = defaultdict(list)
        for edge in self.edges:
            targets[edge.source].append(edge.target)
        column = {0: 0}
        for node in (order := [0]):
            for target in targets[node]:
                if target not in column:
                    column[target] = column[node] + 1
                    order.append(target)
        rows: defaultdict[int, int] = defaultdict(int)
        places = []
        for number in range(len(self.nodes)):
            at = column.get(number, 0)
            places.append((at, rows[at]))
            rows[at] += 1
        return places


def _box(node: Node, place: tuple[int, int]) -> list[str]:
    x, y = place[0] * WIDTH + 10, place[1] * HEIGHT + 20
    lines, color = node.label.split("\n"), "#c00" if node.bad else "#333"
    box = f'<rect x="{x}" y="{y}" width="{WIDTH - 90}" height="{LINE * len(lines) + 8}" rx="{0 if node.end else 6}" '
    texts = [f'<text x="{x + 6}" y="{y + LINE * at + LINE}">{escape(line)}</text>' for at, line in enumerate(lines)]
    return [f'{box}fill="#fff" stroke="{color}"/>', *texts]


def _arrow(source: tuple[int, int], target: tuple[int, int], label: str) -> list[str]:
    """Draw an arrow to the right straight, others as a bow below the boxes."""
    x, y = source[0] * WIDTH + WIDTH - 80, source[1] * HEIGHT + 34
    to_x, to_y = target[0] * WIDTH + 10, target[1] * HEIGHT + 34
    bow = 0 if to_x > x else 60
    path = f"M{x} {y}C{x + 40} {y + bow} {to_x - 40} {to_y + bow} {to_x} {to_y}"
    at = f'x="{(x + to_x) // 2 - 30}" y="{(y + to_y) // 2 + bow * 3 // 4 - 4}"'
    return [
        f'<path d="{path}" fill="none" stroke="#666" marker-end="url(#tip)"/>',
        f'<text {at} fill="#666">{escape(label)}</text>',
    ]


def draw_bthread(
    bthread: BThread, events: Iterable[Event] = (), max_nodes: int = 200, told: Callable[[Event], str] = shown
) -> Graph:
    """Return the synchronization points of one b-thread, and the events that lead from one to the next.

    events: possible events of others, beside its own requests. told: returns an event in words. Raises
    VerificationError.
    """
    check_bthreads("draw_bthread", (bthread,))
    model = Model()
    try:
        model.begin((bthread,), (), as_list("events", events))
        if model.failures:
            return Graph((Node(str(model.failures[0]), bad=True),), ())
        first = [local for local in model.initial if model.locals[local].name == bthread.name]
        return _unfolded(model, first, max_nodes, told)
    finally:
        model.close()


def _unfolded(model: Model, places: list[int], max_nodes: int, told: Callable[[Event], str]) -> Graph:
    """Follow every event from every local state, until there are no new ones."""
    targets: dict[tuple[int, int], int | str | None] = {}  # a place, None at the end, or how the b-thread fails
    fresh = [(-1, -1)]
    while fresh and len(places) <= max_nodes:
        pairs = [(place, event) for place in places for event in range(len(model.events))]
        fresh = [pair for pair in pairs if pair not in targets and _concerns(model, *pair)]
        for place, event in fresh:
            try:
                target = targets[place, event] = model.move(place, event).after
                places += [] if target is None or target in places else [target]
            except Failure as failure:
                targets[place, event] = str(failure)
    ends = sorted({target for target in targets.values() if not isinstance(target, int)}, key=lambda end: end or "")
    nodes = [Node(_said(model.locals[place].statement)) for place in places]
    nodes += [Node("over", end=True) if end is None else Node(end, bad=True) for end in ends]
    at = {key: number for number, key in enumerate([*places, *ends])}
    edges = [Edge(at[place], at[target], told(model.events[event])) for (place, event), target in targets.items()]
    return Graph(tuple(nodes), tuple(edges), len(places) <= max_nodes)


def _concerns(model: Model, place: int, event: int) -> bool:
    try:
        return model.is_concerned(place, Choice(event, "internal"))
    except Failure:
        return False


def _said(statement: Sync) -> str:
    lines = [f"request {', '.join(map(shown, statement.requests))}"] if statement.requests else []
    for word in ("wait_for", "block", "refuse", "interrupt"):
        events = getattr(statement, word)
        if events is not None:
            lines.append(f"{word.replace('_', ' ')} {shown(events)}")
    return "\n".join([*lines, "hot"] if statement.hot else lines) or "(nothing)"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "#quot;").replace("<", "&lt;").replace("\n", "<br/>")
