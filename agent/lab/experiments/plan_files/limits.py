"""Limits in a plan file: what each episode may take of the machine, and what all of them may cost.

limits: {memory: 1 GiB, processes: 128, file_size: 256 MiB, disk: 1 GiB, cpu_time: 60, money: 5.00}
"""

import re
from collections.abc import Callable, Mapping

from agent.lab.experiments.plan_files.words import at_least_one
from agent.tools.sandbox.limits import Limits
from agent.vocabulary.yaml_nodes import Node

__all__ = ["read_limits"]

SIZE = re.compile(r"([0-9]+) ?([KMG])iB")
BYTES = {"K": 2**10, "M": 2**20, "G": 2**30}


def read_limits(node: Node) -> tuple[Limits, float | None]:
    """Return limits, and the money if it is limited; those that are not named are as usual. Raises NodeError."""
    node.mapping(*LIMITS, "money")
    limits = Limits(**{key: read(found) for key, read in LIMITS.items() if (found := node.get(key)) is not None})
    money = node.get("money")
    return limits, None if money is None else _dollars(money)


def _dollars(node: Node) -> float:
    value = node.number()
    if not value:
        raise node.wrong("expected US dollars, more than 0; leave it out for as much as it takes")
    return value


def _size(node: Node) -> int:
    if not isinstance(node.value, str):
        return at_least_one(node)
    found = SIZE.fullmatch(node.value.strip())
    if found is None or not int(found[1]):
        raise node.wrong(f"expected bytes, such as '256 MiB' or '1 GiB', found {node.value!r}")
    return int(found[1]) * BYTES[found[2]]


LIMITS: Mapping[str, Callable[[Node], int]] = {
    "memory": _size,
    "processes": at_least_one,
    "file_size": _size,
    "disk": _size,
    "cpu_time": at_least_one,
}
"""How each limit is read."""
