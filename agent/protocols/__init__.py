"""Control protocols: each is one b-thread or a few; protocols are composed by adding their b-threads.

Some refuse calls at the gate, some refuse drafts and request others, some act on scores and audits of running calls.
`PROTOCOLS` has the purpose and the cost of each.
"""

import inspect
from collections.abc import Callable
from typing import Any

from attrs import frozen

from agent.protocols.flows import ask_on_critical, defer_on_critical, download_then_run, is_admin, taint_flow
from agent.protocols.monitoring import (
    asynchronous_monitor,
    audit_budget,
    blocking_monitor,
    defer_to_resample,
    defer_to_trusted,
    distrust_after_a_miss,
    ensemble,
    highest,
    mean,
    plant_honeypots,
    shutdown_on_catch,
    suspicion_accumulates,
    trusted_editing,
    trusted_monitoring,
    untrusted_monitoring,
    upfront_audit,
)
from agent.threads.judging import Judge, by_constitution
from agent.vocabulary.errors import meant
from agent.vocabulary.importing import NotImportable, read_name
from bp import BThread
from bp.statements import BThreadFunction
from constitution import POLICIES

__all__ = [
    "PROTOCOLS",
    "ask_on_critical",
    "asynchronous_monitor",
    "audit_budget",
    "blocking_monitor",
    "constitution_only",
    "defer_on_critical",
    "defer_to_resample",
    "defer_to_trusted",
    "distrust_after_a_miss",
    "download_then_run",
    "ensemble",
    "entry_named",
    "highest",
    "is_admin",
    "mean",
    "plant_honeypots",
    "shutdown_on_catch",
    "suspicion_accumulates",
    "taint_flow",
    "trusted_editing",
    "trusted_monitoring",
    "untrusted_monitoring",
    "upfront_audit",
]


def constitution_only(policy: str = "default") -> BThread:
    """Refuse actions that a policy denies, and ask the user about those that it wants asked."""
    return by_constitution(Judge(POLICIES[policy]))


ONE_BTHREAD = (
    "a protocol is one b-thread: decorate a generator function with @bthread, which begins others with "
    "`yield start(...)` (docs/protocols.md)"
)
"""The cure in errors about invalid protocols."""


@frozen
class Entry:
    """A protocol: its name, what makes its b-threads, what it does, what it costs, and where it comes from.

    make: takes what the protocol leaves open, by name. cost: beside that of the agent; scores are counted by the
    monitor. roles: the models that it needs beside the agent's.
    """

    name: str
    make: Callable[..., BThread | tuple[BThread, ...]]
    does: str
    cost: str
    source: str
    roles: tuple[str, ...] = ()

    @property
    def takes(self) -> frozenset[str]:
        """The names of its parameters; a protocol that accepts any option has a threshold."""
        found, given = inspect.signature(self.make).parameters, getattr(self.make, "keywords", {})
        names = ("threshold" if each.kind is each.VAR_KEYWORD else name for name, each in found.items())
        return frozenset(names).difference(given)

    @property
    def needs_auditor(self) -> bool:
        """Return whether it uses an auditor by default."""
        given = inspect.signature(self.make).parameters.get("auditor")
        return given is not None and bool(given.default)

    def bthreads(self, **options: object) -> tuple[BThread, ...]:
        """Return the b-threads. Raises TypeError for an option that it does not have, ValueError for no b-thread."""
        made = self.make(**options)
        several = made if isinstance(made, tuple) else (made,)
        if not all(isinstance(each, BThread) for each in several):
            raise ValueError(f"it returned {type(made).__name__}; {ONE_BTHREAD}")
        return several


def upfront(runs: int = 1, role: str = "agent", auditor: str = "auditor") -> tuple[BThread, ...]:
    """Return both halves of the upfront audit."""
    return (upfront_audit(runs, auditor), shutdown_on_catch(role))


AI_CONTROL = "Greenblatt et al. 2023, AI Control"
NOTHING, PER_DRAFT, PER_CALL = "nothing", "scores: 1 a draft", "scores: 1 a call"
RESAMPLING = f"inferences: k a suspicious turn, 1 trusted if none will do; {PER_DRAFT}; audits: 1 a suspicious turn"

PROTOCOLS = (
    Entry("constitution_only", constitution_only, "refuses what the constitution denies, asks where it wants that",
          "questions: where the constitution asks", "S3"),
    Entry("trusted_monitoring", trusted_monitoring, "scores every draft, holds nothing but the next turn",
          PER_DRAFT, AI_CONTROL),
    Entry("blocking_monitor", blocking_monitor, "a call waits for its score", PER_CALL, "ControlArena"),
    Entry("defer_to_trusted", defer_to_trusted, "a suspicious draft gives way to the trusted model's",
          f"inferences: 1 a suspicious turn; {PER_DRAFT}", AI_CONTROL, ("trusted",)),
    Entry("trusted_editing", trusted_editing, "a suspicious draft is edited by a trusted model",
          f"inferences: 1 a suspicious draft; {PER_DRAFT}", AI_CONTROL, ("editor",)),
    Entry("defer_to_resample", defer_to_resample, "a suspicious draft is drawn again; the least suspicious one counts",
          RESAMPLING, "Ctrl-Z, 2504.10374; 2605.26047", ("trusted",)),
    Entry("defer_on_critical", defer_on_critical, "a draft with a critical call gives way to the trusted model's",
          "inferences: 1 a critical turn", "2511.02997", ("trusted",)),
    Entry("ask_on_critical", ask_on_critical, "a person decides about critical calls",
          "questions: 1 a critical call", "2511.02997"),
    Entry("audit_budget", audit_budget, "audits what was scored as suspicious, the most suspicious first",
          "audits: at most the budget", AI_CONTROL),
    Entry("upfront_audit", upfront, "audits the first runs; a catch disables the role",
          "audits: 1 an answer of the first runs", "ControlArena"),
    Entry("untrusted_monitoring", untrusted_monitoring, "a monitor without trust blocks, and is tested with honeypots",
          f"{PER_CALL}, and the honeypots' share", AI_CONTROL),
    Entry("ensemble", ensemble, "a call waits for several scores", f"{PER_CALL} and monitor", "-"),
    Entry("asynchronous_monitor", asynchronous_monitor, "scores what runs; above the threshold the run is contained",
          PER_CALL, "2512.13526"),
    Entry("taint_flow", taint_flow, "after a secret was read, nothing is sent", NOTHING, "Invariant's flow rules"),
    Entry("download_then_run", download_then_run, "what was downloaded is not executed", NOTHING, "-"),
    Entry("suspicion_accumulates", suspicion_accumulates, "near misses add up to a refusal", PER_CALL, "-"),
)  # fmt: skip
"""Every protocol that ships, in the order of documentation."""


def entry_named(name: str) -> Entry:
    """Return the protocol of this name. Raises ValueError that names the nearest one, or all."""
    known = {entry.name: entry for entry in PROTOCOLS}
    if name not in known:
        raise ValueError(f"there is no protocol {name!r}; {meant(name, known)}")
    return known[name]


POLICIES_FILES = (".yaml", ".yml")


def is_own(name: str) -> bool:
    """Return whether a protocol is the user's own, and not of the catalogue."""
    return ":" in name or name.endswith((".py", *POLICIES_FILES))


def entry_of(name: str) -> Entry:
    """Return a protocol that ships, or one of the user's own: FILE.py:NAME, module:NAME, or a file of policies (.yaml).

    Raises ValueError, which says what is wrong.
    """
    if not is_own(name):
        return entry_named(name)
    made = _policies(name) if name.endswith(POLICIES_FILES) else _named(name)
    return Entry(name, made, "a protocol of your own", NOTHING, name)


def _policies(name: str) -> Callable[[], tuple[BThread, ...]]:
    from agent.protocols.policies import PolicyError, read_policies  # not needed by protocols that ship

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
