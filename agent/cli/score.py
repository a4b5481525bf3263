"""`bpagent score`: finished logs scored by monitors, and the most suspicious audited; kept beside each log.

A score that is known is not asked for again. Exit code 0: all is scored. 1: a monitor could not be reached for some.
2: something is no finished log, or a sidecar is of another content of it.
"""

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio

from agent.cli import exit_codes
from agent.cli.build import auditors_named, monitors_named
from agent.cli.mistakes import Mistake, say
from agent.cli.runs import find_logs
from agent.cli.screen import Screen, Tone, screen_on, visible
from agent.lab.sidecars import sidecar
from agent.lab.sidecars.scoring import Audited, Scored, audit_logs, score_logs
from agent.lab.sidecars.sidecar import KeptScore, SidecarError, sidecar_path
from agent.log.reading import LogError
from agent.vocabulary.encoding import dump, plain

if TYPE_CHECKING:
    from agent.effects.monitoring import Auditor


T = TypeVar("T")


def execute(arguments: Namespace) -> int:
    """Score the logs, audit those that are to be, and tell. Raises Mistake, LogError and ModelError."""
    monitors = monitors_named(arguments.monitor, os.environ)
    auditors = auditors_named([arguments.auditor] if arguments.auditor else [], os.environ)
    by = _by(arguments, monitors)
    paths, refused = find_logs(arguments.log), list[LogError]()
    scored = anyio.run(partial(score_logs, paths, monitors, on_error=refused.append))
    for error in refused:
        say(str(error))
    audited = _audited(scored, by, auditors, arguments.audits)
    if arguments.json:
        _print_data(scored, audited)
    else:
        _show(scored, audited, screen_on(sys.stdout))
    failures = [failure for each in scored for failure in each.failures]
    if failures:
        say(f"{len(failures)} calls have no score yet, the first because of {failures[0]}; run it again later")
    return exit_codes.USAGE if refused else exit_codes.FAILED if failures else exit_codes.OK


def _by(arguments: Namespace, monitors: Mapping[str, Any]) -> str:
    """Return the monitor whose scores decide what is audited. Raises Mistake."""
    if not monitors:
        raise Mistake("no monitor would be asked; name a --monitor, such as --monitor watcher=constitution")
    if arguments.by and not arguments.auditor:
        raise Mistake("--by chooses what is audited; name an --auditor with it")
    if arguments.by and arguments.by not in monitors:
        raise Mistake(f"--by {arguments.by!r} is none of the monitors: {', '.join(monitors)}")
    if arguments.audits < 1:
        raise Mistake(f"--audits {arguments.audits} audits nothing; leave --auditor out, or give a number from 1 on")
    return str(arguments.by or next(iter(monitors)))


def _audited(scored: Sequence[Scored], by: str, auditors: "Mapping[str, Auditor]", audits: int) -> list[Audited]:
    suspicions = [(each.path, each.highest) for each in scored if each.monitor == by]
    return [
        found
        for name, auditor in auditors.items()
        for found in anyio.run(partial(audit_logs, suspicions, auditor, name=name, audits=audits))
    ]


def _show(scored: Sequence[Scored], audited: Sequence[Audited], screen: Screen) -> None:
    for path in dict.fromkeys(each.path for each in scored):
        screen.line(visible(str(path)), "title")
        for each in scored:
            if each.path == path:
                screen.line(f"  {visible(each.monitor):10} {visible(_told(each))}")
        for found in audited:
            if found.path == path:
                tone: Tone = "refused" if found.kept.verdict == "harmful" else "plain"
                told = f"{found.kept.verdict}: {found.kept.rationale}".rstrip(": ")
                screen.line(f"  {visible(found.kept.by):10} {visible(told)}", tone)
    for name in dict.fromkeys(each.monitor for each in scored):
        screen.line(visible(_summed([each for each in scored if each.monitor == name])), "system")
    if audited:
        screen.line(f"{len(audited)} audits, {sum(found.asked for found in audited)} of them asked now", "system")


def _told(scored: Scored) -> str:
    if scored.failures:
        return f"not complete: {scored.failures[0]}"
    if not scored.scores:
        return "no call"
    highest = next(kept for kept in scored.scores if kept.value == scored.highest)
    value = "missing" if highest.value is None else f"{highest.value:.2f}"
    told = f"{value} at most, of {len(scored.scores)} calls: {highest.call}"
    return f"{told} ({highest.rationale})" if highest.rationale else told


def _summed(scored: Sequence[Scored]) -> str:
    calls, asked = sum(len(each.scores) for each in scored), sum(each.asked for each in scored)
    missing = sum(kept.value is None for each in scored for kept in each.scores)
    told = f"{asked} asked now, {calls - asked} known" if asked else "nothing asked: all scores were known"
    more = f", {missing} missing" if missing else ""
    return f"{scored[0].monitor}: {calls} calls in {len(scored)} logs; {told}{more}"


def _print_data(scored: Sequence[Scored], audited: Sequence[Audited]) -> None:
    for each in scored:
        scores = [{"line": kept.line, "call": kept.call, "value": kept.value} for kept in each.scores]
        told = {"log": str(each.path), "monitor": each.monitor, "highest": each.highest, "scores": scores}
        print(dump({**told, "asked": each.asked, "failures": list(each.failures)}))
    for found in audited:
        kept = found.kept
        verdict = {"verdict": kept.verdict, "rationale": kept.rationale, "asked": found.asked}
        print(dump({"log": str(found.path), "auditor": kept.by, **plain(verdict)}))


def said_afterwards(log: Path) -> tuple[tuple[str, str], ...]:
    """Return what the sidecar of a log tells, if there is one: each monitor's highest score, each auditor's verdict."""
    return _from_sidecar(sidecar.said_afterwards, log)


def scores_afterwards(log: Path) -> tuple[KeptScore, ...]:
    """Return what monitors said of the calls of a log when its runs were over, if there is a sidecar."""
    return _from_sidecar(lambda path: sidecar.read_sidecar(path).scores(), log)


def _from_sidecar(read: Callable[[Path], tuple[T, ...]], log: Path) -> tuple[T, ...]:
    if not sidecar_path(log).exists():
        return ()
    try:
        return read(log)
    except SidecarError as error:
        say(str(error))
        return ()
