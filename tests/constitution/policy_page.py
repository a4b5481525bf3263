"""The page of the policies in docs/constitution.md: effect, place and policy, from the table of rules.

`python -m tests.constitution.policy_page` writes it anew.
"""

from pathlib import Path

from constitution import POLICIES, Rule, Zone
from constitution.tables import table as rows_of

__all__ = ["PAGE", "written"]

PAGE = Path(__file__).parent.parent.parent / "docs" / "constitution.md"
BEGIN, END = "<!-- policies: written from the rules -->\n", "<!-- policies: end -->\n"
COLUMNS = ("default", "gated", "approval_list")
HEAD = f"| what would happen | where | {' | '.join(COLUMNS)} |\n|{' --- |' * (len(COLUMNS) + 2)}\n"


def table() -> str:
    """Return the table: effects that have the same levels in the same places share a row."""
    rules = {f"{rule.effects} {rule.zones}": rule for column in COLUMNS for rule in POLICIES[column].rules}
    rows: dict[str, dict[str, None]] = {}
    for rule in rules.values():
        where = ", ".join(_named(rule.zones)) or "anywhere"
        levels = " | ".join(_level(rule, column) for column in COLUMNS)
        effects = rows.setdefault(f"{where} | {levels}", {})
        effects.update((effect.name.lower().replace("_", " "), None) for effect in rule.effects)
    return HEAD + "".join(f"| {', '.join(effects)} | {rest} |\n" for rest, effects in rows.items())


def _named(zones: tuple[Zone, ...]) -> list[str]:
    """Return the names of zones; those of a group of the table by its name."""
    names = [zone.name.lower() for zone in zones]
    for group in ("beyond", "critical", "homes"):
        members = _members(group)
        if members <= set(names):
            names = [group, *(name for name in names if name not in members)]
    return [name.replace("_", " ") for name in names]


def _members(group: str) -> set[str]:
    groups = rows_of("rules")["zones"]
    words = groups[group].split()
    return {zone for word in words for zone in (_members(word) if word in groups else {word})}


def _level(rule: Rule, policy: str) -> str:
    """Return the strictest level that a policy gives to all that a rule speaks of; `-` where it allows it."""
    zones = rule.zones or tuple(Zone)
    levels = [
        max((other.level for other in POLICIES[policy].rules_for(effect, zone)), default=None)
        for effect in rule.effects
        for zone in zones
    ]
    return "-" if None in levels else min(level for level in levels if level is not None).value


def written(page: str) -> str:
    """Return the page with the table as it is now."""
    before, _, rest = page.partition(BEGIN)
    return before + BEGIN + "\n" + table() + "\n" + END + rest.partition(END)[2]


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
