"""Cycles in an explored state space: strongly connected components, and which of them are fair.

An infinite run stays in one component in the end. It is fair when every b-thread that offers something selectable all
along it also advances in it (weak fairness; docs/verification.md says who offers). If the cycle through a whole
component is not fair, then no smaller cycle in it is: the b-thread that never advances offers something all along
there, too. So whole components are enough (Emerson and Lei 1987). Possible events do not count for fairness: they are
not edges here.

Most states lie on no cycle. So the cyclic states are found first, and only these are examined further.
"""

from collections.abc import Callable, Iterator, Set
from functools import cache
from itertools import chain
from typing import Any

from bp.events import Event
from bp.verification.search import Edge, Node, Search, components, way


def cyclic_states(search: Search) -> Set[int]:
    """Return the states on a cycle without possible events."""
    certain = [choice.origin != "possible" for choice in search.choices]

    def edges(number: int) -> list[Edge]:
        return [step for step in search.steps(number) if certain[step[1]]]

    return set(chain.from_iterable(components(range(len(search.states)), edges)))


def hot_components(search: Search, cyclic: Set[int]) -> Iterator[tuple[int, int, tuple[Event, ...]]]:
    """Yield (local state, state, events of a cycle) for each fair component in which a b-thread stays hot.

    cyclic: the `cyclic_states` of the search. A node is a state and a hot local state in it.
    """
    hot = {local for local, found in enumerate(search.model.locals) if found.statement.hot}
    if not hot:
        return
    edges, offering = _hot_edges(search, cyclic), search.model.offering
    nodes = ((number, at) for number in sorted(cyclic) for at in sorted(hot.intersection(search.states[number])))
    for component in components(nodes, edges):
        if cycle := _cycle(search, component, edges, cache(lambda node: offering(search.states[node[0]]))):
            number, local = component[0]
            yield local, number, cycle


def _hot_edges(search: Search, cyclic: Set[int]) -> Callable[[Node], list[Edge]]:
    """Return a function for the edges of a node: those along which its b-thread stays hot."""
    model = search.model

    @cache
    def place_after(local: int, label: int) -> int | None:
        choice = search.choices[label]
        place = model.place_after(local, choice) if choice.origin != "possible" else None
        return place if place is not None and model.locals[place].statement.hot else None

    def edges(node: tuple[int, int]) -> list[Edge]:
        number, local = node
        steps = [(at, place_after(local, label), label) for at, label in search.steps(number) if at in cyclic]
        return [((at, place), label) for at, place, label in steps if place is not None]

    return edges


def endless_components(search: Search, cyclic: Set[int]) -> Iterator[tuple[int, tuple[Event, ...]]]:
    """Yield (state, events of a cycle) for each component of internal events only."""
    internal = [choice.origin == "internal" for choice in search.choices]

    def edges(number: int) -> list[Edge]:
        return [step for step in search.steps(number) if step[0] in cyclic and internal[step[1]]]

    for component in components(sorted(cyclic), edges):
        yield component[0], _cycle(search, component, edges, lambda _: frozenset())


def _cycle(
    search: Search,
    component: list[Any],
    edges: Callable[[Any], list[Edge]],
    offering: Callable[[Any], frozenset[int]],
) -> tuple[Event, ...]:
    """Return the events of a fair cycle from the first node of a component back to it; none if there is no such cycle.

    offering: the local states with a fairness obligation at a node. A step meets an obligation by advancing the local
    state, or by leading to a state where it offers nothing. The cycle goes to the nearest step that meets any
    obligation, and back when all are met.
    """

    def unsettled(target: Any, label: int) -> frozenset[int]:
        choice = search.choices[label]
        return frozenset(local for local in owed & offering(target) if not search.model.is_concerned(local, choice))

    def leads_on(_: Any, target: Any, label: int) -> bool:
        return unsettled(target, label) != owed if owed else bool(target == first)

    def inner(node: Any) -> list[Edge]:
        return [step for step in edges(node) if step[0] in inside]

    first, inside = component[0], set(component)
    owed, at, walked = offering(first), first, list[int]()
    while owed or at != first or not walked:
        labels, at = way(at, inner, leads_on)
        if not labels:
            return ()
        owed = unsettled(at, labels[-1])
        walked += labels
    return tuple(search.model.events[search.choices[label].event] for label in walked)
