"""Pages of verifications: the result, the states of b-threads, and a counterexample to step through."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from agent.page import lanes_data
from agent.page.document import Element, document, element
from agent.page.model import OUTSIDE, PageModel
from agent.verification.counterexample import finding, short, statement_of
from agent.verification.environment import is_of_world
from agent.vocabulary.encoding import plain
from agent.vocabulary.messages import shortened
from bp import BThread, Event, Verification, Violation, draw_bthread
from bp.verification.drawing import Graph

LESSON = (
    "These steps lead to the violation, and no shorter ones do. Each column is a b-thread; in each row one requests "
    "the event (●), or it comes from outside, and others hear it (○). Step on with j, back with k."
)


def verification_page(result: Verification, drawn: Iterable[BThread], title: str, events: Sequence[Event] = ()) -> str:
    """Return a page of a verification: its result, pictures of these b-threads, and the first counterexample.

    events: those that a b-thread is drawn with when its module declares none for it.
    """
    violation = next(iter(result.violations), None)
    wrong = () if violation is None else (finding(violation),)
    problems = (element("p", told, class_="problem") for told in (*wrong, *unfinished(result)))
    header = element("header", element("h1", title), element("dl", _result(result)), *problems)
    figures = [_figure(each, events, () if violation is None else violation.trace) for each in drawn]
    if violation is None:
        return document(title, header, *figures)
    return document(title, header, *figures, element("main"), data=_steps(violation))


def unfinished(result: Verification) -> tuple[str, ...]:
    """Return why a search was cut short, and how to continue; nothing for a complete one."""
    if not result.bounded:
        return ()
    why, more = "there are more states than --max-states", f"--max-states {10 * result.states}"
    if result.interrupted:
        why, more = "interrupted", "the same command, which starts again"
    most = [f"{name} {count:,}" for name, count in result.local_states if not is_of_world(name)][:5]
    return (
        f"not verified: {why}; only {result.states:,} states were looked at",
        f"most local states, so look for one that counts without end: {', '.join(most)}",
        f"to go on: {more}, or --alone, without the rules of the preset",
    )


def _figure(bthread: BThread, events: Sequence[Event], trace: Sequence[Event]) -> Element:
    """Return the picture of a b-thread that receives the events declared for it, or else `events`, and the trace.

    The trace is that of a counterexample; the position of the b-thread at its end is marked.
    """
    declared = bthread.function.__globals__.get("EXAMPLES", {}).get(bthread.function.__name__, ())
    graph = draw_bthread(bthread, (*(declared or events), *trace), told=short)
    told = f"{bthread.name}; where the counterexample ends it is at the bold position" if trace else bthread.name
    return element("figure", element("figcaption", told), drawing(graph, _end_of(graph, trace) if trace else None))


def _end_of(graph: Graph, trace: Sequence[Event]) -> int:
    """Return the node of a b-thread after those of these events that it receives."""
    moves = {(edge.source, edge.label): edge.target for edge in graph.edges}
    place = 0
    for event in trace:
        place = moves.get((place, short(event)), place)
    return place


def _result(result: Verification) -> Element:
    tone = "completed" if result.holds else "failed"
    counted = f" {result.states:,} states, {result.transitions:,} transitions"
    return element(
        "div", element("dt", "as configured"), element("dd", element("b", result.verdict, class_=tone), counted)
    )


def _steps(violation: Violation) -> dict[str, Any]:
    """Return the steps of a counterexample, as the script of a page draws them."""
    model = PageModel()
    model.turns = [0]
    for number, happened in enumerate(violation.story, start=1):
        requested = [name for name in happened.requested_by if not is_of_world(name)] or [OUTSIDE]
        heard = [
            name for name in happened.heard_by if not (name in requested or is_of_world(name) or statement_of(name))
        ]
        ended = [name for name in happened.ended if not is_of_world(name)]
        said_by = (("q", requested), ("h", heard), ("c", ended))
        marks = [(model.lane(name), letter) for letter, names in said_by for name in names]
        said = short(happened.event).removeprefix(happened.event.name).strip()
        row = {"step": number, "name": happened.event.name, "of": said, "marks": marks, "data": plain(happened.event)}
        model.rows.append(row)
    if violation.blockers:
        model.rows.append(_deadlock(violation, model))
    return {**lanes_data(model), "lesson": LESSON}


def _deadlock(violation: Violation, model: PageModel) -> dict[str, Any]:
    """Return a last row without an event: the requests, and the b-threads that block them."""
    marks: list[tuple[Any, ...]] = []
    for requester, event, blockers in violation.blockers:
        marks.append((model.lane(requester), "w", event.name))
        marks += [(model.lane(name), "b", f"{event.name} of {requester}") for name, _ in blockers]
    step = len(violation.story) + 1
    return {"step": step, "name": violation.kind, "of": "nothing more happens", "marks": marks, "data": {}}


# Pictures of the states of a b-thread, as SVG, from left to right.

ROW, LETTER, LINE = 30, 7.2, 16  # pixels: between rows, of a letter in a node, of a line
LONGEST = 40  # characters of an event
Place = tuple[float, float, float, float]  # x, y, width, height


def drawing(graph: Graph, here: int | None = None) -> Element:
    """Return a graph as SVG: columns by the number of steps from the start; the node `here` is marked."""
    places = _places(graph)
    labels: dict[tuple[int, int], list[str]] = defaultdict(list)
    for edge in graph.edges:
        labels[edge.source, edge.target].append(edge.label)
    edges = [
        _edge(places, pair, shortened(", ".join(dict.fromkeys(said)), LONGEST), number % 5)
        for number, (pair, said) in enumerate(labels.items())
    ]
    nodes = [_node(number, places[number], graph, number == here) for number in range(len(graph.nodes))]
    width = max((x + w for x, _, w, _ in places), default=0) + 60
    height = max((y + h for _, y, _, h in places), default=0) + 90
    size = {"width": f"{width:.0f}", "height": f"{height:.0f}"}
    return element("svg", *edges, *nodes, viewBox=f"0 0 {width:.0f} {height:.0f}", role="img", **size)


def _places(graph: Graph) -> list[Place]:
    levels = _levels(graph)
    sizes = [_size(node.label) for node in graph.nodes]
    places: list[Place] = [(0, 0, 0, 0)] * len(sizes)
    x = 10.0
    for level in range(max(levels, default=0) + 1):
        members = [number for number, at in enumerate(levels) if at == level]
        y = 20.0
        for number in members:
            width, height = sizes[number]
            places[number] = (x, y, width, height)
            y += height + ROW
        forward = [edge.label for edge in graph.edges if levels[edge.source] == level < levels[edge.target]]
        label = min(max(map(len, forward), default=0), LONGEST)
        x += max((sizes[number][0] for number in members), default=0) + label * 6 + 36
    return places


def _levels(graph: Graph) -> list[int]:
    """Return the distance of each node from the first, in steps."""
    levels = {0: 0}
    fresh = [0]
    while fresh:
        reached = [edge.target for node in fresh for edge in graph.edges if edge.source == node]
        deeper = levels[fresh[0]] + 1
        fresh = [node for node in dict.fromkeys(reached) if node not in levels]
        levels.update(dict.fromkeys(fresh, deeper))
    return [levels.get(number, 0) for number in range(len(graph.nodes))]


def _size(label: str) -> tuple[float, float]:
    lines = label.split("\n")
    return max(max(map(len, lines)) * LETTER + 16, 34), len(lines) * LINE + 10


def _node(number: int, place: Place, graph: Graph, is_here: bool) -> Element:
    x, y, width, height = place
    node = graph.nodes[number]
    words = [_text(x + 8, y + 17 + LINE * line, said) for line, said in enumerate(node.label.split("\n"))]
    box = element("rect", x=f"{x:.0f}", y=f"{y:.0f}", width=f"{width:.0f}", height=f"{height:.0f}", rx="5")
    sorts = [sort for sort, holds in (("bad", node.bad), ("end", node.end), ("here", is_here)) if holds]
    return element("g", box, *words, class_=" ".join(sorts) or None, id=f"state-{number}")


def _edge(places: Sequence[Place], pair: tuple[int, int], label: str, depth: int) -> Element:
    (x, y, width, height), (to_x, to_y, to_width, to_height) = places[pair[0]], places[pair[1]]
    if to_x > x:
        start, end = (x + width, y + height / 2), (to_x, to_y + to_height / 2)
        bend = (start[0] + end[0]) / 2
        curve = (bend, start[1], bend, end[1])
        middle = (start[0] + 10, start[1] + (end[1] - start[1]) * 0.7 - 4)
    else:  # back, or to itself: below
        start, end = (x + width / 2, y + height), (to_x + to_width / 2, to_y + to_height)
        low = max(start[1], end[1]) + 22 + 12 * depth
        curve = (start[0] + 14, low, end[0] - 14, low)
        middle = ((start[0] + end[0]) / 2 + 4, low - 4)
    line = "M{:.0f} {:.0f} C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}".format(*start, *curve, *end)
    tip = element("circle", cx=f"{end[0]:.0f}", cy=f"{end[1]:.0f}", r="3")
    drawn = (element("path", d=line), tip, _text(*middle, label, "label"))
    return element("g", *drawn, class_="edge")


def _text(x: float, y: float, words: str, class_: str | None = None) -> Element:
    return element("text", words, x=f"{x:.0f}", y=f"{y:.0f}", class_=class_)
