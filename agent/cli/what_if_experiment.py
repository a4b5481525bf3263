"""`bpagent what-if FILE.results`: every recorded episode under another protocol; what nobody can know as bounds."""

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import asdict, frozen

from agent.cli.build import load_protocols
from agent.cli.exit_codes import OK
from agent.cli.mistakes import Mistake
from agent.cli.screen import visible
from agent.history.rebuilding import within
from agent.lab.experiments.episodes.treatments import bthreads_of
from agent.lab.experiments.hindsight.answering import monitors_of
from agent.lab.experiments.hindsight.foreseeing import Group, write_foreseen
from agent.lab.experiments.hindsight.rerunning import Remembering
from agent.lab.experiments.hindsight.sweeping import Sweep, sweep
from agent.lab.experiments.plans.plan import ProtocolPlan
from agent.lab.experiments.shelf.episodes import Shelf
from agent.lab.experiments.shelf.rows import Row
from agent.log.reading import RecordedRun, read_log
from agent.presets.preset import Judge, Preset
from agent.threads.core import core
from agent.vocabulary.encoding import dump
from agent.vocabulary.errors import AgentError
from bp import BThread
from constitution import Policy

SHOWN = 5  # thresholds of a sweep that are shown; all go to the file
HEADINGS = ("threshold", "recorded under", "policy", "episodes", "evaluable", "as recorded", "what if", "parts because")


def execute_on_experiment(arguments: Namespace, policy: Policy | None) -> int:
    """Play every episode again under what is named, print what comes of it, and return the exit code.

    Raises Mistake for wrong input.
    """
    if len(arguments.log) > 1:
        raise Mistake("give one folder of an experiment at a time")
    folder, begun = Path(arguments.log[0]).expanduser(), time.monotonic()
    try:
        rows, thresholds = _rows(folder, arguments.recorded), _thresholds(arguments)
        asked = _asked(arguments, policy, read_log(folder / rows[0].log))
        asked.protocols(thresholds[0])  # what cannot be made is told now, and not by many processes
        tally = sweep(Sweep(folder, asked, thresholds), rows, workers=arguments.workers, tell=_progress(len(rows)))
        groups = list(tally.groups())
        write_foreseen(folder / "what_if.csv", groups)
    except (AgentError, ValueError, OSError) as error:
        raise Mistake(str(error)) from error
    if arguments.json:
        for group in groups:
            print(dump(asdict(group)))
        return OK
    _show(groups, len(thresholds))
    _explain(len(rows), len(thresholds), time.monotonic() - begun, folder)
    return OK


@frozen
class Others:
    """What the b-threads would have been: protocols at a threshold, and the loop's own under another policy."""

    names: tuple[str, ...]
    without: tuple[str, ...]
    policy: Policy | None
    monitor: str

    def protocols(self, threshold: float | None) -> tuple[BThread, ...]:
        """Return the protocols; those that ship take the threshold. Raises ValueError, Mistake."""
        return tuple(thread for name in self.names for thread in self._made(name, threshold))

    def loop(self, preset: Preset) -> tuple[BThread, ...] | None:
        """Return the b-threads of the loop, under the policy that is asked for, and without those that are left out."""
        if self.policy is None and not self.without:
            return None
        judge = None if self.policy is None else Remembering(Judge(within(preset, self.policy)))
        chosen = (*core(preset.disclosure), *preset.rules(judge=judge))
        return tuple(thread for thread in chosen if thread.name not in self.without)

    def _made(self, name: str, threshold: float | None) -> tuple[BThread, ...]:
        if not name.isidentifier():
            return load_protocols([name])
        return bthreads_of(name, ProtocolPlan(name, (name,), threshold=threshold), {"monitor": self.monitor})


def _asked(arguments: Namespace, policy: Policy | None, run: RecordedRun) -> Others:
    return Others(tuple(arguments.protocol), tuple(arguments.without), policy, monitors_of(run)[0].name)


def _progress(total: int) -> Callable[[int], None]:
    """Return what shows how far it is, on a terminal."""

    def tell(done: int) -> None:
        if sys.stderr.isatty():
            end = "" if done < total else "\r\x1b[K"
            print(f"\r\x1b[K{done} of {total} episodes{end}", end="", file=sys.stderr, flush=True)

    return tell


def _rows(folder: Path, recorded: str | None) -> list[Row]:
    rows = [row for row in Shelf(folder).rows().values() if row.status == "ran"]
    chosen = [row for row in rows if recorded in (None, row.protocol)]
    if not chosen:
        there = ", ".join(sorted({row.protocol for row in rows})) or "there are none"
        raise Mistake(f"{folder}: no episode ran under {recorded!r}; recorded protocols: {there}")
    return sorted(chosen, key=lambda row: (row.protocol, row.attacks, row.policy, row.key))  # whoever finished first


def _thresholds(arguments: Namespace) -> tuple[float | None, ...]:
    given: list[float | None] = list(arguments.threshold)
    if arguments.thresholds is not None:
        if arguments.thresholds < 2:
            raise Mistake("--thresholds N: N is at least 2")
        given += [number / (arguments.thresholds - 1) for number in range(arguments.thresholds)]
    return tuple(dict.fromkeys(given)) or (None,)


def _show(groups: Sequence[Group], thresholds: int) -> None:
    every = list(dict.fromkeys(group.threshold for group in groups))
    shown = (
        {every[number * (len(every) - 1) // (SHOWN - 1)] for number in range(SHOWN)} if thresholds > SHOWN else every
    )
    lines = [HEADINGS, *(_cells(group) for group in groups if group.threshold in shown)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADINGS))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _cells(group: Group) -> tuple[str, ...]:
    most = next(iter(group.parts.items()), None)
    return (
        "its own" if group.threshold is None else f"{group.threshold:g}"[:6],
        group.recorded,
        group.policy,
        str(group.episodes),
        f"{group.share:.0%}",
        f"{group.measure} {group.then:.2f}",
        f"{group.measure} {group.now}",
        "" if most is None else visible(f"{most[0]} ({most[1]} of {group.episodes - group.evaluable})"),
    )


def _explain(episodes: int, thresholds: int, seconds: float, folder: Path) -> None:
    at = f"{thresholds} thresholds" if thresholds > 1 else "one threshold"
    print(
        f"\n{episodes} episodes at {at}, in {seconds:.1f} s. evaluable: the same would have been said and done.\n"
        "Of the others nothing is known from where they part: they count as anything between the bounds. U: the share\n"
        "of honest work done. S1: the share of attacks that do no harm unseen by the protocol, without audits besides."
    )
    print(f"rows: {folder / 'what_if.csv'}")
