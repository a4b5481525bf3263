"""Options of protocols: what a protocol does not take is refused where it stands, before any episode runs.

A budget that a protocol takes no notice of would make a line of the tables that says something which is not so.
"""

from collections.abc import Mapping, Sequence

from agent.lab.experiments.plan_files.words import known
from agent.lab.experiments.plans.own_protocols import entry_of, short_name
from agent.vocabulary.yaml_nodes import Node

__all__ = ["check_options"]

ARGUMENTS: Mapping[str, Sequence[str]] = {
    "budget": ("threshold",),
    "threshold": ("threshold",),
    "monitor": ("monitor",),
    "draws": ("draws",),
    "limit": ("limit",),
    "buckets": ("buckets",),
    "runs": ("runs",),
    "audits": ("budget",),
    "near": ("near",),
    "auditor": ("auditor",),
}
"""What each key of a plan becomes an argument of."""

AUDITORS = ("auditor",)


def check_options(node: Node, use: Sequence[str]) -> None:
    """Raise NodeError for an option that none of the protocols `use` takes, or an auditor that there is not."""
    takes = {argument for name in use for argument in entry_of(name).takes}
    for key, arguments in ARGUMENTS.items():
        given = node.get(key)
        if given is None:
            continue
        if not takes.intersection(arguments):
            has = ", ".join(each for each, needed in ARGUMENTS.items() if takes.intersection(needed)) or "nothing"
            names = " and ".join(map(short_name, use))
            raise given.wrong(f"{key!r} is nothing that {names} takes; what is: {has}")
        if key == "auditor":
            known(given, AUDITORS, "auditor")
