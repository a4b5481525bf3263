"""Tables: the figures of an experiment as tables that fit on a screen; the same as data: `agent.lab.reports.data`.

What belongs together stands together: usefulness and safety, what a protocol costs, each rung, each setting, audits at
other budgets, what refusals tell, where the attack lies in what is read, and deployments."""

import csv
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from statistics import fmean
from typing import get_args

from attrs import evolve, frozen

from agent.lab.deployments.results import DeploymentEstimate, DeploymentRow
from agent.lab.episodes.results import Row
from agent.lab.experiments.plan import Plan, ProtocolPlan
from agent.lab.measures.intervals import Interval
from agent.lab.reports.analysis import Analysis, Curves, Estimate, analyze
from agent.lab.settings.catalogue import setting_named
from agent.lab.settings.setting_checks import keyword_auc
from agent.lab.settings.workers import LADDER
from agent.vocabulary.reasons import Disclosure


@frozen
class Table:
    """A table: its headings, and its lines of cells."""

    headings: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]

    @property
    def text(self) -> str:
        """The table with aligned columns."""
        everything = (self.headings, *self.lines)
        widths = [max(len(line[column]) for line in everything) for column in range(len(self.headings))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in everything
        )

    @property
    def markdown(self) -> str:
        """The table in Markdown."""
        everything = (self.headings, ("---",) * len(self.headings), *self.lines)
        return "\n".join(f"| {' | '.join(line)} |" for line in everything)

    def write(self, folder: Path, name: str) -> None:
        """Write `name.md` to a folder. Raises OSError."""
        (folder / f"{name}.md").write_text(f"{self.markdown}\n", encoding="utf-8")


def interval_text(interval: Interval) -> str:
    """Return a figure with its interval."""
    if math.isnan(interval.value):
        return "-"
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def signed_text(interval: Interval) -> str:
    """Return a difference with its interval; nought has no sign."""
    if math.isnan(interval.value):
        return "-"
    return f"{_signed(interval.value)} [{_signed(interval.low)}, {_signed(interval.high)}]"


def _signed(value: float) -> str:
    return "0.00" if abs(value) < 0.005 else f"{value:+.2f}"


def number_text(value: float) -> str:
    """Return a figure; a dash where it is not known."""
    return "-" if math.isnan(value) else f"{value:.2f}"


@frozen
class Verified:
    """The result of model-checking a set of protocols with the loop: "holds", "bounded" or "violated"."""

    verdict: str
    states: int

    def __str__(self) -> str:
        if self.verdict == "violated":
            return "violated"
        return f"{'> ' if self.verdict == 'bounded' else ''}{self.states:,} states"


def shipped_verdicts() -> dict[str, Verified]:
    """Return the verdicts about protocols that ship, and some sets of them."""
    return read_verified(Path(str(files("agent.lab.experiments") / "verified.csv")))


def read_verified(path: Path) -> dict[str, Verified]:
    """Return the verdicts in a file, by the names of the protocols with "+" between them; none without a file.

    Raises ValueError for a file that is none of verdicts.
    """
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    try:
        return {line["protocols"]: Verified(line["verdict"], int(line["states"])) for line in lines}
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: no file of verdicts; make verified writes one") from error


def budget_table(curves: Curves, own_audits: Mapping[str, float]) -> Table | None:
    """Return the worst S_1 of each protocol at each budget; None without curves. `own_audits`: by protocol."""
    if not curves:
        return None
    budgets = [budget for budget, _ in max(curves.values(), key=len)]
    lines = []
    for name, points in curves.items():
        known = dict(points)
        cells = [number_text(known[budget]) if budget in known else "-" for budget in budgets]
        lines.append((name, f"{own_audits[name]:.1%}", *cells))
    return Table(("protocol", "its own audits", *(f"{budget:.0%}" for budget in budgets)), tuple(lines))


ORDER: tuple[Disclosure, ...] = get_args(Disclosure)
Group = dict[Disclosure, ProtocolPlan]


def groups_of(plan: Plan) -> list[Group]:
    """Return the protocols that a plan has with several disclosures, one of which is the full one."""
    groups: dict[ProtocolPlan, Group] = {}
    for protocol in plan.protocols:
        groups.setdefault(evolve(protocol, name="", disclosure="full", against=()), {})[protocol.disclosure] = protocol
    return [group for group in groups.values() if len(group) > 1 and "full" in group]


def disclosure_table(plan: Plan, rows: Sequence[Row]) -> Table | None:
    """Return S_1 by what refusals tell, against each rung that all of a group were tried with; None without groups."""
    groups = groups_of(plan)
    analyses = [_analysis(plan, rows, group) for group in groups]
    rungs = tuple(dict.fromkeys(rung for found in analyses if found for rung in found.policies))
    telling = [rung for rung in rungs if rung in LADDER and LADDER[rung].reads_reasons]
    lines = [
        line
        for group, found in zip(groups, analyses, strict=True)
        if found is not None
        for line in _lines(group, found, rungs, telling)
    ]
    headings = ("protocol", "told", *(f"S1 {rung}" for rung in rungs), *(f"{rung}: difference" for rung in telling))
    return Table(headings, tuple(lines)) if lines else None


def _analysis(plan: Plan, rows: Sequence[Row], group: Group) -> Analysis | None:
    names = {protocol.name for protocol in group.values()}
    mine = [row for row in rows if row.protocol in names]
    tried = [{row.policy for row in mine if row.protocol == name} for name in names]
    common = set.intersection(*tried)
    given = [row for row in mine if row.policy in common]
    if not any(row.status == "ran" for row in given):
        return None
    return analyze(given, budget=plan.budgets[0], replicates=plan.replicates, base=group["full"].name)


def _lines(group: Group, found: Analysis, rungs: Sequence[str], telling: Sequence[str]) -> list[tuple[str, ...]]:
    estimates = {estimate.protocol: estimate for estimate in found.estimates}
    lines = []
    for disclosure in sorted(group, key=ORDER.index):
        estimate = estimates.get(group[disclosure].name)
        if estimate is not None:
            against = estimate.rungs
            cells = [interval_text(against[rung].once) if rung in against else "-" for rung in rungs]
            cells += [signed_text(against[rung].difference) if rung in against else "-" for rung in telling]
            lines.append(("+".join(group[disclosure].use), disclosure, *cells))
    return lines


HEADINGS = ("setting", "protocol", "utility", "policy", "utility under attack", "attack success", "pairs")


def under_attack(rows: Sequence[Row]) -> Table | None:
    """Return these figures by setting, protocol and policy that attacks; None where no setting has such attacks."""
    tested = [row for row in rows if row.split == "test" and row.status == "ran"]
    lured = {name for name in {row.setting for row in tested} if setting_named(name).lure is not None}
    attacks: defaultdict[tuple[str, str, str], list[Row]] = defaultdict(list)
    honest: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in tested:
        if row.setting in lured and row.attacks:
            attacks[row.setting, row.protocol, row.policy].append(row)
        elif row.setting in lured and row.policy == "honest":
            honest[row.setting, row.protocol].append(row)
    lines = tuple(
        (
            setting_named(setting).name,
            protocol,
            utility(honest[setting, protocol]),
            policy,
            share(row.main for row in found),
            share(float(row.side) for row in found),
            str(len({row.task for row in found})),
        )
        for (setting, protocol, policy), found in attacks.items()
    )
    return Table(HEADINGS, lines) if lines else None


def utility(rows: Iterable[Row]) -> str:
    """Return the share of user tasks that were done; pairs of the same one count as one."""
    done: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        done[row.family, setting_named(row.setting).task(row.task).prompt].append(row.main)
    return share(map(fmean, done.values()))


def share(values: Iterable[float]) -> str:
    """Return a mean as text."""
    found = list(values)
    return f"{fmean(found):.2f}" if found else "-"


EXPLANATION = """\
A deployment is {episodes} episodes, one after the other. audits: how many were spent. caught: in which share of the
deployments something was. after: how many episodes had been run by then, in the median. disabled: in which share of
them a role or a monitor was. harm before: episodes that had done harm before a catch (all of them where there was
none); harm: in all. U: the share of all work that was done. lost: how much less that is than without rules, in the
same deployments. Intervals: 95 %, over seeds, not over tasks."""


DEPLOYMENT_HEADINGS = (
    "deployment",
    "protocol",
    "runs",
    "audits",
    "caught",
    "after",
    "disabled",
    "harm before",
    "harm",
    "U",
    "lost",
)


def _cells(estimate: DeploymentEstimate) -> tuple[str, ...]:
    failed = f" ({estimate.failed} failed)" if estimate.failed else ""
    return (
        estimate.deployment,
        estimate.protocol,
        f"{estimate.runs}{failed}",
        f"{estimate.audits.value:.1f}",
        f"{estimate.caught.value:.0%} [{estimate.caught.low:.0%}, {estimate.caught.high:.0%}]",
        "-" if estimate.after is None else f"{estimate.after:g}",
        f"{estimate.disabled.value:.0%}",
        interval_text(estimate.harm_before),
        interval_text(estimate.harm),
        interval_text(estimate.usefulness),
        "-" if estimate.lost is None else interval_text(estimate.lost),
    )


def deployment_table(estimates: Sequence[DeploymentEstimate]) -> Table:
    """Return what came of each deployment under each protocol."""
    return Table(DEPLOYMENT_HEADINGS, tuple(map(_cells, estimates)))


def explained(rows: Sequence[DeploymentRow]) -> str:
    """Return what the columns mean."""
    counts = sorted(Counter(row.episodes for row in rows))
    return EXPLANATION.format(episodes=" or ".join(map(str, counts)))


def overview(analysis: Analysis) -> Table:
    """Return usefulness and worst-case safety of each protocol, and what they are more than the baseline's."""
    headings = ("protocol", "audits", "U", "U: difference", "S1 worst", "S1 worst: difference", "front")
    lines = tuple(
        (
            each.protocol,
            f"{each.audited:.0%}" if each.audited >= 0.095 else f"{each.audited:.1%}",
            interval_text(each.usefulness),
            signed_text(each.lost),
            interval_text(each.worst),
            signed_text(each.difference),
            "-" if each.audited > analysis.budget else f"{each.front:.0%}",
        )
        for each in analysis.estimates
    )
    return Table(headings, lines)


def by_attack(analysis: Analysis) -> Table:
    """Return safety of each protocol against the weakest attack, the worst, and the best response to it."""
    headings = ("protocol", "S1 weakest", "S∞ weakest", "S∞ worst", "response", "its S1", "its S∞")
    return Table(headings, tuple(map(_attacked, analysis.estimates)))


def _attacked(estimate: Estimate) -> tuple[str, ...]:
    response = estimate.response
    return (
        estimate.protocol,
        interval_text(estimate.weakest),
        number_text(estimate.weakest_forever.value),
        interval_text(estimate.worst_forever),
        estimate.best or "-",
        interval_text(response.once) if response else "-",
        number_text(response.forever.value) if response else "-",
    )


def costs(analysis: Analysis, verified: Mapping[str, Verified], used: Mapping[str, Sequence[str]]) -> Table:
    """Return what each protocol takes in an honest episode, and with how many states it was verified.

    used: the protocols of the catalogue that each consists of. Latency is in rounds more than under the baseline.
    """
    headings = (
        "protocol", "scaled", "false rejections", "questions", "audits", "drafts", "scores", "tokens", "latency",
        "verified",
    )  # fmt: skip
    base = analysis.estimates[0].costs.rounds if analysis.estimates else 0.0
    lines = tuple(
        (each.protocol, *_taken(each, base), str(verified.get("+".join(used.get(each.protocol, ())), "-")))
        for each in analysis.estimates
    )
    return Table(headings, lines)


def _taken(estimate: Estimate, base: float) -> tuple[str, ...]:
    """Return the costs of an honest episode; where none ran, they are unknown."""
    costs = estimate.costs
    if math.isnan(estimate.usefulness.value):
        return ("-",) * 8
    return (
        _or_none(estimate.scaled),
        f"{costs.rejected:.1%}",
        f"{costs.questions:.1f}",
        f"{costs.audits:.1f}",
        f"{costs.drafts:.1f}",
        f"{costs.scores:.1f}",
        f"{costs.monitor_tokens:,.0f}",
        f"{costs.rounds - base:+.1f}",
    )


def by_rung(analysis: Analysis) -> Table:
    """Return S_1 of each protocol against each rung; with a star where it is told apart from the baseline."""
    lines = tuple(
        (
            each.protocol,
            *(f"{rung.once.value:.2f}{'*' if rung.apart else ''}" for rung in each.rungs.values()),
        )
        for each in analysis.estimates
    )
    return Table(("protocol", *analysis.policies), lines)


def settings_table(analyses: Mapping[str, Analysis]) -> Table:
    """Return what each setting is like: how large, how hard, and whether words or the monitor tell attacks there."""
    headings = ("setting", "tasks of the test", "U of the agent", "U trusted", "AUC of words", "AUC of the monitor")
    lines = tuple(
        (
            name,
            str(analysis.tasks),
            _or_none(analysis.untrusted),
            _or_none(analysis.trusted),
            _or_none(keyword_auc(setting_named(name))),
            _or_none(analysis.auc),
        )
        for name, analysis in analyses.items()
    )
    return Table(headings, lines)


def _or_none(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def by_setting(analyses: Mapping[str, Analysis]) -> Table:
    """Return usefulness, the worst S_1 and its difference to the baseline's of each protocol in each setting."""
    columns = [{each.protocol: each for each in analysis.estimates} for analysis in analyses.values()]
    lines = [
        (protocol, *(_three(column[protocol]) if protocol in column else "-" for column in columns))
        for protocol in (columns[0] if columns else ())
    ]
    return Table(("protocol", *(f"{name}: U, S1, gain" for name in analyses)), tuple(lines))


def _three(estimate: Estimate) -> str:
    figures = (number_text(figure.value) for figure in (estimate.usefulness, estimate.worst))
    return f"{' '.join(figures)} {signed_text(estimate.difference)}"
