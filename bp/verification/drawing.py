"""A b-thread as a graph: its synchronization points, and the events that lead from one to the next.

A graph can be had as a Mermaid flowchart, as dot, as SVG and as JSON; notebooks show it.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple
from xml.etree.ElementTree import Element, tostring

import attrs
from attrs import frozen

from bp.errors import shortened, shown
from bp.events import Event
from bp.statements import BThread, Sync, as_list, check_bthreads
from bp.verification.model import Choice, Failure, Model

LETTER, LINE, ROW = 7, 16, 30  # pixels: of a letter, of a line, between rows
LONGEST = 40  # characters of an event


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
        """Return the graph as a picture."""
        picture = self.picture()
        picture.set("xmlns", "http://www.w3.org/2000/svg")
        return tostring(picture, encoding="unicode") + "\n"

    def _repr_svg_(self) -> str:
        return self.svg()

    def picture(self, here: int | None = None) -> Element:
        """Return the graph as an SVG element; the node `here` is marked."""
        places = self._places()
        labels: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
        for edge in self.edges:
            labels[edge.source, edge.target].append(edge.label)
        arrows = [
            _arrow(places[source], places[target], shortened(", ".join(dict.fromkeys(said)), LONGEST), number % 5)
            for number, ((source, target), said) in enumerate(labels.items())
        ]
        boxes = [_box(node, places[at], f"state-{at}", is_here=at == here) for at, node in enumerate(self.nodes)]
        width = max((place.right for place in places), default=0) + 60
        height = max((place.bottom for place in places), default=0) + 120
        return _element("svg", *arrows, *boxes, role="img", width=width, height=height, font_size=12)

    def _places(self) -> list["Place"]:
        """Return the place of each node: in the column of its distance from the start, as large as its label."""
        columns, x = self._columns(), 10
        places: dict[int, Place] = {}
        for column in range(max(columns, default=0) + 1):
            y, right = 20, x
            for number, node in enumerate(self.nodes):
                if columns[number] == column:
                    lines = node.label.split("\n")
                    place = places[number] = Place(
                        x, y, x + max(map(len, lines)) * LETTER + 16, y + len(lines) * LINE + 10
                    )
                    y, right = place.bottom + ROW, max(right, place.right)
            ahead = [len(edge.label) for edge in self.edges if columns[edge.source] == column < columns[edge.target]]
            x = right + min(max(ahead, default=0), LONGEST) * 6 + 36
        return [places[number] for number in range(len(self.nodes))]

    def _columns(self) -> list[int]:
        columns = {0: 0}
        for node in (order := [0]):
            for edge in self.edges:
                if edge.source == node and edge.target not in columns:
                    columns[edge.target] = columns[node] + 1
                    order.append(edge.target)
        return [columns.get(number, 0) for number in range(len(self.nodes))]


class Place(NamedTuple):
    """The place of a node in a picture, in pixels."""

    left: int
    top: int
    right: int
    bottom: int

    @property
    def middle(self) -> int:
        """Its height in the middle."""
        return (self.top + self.bottom) // 2


def _element(tag: str, *children: Element, text: str = "", **attributes: Any) -> Element:
    named = {name.rstrip("_").replace("_", "-"): str(value) for name, value in attributes.items()}
    made = Element(tag, {name: value for name, value in named.items() if value})
    made.text = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
    made.extend(children)
    return made


def _box(node: Node, place: Place, name: str, *, is_here: bool) -> Element:
    left, top, right, bottom = place
    look: dict[str, Any] = {
        "fill": "#fff",
        "stroke": "#c00" if node.bad else "#333",
        "stroke_width": 3 if node.end or is_here else 1,
    }
    box = _element("rect", x=left, y=top, width=right - left, height=bottom - top, rx=5, **look)
    lines = enumerate(node.label.split("\n"), start=1)
    texts = [_element("text", text=line, x=left + 8, y=top + 1 + LINE * number) for number, line in lines]
    sorts = [sort for sort, holds in (("bad", node.bad), ("end", node.end), ("here", is_here)) if holds]
    return _element("g", box, *texts, class_=" ".join(sorts), id=name)


def _arrow(source: Place, target: Place, label: str, depth: int) -> Element:
    """Draw an arrow from the right side of a box to the left side of another; one that leads back is a bow below."""
    x, y, to_x, to_y = source.right, source.middle, target.left, target.middle
    low = max(source.bottom, target.bottom) + 40 + 12 * depth
    bend, to_bend, at = (y, to_y, y + (to_y - y) * 7 // 10) if to_x > x else (low, low, low - 20)
    line = f"M{x} {y}C{x + 40} {bend} {to_x - 40} {to_bend} {to_x} {to_y}"
    return _element(
        "g",
        _element("path", d=line, fill="none", stroke="#666"),
        _element("circle", cx=to_x, cy=to_y, r=3, fill="#666"),
        _element("text", text=label, x=min(x, to_x) + 10, y=at - 4, fill="#666", class_="label"),
    )


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
