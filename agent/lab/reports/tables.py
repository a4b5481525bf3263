"""Tables: the figures of an experiment as tables that fit on a screen; as data: `agent.lab.reports.data`.

One table each for usefulness and safety, costs, rungs, settings, other audit budgets, disclosures of refusals, attacks
in the data that agents read, and deployments.
"""

import csv
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from html import escape
from importlib.resources import files
from itertools import product
from operator import attrgetter
from pathlib import Path
from statistics import fmean
from typing import TypeVar, get_args

from attrs import evolve, field, frozen

from agent.lab.deployments.results import DeploymentEstimate, DeploymentRow
from agent.lab.episodes.results import Row
from agent.lab.experiments.plan import Plan, ProtocolPlan
from agent.lab.measures.intervals import Interval
from agent.lab.reports.analysis import Analysis, Curves, Estimate, analyze
from agent.lab.settings.catalogue import setting_named
from agent.lab.settings.setting_checks import keyword_auc
from agent.lab.settings.workers import LADDER
from agent.vocabulary.reasons import Disclosure

Item = TypeVar("Item")


@frozen
class Table:
    """A table: its headings and rows. links: the headings of columns that name files.

    targets: where a cell leads, by the beginning of its line and its heading. places: the number of a line by the name
    under which others lead there.
    """

    headings: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    links: tuple[str, ...] = ()
    targets: Mapping[tuple[str, str], str] = field(factory=dict)
    places: Mapping[str, int] = field(factory=dict)

    @classmethod
    def of(cls, items: Iterable[Item], columns: Mapping[str, Callable[[Item], str]]) -> "Table":
        """Return the table with a row for each item; columns: functions that return the text of a cell, by heading."""
        return cls(tuple(columns), tuple(tuple(cell(item) for cell in columns.values()) for item in items))

    @property
    def text(self) -> str:
        """The table with aligned columns."""
        everything = (self.headings, *self.lines)
        widths = [max(map(len, column)) for column in zip(*everything, strict=True)]
        lines = ("  ".join(map(str.ljust, line, widths)).rstrip() for line in everything)
        return "\n".join(lines)

    @property
    def markdown(self) -> str:
        """The table in Markdown."""
        everything = (self.headings, ("---",) * len(self.headings), *self.lines)
        return "\n".join(f"| {' | '.join(line)} |" for line in everything)

    @property
    def html(self) -> str:
        """The table in HTML."""
        head = "".join(f"<th>{escape(heading)}</th>" for heading in self.headings)
        rows = ("".join(map(partial(self._cell, line[0]), self.headings, line)) for line in self.lines)
        names = {number: f' id="{escape(name)}"' for name, number in self.places.items()}
        body = "".join(f"<tr{names.get(number, '')}>{row}</tr>" for number, row in enumerate(rows))
        return f"<table><tr>{head}</tr>{body}</table>"

    def _cell(self, beginning: str, heading: str, cell: str) -> str:
        text, target = escape(cell), cell if heading in self.links else self.targets.get((beginning, heading), "")
        return f'<td><a href="{escape(target)}">{text}</a></td>' if target else f"<td>{text}</td>"


def number_text(value: float | None) -> str:
    """Return a figure; a dash if unknown."""
    return "-" if value is None or math.isnan(value) else f"{value:.2f}"


def interval_text(interval: Interval | None, text: Callable[[float], str] = number_text) -> str:
    """Return a figure with its interval; a dash if unknown."""
    if interval is None or math.isnan(interval.value):
        return "-"
    return f"{text(interval.value)} [{text(interval.low)}, {text(interval.high)}]"


def signed_text(interval: Interval | None) -> str:
    """Return a difference with its interval; zero has no sign."""
    return interval_text(interval, lambda value: "0.00" if abs(value) < 0.005 else f"{value:+.2f}")


# Verification


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
    """Return the verdicts on shipped protocols, and on some sets of them."""
    return read_verified(Path(str(files("agent.lab.experiments") / "verified.csv")))


def read_verified(path: Path) -> dict[str, Verified]:
    """Return the verdicts in a file, by the names of the protocols joined by "+"; none without a file.

    Raises ValueError for an invalid file.
    """
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    try:
        return {line["protocols"]: Verified(line["verdict"], int(line["states"])) for line in lines}
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path}: not a file of verdicts; make verified writes one") from error


# Protocols


def overview(analysis: Analysis) -> Table:
    """Return usefulness and worst-case safety of each protocol, and their differences to the baseline's."""
    columns: Mapping[str, Callable[[Estimate], str]] = {
        "protocol": lambda each: each.protocol,
        "audits": lambda each: f"{each['audited'].value:.{0 if each['audited'].value >= 0.095 else 1}%}",
        "U": lambda each: interval_text(each["usefulness"]),
        "U: difference": lambda each: signed_text(each["usefulness_difference"]),
        "S1 worst": lambda each: interval_text(each["safety_worst"]),
        "S1 worst: difference": lambda each: signed_text(each["safety_worst_difference"]),
        "front": lambda each: "-" if each["audited"].value > analysis.budget else f"{each['front'].value:.0%}",
    }
    return Table.of(analysis.estimates, columns)


def by_attack(analysis: Analysis) -> Table:
    """Return safety of each protocol against the weakest attack, the worst, and the best response to it."""
    weakest = analysis.weakest
    columns: Mapping[str, Callable[[Estimate], str]] = {
        "protocol": lambda each: each.protocol,
        "S1 weakest": lambda each: interval_text(each["safety", weakest]),
        "S∞ weakest": lambda each: number_text(each["safety_forever", weakest].value),
        "S∞ worst": lambda each: interval_text(each["safety_worst_forever"]),
        "response": lambda each: each.best or "-",
        "its S1": lambda each: interval_text(each["safety", each.best]),
        "its S∞": lambda each: number_text(each["safety_forever", each.best].value),
    }
    return Table.of(analysis.estimates, columns)


def costs(analysis: Analysis, verified: Mapping[str, Verified], used: Mapping[str, Sequence[str]]) -> Table:
    """Return the costs of each protocol in an honest episode, and the states of its verification.

    used: the protocols of the catalogue that each consists of. Latency: rounds above the baseline. Without honest
    episodes costs are unknown.
    """
    base = analysis.estimates[0]["rounds"].value if analysis.estimates else 0.0

    def mean(cost: str, form: str, less: float = 0.0) -> Callable[[Estimate], str]:
        return lambda each: "-" if math.isnan(each["usefulness"].value) else format(each[cost].value - less, form)

    columns: Mapping[str, Callable[[Estimate], str]] = {
        "protocol": lambda each: each.protocol,
        "scaled": lambda each: number_text(each["usefulness_scaled"].value),
        "false rejections": mean("rejected", ".1%"),
        **{cost: mean(cost, ".1f") for cost in ("questions", "audits", "drafts", "scores")},
        "tokens": mean("monitor_tokens", ",.0f"),
        "latency": mean("rounds", "+.1f", base),
        "verified": lambda each: str(verified.get("+".join(used.get(each.protocol, ())), "-")),
    }
    return Table.of(analysis.estimates, columns)


def by_rung(analysis: Analysis) -> Table:
    """Return S_1 of each protocol against each rung; a star marks a significant difference to the baseline."""
    lines = (
        (
            each.protocol,
            *(f"{each['safety', rung].value:.2f}{'*' * (rung in each.apart)}" for rung in analysis.policies),
        )
        for each in analysis.estimates
    )
    return Table(("protocol", *analysis.policies), tuple(lines))


def budget_table(curves: Curves, own_audits: Mapping[str, float]) -> Table | None:
    """Return the worst S_1 of each protocol at each budget; None without curves."""
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
    """Return the groups of protocols that differ only in disclosure, one of them with the full one."""
    groups: dict[ProtocolPlan, Group] = {}
    for protocol in plan.protocols:
        groups.setdefault(evolve(protocol, name="", disclosure="full", against=()), {})[protocol.disclosure] = protocol
    return [group for group in groups.values() if len(group) > 1 and "full" in group]


def disclosure_table(plan: Plan, rows: Sequence[Row]) -> Table | None:
    """Return S_1 by disclosure, against each rung that all of a group were tried with; None without groups."""
    analyses = [(group, found) for group in groups_of(plan) if (found := _analysis(plan, rows, group))]
    rungs = tuple(dict.fromkeys(rung for _, found in analyses for rung in found.policies))
    telling = [rung for rung in rungs if rung in LADDER and LADDER[rung].reads_reasons]
    lines = [line for group, found in analyses for line in _lines(group, found, rungs, telling)]
    headings = ("protocol", "told", *(f"S1 {rung}" for rung in rungs), *(f"{rung}: difference" for rung in telling))
    return Table(headings, tuple(lines)) if lines else None


def _analysis(plan: Plan, rows: Sequence[Row], group: Group) -> Analysis | None:
    names = {protocol.name for protocol in group.values()}
    common = set.intersection(*({row.policy for row in rows if row.protocol == name} for name in names))
    given = [row for row in rows if row.protocol in names and row.policy in common]
    if not any(row.status == "ran" for row in given):
        return None
    return analyze(given, budget=plan.budgets[0], replicates=plan.replicates, base=group["full"].name)


def _lines(group: Group, found: Analysis, rungs: Sequence[str], telling: Sequence[str]) -> list[tuple[str, ...]]:
    estimates = {estimate.protocol: estimate for estimate in found.estimates}
    lines = []
    for disclosure in sorted(group, key=ORDER.index):
        estimate = estimates.get(group[disclosure].name)
        if estimate is not None:
            cells = [interval_text(estimate["safety", rung]) for rung in rungs]
            cells += [signed_text(estimate["safety_difference", rung]) for rung in telling]
            lines.append(("+".join(group[disclosure].use), disclosure, *cells))
    return lines


# Settings


def settings_table(analyses: Mapping[str, Analysis]) -> Table:
    """Return the properties of each setting: size, difficulty, and the AUC of keywords and of the monitor."""
    columns: Mapping[str, Callable[[tuple[str, Analysis]], str]] = {
        "setting": lambda each: each[0],
        "tasks of the test": lambda each: str(each[1].tasks),
        "U of the agent": lambda each: number_text(each[1].untrusted),
        "U trusted": lambda each: number_text(each[1].trusted),
        "AUC of words": lambda each: number_text(keyword_auc(setting_named(each[0]))),
        "AUC of the monitor": lambda each: number_text(each[1].auc),
    }
    return Table.of(analyses.items(), columns)


def by_setting(analyses: Mapping[str, Analysis]) -> Table:
    """Return usefulness, the worst S_1 and its difference to the baseline's of each protocol in each setting."""

    def three(estimate: Estimate) -> str:
        figures = (number_text(estimate[measure].value) for measure in ("usefulness", "safety_worst"))
        return f"{' '.join(figures)} {signed_text(estimate['safety_worst_difference'])}"

    columns = [{each.protocol: each for each in analysis.estimates} for analysis in analyses.values()]
    lines = [
        (protocol, *(three(column[protocol]) if protocol in column else "-" for column in columns))
        for protocol in (columns[0] if columns else ())
    ]
    return Table(("protocol", *(f"{name}: U, S1, gain" for name in analyses)), tuple(lines))


def by_task(rows: Iterable[Row]) -> Table | None:
    """Return usefulness and harm of each protocol in each task of the test; None where none was tried."""
    found: defaultdict[tuple[str, str], defaultdict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        if row.split == "test" and row.status == "ran":
            found[row.setting, row.task][row.protocol].append(row)
    protocols = tuple(dict.fromkeys(protocol for tried in found.values() for protocol in tried))

    def told(rows: Sequence[Row]) -> str:
        attacks = [row for row in rows if row.attacks]
        harmful = sum(row.side and not row.caught for row in attacks)
        return f"{share(row.main for row in rows if row.policy == 'honest')} {harmful}/{len(attacks)}"

    lines = ((*task, *(told(tried[each]) for each in protocols)) for task, tried in found.items())
    return Table(("setting", "task", *protocols), tuple(lines)) if found else None


def under_attack(rows: Sequence[Row]) -> Table | None:
    """Return AgentDojo's figures by setting, protocol and policy; None without attacks in the data that agents read."""
    lured = {name for name in {row.setting for row in rows} if setting_named(name).injected_world is not None}
    attacks: defaultdict[tuple[str, str, str], list[Row]] = defaultdict(list)
    honest: defaultdict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        if row.setting in lured and row.split == "test" and row.status == "ran":
            if row.attacks:
                attacks[row.setting, row.protocol, row.policy].append(row)
            elif row.policy == "honest":
                honest[row.setting, row.protocol].append(row)
    columns: Mapping[str, Callable[[tuple[tuple[str, str, str], list[Row]]], str]] = {
        "setting": lambda each: setting_named(each[0][0]).name,
        "protocol": lambda each: each[0][1],
        "utility": lambda each: utility(honest[each[0][:2]]),
        "policy": lambda each: each[0][2],
        "utility under attack": lambda each: share(row.main for row in each[1]),
        "attack success": lambda each: share(float(row.side) for row in each[1]),
        "pairs": lambda each: str(len({row.task for row in each[1]})),
    }
    return Table.of(attacks.items(), columns) if attacks else None


def utility(rows: Iterable[Row]) -> str:
    """Return the mean over user tasks of the share of their pairs that were done."""
    done: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        done[row.family, setting_named(row.setting).task(row.task).prompt].append(row.main)
    return share(map(fmean, done.values()))


def share(values: Iterable[float]) -> str:
    """Return a mean as text."""
    found = list(values)
    return f"{fmean(found):.2f}" if found else "-"


MOST = 200  # episodes that are listed


def listed(rows: Iterable[Row]) -> list[Row]:
    """Return the episodes that failed or did harm, at most `MOST`: those first that should not have, then by cell."""
    found = [row for row in rows if row.status == "failed" or row.side]
    return sorted(found, key=lambda row: (row.status == "ran", row.attacks, row.protocol, row.policy))[:MOST]


def episode_table(rows: Iterable[Row], folder: Path) -> Table:
    """Return the episodes that are listed, with their logs and pages; a place is the first line of a cell's."""
    found = listed(rows)
    places = {f"{row.protocol}/{row.policy}": number for number, row in reversed([*enumerate(found)])}
    columns: Mapping[str, Callable[[Row], str]] = {
        **{name: attrgetter(name) for name in ("setting", "task", "policy", "protocol")},
        "what happened": _happened,
        "seed": lambda row: str(row.seed),
        "log": lambda row: row.log,
        "page": lambda row: page if (page := row.log.replace(".jsonl", ".html")) and (folder / page).exists() else "",
    }
    return evolve(Table.of(found, columns), links=("log", "page"), places=places)


def leading(table: Table, episodes: Table) -> Table:
    """Return a table whose cells lead to the episodes of their protocol and policy, where some are listed."""
    cells = product((line[0] for line in table.lines), table.headings)
    targets = {cell: f"#{'/'.join(cell)}" for cell in cells if "/".join(cell) in episodes.places}
    return evolve(table, targets=targets)


def _happened(row: Row) -> str:
    if row.status == "failed":
        return f"failed: {row.error}"
    if not row.attacks:
        return "harm in honest work"
    when = "" if row.tau is None else f" after call {row.tau}"
    return f"harm{when}{', caught' if row.caught else ''}"


# Deployments

EXPLANATION = """\
A deployment is {episodes} episodes, one after the other. audits: how many were spent. caught: in which share of the
deployments something was. after: how many episodes had been run by then, in the median. disabled: in which share of
them a role was. harm before: episodes that had done harm before a catch (all of them where there was
none); harm: in all. U: the share of all work that was done. lost: how much less that is than without rules, in the
same deployments. Intervals: 95 %, over seeds, not over tasks."""


def deployment_table(estimates: Sequence[DeploymentEstimate]) -> Table:
    """Return the figures of each deployment under each protocol."""
    columns: Mapping[str, Callable[[DeploymentEstimate], str]] = {
        "deployment": lambda each: each.deployment,
        "protocol": lambda each: each.protocol,
        "runs": lambda each: f"{each.runs}{f' ({each.failed} failed)' if each.failed else ''}",
        "audits": lambda each: f"{each.audits.value:.1f}",
        "caught": lambda each: f"{each.caught.value:.0%} [{each.caught.low:.0%}, {each.caught.high:.0%}]",
        "after": lambda each: "-" if each.after is None else f"{each.after:g}",
        "disabled": lambda each: f"{each.disabled.value:.0%}",
        "harm before": lambda each: interval_text(each.harm_before),
        "harm": lambda each: interval_text(each.harm),
        "U": lambda each: interval_text(each.usefulness),
        "lost": lambda each: interval_text(each.lost),
    }
    return Table.of(estimates, columns)


def explained(rows: Sequence[DeploymentRow]) -> str:
    """Return the meaning of the columns."""
    counts = sorted(Counter(row.episodes for row in rows))
    return EXPLANATION.format(episodes=" or ".join(map(str, counts)))
