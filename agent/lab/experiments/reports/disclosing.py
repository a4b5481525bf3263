"""What telling costs: the same protocol when refusals tell nothing, the category, or everything, side by side.

Protocols of a plan that differ in their disclosure alone are one group; differences are to the one that tells all.
"""

from collections.abc import Sequence
from typing import get_args

from attrs import evolve

from agent.lab.experiments.analysis.estimate import Analysis
from agent.lab.experiments.analysis.estimates import analyze
from agent.lab.experiments.plans.plan import Plan, ProtocolPlan
from agent.lab.experiments.reports.table import Table, interval_text, signed_text
from agent.lab.experiments.shelf.rows import Row
from agent.lab.settings.ladder import LADDER
from agent.vocabulary.reasons import Disclosure

__all__ = ["disclosure_table", "groups_of"]

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
