"""The protocols that ship: purpose, cost, the roles that each needs, and its source; and those of users, by name."""

import inspect
from collections.abc import Callable
from typing import Any

from attrs import frozen

from agent.protocols.flows import ask_on_critical, defer_on_critical, download_then_run, taint_flow
from agent.protocols.monitoring import (
    asynchronous_monitor,
    audit_budget,
    blocking_monitor,
    ensemble,
    shutdown_on_catch,
    suspicion_accumulates,
    trusted_monitoring,
    untrusted_monitoring,
    upfront_audit,
)
from agent.protocols.policies import PolicyError, read_policies
from agent.protocols.substitution import defer_to_resample, defer_to_trusted, trusted_editing
from agent.threads.judging import Judge, by_constitution
from agent.vocabulary.errors import meant
from agent.vocabulary.importing import NotImportable, read_name
from bp import BThread, BThreadFunction
from constitution import POLICIES


def constitution_only(policy: str = "default") -> BThread:
    """Refuse what a policy of the constitution denies; a person decides about what it wants asked."""
    return by_constitution(Judge(POLICIES[policy]))


OFFERED = ("monitor", "monitors", "threshold", "is_critical", "honeypots")
"""Parameters of protocols that an experiment fills in."""

LEFT_OPEN = ("draws", "limit", "buckets", "runs", "budget", "near", "auditor")
"""Parameters of protocols that a plan may set."""


ONE_BTHREAD = (
    "a protocol is one b-thread: decorate a generator function with @bthread, which begins others with "
    "`yield start(...)` (docs/protocols.md)"
)
"""The cure for what is none."""


@frozen
class Cost:
    """The cost of a protocol beside that of the agent; empty: nothing. Scores are counted by the monitor."""

    inferences: str = ""
    scores: str = ""
    questions: str = ""
    audits: str = ""

    def __str__(self) -> str:
        named = (("inferences", self.inferences), ("scores", self.scores), ("questions", self.questions))
        parts = [f"{name}: {amount}" for name, amount in (*named, ("audits", self.audits)) if amount]
        return "; ".join(parts) or "nothing"


@frozen
class Entry:
    """A protocol: its name, what it does, what it costs, where it comes from, and what makes its b-threads.

    roles: the models that it needs beside the agent's. make: takes what the protocol leaves open, by name.
    """

    name: str
    does: str
    cost: Cost
    source: str
    make: Callable[..., BThread | tuple[BThread, ...]]
    roles: tuple[str, ...] = ()

    @property
    def takes(self) -> frozenset[str]:
        """The names of its parameters; a protocol that takes any option takes a threshold."""
        found, given = inspect.signature(self.make).parameters, getattr(self.make, "keywords", {})
        names = ("threshold" if each.kind is each.VAR_KEYWORD else name for name, each in found.items())
        return frozenset(names).difference(given)

    @property
    def needs_auditor(self) -> bool:
        """Tell whether it asks an auditor, unless it is told to ask none."""
        given = inspect.signature(self.make).parameters.get("auditor")
        return given is not None and bool(given.default)

    def bthreads(self, **options: object) -> tuple[BThread, ...]:
        """Return the b-threads of the protocol. Raises TypeError for an option that it does not have.

        Raises ValueError when something else is returned.
        """
        made = self.make(**options)
        several = made if isinstance(made, tuple) else (made,)
        if not all(isinstance(each, BThread) for each in several):
            raise ValueError(f"it returned {type(made).__name__}; {ONE_BTHREAD}")
        return several


def upfront(runs: int = 1, role: str = "agent", auditor: str = "auditor") -> tuple[BThread, ...]:
    """Return both halves of the upfront audit."""
    return (upfront_audit(runs, auditor), shutdown_on_catch(role))


def panel(monitors: tuple[str, ...] = ("monitor", "second"), threshold: float = 0.5) -> BThread:
    """Return an ensemble of two monitors, unless others are named."""
    return ensemble(monitors, threshold)


AI_CONTROL = "Greenblatt et al. 2023, AI Control"
PER_DRAFT, PER_CALL = "1 a draft", "1 a call"

PROTOCOLS = (
    Entry(
        "constitution_only",
        "refuses what the constitution denies, asks where it wants that",
        Cost(questions="where the constitution asks"),
        "S3",
        constitution_only,
    ),
    Entry(
        "trusted_monitoring",
        "scores every draft, holds nothing but the next turn",
        Cost(scores=PER_DRAFT),
        AI_CONTROL,
        trusted_monitoring,
    ),
    Entry("blocking_monitor", "a call waits for its score", Cost(scores=PER_CALL), "ControlArena", blocking_monitor),
    Entry(
        "defer_to_trusted",
        "a suspicious draft gives way to the trusted model's",
        Cost(inferences="1 a suspicious turn", scores=PER_DRAFT),
        AI_CONTROL,
        defer_to_trusted,
        roles=("trusted",),
    ),
    Entry(
        "trusted_editing",
        "a suspicious draft is edited by a trusted model",
        Cost(inferences="1 a suspicious draft", scores=PER_DRAFT),
        AI_CONTROL,
        trusted_editing,
        roles=("editor",),
    ),
    Entry(
        "defer_to_resample",
        "a suspicious draft is drawn again; the least suspicious one counts",
        Cost(
            inferences="k a suspicious turn, 1 trusted if none will do", scores=PER_DRAFT, audits="1 a suspicious turn"
        ),
        "Ctrl-Z, 2504.10374; 2605.26047",
        defer_to_resample,
        roles=("trusted",),
    ),
    Entry(
        "defer_on_critical",
        "a draft with a critical call gives way to the trusted model's",
        Cost(inferences="1 a critical turn"),
        "2511.02997",
        defer_on_critical,
        roles=("trusted",),
    ),
    Entry(
        "ask_on_critical",
        "a person decides about critical calls",
        Cost(questions="1 a critical call"),
        "2511.02997",
        ask_on_critical,
    ),
    Entry(
        "audit_budget",
        "audits what was scored as suspicious, the most suspicious first",
        Cost(audits="at most the budget"),
        AI_CONTROL,
        audit_budget,
    ),
    Entry(
        "upfront_audit",
        "audits the first runs; a catch disables the role",
        Cost(audits="1 an answer of the first runs"),
        "ControlArena",
        upfront,
    ),
    Entry(
        "untrusted_monitoring",
        "a monitor without trust blocks, and is tested with honeypots",
        Cost(scores="1 a call, and the honeypots' share"),
        AI_CONTROL,
        untrusted_monitoring,
    ),
    Entry("ensemble", "a call waits for several scores", Cost(scores="1 a call and monitor"), "-", panel),
    Entry(
        "asynchronous_monitor",
        "scores what runs; above the threshold the run is contained",
        Cost(scores=PER_CALL),
        "2512.13526",
        asynchronous_monitor,
    ),
    Entry("taint_flow", "after a secret was read, nothing is sent", Cost(), "Invariant's flow rules", taint_flow),
    Entry("download_then_run", "what was downloaded is not executed", Cost(), "-", download_then_run),
    Entry(
        "suspicion_accumulates",
        "near misses add up to a refusal",
        Cost(scores=PER_CALL),
        "-",
        suspicion_accumulates,
    ),
)
"""Every protocol that ships, as a person would list them."""


def entry_named(name: str) -> Entry:
    """Return the protocol of this name. Raises ValueError that names the nearest one, or all."""
    known = {entry.name: entry for entry in PROTOCOLS}
    if name not in known:
        raise ValueError(f"there is no protocol {name!r}; {meant(name, known)}")
    return known[name]


POLICIES_FILES = (".yaml", ".yml")


def is_own(name: str) -> bool:
    """Return whether a protocol is the user's own, and not of the catalogue."""
    return ":" in name or name.endswith(POLICIES_FILES)


def entry_of(name: str) -> Entry:
    """Return a protocol that ships, or one of the user's own: FILE.py:NAME, module:NAME, or a file of policies (.yaml).

    Raises ValueError, which says what is wrong.
    """
    if not is_own(name):
        return entry_named(name)
    made = _policies(name) if name.endswith(POLICIES_FILES) else _named(name)
    return Entry(name, "a protocol of your own", Cost(), name, made)


def _policies(name: str) -> Callable[[], tuple[BThread, ...]]:
    try:
        bthreads = read_policies(name)
    except PolicyError as error:
        raise ValueError(str(error)) from error
    return lambda: bthreads


def _named(name: str) -> Callable[..., BThread | tuple[BThread, ...]]:
    value = own_value(name, "protocol", BThread, BThreadFunction)
    several = value if isinstance(value, tuple | list) else (value,)
    if several and all(isinstance(each, BThread) for each in several):
        return lambda: tuple(several)
    if not callable(value):
        raise ValueError(f"{name!r} is {type(value).__name__}; {ONE_BTHREAD}")
    return value  # type: ignore[no-any-return]


def own_value(name: str, what: str, *kinds: type) -> Any:
    """Return the object of the user's that `name` means; `what` it is for stands in messages. Raises ValueError."""
    try:
        return read_name(name).value(f"{what}s", *kinds)
    except NotImportable as error:
        raise ValueError(f"the {what} {name!r}: {error}") from error
