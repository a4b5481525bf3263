"""`bpagent experiment`: settings x policies x protocols x seeds, each episode once; a table, a figure, and tables."""

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

from attrs import evolve

from agent.cli.errors import FAILED, LIMIT, OK, Mistake, say
from agent.cli.view import write_page
from agent.lab.episodes.results import Results
from agent.lab.experiments.experiment import conduct, frozen_thresholds
from agent.lab.experiments.plan import Plan
from agent.lab.experiments.plan_file import load_plan
from agent.lab.reports.report import write_report
from agent.lab.reports.tables import Verified, listed, read_verified, shipped_verdicts
from agent.lab.spending import MoneyUsedUp
from agent.log.reading import read_log
from agent.page import render_page

SELDOM = 60.0  # seconds between two lines of progress without a terminal


def execute(arguments: Namespace) -> int:
    """Run the experiment of a file, or freeze its thresholds; return the exit code. Raises Mistake for wrong input."""
    words = list(arguments.file)
    freezing = words[:1] == ["freeze"] and len(words) == 2
    if arguments.example == bool(words) or len(words) > 1 + freezing:
        raise Mistake("give one FILE.yaml, or freeze FILE.yaml, or --example")
    path = Path(str(files("agent.lab.experiments") / "example.yaml")) if arguments.example else Path(words[-1])
    folder = Path(arguments.folder or (path.stem if arguments.example else path.with_suffix(".results")))
    try:
        plan = load_plan(path)
        plan = plan if arguments.workers is None else evolve(plan, workers=arguments.workers)
        if freezing:
            return _freeze(plan, folder)
        command = f"bpagent experiment {'--example' if arguments.example else ' '.join(words)}"
        verified = {**shipped_verdicts(), **read_verified(path.with_name("verified.csv"))}
        return _conduct(plan, folder, command, verified)
    except MoneyUsedUp as error:
        say(str(error))
        return LIMIT
    except ValueError as error:
        raise Mistake(str(error)) from error
    except KeyboardInterrupt as interrupt:
        kept = f"interrupted; finished episodes are kept in {folder}, the same command goes on"
        raise KeyboardInterrupt(kept) from interrupt


def _conduct(plan: Plan, folder: Path, command: str, verified: Mapping[str, Verified]) -> int:
    outcome = conduct(plan, folder, tell=teller())
    if sys.stderr.isatty():  # the line of progress ends
        print(f"\r\x1b[K{outcome.ran} episodes in {outcome.seconds:.1f} s", file=sys.stderr)
    for log in (folder / row.log for row in listed(outcome.rows) if row.log):
        if log.exists() and not log.with_suffix(".html").exists():
            write_page(log.with_suffix(".html"), render_page(read_log(log)))
    print(write_report(folder, outcome, verified, command))
    print(f"figures: {folder / 'report.html'}, {folder / 'figure.svg'} (.png), audit_curves, calibration")
    print(f"tables:  {folder / 'tables'}\ndata:    {folder / 'data'} (episodes, steps, roles, estimates)")
    print(f"logs:    {folder / 'logs'}")
    failed = [row.error for row in outcome.deployments if row.status == "failed"]
    if failed:
        say(f"{len(failed)} deployments failed and are left out, the first because of {failed[0]}")
    return FAILED if outcome.analysis.failed or failed else OK


def _freeze(plan: Plan, folder: Path) -> int:
    frozen = frozen_thresholds(plan, Results(folder))
    if frozen is None:
        raise Mistake("no protocol of this experiment has a budget, so there is nothing to freeze")
    for name, theta in frozen.thresholds.items():
        print(f"{name}: {theta:.4f}, which {frozen.realized[name]:.1%} are above")
    print(f"frozen on {frozen.calls} honest calls of {len(frozen.episodes)} calibration episodes: {frozen.digest}")
    return OK


def teller(clock: Callable[[], float] = time.monotonic) -> Callable[[str], None]:
    """Return the function that shows progress: in one line on a terminal, else with a line at intervals."""
    last = clock()

    def tell(line: str) -> None:
        nonlocal last
        if sys.stderr.isatty():
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)
        elif clock() - last >= SELDOM:
            last = clock()
            say(line)

    return tell
