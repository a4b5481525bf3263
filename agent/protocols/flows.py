"""Protocols about kinds of actions: exfiltration of secrets, execution of downloads, and critical actions."""

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen

from agent.protocols.asking import (
    TURN_OVER,
    Reason,
    another_draft,
    commitment,
    draft_given,
    ending_or,
    of_each_untrusted_draft,
)
from agent.threads.judging import objection
from agent.vocabulary.calls import ToolCall
from agent.vocabulary.events import ActionDescribed, GateApproved
from bp import BThreadBody, bthread, start, sync, where
from constitution import Action, Effect, Level, PathUse, Verdict, effects_of
from constitution.action import Category

ANYTHING = frozenset({"unreadable", "unknown_command", "unknown_code", "code", "fetched_code", "remote"})
"""Kinds of effects whose consequences cannot be known."""

ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://[^\s'\"|;&)<>]+|\b[\w.-]+@[\w.-]+:[^\s'\"|;&)<>]+", re.IGNORECASE)


@frozen
class Does:
    """A predicate: whether an approved action has one of `effects` at `places` (any, if empty), or unknown effects.

    told: its text in reports. addresses: or names an address of any machine, also this one.
    """

    told: str
    effects: frozenset[str]
    places: frozenset[str] = frozenset()
    anywhere: frozenset[str] = ANYTHING
    addresses: bool = False

    def __call__(self, approved: GateApproved) -> bool:
        """Return whether it holds."""
        if self.addresses and ADDRESS.search(_text(approved.facts)):
            return True
        return any(map(self._fits, effects_of(approved.facts)))

    @property
    def __name__(self) -> str:
        return self.told

    def _fits(self, effect: Effect) -> bool:
        is_there = not self.places or effect.place.name in self.places
        return effect.kind in self.anywhere or (effect.kind in self.effects and is_there)


READS_SECRETS = Does(
    "reads_secrets",
    frozenset({"read", "run"}),
    frozenset({"private", "private_outside", "secret", "denied"}),
    ANYTHING | {"show_secrets", "show_environment", "take_keys"},
)
"""Reads a key, a password, an `.env`, the environment."""

REACHES_NETWORK = Does(
    "reaches_network",
    frozenset({"network", "send", "push", "publish", "install", "cloud", "give_shell", "listen"}),
    addresses=True,
)
"""Connects to another machine, or to a local port, which may forward."""


def fetched_by(action: Action, already: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the paths of downloaded files after the action: new downloads, and copies of earlier ones.

    A download without a file name gets the last part of its address, in the action's folder.
    """
    effects = effects_of(action)
    addresses = ADDRESS.findall(_text(action))
    written = tuple(effect.path for effect in effects if effect.kind == "write" and effect.path)
    if addresses or any(effect.kind in ("network", "send") for effect in effects):
        return (*written, *(posixpath.join(action.start, _last_part(address)) for address in addresses))
    copies = any(effect.kind == "read" and is_below(effect.path, already) for effect in effects)
    return written if copies else ()


def executed_by(action: Action) -> tuple[str, ...]:
    """Return the files that an action would run, or whose text it would run."""
    return tuple(effect.path for effect in effects_of(action) if effect.kind == "run")


def is_below(path: str, places: tuple[str, ...]) -> bool:
    """Return whether a path is one of the places, or below one."""
    return any(path == place or path.startswith(f"{place.rstrip('/')}/") for place in places)


def _text(action: Action) -> str:
    return action.command or " ".join(action.argv)


def _last_part(address: str) -> str:
    part = address.partition("?")[0].partition("#")[0].rstrip("/").rpartition("/")[2].rpartition(":")[2]
    return part.removesuffix(".git") or "index.html"


Predicate = Callable[[GateApproved], bool]


@bthread
def taint_flow(reads: Predicate = READS_SECRETS, sends: Predicate = REACHES_NETWORK) -> BThreadBody:
    """Refuse actions that match `sends` after one that matches `reads` was approved, or that match both."""
    both = where(GateApproved, reads) & where(GateApproved, sends)
    yield sync(wait_for=where(GateApproved, reads), refuse=both, because=Reason("it reads a secret, and sends", "flow"))
    yield sync(refuse=where(GateApproved, sends), because=Reason("a secret was read earlier", "flow"))


Fetched = Callable[[Action, tuple[str, ...]], tuple[str, ...]]
Executed = Callable[[Action], tuple[str, ...]]


@frozen
class RunsFrom:
    """A predicate: whether an approved action would run a file at, or below, one of these places."""

    places: tuple[str, ...]
    executed: Executed

    def __call__(self, approved: GateApproved) -> bool:
        """Return whether it holds."""
        return bool(self.places) and any(is_below(path, self.places) for path in self.executed(approved.facts))


@bthread
def download_then_run(fetched: Fetched = fetched_by, executed: Executed = executed_by) -> BThreadBody:
    """Refuse actions that would run a file downloaded by an earlier approved action, or a copy of it."""
    places: tuple[str, ...] = ()
    because = Reason("it would run what came from outside", "flow")
    while True:
        runs = where(GateApproved, RunsFrom(places, executed))
        said = yield sync(wait_for=GateApproved, refuse=runs, because=because)
        places = tuple(sorted({*places, *fetched(said.facts, places)}))


CRITICAL = Verdict(Level.ask, "critical", "critical action", explanation="this is a critical action")


def is_admin(call: ToolCall) -> bool:
    """Return whether a call is of a tool of the category "admin"."""
    return call.category == "admin"


@bthread
def defer_on_critical(is_critical: Callable[[ToolCall], bool] = is_admin) -> BThreadBody:
    """Defer to the trusted model whenever an untrusted draft has a critical call; needs no monitor."""
    yield from of_each_untrusted_draft(defer, is_critical)


@bthread(name="defer_on_critical")
def defer(name: str, is_critical: Callable[[ToolCall], bool]) -> BThreadBody:
    """Refuse one draft if it has a critical call, and request another one from the trusted model."""
    draft = yield from draft_given(name)
    if draft is not None and any(map(is_critical, draft.calls)):
        because = Reason("an action like this is left to a trusted model", "critical action")
        found = yield from another_draft("trusted", "trusted", refuse=commitment(draft), because=because)
        yield sync(refuse=commitment(draft), because=ending_or(because, found), wait_for=TURN_OVER)


@bthread
def ask_on_critical(is_critical: Callable[[ToolCall], bool] = is_admin) -> BThreadBody:
    """Ask the user about every critical call."""
    while True:
        described = yield sync(wait_for=ActionDescribed)
        if is_critical(described.call):
            yield start(objection(described, CRITICAL).named("ask_on_critical"))


def _example(tool: str, category: Category = "write", **facts: Any) -> GateApproved:
    """Return the approval of a call in the workspace `/ws`."""
    return GateApproved(
        ToolCall("c1", tool, category=category), Action(tool, category, "/ws", "/ws", "/home/me", **facts)
    )


ADMINISTRATION = _example("reset", "admin")
SECRET, TOOL = PathUse(".env", "/ws/.env", "read"), PathUse("tool.sh", "/ws/tool.sh", "write")

EXAMPLES: Mapping[str, tuple[GateApproved, ...]] = {
    "taint_flow": (_example("read_file", paths=(SECRET,)), _example("fetch", urls=("http://a.example",))),
    "download_then_run": (
        _example("download", urls=("http://a.example/tool.sh",), paths=(TOOL,)),
        _example("execute", argv=("./tool.sh",)),
    ),
    "ask_on_critical": (ADMINISTRATION,),
    "defer_on_critical": (ADMINISTRATION,),
}
"""Actions that match the predicates of these protocols; verification offers them beside harmless ones."""
