"""Words and numbers of plan files: each reader returns what a node says, or tells where and how it is wrong."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from agent.vocabulary.errors import meant
from agent.vocabulary.yaml_nodes import Node

T = TypeVar("T")
Name = TypeVar("Name", bound=str)


def several(node: Node, read: Callable[[Node], T]) -> tuple[T, ...]:
    """Return what `read` makes of the items of a list, which has one or more."""
    found = tuple(read(item) for item in node.items())
    if not found:
        raise node.wrong("this list is empty; name one or more")
    return found


def known(node: Node, names: Sequence[Name], what: str) -> Name:
    """Return the one of the names that a node says; `what` they are stands in the message about any other."""
    text = node.text()
    if text not in names:
        raise node.wrong(f"there is no {what} {text!r}; {meant(text, names)}")
    return names[names.index(text)]


def share(node: Node) -> float:
    """Return a number from 0 to 1."""
    value = node.number()
    if value > 1:
        raise node.wrong(f"expected a share from 0 to 1, found {value:g}")
    return value


def at_least_one(node: Node) -> int:
    """Return a whole number from 1 on."""
    value = node.count()
    if value < 1:
        raise node.wrong("expected a whole number from 1 on, found 0")
    return value


def above_zero(node: Node, what: str) -> float:
    """Return a number above 0; `what` it counts stands in the message about 0."""
    value = node.number()
    if not value:
        raise node.wrong(f"expected a number of {what} above 0, found 0")
    return value
