"""Cycles in an explored state space: strongly connected components, and which of them are fair.

An infinite run stays in one component in the end. It is fair when every b-thread that offers something selectable
all along it also advances in it. If going around a whole component is not fair, then no smaller cycle in it is: the
b-thread that never advances offers there all along, too. So whole components are enough (Emerson and Lei 1987).
Possible events owe nothing and promise nothing: they are no edges here.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from bp.events import Event
from bp.verification.selection import Choice

if TYPE_CHECKING:
    from bp.verification.search import Search

__all__ = ["components", "endless_components", "hot_components"]

Node = Any
Edge = tuple[Any, Any]  # target node, and what was selected


def hot_components(search: "Search") -> Iterator[tuple[str, int, tuple[Event, ...]]]:
    """Yield (b-thread, state, events of a cycle) for each fair component in which that b-thread stays hot.

    A node is a state and a hot local state in it; an edge goes on only while that b-thread is hot.
    """
    space = search.space
    if not any(local.statement.hot for local in space.automaton.locals):
        return

    def edges(node: tuple[int, int]) -> list[Edge]:
        number, local = node
        found = []
        for target, choice in search.edges(number):
            place = space.place_after(local, choice) if choice.origin != "possible" else None
            if place is not None and space.is_hot(place):
                found.append(((target, place), choice))
        return found

    nodes = ((number, local) for number in range(len(search.states)) for local in _hot_locals(search, number))
    for component in components(nodes, edges):
        if _is_fair(search, component, edges):
            number, local = component[0]
            yield space.automaton.locals[local].name, number, _around(search, component, edges)


def endless_components(search: "Search") -> Iterator[tuple[int, tuple[Event, ...]]]:
    """Yield (state, events of a cycle) for each component of internal events alone."""

    def edges(number: int) -> list[Edge]:
        return [(target, choice) for target, choice in search.edges(number) if choice.origin == "internal"]

    for component in components(range(len(search.states)), edges):
        yield component[0], _around(search, component, edges)


def components(nodes: Iterable[Node], edges: Callable[[Node], list[Edge]]) -> Iterator[list[Node]]:
    """Yield the strongly connected components that hold a cycle (Tarjan 1972, without recursion); nodes sorted."""
    order: dict[Node, int] = {}
    lowest: dict[Node, int] = {}
    path: list[Node] = []
    on_path: set[Node] = set()
    for root in nodes:
        if root in order:
            continue
        work = [(root, iter(_enter(root, order, lowest, path, on_path, edges)))]
        while work:
            node, successors = work[-1]
            for successor, _ in successors:
                if successor not in order:
                    work.append((successor, iter(_enter(successor, order, lowest, path, on_path, edges))))
                    break
                if successor in on_path:
                    lowest[node] = min(lowest[node], order[successor])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[node])
                if lowest[node] == order[node]:
                    component = _leave(node, path, on_path)
                    if len(component) > 1 or any(successor == node for successor, _ in edges(node)):
                        yield sorted(component)


def _enter(
    node: Node,
    order: dict[Node, int],
    lowest: dict[Node, int],
    path: list[Node],
    on_path: set[Node],
    edges: Callable[[Node], list[Edge]],
) -> list[Edge]:
    order[node] = lowest[node] = len(order)
    path.append(node)
    on_path.add(node)
    return edges(node)


def _leave(node: Node, path: list[Node], on_path: set[Node]) -> list[Node]:
    component = []
    while True:
        member = path.pop()
        on_path.discard(member)
        component.append(member)
        if member == node:
            return component


def _hot_locals(search: "Search", number: int) -> list[int]:
    return [local for local in dict.fromkeys(map(ord, search.states[number])) if search.space.is_hot(local)]


def _is_fair(search: "Search", component: list[Any], edges: Callable[[Any], list[Edge]]) -> bool:
    """Tell whether everybody who offers something selectable in all states of a component advances in it."""
    inside = set(component)
    space = search.space
    offering = frozenset.intersection(*(space.selection.offering(search.states[number]) for number, _ in component))
    advancing: set[int] = set()
    for node in component:
        for target, choice in edges(node):
            if target in inside:
                advancing |= {local for local in offering if space.advances(local, choice)}
    return offering <= advancing


def _around(search: "Search", component: list[Any], edges: Callable[[Any], list[Edge]]) -> tuple[Event, ...]:
    """Return the events of a shortest cycle from the first node of a component back to it."""
    first, inside = component[0], set(component)
    came: dict[Any, tuple[Any, Choice]] = {}
    frontier = [first]
    while frontier:
        following = []
        for node in frontier:
            for target, choice in edges(node):
                if target == first:
                    return _events_back(search, came, node, choice, first)
                if target in inside and target not in came:
                    came[target] = (node, choice)
                    following.append(target)
        frontier = following
    return ()


def _events_back(
    search: "Search", came: dict[Any, tuple[Any, Choice]], node: Any, choice: Choice, first: Any
) -> tuple[Event, ...]:
    choices = [choice]
    while node != first:
        node, choice = came[node]
        choices.append(choice)
    return tuple(search.space.masks.events[choice.event] for choice in reversed(choices))
