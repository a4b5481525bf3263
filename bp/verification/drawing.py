"""Mermaid flowcharts of a b-thread's synchronization points, and of a program's states.

`draw_bthread` unfolds one b-thread on its own: its synchronization points, and the events that lead from one to the
next. `draw_states` explores a program and draws every state that it can reach. Both give a `Graph`.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from attrs import frozen

from bp.errors import shown
from bp.events import Event
from bp.statements import BThread, Sync, as_list, check_bthreads
from bp.verification.local_states import Automaton
from bp.verification.purity import LocalFailure
from bp.verification.report import Violations, few
from bp.verification.search import Search
from bp.verification.states import Masks, StateSpace


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


def draw_bthread(
    bthread: BThread, events: Iterable[Event] = (), max_nodes: int = 200, told: Callable[[Event], str] = shown
) -> Graph:
    """Return the synchronization points of one b-thread, and the events that lead from one to the next.

    events: possible events of others, beside its own requests. told: returns an event in words. Raises
    VerificationError.
    """
    check_bthreads("draw_bthread", (bthread,))
    automaton = Automaton()
    masks = Masks(automaton)
    try:
        first = automaton.begin([(bthread, 0)], environment=False)[0]
        for event in events:
            masks.number(event)
        return _unfolded(automaton, masks, first, max_nodes, told)
    except LocalFailure as failure:
        return Graph((Node(str(failure), bad=True),), ())
    finally:
        automaton.close()


def draw_states(
    *bthreads: BThread,
    environment: Sequence[BThread] = (),
    possible: Iterable[Event] = (),
    never: Any = (),
    max_states: int = 200,
) -> Graph:
    """Return the states that a program can reach, with the statements or the violation at each.

    The arguments are those of `verify`. Raises VerificationError.
    """
    outside = as_list("environment", environment)
    check_bthreads("draw_states", (*bthreads, *outside))
    space = StateSpace(bthreads, outside, as_list("possible", possible), in_order=False)
    try:
        found = Violations(space, never)
        search = Search(space, found, max_states=max_states)
        search.run()
        return _explored(search, found)
    finally:
        space.automaton.close()


def _unfolded(
    automaton: Automaton, masks: Masks, first: tuple[int, ...], max_nodes: int, told: Callable[[Event], str]
) -> Graph:
    """Follow every event from every local state, until there are no new ones."""
    places = list(first)
    targets: dict[tuple[int, int], int | str | None] = {}  # a place, None at the end, or how the b-thread fails
    fresh = [(-1, -1)]
    while fresh and len(places) <= max_nodes:
        masks.learn()
        pairs = [(place, event) for place in places for event in range(len(masks.events))]
        fresh = [pair for pair in pairs if pair not in targets and masks.concerned[pair[1]] >> pair[0] & 1]
        for place, event in fresh:
            try:
                target = targets[place, event] = automaton.move(place, masks.events[event], event).local
                places += [] if target is None or target in places else [target]
            except LocalFailure as failure:
                targets[place, event] = str(failure)
    ends = sorted({target for target in targets.values() if not isinstance(target, int)}, key=lambda end: end or "")
    nodes = [Node(_said(automaton.locals[place].statement)) for place in places]
    nodes += [Node("over", end=True) if end is None else Node(end, bad=True) for end in ends]
    at = {key: number for number, key in enumerate([*places, *ends])}
    edges = [Edge(at[place], at[target], told(masks.events[event])) for (place, event), target in targets.items()]
    return Graph(tuple(nodes), tuple(edges), len(places) <= max_nodes)


def _explored(search: Search, found: Violations) -> Graph:
    numbers = {search.path(number): number for number in range(len(search.states))}
    wrong = {numbers[v.trace]: v.kind for v in found.found.values() if v.kind != "never" and v.trace in numbers}
    nodes, edges = [], []
    for number in range(len(search.states)):
        leaving = search.edges(number)
        label = f"{number}: {wrong[number]}" if number in wrong else str(number)
        locals_ = [search.space.automaton.locals[ord(at)] for at in search.states[number]]
        told = [f"{at.name}: {_said(at.statement)}".replace("\n", ", ") for at in locals_]
        nodes.append(Node("\n".join([label, few(told, between="\n")]), bad=number in wrong, end=not leaving))
        edges += [Edge(number, target, shown(search.space.masks.events[choice.event])) for target, choice in leaving]
    for violation in found.found.values():
        # Where a b-thread fails, there is no state after the event.
        if violation.kind != "never" and violation.trace not in numbers and violation.trace:
            edges.append(Edge(numbers[violation.trace[:-1]], len(nodes), shown(violation.trace[-1])))
            nodes.append(Node(violation.kind, bad=True, end=True))
    return Graph(tuple(nodes), tuple(edges), not search.bounded)


def _said(statement: Sync) -> str:
    lines = [f"request {', '.join(map(shown, statement.requests))}"] if statement.requests else []
    for word in ("wait_for", "block", "refuse", "interrupt"):
        events = getattr(statement, word)
        if events is not None:
            lines.append(f"{word.replace('_', ' ')} {shown(events)}")
    return "\n".join([*lines, "hot"] if statement.hot else lines) or "(nothing)"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "#quot;").replace("<", "&lt;").replace("\n", "<br/>")
