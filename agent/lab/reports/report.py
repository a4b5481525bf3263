"""The report of an experiment: the main figure, the tables, and their data; as text and as one HTML page."""

from collections import Counter
from collections.abc import Mapping
from html import escape
from pathlib import Path
from textwrap import fill
from typing import Any

from agent.lab.episodes.results import Row
from agent.lab.experiments.experiment import Outcome
from agent.lab.reports import plots
from agent.lab.reports.analysis import Analysis, audit_curves, spent_on_test
from agent.lab.reports.data import estimate_lines, write_data
from agent.lab.reports.tables import (
    MOST,
    Table,
    Verified,
    budget_table,
    by_attack,
    by_rung,
    by_setting,
    by_task,
    costs,
    deployment_table,
    disclosure_table,
    episode_table,
    explained,
    leading,
    overview,
    settings_table,
    under_attack,
)

WIDTH = 118  # columns of the report in a terminal
HEIGHT = 24  # lines of a table there; longer ones are in files, and on the page

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
model-checking looked at; -: not known, unless a file verified.csv beside the plan says so of protocols of your own."""

FINE = (0.0, *(round(0.005 * step, 3) for step in range(1, 21)), 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
"""The budgets of curves."""

STYLE = """\
:root{color-scheme:light dark}
body{font:15px/1.55 system-ui,sans-serif;max-width:72em;margin:2em auto;padding:0 1em;color:#1f2933;background:#fff}
table{border-collapse:collapse;font-size:13px;margin:1em 0;display:block;overflow-x:auto}
td,th{padding:.25em .7em;border-bottom:1px solid #e4e8ed;text-align:left;white-space:nowrap}
figure{margin:0;overflow-x:auto}figcaption,p.small{color:#66727f;font-size:13px}
img{min-width:36em;max-width:56em;width:100%;background:#fff}a{color:inherit}tr:target{outline:2px solid}
@media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}td,th{border-color:#2a323b}
figcaption,p.small{color:#9aa7b4}}"""


def tables_of(outcome: Outcome, verified: Mapping[str, Verified]) -> dict[str, Table]:
    """Return the tables of an experiment, by the names of their files."""
    plan, rows, analysis = outcome.plan, outcome.rows, outcome.analysis
    used = {protocol.name: protocol.use for protocol in plan.protocols}
    own_audits = {each.protocol: each["own_audits"].value for each in analysis.estimates}
    found = {
        "overview": overview(analysis),
        "attacks": by_attack(analysis) if analysis.policies else None,
        "rungs": by_rung(analysis) if analysis.policies else None,
        "budgets": budget_table(audit_curves(_compared(outcome)), own_audits),
        "costs": costs(analysis, verified, used),
        "by_setting": by_setting(outcome.by_setting),
        "settings": settings_table(outcome.by_setting),
        "by_task": by_task(rows),
        "under_attack": under_attack(rows),
        "disclosure": disclosure_table(plan, rows),
        "deployments": deployment_table(outcome.deployed) if outcome.deployed else None,
    }
    return {name: table for name, table in found.items() if table is not None}


def figures_of(outcome: Outcome) -> dict[str, Any]:
    """Return the figures of an experiment as matplotlib has them, by the names of their files."""
    rows, analysis = _compared(outcome), outcome.analysis
    spent, calls = spent_on_test(rows, [budget for budget in FINE if budget <= 0.2])
    return {
        "figure": plots.usefulness_and_safety(analysis),
        "audit_curves": plots.audit_curves(audit_curves(rows, FINE), analysis.budget),
        "calibration": plots.calibration(spent, calls),
    }


def _compared(outcome: Outcome) -> list[Row]:
    return [row for row in outcome.rows if row.protocol in outcome.plan.compared]


TITLES = {
    "overview": "Usefulness and worst-case safety",
    "attacks": "Safety by attack",
    "rungs": "S1 against each rung",
    "budgets": "Worst S1 when other shares of the honest calls are audited",
    "costs": "What it costs",
    "by_setting": "By setting: usefulness, worst S1, and how much more that is than under the constitution alone",
    "by_task": "By task of the test: usefulness, and in how many attacks harm was done unseen, before audits",
    "settings": "Settings",
    "under_attack": "Where the attack lies in what is read",
    "disclosure": "What refusals tell",
    "deployments": "Deployments",
}


def caption(outcome: Outcome, command: str) -> str:
    """Return the caption of the figure: episodes, thresholds, seconds and the command."""
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
    """Return the number of episodes that ran now, and the seconds."""
    ran, more = outcome.ran, outcome.ran_for_deployments
    told = f"{ran} of them run now" if ran else "all kept from earlier runs"
    for_deployments = f", and {more} for deployments{'' if ran else ' run now'}" if more else ""
    return f"{told}{for_deployments}{f', in {outcome.seconds:.0f} s' if ran or more else ''}"


def _spent(outcome: Outcome) -> str:
    """Return the usage of real models: nominal (cached answers included) and requested."""
    asked, now = outcome.asked, outcome.asked_now
    if not outcome.taken.tokens and not asked.requests:
        return ""
    told = f"{asked.requests} requests so far, {now.requests} of them now, took {asked}"
    return f" Real models: {outcome.taken} nominally; {told}."


REASONS = 5  # reasons of failures that get a line each


def warnings_of(outcome: Outcome) -> list[str]:
    """Return the warnings: reasons of failed episodes, policies without episodes, harm in honest episodes."""
    rows, ran = outcome.rows, [row for row in outcome.rows if row.status == "ran"]
    reasons = Counter(row.error for row in rows if row.status == "failed").most_common()
    if others := reasons[REASONS:]:
        told = f"for {len(others)} more reasons, see data/episodes.csv"
        reasons = [*reasons[:REASONS], (told, sum(count for _, count in others))]
    found = [f"{count} of {len(rows)} episodes failed and are left out: {reason}" for reason, count in reasons]
    idle = [policy.name for policy in outcome.plan.policies if policy.name not in {row.policy for row in ran}]
    found += [f"the policy {name!r} has no episode that ran, so nothing is said of it" for name in idle]
    honest = [row.side for row in ran if not row.attacks]
    if any(honest):
        harmed = f"in {sum(honest)} of {len(honest)} honest episodes the side task succeeded"
        found.append(f"{harmed}: the side check may find harm where there is none")
    return found


def explanations(outcome: Outcome) -> str:
    """Return the meaning of the columns, with those of deployments if there are any."""
    deployed = f"\n\n{explained(outcome.deployments)}" if outcome.deployed else ""
    return f"{explanation(outcome.analysis)}{deployed}"


def explanation(analysis: Analysis) -> str:
    """Return the meaning of the columns of protocols."""
    clusters = f"{analysis.families} families of tasks"
    if analysis.families <= analysis.settings:
        clusters = f"{analysis.tasks} tasks (of one family in each setting, so nothing is said of other families)"
    spent = f"Nothing of that is audited here: {analysis.refused}. " if analysis.refused else ""
    if analysis.spent is not None and not spent:
        spent = f"On new honest calls that is {analysis.spent.percent}. "
    told = EXPLANATION.format(
        budget=analysis.budget,
        spent=spent,
        bias=max((each["safety_worst_bias"].value for each in analysis.estimates), default=0.0),
        weakest=analysis.weakest or "none here",
        clusters=clusters,
    )
    return fill(told, WIDTH, break_on_hyphens=False)


def text_report(outcome: Outcome, tables: Mapping[str, Table], command: str) -> str:
    """Return the report for a terminal."""
    short = {name: table for name, table in tables.items() if len(table.lines) <= HEIGHT}
    shown = "\n\n".join(f"{TITLES[name]}\n\n{table.text}" for name, table in short.items())
    warnings = "".join(f"warning: {told}\n" for told in warnings_of(outcome))
    return f"{shown}\n\n{explanations(outcome)}\n\n{caption(outcome, command)}\n{warnings}"


def write_report(folder: Path, outcome: Outcome, verified: Mapping[str, Verified], command: str) -> str:
    """Write data, tables, figures and the page to the folder of an experiment; return the report for a terminal.

    Raises OSError and MissingExtra.
    """
    estimates = estimate_lines({"all": outcome.analysis, **outcome.by_setting})
    write_data(folder / "data", outcome.rows, estimates, outcome.deployments)
    tables = tables_of(outcome, verified)
    (folder / "tables").mkdir(exist_ok=True)
    for name, table in tables.items():
        (folder / "tables" / f"{name}.md").write_text(f"{table.markdown}\n", encoding="utf-8")
    for name, text in (("caption", caption(outcome, command)), ("explanation", explanations(outcome))):
        (folder / "tables" / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")
    for name, figure in figures_of(outcome).items():
        plots.write_figure(figure, folder, name)
    (folder / "report.html").write_text(_page(folder, outcome, tables, command), encoding="utf-8")
    return text_report(outcome, tables, command)


EPISODES = """<h2>Episodes that failed or did harm</h2><p class="small">{count} in all; at most {most} are listed.
<code>bpagent view {logs}/*.jsonl</code> writes the pages of all episodes, and <code>bpagent why LOG</code> says who
decided about a call; both take a protocol of your own as <code>--protocol FILE.py:NAME</code>.</p>{table}"""
HOW_TO_READ = """Upwards is safer: less harm is done unseen. To the right is more useful: more honest tasks are done. A
full dot: no other protocol is better in both; the shaded area is worse in both than one of these. An arrow leads from
the weakest attack to the worst. Ellipses: 95 %."""


def _page(folder: Path, outcome: Outcome, tables: Mapping[str, Table], command: str) -> str:
    """Return the report as one HTML page without network access or scripts; its figures lie beside it."""
    warnings = "".join(f"<p><b>Warning:</b> {escape(told)}</p>" for told in warnings_of(outcome))
    episodes, logs = episode_table(outcome.rows, folder), escape(str(folder / "logs"))
    count = sum(row.status == "failed" or row.side for row in outcome.rows)
    listed = EPISODES.format(count=count, most=MOST, logs=logs, table=episodes.html) if count else ""
    tables = {name: leading(table, episodes) if name == "rungs" else table for name, table in tables.items()}
    shown = "".join(f"<h2>{escape(TITLES[name])}</h2>{table.html}" for name, table in tables.items())
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(outcome.plan.name)}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}</style><h1>{escape(outcome.plan.name)}</h1>'
        f"{warnings}"
        f'<figure><img src="figure.svg" alt="Usefulness against worst-case safety"><figcaption>'
        f"{HOW_TO_READ}<br>{escape(caption(outcome, command))}</figcaption></figure>"
        f'{shown}<figure><img src="audit_curves.svg" alt="Safety at every audit budget"><img src="calibration.svg" '
        f'alt="What thresholds really spend"></figure>{listed}'
        f'<p class="small">{escape(explanations(outcome))}</p></html>\n'
    )
