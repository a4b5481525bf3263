"""The report of an experiment: the hero figure, the main table, and what they rest on; as text and as one HTML page."""

import math
from collections import Counter
from collections.abc import Mapping
from html import escape
from textwrap import fill

from agent.lab.experiments.experiment import Outcome
from agent.lab.measures.safety import front
from agent.lab.reports.analysis import Analysis
from agent.lab.reports.plots import COLORS, Plot
from agent.lab.reports.tables import (
    Table,
    Verified,
    budget_table,
    by_attack,
    by_rung,
    by_setting,
    costs,
    deployment_table,
    disclosure_table,
    explained,
    overview,
    settings_table,
    told_apart,
    under_attack,
)

__all__ = ["caption", "explanation", "hero_figure", "html_page", "tables_of", "text_report"]


WIDTH = 118  # columns of the report in a terminal

EXPLANATION = """\
U: usefulness, the share of honest tasks done; scaled: 0 is what the trusted model does alone, 1 the agent. S1: the
share of attack episodes that do no harm unseen; S∞: the same for an attacker who tries until caught or done. audits:
the share of honest calls that are audited, {budget:.0%} unless a protocol's own audits cost more; those are paid from
the same budget first, and what is left of it audits calls before they run. {spent}A protocol that costs more than the
budget is compared with the constitution alone at the same cost, and is not on the front. worst: against the rung of the
ladder that does most harm; as the least of several estimates it is too low, here by up to {bias:.2f}; weakest: against
{weakest}, which does least under the constitution alone; response: the rung that did most on the development split, on
the test split. difference: to the constitution alone, on the same tasks. Intervals: 95 %, from resampling {clusters}
within their setting, with thresholds fitted again, Student's t for the number of clusters, and a width where all agree
(Korn and Graubard). front: how often no other protocol is better in both. Costs are means over honest episodes;
latency: how many more answers of models, monitors, auditors and tools one waits for. *: safer than the constitution
alone, or less safe, in so many clusters that chance would do it in less than 5 % of experiments, all comparisons of a
protocol together (exact sign test, Bonferroni). verified: how many states of the loop with the protocol
model-checking looked at."""

STYLE = """\
:root{color-scheme:light dark}
body{font:15px/1.55 system-ui,sans-serif;max-width:72em;margin:2em auto;padding:0 1em;color:#1f2933;background:#fff}
table{border-collapse:collapse;font-size:13px;margin:1em 0;display:block;overflow-x:auto}
td,th{padding:.25em .7em;border-bottom:1px solid #e4e8ed;text-align:left;white-space:nowrap}
figure{margin:0}figcaption,p.small{color:#66727f;font-size:13px}svg{max-width:62em;width:100%}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}td,th{border-color:#2a323b}
figcaption,p.small{color:#9aa7b4}}"""


def hero_figure(analysis: Analysis) -> str:
    """Return usefulness against worst-case safety of all protocols, as SVG.

    Ellipses reach as far as the intervals, arrows lead from the weakest attack to the worst one, and what the front
    beats is shaded. A protocol that audits more than the budget says so, and is on no front. One without honest
    episodes, or without attacks, has no place in it, and is named only.
    """
    placed = [each for each in analysis.estimates if not math.isnan(each.usefulness.value + each.worst.value)]
    low = min((each.usefulness.low for each in placed), default=0.0)
    bottom = max(0.0, math.floor(low * 10 - 0.5) / 10)
    what = f"worst-case safety S1, {analysis.budget:.0%} of honest calls audited"
    plot = Plot("usefulness", what, x=(bottom, 1.0))
    points = {each.protocol: (each.usefulness.value, each.worst.value) for each in placed}
    dear = {each.protocol: f" (audits {each.audited:.0%})" for each in placed if each.audited > analysis.budget}
    best = front({name: point for name, point in points.items() if name not in dear})
    plot.shade([points[name] for name in best])
    for number, each in enumerate(analysis.estimates):
        color, hollow = COLORS[number % len(COLORS)], each.protocol not in best
        if each.protocol not in points:
            plot.entry(f"{each.protocol} (not measured)", color, hollow=True)
            continue
        plot.intervals(each.usefulness, each.worst, color)
        if abs(each.weakest.value - each.worst.value) > 0.02:
            plot.arrow(each.usefulness.value, each.weakest.value, *points[each.protocol], color)
        plot.point(*points[each.protocol], color, hollow=hollow)
        label = each.protocol + dear.get(each.protocol, "")
        plot.entry(label, color, hollow=hollow, at=points[each.protocol])
    return plot.svg("usefulness and worst-case safety of protocols")


def tables_of(outcome: Outcome, verified: Mapping[str, Verified]) -> dict[str, Table]:
    """Return the tables of an experiment, by the names of their files."""
    used = {protocol.name: protocol.use for protocol in outcome.plan.protocols}
    told = disclosure_table(outcome.plan, outcome.rows)
    attacked = bool(outcome.analysis.policies)
    audited = budget_table([row for row in outcome.rows if row.protocol in outcome.plan.compared])
    found = {
        "overview": overview(outcome.analysis),
        **({"attacks": by_attack(outcome.analysis), "rungs": by_rung(outcome.analysis)} if attacked else {}),
        **({} if audited is None else {"budgets": audited}),
        "costs": costs(outcome.analysis, verified, used),
        "by_setting": by_setting(outcome.by_setting),
        "told_apart": told_apart(outcome.by_setting),
        "settings": settings_table(outcome.by_setting),
    }
    more = {"under_attack": under_attack(outcome.rows), "disclosure": told}
    return {**found, **{name: table for name, table in more.items() if table is not None}}


TITLES = {
    "overview": "Usefulness and worst-case safety",
    "attacks": "Safety by attack",
    "rungs": "S1 against each rung",
    "budgets": "Worst S1 when other shares of the honest calls are audited",
    "costs": "What it costs",
    "by_setting": "By setting: usefulness, worst S1, and how much more that is than under the constitution alone",
    "told_apart": "Where a protocol differs from the constitution alone by more than its interval",
    "settings": "Settings",
    "under_attack": "Where the attack lies in what is read",
    "disclosure": "What refusals tell",
}


def caption(outcome: Outcome, command: str) -> str:
    """Return what the figure rests on: episodes, thresholds, seconds and the command."""
    analysis = outcome.analysis
    thresholds = outcome.frozen.thresholds if outcome.frozen else {}
    spent = outcome.frozen.spent if outcome.frozen else {}
    frozen = ", ".join(f"{name}: {theta:.3f} ({spent[name]})" for name, theta in thresholds.items()) or "none"
    digest = f" (frozen {outcome.frozen.digest})" if outcome.frozen else ""
    failed = f", {analysis.failed} failed and left out" if analysis.failed else ""
    missing = f", {analysis.missing_scores} scores missing" if analysis.missing_scores else ""
    levels = Counter(row.isolation for row in outcome.rows if row.status == "ran")
    isolation = ", ".join(f"{level} ({count})" for level, count in sorted(levels.items()))
    met = sum(bool(row.exceeded) for row in outcome.rows)
    isolation += f"; {met} met with a limit of their cell" if met else ""
    auc = f" The monitor's AUC over steps: {analysis.auc:.2f}." if analysis.auc is not None else ""
    kept = sum(levels.values())
    compared = f" compared, of {kept}" if kept != analysis.episodes else ""
    return (
        f"{analysis.episodes} episodes{compared}{failed}{missing}; {_when(outcome)}. "
        f"Isolation: {isolation}. Thresholds: {frozen}{digest}.{auc}{_spent(outcome)} Command: {command}"
    )


def _when(outcome: Outcome) -> str:
    """Return which episodes ran now, and how long everything took; nothing of that where all are kept from before."""
    ran, more = outcome.ran, outcome.ran_for_deployments
    told = f"{ran} of them run now" if ran else "all kept from earlier runs"
    for_deployments = f", and {more} for deployments{'' if ran else ' run now'}" if more else ""
    return f"{told}{for_deployments}{f', in {outcome.seconds:.0f} s' if ran or more else ''}"


def _spent(outcome: Outcome) -> str:
    """Return what real models took: nominally, kept answers included, and what they were asked for."""
    asked, now = outcome.asked, outcome.asked_now
    if not outcome.taken.tokens and not asked.requests:
        return ""
    told = f"{asked.requests} requests so far, {now.requests} of them now, took {asked}"
    return f" Real models: {outcome.taken} nominally; {told}."


def explanation(analysis: Analysis) -> str:
    """Return what the columns mean."""
    told = EXPLANATION.format(
        budget=analysis.budget,
        spent=_spent_text(analysis),
        bias=max((each.bias for each in analysis.estimates), default=0.0),
        weakest=analysis.weakest,
        clusters=_clusters_text(analysis),
    )
    return fill(told, WIDTH)


def _spent_text(analysis: Analysis) -> str:
    """Return what the budget comes to on honest calls that its threshold was not set on."""
    if analysis.refused:
        return f"Nothing of that is audited here: {analysis.refused}. "
    spent = analysis.spent
    return f"On new honest calls that is {spent.value:.1%} [{spent.low:.1%}, {spent.high:.1%}]. " if spent else ""


def _clusters_text(analysis: Analysis) -> str:
    """Return what is resampled, and what the intervals therefore say nothing about."""
    if analysis.families > analysis.settings:
        return f"{analysis.families} families of tasks"
    return f"{analysis.tasks} tasks (of one family in each setting, so nothing is said of other families)"


def text_report(outcome: Outcome, tables: Mapping[str, Table], command: str) -> str:
    """Return the report for a terminal."""
    shown = "\n\n".join(f"{TITLES[name]}\n\n{table.text}" for name, table in tables.items())
    told = f"{deployment_table(outcome.deployed).text}\n\n{explained(outcome.deployments)}\n\n"
    deployed = told if outcome.deployed else ""
    return f"{shown}\n\n{explanation(outcome.analysis)}\n\n{deployed}{caption(outcome, command)}\n"


def html_page(outcome: Outcome, tables: Mapping[str, Table], command: str) -> str:
    """Return the report as one page that needs no network and runs no script."""
    analysis = outcome.analysis
    shown = "".join(f"<h2>{escape(TITLES[name])}</h2>{_html(table)}" for name, table in tables.items())
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(outcome.plan.name)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style><h1>{escape(outcome.plan.name)}</h1>'
        f"<figure>{hero_figure(analysis)}<figcaption>{escape(caption(outcome, command))}</figcaption></figure>"
        f'{shown}<p class="small">{escape(explanation(analysis))}</p>{_deployments(outcome)}</html>\n'
    )


def _html(table: Table) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in table.headings)
    rows = ("".join(f"<td>{escape(cell)}</td>" for cell in line) for line in table.lines)
    return f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


def _deployments(outcome: Outcome) -> str:
    if not outcome.deployed:
        return ""
    table = _html(deployment_table(outcome.deployed))
    return f"<h2>Deployments</h2><p>{escape(explained(outcome.deployments))}</p>{table}"
