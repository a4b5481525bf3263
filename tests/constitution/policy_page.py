"""The page of the policies in docs/constitution.md: effect, place and policy, from the table of rules.

`python -m tests.constitution.policy_page` writes it anew.
"""

from pathlib import Path

from constitution import POLICIES, Rule, Zone

__all__ = ["PAGE", "written"]

PAGE = Path(__file__).parent.parent.parent / "docs" / "constitution.md"
BEGIN, END = "<!-- policies: written from the rules -->\n", "<!-- policies: end -->\n"
COLUMNS = ("default", "strict", "gated", "approval_list", "passthrough")
HEAD = f"| what would happen | where | {' | '.join(COLUMNS)} | rule |\n|{' --- |' * (len(COLUMNS) + 3)}\n"


def table() -> str:
    """Return the table: a row for each rule; `workspace` has the rules of `default`."""
    rules: dict[str, Rule] = {}
    for column in COLUMNS:
        for rule in POLICIES[column].rules:
            rules.setdefault(f"{rule.effects} {rule.zones}", rule)
    return HEAD + "".join(_row(rule) for rule in rules.values())


def _row(rule: Rule) -> str:
    effects = ", ".join(effect.name.lower().replace("_", " ") for effect in rule.effects)
    zones = ", ".join(zone.name.lower().replace("_", " ") for zone in rule.zones) or "anywhere"
    return f"| {effects} | {zones} | {' | '.join(_level(rule, column) for column in COLUMNS)} | {rule.name} |\n"


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
