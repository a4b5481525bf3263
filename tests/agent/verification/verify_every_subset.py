"""`make verify`: model-check the loop with subsets of its rules, and write the table into docs/verification.md.

Their number doubles with every rule: all of them are looked at with `SUBSETS=all` (hours), else those in which at most
three rules are there, or at most three are missing. What only shows with four rules that are there and four that are
not would be missed by that.

Exit code 0 when all hold, else 1; a counterexample is printed as soon as it is found.
"""

import multiprocessing
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from pathlib import Path

from attrs import evolve, frozen

from agent.presets.shipped import PRESETS
from agent.verification import loop_rules
from agent.verification.counterexample import tell
from tests.agent.verification.many_loops import loops_of, verify_each

DOCUMENT = Path(__file__).parents[3] / "docs" / "verification.md"
BEGIN, END = "<!-- the table that `make verify` writes begins here -->", "<!-- and ends here -->"

RULES = loop_rules(evolve(PRESETS["default"], together="none"))
NAMES = tuple(rule.name for rule in RULES)
AT_ONCE = 64  # subsets that one process looks at, one after the other
FEW = len(NAMES) if os.environ.get("SUBSETS") == "all" else 3  # rules that are there, or missing

Subsets = tuple[tuple[str, ...], ...]


@frozen
class Row:
    """What verifying several subsets of so many rules gave."""

    size: int
    subsets: int
    states: int
    broken: int


def batches() -> Iterator[Subsets]:
    """Yield the subsets that are looked at, of equally many rules together."""
    for size in range(len(NAMES) + 1):
        if size <= FEW or size >= len(NAMES) - FEW:
            subsets = tuple(combinations(NAMES, size))
            yield from (subsets[start : start + AT_ONCE] for start in range(0, len(subsets), AT_ONCE))


def check(subsets: Subsets) -> Row:
    """Verify the loop with each of several subsets; print what is violated as soon as it is found."""
    states, broken = 0, 0
    for label, _, result in verify_each(loops_of(RULES, subsets)):
        states += result.states
        broken += bool(result.violations)
        for violation in result.violations:
            print(f"{label}\n\n{tell(violation)}\n", flush=True)
    return Row(len(subsets[0]), len(subsets), states, broken)


def check_all() -> list[Row]:
    """Verify the subsets, on all processors, and tell how far it is."""
    rows = []
    with ProcessPoolExecutor(os.cpu_count(), mp_context=multiprocessing.get_context("spawn")) as pool:
        for row in pool.map(check, batches()):
            rows.append(row)
            told = f"{sum(row.subsets for row in rows)} subsets, {sum(row.broken for row in rows)} broken"
            print(told, file=sys.stderr, flush=True)
    return rows


def table(rows: list[Row]) -> str:
    """Return the subsets by their size."""
    by_size = [(str(size), [row for row in rows if row.size == size]) for size in sorted({row.size for row in rows})]
    lines = [
        f"| {label} | {sum(row.subsets for row in some):,} | {sum(row.states for row in some):,} "
        f"| {'**broken**' if any(row.broken for row in some) else 'holds'} |"
        for label, some in (*by_size, (f"these, of {2 ** len(NAMES):,}", rows))
    ]
    return "\n".join(["| rules | subsets | states | |", "| --- | ---: | ---: | --- |", *lines])


def main() -> int:
    """Verify everything and write the table."""
    rows = check_all()
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{table(rows)}\n\n{END}{after}", encoding="utf-8")
    return int(any(row.broken for row in rows))


if __name__ == "__main__":
    sys.exit(main())
