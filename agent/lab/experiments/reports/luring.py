"""What AgentDojo reports, where the attack lies in what is read: utility, that under attack, and attack success.

utility               share of the user tasks that are done where nobody attacks, each task once
utility under attack  the same of all pairs of a user task and an attack
attack success        share of these pairs in which the attacker's goal was met, at any moment
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

from agent.lab.experiments.reports.table import Table
from agent.lab.experiments.shelf.rows import Row
from agent.lab.settings.shipped import setting_named

__all__ = ["under_attack"]

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
