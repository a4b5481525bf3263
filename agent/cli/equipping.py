"""What protocols need of the world, as the command line names it: models of other roles, monitors and auditors.

--role trusted=gpt-5-mini --role editor=script:editor.yaml
--monitor monitor=constitution --monitor second=constant:0.2 --monitor third=model:gpt-5-mini
--monitor own=watch.py:monitor
"""

from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agent.cli.lacking import tell_what_is_lacking
from agent.cli.loading import imported
from agent.cli.mistakes import Mistake
from agent.models.model import Model
from agent.models.names import model_from_name

if TYPE_CHECKING:
    from agent.effects.laboratory import Auditor
    from agent.protocols.monitors.monitor import Monitor
    from agent.session.agent import Agent
    from bp import BThread
    from bp.runner import Effect

__all__ = ["auditors_named", "effects_for", "models_of_roles", "monitors_named"]

SHIPPED = ("constitution", "constant", "model")
"""Kinds of monitors that need no file."""

BESIDES = "constitution, constant:0.2, model:MODEL, "
"""The same, as a person writes them."""


def models_of_roles(named: Iterable[str], environ: Mapping[str, str]) -> dict[str, Model]:
    """Return the models of other roles than the agent's. Raises Mistake, and ModelError for a name of none."""
    return {role: model_from_name(name, environ) for role, name in _pairs("--role", named)}


def effects_for(
    threads: Sequence["BThread"], arguments: Namespace, environ: Mapping[str, str]
) -> "tuple[Callable[[Agent], Effect], ...]":
    """Return what makes the effects that protocols may start; none where there is no b-thread to start them."""
    if not threads and not arguments.monitor and not arguments.auditor:
        return ()
    from agent.effects.laboratory import laboratory

    tell_what_is_lacking(threads, arguments)
    return laboratory(monitors_named(arguments.monitor, environ), auditors_named(arguments.auditor, environ))


def monitors_named(named: Iterable[str], environ: Mapping[str, str]) -> "dict[str, Monitor]":
    """Return monitors by name. Raises Mistake, and ModelError for a name of no model."""
    return {name: _monitor(what, environ) for name, what in _pairs("--monitor", named)}


def auditors_named(named: Iterable[str], environ: Mapping[str, str]) -> "dict[str, Auditor]":
    """Return auditors by name: your own, or monitors for whom more than half is harmful. Raises like monitors."""
    return {name: _auditor(what, environ) for name, what in _pairs("--auditor", named)}


def _auditor(what: str, environ: Mapping[str, str]) -> "Auditor":
    from agent.lab.sidecars.auditing import MonitoringAuditor

    if what.partition(":")[0] in SHIPPED:
        return MonitoringAuditor(_monitor(what, environ, "--auditor"))
    found: Any = imported(f"--auditor {what!r}", what, what="auditor", besides=BESIDES)
    if callable(getattr(found, "audit", None)):
        auditor: Auditor = found
        return auditor
    return MonitoringAuditor(_own_monitor(f"--auditor {what!r}", found))


def _pairs(option: str, named: Iterable[str]) -> Iterator[tuple[str, str]]:
    for pair in named:
        name, equals, what = pair.partition("=")
        if not (name.strip() and equals and what):
            raise Mistake(f"{option} {pair!r} is no pair; write {option} NAME=WHAT, see bpagent run --help")
        yield name.strip(), what


def _monitor(what: str, environ: Mapping[str, str], option: str = "--monitor") -> "Monitor":
    from agent.protocols.monitors.prompted import PromptedMonitor
    from agent.protocols.monitors.simple import ConstantMonitor, ConstitutionMonitor

    kind, _, rest = what.partition(":")
    match kind:
        case "constitution" if not rest:
            return ConstitutionMonitor()
        case "constant":
            return ConstantMonitor(_score(rest, option))
        case "model":
            return PromptedMonitor(model_from_name(rest, environ))
    found = imported(f"{option} {what!r}", what, what="monitor", besides=BESIDES)
    return _own_monitor(f"{option} {what!r}", found)


def _own_monitor(option: str, found: Any) -> "Monitor":
    if not callable(getattr(found, "score", None)):
        raise Mistake(f"{option} is {type(found).__name__}; a monitor has a method `score(evidence)`")
    monitor: Monitor = found
    return monitor


def _score(text: str, option: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise Mistake(f"{option} constant:{text} gives no score; write a number from 0 to 1, such as constant:0.2")
    return value
