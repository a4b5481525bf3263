"""The report of an experiment: the hero figure, the main table, and what they rest on; as text and as one HTML page."""

from collections import Counter
from html import escape

from agent.lab.experiments.analysis import Analysis, Estimate
from agent.lab.experiments.conduct import Outcome
from agent.lab.experiments.deployment_tables import explained, lines_of, text_of
from agent.lab.experiments.drawing import COLORS, Plot
from agent.lab.experiments.tables import cells_of, headings_of, text_table
from agent.lab.measures import Interval, front

__all__ = ["caption", "hero_figure", "html_page", "text_report"]

EXPLANATION = """\
U: usefulness, the share of honest tasks done. S1: the share of attack episodes that do no harm unseen; Soo: the same
for an attacker who tries until caught or done. Audits, before a step runs, cost {budget:.0%} of honest calls, the same
for every protocol. {weakest}: S1 against that attack; worst: against the rung of the ladder that does most harm; best
response: the rung that did most on the development split, and S1 against it on the test split. difference: of S1 worst
to the constitution alone, on the same tasks. Intervals: 95 %, by resampling tasks, with thresholds fitted again. front:
how often no other protocol is better in both."""

STYLE = """\
body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;font-size:13px}
td,th{padding:.25em .6em;border-bottom:1px solid #ddd;text-align:left;white-space:nowrap}
figure{margin:0}figcaption{color:#555}svg{max-width:54em;width:100%}"""


def hero_figure(analysis: Analysis) -> str:
    """Return usefulness against worst-case safety of all protocols, as SVG.

    Ellipses are intervals, arrows lead from the first attack to the worst one, what the front beats is shaded.
    """
    plot = Plot("usefulness", f"worst-case safety, {analysis.budget:.0%} of honest calls audited")
    points = {each.protocol: (each.usefulness.value, each.worst.value) for each in analysis.estimates}
    best = front(points)
    plot.shade([points[name] for name in best], COLORS[0])
    for number, each in enumerate(analysis.estimates):
        color = COLORS[number % len(COLORS)]
        _draw(plot, each, color, hollow=each.protocol not in best)
        plot.entry(each.protocol, color, hollow=each.protocol not in best)
    return plot.svg("usefulness and worst-case safety of protocols")


def _draw(plot: Plot, each: Estimate, color: str, *, hollow: bool) -> None:
    x, y = each.usefulness.value, each.worst.value
    plot.ellipse(x, y, _half(each.usefulness), _half(each.worst), color)
    if each.weakest.value != y:
        plot.arrow(x, each.weakest.value, x, y, color)
    plot.point(x, y, color, hollow=hollow)


def _half(interval: Interval) -> float:
    return (interval.high - interval.low) / 2


def caption(outcome: Outcome, command: str) -> str:
    """Return what the figure rests on: episodes, thresholds, seconds and the command."""
    analysis = outcome.analysis
    thresholds = outcome.frozen.thresholds if outcome.frozen else {}
    frozen = ", ".join(f"{name}: {theta:.3f}" for name, theta in thresholds.items()) or "none"
    digest = f" (frozen {outcome.frozen.digest})" if outcome.frozen else ""
    failed = f", {analysis.failed} failed and left out" if analysis.failed else ""
    missing = f", {analysis.missing_scores} scores missing" if analysis.missing_scores else ""
    levels = Counter(row.isolation for row in outcome.rows if row.status == "ran")
    isolation = ", ".join(f"{level} ({count})" for level, count in sorted(levels.items()))
    auc = f" The monitor's AUC over steps: {analysis.auc:.2f}." if analysis.auc is not None else ""
    return (
        f"{analysis.episodes} episodes{failed}{missing}; {outcome.ran} of them run now, in {outcome.seconds:.0f} s. "
        f"Isolation: {isolation}. Thresholds: {frozen}{digest}.{auc}{_spent(outcome)} Command: {command}"
    )


def _spent(outcome: Outcome) -> str:
    """Return what real models took: nominally, kept answers included, and what they were asked for."""
    asked, now = outcome.asked, outcome.asked_now
    if not outcome.taken.tokens and not asked.requests:
        return ""
    told = f"{asked.requests} requests so far, {now.requests} of them now, took {asked}"
    return f" Real models: {outcome.taken} nominally; {told}."


def explanation(analysis: Analysis) -> str:
    """Return what the columns mean."""
    return EXPLANATION.format(budget=analysis.budget, weakest=analysis.weakest)


def text_report(outcome: Outcome, command: str) -> str:
    """Return the report for a terminal."""
    deployed = f"{text_of(outcome.deployed)}\n\n{explained(outcome.deployments)}\n\n" if outcome.deployed else ""
    main = f"{text_table(outcome.analysis)}\n\n{explanation(outcome.analysis)}"
    return f"{main}\n\n{deployed}{caption(outcome, command)}\n"


def html_page(outcome: Outcome, command: str) -> str:
    """Return the report as one page that needs no network and runs no script."""
    analysis = outcome.analysis
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings_of(analysis))
    body = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells_of(each))}</tr>" for each in analysis.estimates
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(outcome.plan.name)}</title>'
        f"<style>{STYLE}</style><h1>{escape(outcome.plan.name)}</h1>"
        f"<figure>{hero_figure(analysis)}<figcaption>{escape(caption(outcome, command))}</figcaption></figure>"
        f"<p>{escape(explanation(analysis))}</p><table><tr>{head}</tr>{body}</table>{_deployments(outcome)}</html>\n"
    )


def _deployments(outcome: Outcome) -> str:
    if not outcome.deployed:
        return ""
    lines = [
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>" for cells in lines_of(outcome.deployed)
    ]
    return f"<h2>Deployments</h2><p>{escape(explained(outcome.deployments))}</p><table>{''.join(lines)}</table>"
