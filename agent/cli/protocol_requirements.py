"""Warn about monitors, auditors, models and tools that a protocol needs and that were not configured."""

import inspect
from argparse import Namespace
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from attrs import fields, has

from agent.cli.mistakes import say
from agent.vocabulary.errors import meant
from bp import BThread

if TYPE_CHECKING:
    from agent.protocols.policies import Match


SHIPPED, POLICIES = "agent.protocols", "agent.protocols.policies"
COMES_OF_IT = {
    "monitor": "every score is missing, which counts as most suspicious",
    "auditor": "no audit finds anything",
    "role": "what would be its draft is refused",
}
GIVEN = {"monitor": "constitution", "auditor": "model:MODEL", "role": "MODEL"}
ASKED = ("monitor", "auditor")


def tell_what_is_lacking(threads: Sequence[BThread], arguments: Namespace) -> None:
    """Say which monitors, auditors and models of other roles the protocols that ship ask for, and were not named."""
    lacking: dict[tuple[str, str], list[str]] = {}
    for thread in filter(_ships, threads):
        for what, name in (*_asked(thread), *(("role", role) for role in _roles(thread))):
            if name not in _named(getattr(arguments, what)):
                lacking.setdefault((what, name), []).append(thread.name)
    for (what, name), who in lacking.items():
        needed = f"{_listed(dict.fromkeys(who))} {'needs' if len(set(who)) == 1 else 'need'} the {what} {name!r}"
        say(f"{needed}, and there is none: {COMES_OF_IT[what]}; give --{what} {name}={GIVEN[what]}")


def _ships(thread: BThread) -> bool:
    return str(getattr(thread.function, "__module__", "")).startswith(SHIPPED)


def _listed(names: Iterable[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _asked(thread: BThread) -> Iterator[tuple[str, str]]:
    """Yield what a b-thread asks: monitors and auditors, by the names of its parameters."""
    given = inspect.signature(thread.function).bind(*thread.args, **thread.kwargs)
    given.apply_defaults()
    for what in ASKED:
        one: Any = given.arguments.get(what, "")
        for name in (one, *given.arguments.get(f"{what}s", ())):
            if isinstance(name, str) and name:
                yield what, name


def _roles(thread: BThread) -> Sequence[str]:
    from agent.protocols.catalogue import PROTOCOLS

    return next((entry.roles for entry in PROTOCOLS if entry.name == thread.name), ())


def _named(pairs: Iterable[str]) -> set[str]:
    return {pair.partition("=")[0].strip() for pair in pairs}


def tell_unknown_tools(threads: Sequence[BThread], tools: Iterable[str]) -> None:
    """Say which tools temporal policies speak of that there are not: such a policy holds of nothing."""
    policies = [thread for thread in threads if str(thread.function.__module__).startswith(POLICIES)]
    if not policies:
        return
    known = sorted(tools)
    named = {name: thread.name for thread in policies for match in _matches(thread.args) for name in match.tools}
    for name, policy in named.items():
        if name not in known:
            say(f"the policy {policy!r} speaks of a tool {name!r}, and there is none; {meant(name, known)}")


def _matches(value: Any) -> "Iterator[Match]":
    from agent.protocols.policies import Match

    if isinstance(value, Match):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _matches(each)
    elif has(type(value)):
        yield from _matches(tuple(getattr(value, field.name) for field in fields(type(value))))
